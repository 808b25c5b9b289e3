"""Result: what a run leaves behind, in the user's units and directions.

Notation: n successful evaluations in order of arrival, d variables, m objectives, c constraints;
k points on the front. Everything here is a function of the evaluations; nothing is recomputed by
the models. Hypervolume is measured at one fixed reference point, so its history never falls.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuropareto import pareto
from neuropareto.optimizer import Failure, Optimizer
from neuropareto.problem import signs
from neuropareto.space import Array, Space, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Front:
    """The non-dominated feasible points: ``X`` (k, d), ``F`` (k, m), and their rows in the run."""

    X: Array
    F: Array
    rows: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of points on the front."""
        return len(self.F)


@dataclass(frozen=True, eq=False)
class History:
    """The run evaluation by evaluation; each field (n,), over successful evaluations."""

    hypervolume: Array
    front_size: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of successful evaluations."""
        return len(self.hypervolume)


@dataclass(frozen=True, eq=False)
class Result:
    """All evaluations of a run and what follows from them; see :func:`neuropareto.minimize`."""

    space: Space
    X: Array
    F: Array
    G: Array
    directions: tuple[str, ...]
    reference_point: Array
    front: Front
    history: History
    failures: tuple[Failure, ...]
    succeeded: npt.NDArray[np.bool_]
    notes: tuple[Mapping[str, Any], ...]
    seed: int
    seconds: float = 0.0
    interrupted: bool = False
    name: str = ""
    algorithm: str = field(default="")

    @property
    def hypervolume(self) -> float:
        """Hypervolume of the front at ``reference_point``; 0 if nothing was evaluated."""
        return float(self.history.hypervolume[-1]) if len(self.history) else 0.0

    def __repr__(self) -> str:
        """One line: evaluations, front size, hypervolume."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"Result({self.name or 'run'}: {len(self.F)} evaluations{failed}, "
            f"{len(self.front)} on the front, hypervolume {self.hypervolume:.6g})"
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write every evaluation in order of arrival, failures included; numbers keep all digits."""
        m, c = self.F.shape[1], self.G.shape[1]
        on_front = np.zeros(len(self.F), dtype=np.bool_)
        on_front[self.front.rows] = True
        good, bad = iter(range(len(self.F))), iter(self.failures)
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(
                ["evaluation", *self.space.names, *(f"f{j + 1}" for j in range(m)),
                 *(f"g{j + 1}" for j in range(c)), "status", "on_front"]
            )  # fmt: skip
            for i, success in enumerate(self.succeeded):
                if success:
                    r = next(good)
                    values = [*map(repr, self.F[r].tolist()), *map(repr, self.G[r].tolist())]
                    tail = [*values, "ok", int(on_front[r])]
                    x = self.X[r]
                else:
                    tail, x = [""] * (m + c) + ["failed", 0], next(bad).x
                shown = self.space.as_dict(x).values()
                out.writerow(
                    [i + 1, *(v if isinstance(v, str) else repr(v) for v in shown), *tail]
                )
        return Path(path)

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as one JSON document: evaluations, front, history, failures, notes."""
        document = {
            "name": self.name,
            "algorithm": self.algorithm,
            "seed": self.seed,
            "variables": list(self.space.names),
            "directions": list(self.directions),
            "reference_point": self.reference_point.tolist(),
            "hypervolume": self.hypervolume,
            "X": self.X.tolist(),
            "F": self.F.tolist(),
            "G": self.G.tolist(),
            "front_rows": self.front.rows.tolist(),
            "hypervolume_history": self.history.hypervolume.tolist(),
            "failures": [{"x": f.x.tolist(), "reason": f.reason} for f in self.failures],
            "notes": [dict(note) for note in self.notes],
        }
        text = json.dumps(_finite(document), allow_nan=False)
        Path(path).write_text(text, encoding="utf-8")
        return Path(path)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The front and the hypervolume history as a matplotlib figure; saved if a path is given."""
        from neuropareto.plots import overview

        figure = overview(self)
        if path is not None:
            figure.savefig(path)
        return figure


def result_of(
    optimizer: Optimizer,
    *,
    reference_point: npt.ArrayLike | None = None,
    seconds: float = 0.0,
    interrupted: bool = False,
    name: str = "",
) -> Result:
    """The result of everything an optimizer was told.

    Without a reference point the worst successful value of each objective is taken.
    """
    m = optimizer.n_objectives
    sign = signs(optimizer.directions, m)
    archive = optimizer.archive
    reference = _reference(optimizer, reference_point)
    X, rows = optimizer.X, archive.front_indices
    F = optimizer.F
    return Result(
        space=optimizer.space,
        X=X,
        F=F,
        G=np.array(archive.G),
        directions=optimizer.directions or ("minimize",) * m,
        reference_point=reference,
        front=Front(X[rows], F[rows], rows),
        history=_history(archive.F, archive.violation == 0, sign * reference),
        failures=tuple(optimizer.failures),
        succeeded=optimizer.succeeded,
        notes=tuple(optimizer.notes),
        seed=optimizer.seed,
        seconds=seconds,
        interrupted=interrupted,
        name=name,
        algorithm=type(optimizer.algorithm).__name__,
    )


def _finite(value: Any) -> Any:
    """``value`` with null for every number that JSON cannot express: nan and inf."""
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def present_hypervolume(optimizer: Optimizer, reference_point: npt.ArrayLike | None) -> float:
    """The hypervolume of the present front; the reference point is found as in :func:`result_of`."""
    sign = signs(optimizer.directions, optimizer.n_objectives)
    reference = sign * _reference(optimizer, reference_point)
    with np.errstate(over="ignore", invalid="ignore"):  # penalties of 1e200 overflow: inf
        return float(pareto.hypervolume(optimizer.archive.front, reference))


def _reference(optimizer: Optimizer, given: npt.ArrayLike | None) -> Array:
    m, archive = optimizer.n_objectives, optimizer.archive
    if given is None:
        worst = archive.F.max(axis=0) if len(archive) else np.zeros(m)
        return signs(optimizer.directions, m) * worst
    reference = numbers(given, "The reference point")
    if reference.shape != (m,):
        raise ValueError(
            f"The reference point needs {m} values, one per objective, got shape {reference.shape}."
        )
    return reference


def _history(F: Array, feasible: npt.NDArray[np.bool_], reference: Array) -> History:
    hypervolume, size = np.zeros(len(F)), np.zeros(len(F), dtype=np.int64)
    front, total = np.empty(0, dtype=np.int64), 0.0
    for i in range(len(F)):
        after = pareto.front_after(front, F, i) if feasible[i] else front
        if after is not front:  # a dominated arrival leaves the front, and the hypervolume, alone
            with np.errstate(over="ignore", invalid="ignore"):
                total += float(pareto.improvement(F[i : i + 1], F[front], reference)[0])
            front = after
        hypervolume[i], size[i] = total, len(front)
    return History(hypervolume, size)
