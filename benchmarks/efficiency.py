"""IGD at 300 evaluations of algorithm variants on single cells, for development.

    python benchmarks/efficiency.py --variant structured dtlz2:100 dtlz2:100:shifted --seeds 0 1

A cell is ``problem:d[:variant[:m]]``; variants as in ``neuropareto.problems.variants``. Each finished
run leaves one small JSON under ``benchmarks/records/efficiency/`` and is not run again; ``--jobs 2``
uses two processes. Printed per run: IGD, optimizer CPU seconds, coverage of the surrogate's 90 %
intervals on freshly evaluated proposals (second figure: second half of the run).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto import pareto
from neuropareto.algorithm import Algorithm, Proposal, RandomSearch
from neuropareto.archive import Archive
from neuropareto.candidates import Candidates, RankConditioned, Several, SurrogateDescent
from neuropareto.classifier import RankBelief
from neuropareto.goals import proper_nadir
from neuropareto.memory import Memory, joined, part
from neuropareto.moves import Descents, GradientMoves, ProfileJumps, Slides
from neuropareto.neuropareto import NeuroPareto
from neuropareto.optimizer import Optimizer
from neuropareto.problem import Problem
from neuropareto.problems.dtlz import dtlz
from neuropareto.problems.sparse import NAMES as SPARSE
from neuropareto.problems.sparse import sparse
from neuropareto.problems.variants import VARIANTS
from neuropareto.problems.wfg import wfg
from neuropareto.problems.zdt import zdt
from neuropareto.randomness import Streams
from neuropareto.screening import TwoStage
from neuropareto.selection import MeanGain
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, FourierProxy, Ladder
from neuropareto.surrogate.contract import Surrogate
from neuropareto.surrogate.structured import StructuredGP, training

RECORDS = Path(__file__).parent / "records" / "efficiency"
MOVES = Descents((GradientMoves(), ProfileJumps()))


@dataclass(frozen=True)
class MeanGreedy:
    """Fit, breed, take the q candidates that add most hypervolume if the mean were the truth."""

    surrogate: Surrogate = StructuredGP()
    candidates: Candidates = Several((Slides(MOVES), RankConditioned(size=300)))

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        """One round."""
        began = time.process_time()
        model = self.surrogate.fit(
            archive.U, archive.outputs, warm=part(memory, "surrogate"), rng=rng("surrogate")
        )
        fitted = time.process_time()
        probability = np.zeros((len(archive), 2))
        probability[:, 0] = archive.ranks == 1
        probability[:, 1] = archive.ranks > 1
        belief = RankBelief(probability, np.zeros(len(archive)), np.zeros(len(archive), dtype=int))
        pool = self.candidates.generate(archive, belief, model, rng=rng("candidates"))
        mean = model.posterior(pool.U).mean[:, : archive.m]
        front = archive.front
        reach = np.vstack([front, np.minimum(mean, archive.F.max(axis=0))])
        ahead = reach[pareto.nondominated(reach)]
        # The front may grow beyond its present ends: a reference at those would never let it.
        worst = np.maximum(proper_nadir(front), proper_nadir(ahead))
        worst = np.minimum(worst, front.max(axis=0) + 0.5 * (worst - ahead.min(axis=0)))
        reference = worst + 0.1 * (worst - ahead.min(axis=0)) + 1e-9
        rows = pareto.greedy_improvement(mean, front, reference, q)
        searched = time.process_time()
        notes = {
            "surrogate": model.notes,
            "operators": pool.operator[rows].tolist(),
            "predicted": mean[rows].tolist(),
            "fit_seconds": fitted - began,
            "search_seconds": searched - fitted,
        }
        return Proposal(pool.U[rows], joined({"surrogate": model.warm}), notes)


def algorithms() -> dict[str, Callable[[], Algorithm]]:
    """Named variants; each removes or replaces one thing."""
    base = MeanGreedy()
    lead = Several((SurrogateDescent(), Descents((ProfileJumps(),))))
    return {
        "random": RandomSearch,
        "structured": lambda: base,
        "tight": lambda: replace(base, surrogate=StructuredGP(few=(training.TIGHT,))),
        "product": lambda: replace(
            base, surrogate=StructuredGP(few=(training.TIGHT_PRODUCT, training.SPARSE_PRODUCT))
        ),
        "sums": lambda: replace(
            base, surrogate=StructuredGP(many=(training.TIGHT, training.SPARSE))
        ),
        "descent": lambda: replace(base, candidates=Several((Slides(lead), RankConditioned(300)))),
        "neuropareto": _neuropareto,
        "no-jumps": lambda: replace(base, candidates=Slides(Descents((GradientMoves(),)))),
        "no-gradient": lambda: replace(base, candidates=Slides(Descents((ProfileJumps(),)))),
        "no-slides": lambda: replace(base, candidates=MOVES),
    }


def _neuropareto() -> Algorithm:
    """The whole algorithm of the paper with this surrogate and these moves in its places."""
    return replace(
        NeuroPareto(),
        surrogate=Ladder((StructuredGP(), ExactGP(), FourierProxy())),
        candidates=Several((Slides(MOVES), RankConditioned(size=300))),
        estimate=MeanGain(),
        screening=TwoStage(n_screen=2000, k=250, penalty=0.0, proxy=None),
    )


def problem(cell: str, seed: int) -> Problem:
    """The problem of a cell; the seed picks the instance of random problems."""
    name, d, *rest = cell.split(":")
    m = int(rest[1]) if len(rest) > 1 else 2
    if name in SPARSE:
        found = sparse(name, int(d), seed=seed)
    else:
        family = dtlz if name.startswith("dtlz") else wfg if name.startswith("wfg") else zdt
        found = family(name, int(d), m)
    return VARIANTS[rest[0]](found, seed) if rest and rest[0] else found


def run(variant: str, cell: str, seed: int, budget: int, verbose: bool) -> dict[str, Any]:
    """One run; its record."""
    task = problem(cell, seed)
    assert task.front is not None
    front = task.front()
    optimizer = Optimizer(task.space, task.n_objectives, algorithms()[variant](), seed=seed)
    trace: list[float] = []
    began, spent = time.time(), 0.0
    while len(optimizer.archive) < budget:
        left = budget - len(optimizer.archive)
        q = min(left, 10 if len(optimizer.archive) >= optimizer.n_initial else optimizer.n_initial)
        tick = time.process_time()
        batch = optimizer.ask(q)
        spent += time.process_time() - tick
        F = np.asarray(task(batch.X))
        optimizer.tell(batch, F)
        trace.append(pareto.igd(optimizer.archive.F, front))
        if verbose and optimizer.notes:
            print(
                len(optimizer.archive),
                f"igd {trace[-1]:.4g}",
                _line(optimizer.notes[-1], F),
                flush=True,
            )
    coverage = [n["surrogate"]["coverage"] for n in optimizer.notes if "surrogate" in n]
    known = [c for c in coverage if c is not None]
    return {
        "variant": variant, "cell": cell, "seed": seed, "igd": trace[-1], "trace": trace,
        "cpu_seconds": spent, "wall_seconds": time.time() - began,
        "coverage": float(np.mean(known)) if known else None,
        "coverage_late": float(np.mean(known[len(known) // 2 :])) if known else None,
        "fit_seconds": [n["fit_seconds"] for n in optimizer.notes if "fit_seconds" in n],
        "search_seconds": [n["search_seconds"] for n in optimizer.notes if "search_seconds" in n],
        "beliefs": [n["surrogate"]["variant"] for n in optimizer.notes[:1] if "surrogate" in n],
    }  # fmt: skip


def _line(notes: dict[str, Any], F: Array) -> str:
    if "surrogate" not in notes:
        return ""
    s = notes["surrogate"]
    error = np.abs(np.array(notes["predicted"]) - F).mean(axis=0).round(4)
    operators = {k: notes["operators"].count(k) for k in sorted(set(notes["operators"]))}
    rounded = {
        k: [None if v is None else round(v, 3) for v in s[k]]
        for k in ("density", "output_warp", "inflation", "frequency", "noise", "residual")
    }
    return (
        f"fit {notes['fit_seconds']:.1f} search {notes['search_seconds']:.1f} err {error} "
        f"{operators} cov {s['coverage']} {s['variant']} {[m[:2] for m in s['modulators']]} {rounded}"
    )


def finished(variant: str, cell: str, seed: int, budget: int, verbose: bool) -> dict[str, Any]:
    """The record of a run, from disk if it is there."""
    name = f"{variant}-{cell.replace(':', '_')}-{seed}" + ("" if budget == 300 else f"-{budget}")
    path = RECORDS / f"{name}.json"
    if path.exists():
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record
    record = run(variant, cell, seed, budget, verbose)
    RECORDS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return record


def main() -> None:
    """Run or read the cells and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="+")
    parser.add_argument("--variant", nargs="+", default=["structured"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    tasks = [
        (v, c, s, given.budget, given.verbose)
        for c in given.cells for v in given.variant for s in given.seeds
    ]  # fmt: skip
    with ProcessPoolExecutor(max_workers=given.jobs) as workers:
        futures = [workers.submit(finished, *task) for task in tasks]
        for future in futures:
            r = future.result()
            late = "" if r["coverage"] is None else f"{r['coverage']:.2f} {r['coverage_late']:.2f}"
            print(
                f"{r['variant']:12s} {r['cell']:24s} seed {r['seed']} igd {r['igd']:.4g} "
                f"cpu {r['cpu_seconds']:.0f} s cov {late} {r['beliefs']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
