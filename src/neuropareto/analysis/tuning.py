"""The grid search of the paper: whole runs of each configuration on problems that cost nothing.

Appendix "Hyper-parameter Tuning Protocol", Table grid. Every configuration runs on every task and
seed with the same start design; a block is one (task, seed). The score of a run is its hypervolume
at the worst values of the block's start design, as a share of the best configuration's, so problems
count alike. Finished runs are in a journal: a search that is killed goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto import pareto
from neuropareto.analysis.cost import TRANSFERRED, Cost
from neuropareto.analysis.journal import Journal
from neuropareto.analysis.knobs import Configuration, grid_size, present
from neuropareto.analysis.tuned import Evidence, Tuned
from neuropareto.bench.grid import Scale, Task, grid_of
from neuropareto.minimize import minimize
from neuropareto.neuropareto import NeuroPareto
from neuropareto.problem import signs
from neuropareto.result import Result
from neuropareto.space import Array
from neuropareto.study.spec import describe


@dataclass(frozen=True)
class Search:
    """What a grid search runs: configurations of a pipeline on tasks and seeds."""

    pipeline: NeuroPareto
    configurations: tuple[Configuration, ...]
    tasks: tuple[Task, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (self.configurations and self.tasks and self.seeds):
            raise ValueError("A grid search needs at least one configuration, task and seed.")

    @property
    def evaluations(self) -> int:
        """Evaluations of test problems that the whole search takes."""
        runs = len(self.configurations) * len(self.seeds)
        return runs * sum(task.budget for task in self.tasks)


def tasks_of(problems: Sequence[str], settings: Mapping[str, Any]) -> tuple[Task, ...]:
    """Benchmark tasks by name; ``settings`` as in a grid file (dimensions, budget, batch ...)."""
    document = {
        "problems": list(problems), "algorithms": ["neuropareto"], "seeds": 1, **settings
    }  # fmt: skip
    return grid_of("tuning", document, Scale()).tasks


def search(
    plan: Search, folder: Path, *, told: Callable[[str], None] = lambda text: None
) -> Tuned:
    """Run what is left of a grid search and return the best configuration with its evidence.

    The journal lies in ``folder``; ValueError if it belongs to another search.
    """
    journal = Journal(folder / "journal.jsonl", _about(plan))
    cells = [(c, t, s) for s in plan.seeds for t in plan.tasks for c in plan.configurations]
    for i, (configuration, task, seed) in enumerate(cells):
        key = {"configuration": configuration.values, "task": task.key, "seed": seed}
        if journal.found(**key) is not None:
            continue
        told(f"{i + 1}/{len(cells)} {task.key} seed {seed}: {configuration.said(plan.pipeline)}")
        journal.append({**key, **_run(configuration.algorithm(plan.pipeline), task, seed)})
    tuned = chosen(plan, journal.entries)
    tuned.save(folder)
    return tuned


def chosen(plan: Search, entries: Sequence[Mapping[str, Any]]) -> Tuned:
    """The configuration with the largest mean share of the block's best hypervolume.

    Ties go to the configuration that stands first in the plan.
    """
    blocks = [(task.key, seed) for task in plan.tasks for seed in plan.seeds]
    volume = np.full((len(plan.configurations), len(blocks)), np.nan)
    seconds = np.zeros(len(plan.configurations))
    known = [c.values for c in plan.configurations]
    for entry in entries:
        row, column = known.index(entry["configuration"]), (entry["task"], entry["seed"])
        volume[row, blocks.index(column)] = float(entry["hypervolume"])
        seconds[row] += float(entry["seconds"])
    shares = shares_of_best(volume)
    score = shares.mean(axis=1)
    order = np.argsort(-score, kind="stable")
    evidence = tuple(
        Evidence(
            place, plan.configurations[i].said(plan.pipeline), "grid",
            plan.configurations[i].values,
            {
                "share of the best": float(score[i]),
                "worst block": float(shares[i].min()),
                "blocks won": float(np.sum(shares[i] == 1.0)),
                "seconds a run": float(seconds[i] / len(blocks)),
            },
        )
        for place, i in enumerate(order, start=1)
    )  # fmt: skip
    best = plan.configurations[int(order[0])]
    size = grid_size(plan.pipeline)
    return Tuned(
        "grid", ", ".join(task.key for task in plan.tasks), best,
        best.algorithm(plan.pipeline), evidence,
        Cost(plan.evaluations, 0, plan.evaluations, float(seconds.sum())),
        notes=(
            f"{len(plan.configurations)} of the grid's {size} configurations, "
            f"{len(blocks)} runs each, {plan.evaluations} evaluations of test problems.",
            "With few seeds most of the difference between configurations is chance.",
        ),
    )  # fmt: skip


def transferable(path: Path, pipeline: NeuroPareto) -> tuple[Configuration, ...]:
    """The best configurations of a finished grid search (its ``tuned.json``), best first.

    At most 15, and the pipeline as it is among them: a tuned configuration has to beat that one.
    """
    told = json.loads(path.read_text(encoding="utf-8"))
    if told.get("how") != "grid":
        raise ValueError(f"{path} does not come from a grid search.")
    found = [Configuration.of(row["configuration"]) for row in told["evidence"]]
    usual = present(pipeline)
    return (usual, *(c for c in found if c != usual))[:TRANSFERRED]


def shares_of_best(volume: Array) -> Array:
    """Hypervolumes (configurations, blocks) as shares of each block's best; 1 where all are 0."""
    best = volume.max(axis=0)
    return np.where(best > 0, volume / np.where(best > 0, best, 1.0), 1.0)


def _run(algorithm: NeuroPareto, task: Task, seed: int) -> dict[str, float]:
    began = time.perf_counter()
    result = minimize(
        task.instance(seed), budget=task.budget, batch=task.batch, algorithm=algorithm, seed=seed,
        n_initial=task.n_initial, progress=False,
    )  # fmt: skip
    return {
        "hypervolume": volume_beyond_start(result, task.n_initial),
        "seconds": time.perf_counter() - began,
    }


def volume_beyond_start(result: Result, n_initial: int) -> float:
    """Hypervolume of the front at the worst values of the first ``n_initial`` evaluations.

    Unlike a problem's own reference point, this one is never out of reach.
    """
    sign = signs(result.directions, result.F.shape[1])
    F = sign * result.F
    feasible = (result.G <= 0).all(axis=1)
    if not len(F) or not feasible.any():
        return 0.0
    return float(pareto.hypervolume(F[feasible], F[:n_initial].max(axis=0)))


def _about(plan: Search) -> dict[str, Any]:
    return {
        "how": "grid",
        "pipeline": describe(plan.pipeline),
        "configurations": [c.values for c in plan.configurations],
        "tasks": [task.key for task in plan.tasks],
        "seeds": list(plan.seeds),
    }
