"""A problem: a named vector function on a space, always minimised, with constraints <= 0.

Notation: n points, d variables, m objectives, c constraints. ``X`` (n, d) in the user's units,
``F`` (n, m) objectives, ``G`` (n, c) constraints, feasible where G <= 0. "maximize" exists only at
the border: :func:`signs` turns directions into factors, and everything inside is minimised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuropareto.space import Array, Space

Outcome: TypeAlias = "Array | tuple[Array, Array]"
Objective: TypeAlias = Callable[[Array], Outcome]


@dataclass(frozen=True)
class Problem:
    """A named black box: ``objective`` maps X (n, d) to F (n, m), or to (F, G) with G (n, c).

    min over x in X of f(x) = (f_1(x), ..., f_M(x)). Paper: Eq. mo_problem.

    ``reference_point`` (m,) is the one its hypervolume is reported with. ``front`` makes points of
    the true Pareto front, (p, m), where that is known. ``directions`` says for each objective
    whether the user wants it small ("minimize") or large ("maximize"); the objective itself
    returns the user's own values, and whoever optimises converts them once with :func:`signs`.
    """

    name: str
    space: Space
    n_objectives: int
    objective: Objective
    n_constraints: int = 0
    directions: tuple[str, ...] | None = None
    reference_point: Array | None = None
    front: Callable[[], Array] | None = None

    def __post_init__(self) -> None:
        if self.n_objectives < 1 or self.n_constraints < 0:
            raise ValueError(
                f"A problem needs n_objectives >= 1 and n_constraints >= 0, got "
                f"{self.n_objectives} and {self.n_constraints}."
            )
        signs(self.directions, self.n_objectives)
        if self.reference_point is not None:
            point = np.array(self.reference_point, dtype=np.float64)
            if point.shape != (self.n_objectives,):
                raise ValueError(
                    f"The reference point needs {self.n_objectives} values, one per objective, "
                    f"got shape {point.shape}."
                )
            point.setflags(write=False)
            object.__setattr__(self, "reference_point", point)

    @property
    def d(self) -> int:
        """The number of variables."""
        return self.space.d

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points (n, d) in the user's units."""
        return self.objective(X)


def signs(directions: Sequence[str] | None, n_objectives: int) -> Array:
    """+1 for each objective to minimise, -1 for each to maximise; (m,). None: all minimised."""
    if directions is None:
        return np.ones(n_objectives)
    if isinstance(directions, str) or len(directions) != n_objectives:
        raise ValueError(
            f"Directions must name 'minimize' or 'maximize' for each of {n_objectives} objectives, "
            f"got {directions!r}."
        )
    for word in directions:
        if word not in ("minimize", "maximize"):
            raise ValueError(f"A direction must be 'minimize' or 'maximize', got {word!r}.")
    return np.array([1.0 if word == "minimize" else -1.0 for word in directions])
