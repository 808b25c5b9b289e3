"""Processor seconds of one round of every algorithm at 30, 100 and 200 variables.

    python benchmarks/peers.py                       # all, about ten minutes
    python benchmarks/peers.py k-rvea morbo          # only these

DTLZ2 with two objectives and the paper's start design; the first round (models from nothing) and
the second (warm), each of the algorithm's published batch (10 where it has none).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from neuropareto import Archive, problem
from neuropareto.algorithm import Batched
from neuropareto.algorithms import OWN, algorithm
from neuropareto.optimizer import start_design_size
from neuropareto.peers import PEERS
from neuropareto.randomness import Streams

SIZES = (30, 100, 200)


def rounds(name: str, d: int) -> tuple[float, float]:
    """Processor seconds of the first and the second round."""
    task, chosen = problem("dtlz2", d=d, m=2), algorithm(name)
    batch = chosen.batch if isinstance(chosen, Batched) else 10
    U = task.space.latin_hypercube(start_design_size(d), rng=np.random.default_rng(0))
    archive = Archive.of(U, np.asarray(task(task.space.from_unit(U))))
    seconds, memory = [], None
    for number in (1, 2):
        began = time.process_time()
        found = chosen.propose(
            archive, batch, pending=np.empty((0, d)), memory=memory, rng=Streams(0, number)
        )
        seconds.append(time.process_time() - began)
        archive = archive.extended(found.U, np.asarray(task(task.space.from_unit(found.U))))
        memory = found.memory
    return seconds[0], seconds[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["neuropareto", "nsga2", *PEERS])
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in {*OWN, *PEERS}]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join([*OWN, *PEERS])}")
    warnings.filterwarnings("ignore")
    heads = "".join(f" first, d = {d} | later, d = {d} |" for d in SIZES)
    print(f"| algorithm | batch |{heads}\n|---|---:|{'---:|' * 2 * len(SIZES)}")
    for name in options.names:
        chosen = algorithm(name)
        batch = chosen.batch if isinstance(chosen, Batched) else 10
        cells = [f"{s:.2f}" for d in SIZES for s in rounds(name, d)]
        print(f"| {name} | {batch} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
