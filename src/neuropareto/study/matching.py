"""Which trials a tell or a fail means (by number, or by place), and the events that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuropareto.optimizer import Batch, Points, Trial
from neuropareto.space import Array, Space, numbers
from neuropareto.study.events import Event, Failed, Told


@dataclass(frozen=True, eq=False)
class Named:
    """``points`` as the optimizer takes them, trial numbers (None: from outside), and X (n, d).

    Proposed points are those that were stored, so that live and replayed bits agree.
    """

    points: Points
    trials: list[int | None]
    X: Array


def named(points: Points, waiting: Mapping[int, Trial], space: Space) -> Named:
    """Find the points among the ``waiting`` trials, of which the number counts, not the x.

    A simulator may have changed the array that it was given. A trial that is not waiting is passed
    on: the optimizer says what is wrong with it.
    """
    if isinstance(points, Trial):
        points = [points]
    if isinstance(points, Batch) or _all_trials(points):
        given: list[Trial] = list(points)  # type: ignore[arg-type]
        for t in given:
            if not isinstance(t, Trial):
                raise ValueError(f"Expected trials from ask, got {type(t).__name__} among them.")
        stored = [waiting.get(t.id, t) for t in given]
        return Named(stored, [t.id for t in stored], _rows(stored, space))
    X = space.check_points(np.atleast_2d(numbers(points, "Points")))  # type: ignore[arg-type]
    by_place: dict[bytes, list[Trial]] = {}
    for trial in waiting.values():
        by_place.setdefault(_place(trial.x), []).append(trial)
    trials: list[int | None] = []
    for row in range(len(X)):
        found = by_place.get(_place(X[row]))
        if found == []:
            raise ValueError(f"Row {row} repeats a proposed point of this call; tell it once.")
        trials.append(None if found is None else found[0].id)
        if found is not None:
            X[row] = found.pop(0).x
    return Named(X, trials, X)


def outcomes(
    given: Named, F: npt.ArrayLike, G: npt.ArrayLike | None, reasons: Iterator[str]
) -> list[Event]:
    """The events of a tell that the optimizer has accepted; ``reasons`` of its failed rows."""
    n = len(given.X)
    values = numbers(F, "Objective values").reshape(n, -1)
    limits = np.empty((n, 0)) if G is None else numbers(G, "Constraints").reshape(n, -1)
    happened: list[Event] = []
    for trial, x, f, g in zip(given.trials, given.X, values, limits, strict=True):
        place = x if trial is None else None
        if np.isfinite(f).all() and np.isfinite(g).all():
            happened.append(Told(trial, f, g, place))
        else:
            happened.append(Failed(trial, next(reasons), "invalid", place, f, g))
    return happened


def _all_trials(points: Any) -> bool:
    return isinstance(points, (list, tuple)) and bool(points) and isinstance(points[0], Trial)


def _rows(trials: list[Trial], space: Space) -> Array:
    return np.array([t.x for t in trials]).reshape(-1, space.d)


def _place(x: Array) -> bytes:
    # Adding zero turns -0.0 into 0.0: both are the same place.
    return (x + 0.0).tobytes()
