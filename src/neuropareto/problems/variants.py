"""The same front reached from elsewhere: shifted, translated, rotated, mirrored, permuted problems.

Most test problems have their optimum in the middle or a corner of the box, where methods can find
it by accident. These wrappers move or mix the variables of any problem with a declared
:class:`Structure`; box, front and reference point stay, and the front stays attained. Notation:
U (n, d) in the unit cube, o the old and c the new optimum of the distance variables, c uniform in
[0.15, 0.85] and the same for one seed in shifted, translated and rotated. An optimum on the edge
(ZDT1-3, ZDT6, DTLZ6, DTLZ7) is folded, v = |u - c|, so that it comes to lie inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neuropareto.problem import Objective, Outcome, Problem
from neuropareto.problems.sizes import chosen
from neuropareto.problems.structure import (
    Indices,
    Structure,
    check_affine,
    declare,
    find,
    known,
)
from neuropareto.randomness import stream
from neuropareto.space import Array, Categorical, Space


@dataclass(frozen=True, eq=False)
class Moved:
    """``problem`` seen through a map of its distance variables in the unit cube."""

    problem: Problem
    distance: Indices
    move: Callable[[Array], Array]

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points (n, d)."""
        space, j = self.problem.space, self.distance
        lower, width = space.lower[j], (space.upper - space.lower)[j]
        moved = np.array(X, dtype=np.float64)
        moved[:, j] = lower + width * self.move((moved[:, j] - lower) / width)
        return self.problem(moved)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Monotone piecewise-linear map of [0, 1] per column that takes c to o; folded at the edge."""

    c: Array
    o: Array

    def __call__(self, V: Array) -> Array:
        """(n, k) -> (n, k)."""
        c, o = self.c, self.o
        above = V - c
        folded = np.abs(o - np.abs(above) / np.where(above < 0, c, 1.0 - c))
        plain = np.where(above < 0, V * (o / c), o + above * ((1.0 - o) / (1.0 - c)))
        return np.where(_on_edge(o), folded, plain)


@dataclass(frozen=True, eq=False)
class Turn:
    """v = o + R (u - c), folded to one side of an o at the edge; R = 1 is a translation."""

    c: Array
    o: Array
    R: Array

    def __call__(self, V: Array) -> Array:
        """(n, k) -> (n, k)."""
        T = (V - self.c) @ self.R.T
        # For an optimum at 1 the fold points down from it; at 0 it points up.
        folded = np.where(self.o > 0.5, self.o - np.abs(T), np.abs(T))
        return np.where(_on_edge(self.o), folded, self.o + T)


@dataclass(frozen=True, eq=False)
class Reflected:
    """``problem`` with some variables running the other way: x -> lower + upper - x."""

    problem: Problem
    flipped: npt.NDArray[np.bool_]

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points (n, d)."""
        lower, upper = self.problem.space.lower, self.problem.space.upper
        turned = lower + upper - X
        # Rounding may carry a point of the box out of it; points from outside stay outside.
        inside = (lower <= X) & (upper >= X)
        turned = np.where(inside, np.clip(turned, lower, upper), turned)
        return self.problem(np.where(self.flipped, turned, X))


