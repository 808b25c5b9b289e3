"""What the maker of a test problem knows about it: position and distance variables, and optimum.

Kept in a table beside the problems, keyed by the objective function, so that a ``Problem`` as an
algorithm's caller holds it says nothing about where the optimum lies. The variants (shifted,
rotated, ...) and the tests read it. Notation: U (p, d) in the unit cube, F (p, m) on the front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from neuropareto.problem import Objective, Problem
from neuropareto.space import Array, Real

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Structure:
    """Which variables move along the front and which towards it.

    A point is Pareto-optimal when its ``distance`` variables are at ``optimum`` (unit cube) and
    its ``position`` variables are ``positions(F)`` (p, len(position)) for a row F of the front;
    all other variables are without effect. ``beyond`` says that the formulas also hold for
    distance variables outside the box, with no better values there (for an optimum on the edge of
    the box: beyond the opposite edge), which translation and rotation need.
    """

    position: Indices
    distance: Indices
    optimum: Array
    positions: Callable[[Array], Array]
    beyond: bool


_STRUCTURES: WeakKeyDictionary[Objective, Structure] = WeakKeyDictionary()


def declare(problem: Problem, structure: Structure) -> Problem:
    """Remember the structure of a problem; returns the problem itself."""
    _STRUCTURES[problem.objective] = structure
    return problem


def find(problem: Problem) -> Structure | None:
    """The structure of a problem, or None where none was declared."""
    return _STRUCTURES.get(problem.objective)


def known(problem: Problem, purpose: str) -> Structure:
    """The structure of a problem; a ValueError says why ``purpose`` needs it if there is none."""
    structure = find(problem)
    if structure is None:
        raise ValueError(
            f"{purpose} needs to know the distance variables of a problem and their optimum, "
            f"which {problem.name!r} does not tell; use it on DTLZ, ZDT, WFG4 or sparse-position, "
            f"or declare them with neuropareto.problems.declare."
        )
    return structure


def pareto_set(problem: Problem) -> Array:
    """Points X (p, d) whose images are the points of ``problem.front()``, in the same order.

    Raises ValueError for a problem without a declared structure or without a known front.
    """
    structure = known(problem, "A Pareto set")
    check_affine(problem, "A Pareto set")
    if problem.front is None:
        raise ValueError(f"The true front of {problem.name!r} is not known, so no Pareto set is.")
    F = problem.front()
    U = np.full((len(F), problem.d), 0.5)
    U[:, structure.position] = structure.positions(F)
    U[:, structure.distance] = structure.optimum
    lower, upper = problem.space.lower, problem.space.upper
    return lower + U * (upper - lower)


def check_affine(problem: Problem, purpose: str) -> None:
    """Raise ValueError unless every variable is real on a linear scale."""
    for name, v in zip(problem.space.names, problem.space.variables, strict=True):
        if not isinstance(v, Real) or v.log:
            raise ValueError(
                f"{purpose} needs real variables on a linear scale, but {name!r} of "
                f"{problem.name!r} is {'logarithmic' if isinstance(v, Real) else 'discrete'}."
            )
