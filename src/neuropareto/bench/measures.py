"""What a run achieved: IGD, IGD+, hypervolume and its ratio to the true front's, per evaluation.

Notation: n evaluations, m objectives, P (p, m) the true front (PlatEMO's points, about 10,000).
All of them look at every feasible evaluation so far (the archive), not at a population. Hypervolume
is measured at the problem's own reference point, which every table states; without a feasible point
it is 0, and a distance to the true front, like anything on a problem without one, has no value: NaN
here, null in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from neuropareto import pareto
from neuropareto.bench.grid import Task
from neuropareto.bench.record import Record
from neuropareto.problem import Problem, signs
from neuropareto.space import Array

VERSION = 1
"""Raised when a value would come out differently; older records are then measured again."""


@dataclass(frozen=True)
class Measure:
    """A figure of merit: its key in files, its name in tables, and which end is good."""

    key: str
    name: str
    smaller_is_better: bool

    def better(self, a: float, b: float) -> bool:
        """Whether a is better than b."""
        return a < b if self.smaller_is_better else a > b

    def order(self, values: Array) -> Array:
        """``values`` turned so that smaller is better."""
        return values if self.smaller_is_better else -values


IGD = Measure("igd", "IGD", True)
IGD_PLUS = Measure("igd_plus", "IGD+", True)
HV = Measure("hv", "HV", False)
HV_RATIO = Measure("hv_ratio", "HV ratio", False)
MEASURES = {measure.key: measure for measure in (IGD, IGD_PLUS, HV, HV_RATIO)}


def final(record: Record) -> dict[str, Any]:
    """All measures at the end of a run, with the reference point they used; missing ones are None."""
    problem = record.cell.task.instance(record.cell.seed)
    F = record.minimised[record.feasible]
    reference, front = reference_point(problem), true_front(problem)
    found: dict[str, Any] = {"version": VERSION, **dict.fromkeys(MEASURES)}
    found["front_size"] = len(record.front_rows)
    found["reference_point"] = None if reference is None else reference.tolist()
    if front is not None and len(F):
        found["igd"], found["igd_plus"] = pareto.igd(F, front), pareto.igd_plus(F, front)
    if reference is not None:
        found["hv"] = pareto.hypervolume(F, reference) if len(F) else 0.0
        best = best_hypervolume(record.cell.task, record.cell.seed)
        found["hv_ratio"] = None if best is None else found["hv"] / best
    return found


def current(summary: Mapping[str, Any]) -> bool:
    """Whether the measures in a record's summary are those of this version."""
    return bool(summary["measures"].get("version") == VERSION)


def curve(record: Record, measure: Measure) -> Array:
    """A measure after each evaluation, failed ones included; (n + failures,).

    Before the first feasible point a volume is 0 and a distance is NaN.
    """
    problem = record.cell.task.instance(record.cell.seed)
    good = np.flatnonzero(record.succeeded)[record.feasible]
    values = np.full(len(record.succeeded), np.nan)
    values[good] = _history(record.minimised[record.feasible], problem, measure, record)
    last = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(last >= 0, values[last], _of_nothing(problem, measure, record))


def reference_point(problem: Problem) -> Array | None:
    """The point hypervolume is measured at, with the sense of minimisation, (m,)."""
    if problem.reference_point is None:
        return None
    return np.asarray(signs(problem.directions, problem.n_objectives) * problem.reference_point)


def true_front(problem: Problem) -> Array | None:
    """Points of the true front with the sense of minimisation, (p, m)."""
    if problem.front is None:
        return None
    return np.asarray(signs(problem.directions, problem.n_objectives) * problem.front())


@lru_cache(maxsize=256)
def best_hypervolume(task: Task, seed: int) -> float | None:
    """Hypervolume of the true front at the task's reference point."""
    problem = task.instance(seed)
    reference, front = reference_point(problem), true_front(problem)
    if reference is None or front is None:
        return None
    volume = pareto.hypervolume(front, reference)
    return volume if volume > 0 else None


def igd_plus_history(F: Array, front: Array) -> Array:
    """IGD+ of the first i rows of F (n, m) for i = 1..n; (n,).

    IGD+ = mean over p of min_i ||max(F_i - p, 0)||.
    """
    total = np.zeros(len(F))
    for start in range(0, len(front), 500):  # blocks bound the memory
        part = front[start : start + 500]
        distance = np.sqrt(
            sum(np.maximum(F[:, j, None] - part[None, :, j], 0.0) ** 2 for j in range(F.shape[1]))
        )
        total += np.minimum.accumulate(distance, axis=0).sum(axis=1)
    return np.asarray(total / len(front))


def hypervolume_history(F: Array, reference: Array) -> Array:
    """Hypervolume of the first i rows of F (n, m) for i = 1..n; (n,)."""
    values, total = np.zeros(len(F)), 0.0
    front = np.empty(0, dtype=np.int64)
    for i in range(len(F)):
        total += float(pareto.improvement(F[i : i + 1], F[front], reference)[0])
        front = pareto.front_after(front, F, i)
        values[i] = total
    return values


def _of_nothing(problem: Problem, measure: Measure, record: Record) -> float:
    """The measure of no point at all."""
    unknown = reference_point(problem) is None or (
        measure is HV_RATIO and best_hypervolume(record.cell.task, record.cell.seed) is None
    )
    return float("nan") if unknown or measure in (IGD, IGD_PLUS) else 0.0


def _history(F: Array, problem: Problem, measure: Measure, record: Record) -> Array | float:
    front, reference = true_front(problem), reference_point(problem)
    if measure in (IGD, IGD_PLUS):
        if front is None or not len(F):
            return float("nan")
        whole = pareto.igd_history(F, front) if measure is IGD else igd_plus_history(F, front)
        return whole
    if reference is None:
        return float("nan")
    volume = hypervolume_history(F, reference)
    if measure is HV:
        return volume
    best = best_hypervolume(record.cell.task, record.cell.seed)
    return float("nan") if best is None else volume / best
