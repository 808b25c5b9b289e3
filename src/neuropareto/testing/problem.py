"""The problem exam: what every ``Problem`` must do to be optimised and measured.

Shapes and types, finite values in the whole box, rows that do not influence one another, equal
answers to equal questions, untouched inputs and global generators, and a front and reference point
that fit together. ``check_problem`` runs it all; a noisy problem passes the single checks of shapes
and front. Everything raises AssertionError with a sentence about what was broken.
"""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from neuropareto.problem import Problem, signs
from neuropareto.space import Array


def check_problem(problem: Problem, *, n: int = 8, seed: int = 0) -> None:
    """Run the whole exam on n random points, the centre and the corners of the box."""
    X = example_points(problem, n, seed)
    check_outcome(problem, X)
    check_inputs_untouched(problem, X)
    check_repeatable(problem, X)
    check_rows_independent(problem, X)
    check_reference_point(problem)
    check_front(problem, X)


def example_points(problem: Problem, n: int, seed: int) -> Array:
    """n random points, the centre and two opposite corners of the box; (n + 3, d)."""
    rng = np.random.default_rng([seed, problem.d])
    special = np.array([0.5, 0.0, 1.0])[:, None] * np.ones((1, problem.d))
    return problem.space.from_unit(np.vstack([rng.random((n, problem.d)), special]))


def objectives(problem: Problem, X: Array) -> Array:
    """The objectives at X as they are minimised: "maximize" changes their sign; (n, m)."""
    outcome = problem(X)
    F = outcome[0] if isinstance(outcome, tuple) else outcome
    return F * signs(problem.directions, problem.n_objectives)


def feasible(problem: Problem, X: Array) -> npt.NDArray[np.bool_]:
    """Which points of X meet all constraints; (n,)."""
    outcome = problem(X)
    G = outcome[1] if isinstance(outcome, tuple) else np.zeros((len(X), 0))
    met: npt.NDArray[np.bool_] = np.all(G <= 0.0, axis=1)
    return met


def check_outcome(problem: Problem, X: Array) -> None:
    """F (n, m), and G (n, c) exactly if there are constraints: float64 and finite; for n = 1 too."""
    for points in (X, X[:1]):
        outcome = problem(points)
        has_constraints = problem.n_constraints > 0
        _require(
            isinstance(outcome, tuple) == has_constraints,
            f"{problem.name} has {problem.n_constraints} constraints, so its objective must return "
            f"{'(F, G)' if has_constraints else 'F alone'}, got {type(outcome).__name__}.",
        )
        parts = outcome if isinstance(outcome, tuple) else (outcome,)
        widths = (problem.n_objectives, problem.n_constraints)
        for letter, part, width in zip("FG", parts, widths, strict=False):
            _require(
                isinstance(part, np.ndarray) and part.dtype == np.float64,
                f"{letter} of {problem.name} must be a float64 array.",
            )
            _require(
                part.shape == (len(points), width),
                f"{letter} of {problem.name} must have shape {(len(points), width)}, got "
                f"{part.shape}.",
            )
            _require(
                bool(np.isfinite(part).all()),
                f"{letter} of {problem.name} is not finite at {points[~np.isfinite(part).all(1)]}.",
            )


def check_inputs_untouched(problem: Problem, X: Array) -> None:
    """Points are read only, and the global generators of numpy and Python are left alone."""
    given = X.copy()
    given.setflags(write=False)
    before = (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
    problem(given)
    after = (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
    _require(before == after, f"{problem.name} uses a global random generator.")
    _require(bool((given == X).all()), f"{problem.name} writes into the points it is given.")


def check_repeatable(problem: Problem, X: Array) -> None:
    """The same points give the same values."""
    first, second = objectives(problem, X), objectives(problem, X)
    _require(
        bool((first == second).all()), f"{problem.name} answers the same question differently."
    )


def check_rows_independent(problem: Problem, X: Array, *, tolerance: float = 1e-9) -> None:
    """A point's value does not depend on the points evaluated with it, nor on their order."""
    together = objectives(problem, X)
    scale = tolerance * (np.abs(together) + np.abs(together).max(axis=0))
    alone = np.vstack([objectives(problem, X[i : i + 1]) for i in range(len(X))])
    backwards = objectives(problem, X[::-1])[::-1]
    for other in (alone, backwards):
        _require(
            bool((np.abs(other - together) <= scale).all()),
            f"Values of {problem.name} depend on which points are evaluated together.",
        )


def check_reference_point(problem: Problem) -> None:
    """A reference point, if any, is finite; with a front, some of it is better in everything."""
    if problem.reference_point is None:
        return
    sign = signs(problem.directions, problem.n_objectives)
    point = problem.reference_point * sign
    _require(bool(np.isfinite(point).all()), f"The reference point of {problem.name} is infinite.")
    if problem.front is not None:
        inside = (problem.front() * sign < point).all(axis=1)
        _require(
            bool(inside.any()),
            f"No point of the front of {problem.name} is better than its reference point in every "
            "objective, so no hypervolume could be measured.",
        )


def check_front(problem: Problem, X: Array, *, tolerance: float = 1e-9) -> None:
    """A front, if any, is (p, m), finite, without dominated points, unbeaten by feasible points."""
    if problem.front is None:
        return
    front = problem.front()
    _require(
        front.ndim == 2 and front.shape[1] == problem.n_objectives and len(front) > 0,
        f"The front of {problem.name} must have shape (p, {problem.n_objectives}), got "
        f"{front.shape}.",
    )
    _require(bool(np.isfinite(front).all()), f"The front of {problem.name} is not finite.")
    minimised = front * signs(problem.directions, problem.n_objectives)
    thinned = minimised[np.linspace(0, len(front) - 1, min(len(front), 500)).astype(np.intp)]
    _require(
        not _beaten(thinned, thinned, 0.0).any(),
        f"Points of the front of {problem.name} dominate one another.",
    )
    slack = tolerance * np.ptp(minimised, axis=0)
    _require(
        not _beaten(minimised, objectives(problem, X)[feasible(problem, X)], slack).any(),
        f"Ordinary points of {problem.name} dominate points of its front.",
    )


def _beaten(F: Array, by: Array, slack: Array | float) -> Array:
    """Which rows of F (p, m) are dominated by a row of ``by``, by more than ``slack`` in one."""
    beaten = np.zeros(len(F), dtype=bool)
    for row in by:
        beaten |= (row <= F).all(axis=1) & (row < F - slack).any(axis=1)
    return beaten


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)
