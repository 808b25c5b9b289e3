"""The optimizer's own time: stage table, growth, memory, and the ratio to one batch of qLogEHVI.

    python benchmarks/overhead.py            # everything, about ten minutes
    python benchmarks/overhead.py --quick    # the stage table of one run only

The problem costs nothing, so all seconds are the optimizer's. Processor seconds are given beside
wall-clock ones, because the machine may be shared. Paper: the component-time table.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections import Counter

import numpy as np

from neuropareto import Archive, NeuroPareto, Optimizer, problem
from neuropareto.randomness import Streams
from neuropareto.result import result_of

PAPER = "682 s in all on a GPU; about 8 s per deep-GP fit"


def run(algorithm: NeuroPareto, d: int, *, budget: int, n_initial: int, q: int) -> Optimizer:
    task = problem("dtlz2", d=d, m=2)
    o = Optimizer(task.space, 2, algorithm, seed=0, n_initial=n_initial)
    batch = o.ask(n_initial)
    o.tell(batch, task(batch.X))
    while len(o.archive) < budget:
        batch = o.ask(min(q, budget - len(o.archive)))
        o.tell(batch, task(batch.X))
    return o


def stage_table(name: str, algorithm: NeuroPareto, d: int) -> Optimizer:
    cpu = time.process_time()
    o = run(algorithm, d, budget=300, n_initial=200 if d >= 100 else 100, q=10)
    cpu = time.process_time() - cpu
    total: Counter[str] = Counter()
    for note in o.notes:
        total.update(note["stage_seconds"])
    wall = sum(note["seconds"] for note in o.notes)
    front = problem("dtlz2", d=d, m=2).front
    print(f"\n### {name}, DTLZ2-{d}D, 300 evaluations, q = 10, {len(o.notes)} rounds\n")
    print("| stage | seconds | share | per round |\n|---|---:|---:|---:|")
    for stage, seconds in total.items():
        print(f"| {stage} | {seconds:.1f} | {seconds / wall:.0%} | {seconds / len(o.notes):.2f} |")
    print(f"| all | {wall:.1f} | | {wall / len(o.notes):.2f} |")
    igd = np.nan
    if front is not None:
        from neuropareto import pareto

        igd = pareto.igd(o.F, front())
    print(f"\nprocessor {cpu:.1f} s; IGD {igd:.4f}; hypervolume {result_of(o).hypervolume:.5g}")
    print(f"printed in the paper: {PAPER}")
    return o


def growth(algorithm: NeuroPareto) -> None:
    print("\n### Growth of one round, q = 10 (second round, warm)\n")
    print("| variables | evaluations | wall s | processor s |\n|---:|---:|---:|---:|")
    for d, n in (
        (30, 200),
        (100, 200),
        (200, 200),
        (500, 200),
        (100, 100),
        (100, 500),
        (100, 2000),
    ):
        task = problem("dtlz2", d=d, m=2)
        U = task.space.latin_hypercube(n, rng=np.random.default_rng(0))
        F = np.asarray(task(task.space.from_unit(U)))
        archive = Archive.of(U, F)
        none = np.empty((0, d))
        first = algorithm.propose(archive, 10, pending=none, memory=None, rng=Streams(0, 1))
        grown = archive.extended(first.U, np.asarray(task(task.space.from_unit(first.U))))
        wall, cpu = time.perf_counter(), time.process_time()
        algorithm.propose(grown, 10, pending=none, memory=first.memory, rng=Streams(0, 2))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"| {d} | {n} | {wall:.1f} | {cpu:.1f} |", flush=True)


def against_botorch(algorithm: NeuroPareto, d: int) -> None:
    """One batch of ours and one of qLogEHVI from the same archive, in the same process.

    qLogEHVI has the lightest settings at which it still is one: a single restart of 20 iterations
    for each of the q points in turn. Its usual settings take several times as long.
    """
    warnings.filterwarnings("ignore")
    import torch
    from botorch import fit_gpytorch_mll
    from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
    from gpytorch.mlls import SumMarginalLogLikelihood

    from neuropareto.peers.compilation import guarded

    task = problem("dtlz2", d=d, m=2)
    U = task.space.latin_hypercube(200, rng=np.random.default_rng(0))
    F = np.asarray(task(task.space.from_unit(U)))
    archive = Archive.of(U, F)
    none = np.empty((0, d))
    cpu = time.process_time()
    first = algorithm.propose(archive, 10, pending=none, memory=None, rng=Streams(0, 1))
    cold = time.process_time() - cpu
    grown = archive.extended(first.U, np.asarray(task(task.space.from_unit(first.U))))
    cpu = time.process_time()
    algorithm.propose(grown, 10, pending=none, memory=first.memory, rng=Streams(0, 2))
    warm = time.process_time() - cpu

    cpu = time.process_time()
    X = torch.as_tensor(U)
    Y = -torch.as_tensor((F - F.mean(axis=0)) / F.std(axis=0))
    model = ModelListGP(*(SingleTaskGP(X, Y[:, j : j + 1]) for j in range(2)))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    reference = Y.min(dim=0).values
    with guarded():
        acquisition = qLogExpectedHypervolumeImprovement(
            model, reference, FastNondominatedPartitioning(reference, Y)
        )
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    optimize_acqf(
        acquisition, bounds, q=10, num_restarts=1, raw_samples=16, sequential=True,
        options={"maxiter": 20},
    )  # fmt: skip
    theirs = time.process_time() - cpu
    print(f"\n### One batch of 10 at 200 evaluations, {d} variables (processor seconds)\n")
    print("| our round | seconds | BoTorch qLogEHVI | ratio |\n|---|---:|---:|---:|")
    for name, ours in (("first, from nothing", cold), ("every later one", warm)):
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--variables", type=int, default=100)
    options = parser.parse_args()
    stage_table("NeuroPareto()", NeuroPareto(), options.variables)
    if options.quick:
        return
    stage_table("NeuroPareto.paper()", NeuroPareto.paper(), options.variables)
    growth(NeuroPareto())
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    against_botorch(NeuroPareto(), options.variables)


if __name__ == "__main__":
    main()