@dataclass(frozen=True, eq=False)
class Reordered:
    """``problem`` with its variables in another order: variable j is found in column place[j]."""

    problem: Problem
    place: Indices

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points (n, d)."""
        return self.problem(np.asarray(X, dtype=np.float64)[:, self.place])


@dataclass(frozen=True)
class _FlippedPositions:
    positions: Callable[[Array], Array]
    flipped: npt.NDArray[np.bool_]

    def __call__(self, F: Array) -> Array:
        P = self.positions(F)
        return np.where(self.flipped, 1.0 - P, P)


def _on_edge(o: Array) -> npt.NDArray[np.bool_]:
    return (o <= 0.0) | (o >= 1.0)


def _prepared(
    problem: Problem, seed: int, purpose: str
) -> tuple[Structure, Array, np.random.Generator]:
    """The structure, the new places c of the distance variables, and the generator after them."""
    structure = known(problem, purpose)
    check_affine(problem, purpose)
    rng = np.random.default_rng(1000 + chosen(purpose, "seed", seed, 0, least=0))
    # Multiples of 2^-32 make u - c and 1 - c exact, which DTLZ6 needs: an error of 1e-16 in a
    # distance variable is 0.025 in its power 0.1.
    places = np.round(rng.uniform(0.15, 0.85, problem.d) * 2.0**32) / 2.0**32
    return structure, places[structure.distance], rng


def _wrapped(problem: Problem, name: str, objective: Objective, space: Space) -> Problem:
    return replace(problem, name=f"{problem.name}-{name}", objective=objective, space=space)


def _moved(
    problem: Problem, name: str, structure: Structure, c: Array, move: Callable[[Array], Array]
) -> Problem:
    objective = Moved(problem, structure.distance, move)
    wrapped = _wrapped(problem, name, objective, problem.space)
    return declare(wrapped, replace(structure, optimum=c))


def _check_beyond(problem: Problem, structure: Structure, purpose: str) -> None:
    if not structure.beyond:
        raise ValueError(
            f"{purpose} evaluates distance variables outside the box, where {problem.name!r} is "
            "not defined; use shifted instead."
        )


def shifted(problem: Problem, seed: int) -> Problem:
    """Each distance variable's optimum at its own random place, by a piecewise-linear stretch.

    v = u o/c below c and o + (u - c)(1 - o)/(1 - c) above; for an optimum on the edge the distance
    |u - c|, scaled to reach 1 at both ends. Raises ValueError for problems without structure.
    """
    structure, c, _ = _prepared(problem, seed, "A shifted variant")
    return _moved(problem, f"shifted-{seed}", structure, c, Stretch(c, structure.optimum))


def translated(problem: Problem, seed: int) -> Problem:
    """Each distance variable moved by its own amount, v = o + (u - c): same shape, own phase.

    The problem is evaluated outside its box where the move leads there. Raises ValueError for
    problems without structure or not defined outside the box.
    """
    structure, c, _ = _prepared(problem, seed, "A translated variant")
    _check_beyond(problem, structure, "A translated variant")
    turn = Turn(c, structure.optimum, np.eye(len(c)))
    return _moved(problem, f"translated-{seed}", structure, c, turn)


def rotated(problem: Problem, seed: int) -> Problem:
    """All distance variables mixed: v = o + diag(s) Q (u - c), Q a random orthogonal matrix.

    The scales s^2 run over one decade with mean one. The optimum is at u = c, inside the box. The
    problem is evaluated outside its box where the turn leads there. Raises ValueError as
    :func:`translated`.
    """
    structure, c, rng = _prepared(problem, seed, "A rotated variant")
    _check_beyond(problem, structure, "A rotated variant")
    k = len(c)
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    scales = np.exp(np.linspace(-1.15, 1.15, k)) if k > 1 else np.ones(1)
    R = np.sqrt(scales / scales.mean())[:, None] * Q
    return _moved(problem, f"rotated-{seed}", structure, c, Turn(c, structure.optimum, R))


def mirrored(problem: Problem, seed: int) -> Problem:
    """A random half of all variables turned round, x -> lower + upper - x; for any problem.

    Raises ValueError for categorical or logarithmic variables, which have no middle to mirror at.
    """
    for name, v in zip(problem.space.names, problem.space.variables, strict=True):
        if isinstance(v, Categorical) or v.log:
            raise ValueError(
                f"A mirrored variant needs variables on a linear scale, but {name!r} of "
                f"{problem.name!r} is {'categorical' if isinstance(v, Categorical) else 'logarithmic'}."
            )
    flipped = stream(seed, 0, "mirrored").random(problem.d) < 0.5
    objective = Reflected(problem, flipped)
    wrapped = _wrapped(problem, f"mirrored-{seed}", objective, problem.space)
    structure = find(problem)
    if structure is None:
        return wrapped
    turned = flipped[structure.distance]
    return declare(
        wrapped,
        replace(
            structure,
            optimum=np.where(turned, 1.0 - structure.optimum, structure.optimum),
            positions=_FlippedPositions(structure.positions, flipped[structure.position]),
        ),
    )


def permuted(problem: Problem, seed: int) -> Problem:
    """The variables (with their bounds) in a random order; for any problem."""
    place = stream(seed, 0, "permuted").permutation(problem.d)
    order = np.argsort(place)
    space = Space(tuple(problem.space.variables[j] for j in order))
    objective = Reordered(problem, place)
    wrapped = _wrapped(problem, f"permuted-{seed}", objective, space)
    structure = find(problem)
    if structure is None:
        return wrapped
    return declare(
        wrapped,
        replace(
            structure,
            position=place[structure.position],
            distance=place[structure.distance],
        ),
    )


VARIANTS = {
    "shifted": shifted,
    "translated": translated,
    "rotated": rotated,
    "mirrored": mirrored,
    "permuted": permuted,
}
