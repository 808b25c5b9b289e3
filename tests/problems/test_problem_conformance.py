"""Every listed problem passes the exam, and the exam finds what it is there to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from neuropareto.problem import Outcome, Problem
from neuropareto.problems import problem, problems
from neuropareto.space import Array, Space
from neuropareto.testing.problem import check_problem, objectives

SLOW = {
    "geothermal",
    "geothermal-coarse",
}  # a reservoir simulation each; examined by their own tests


@pytest.mark.parametrize("name", [name for name in problems() if name not in SLOW])
def test_every_listed_problem_passes(name: str) -> None:
    check_problem(problem(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_the_simulated_reservoirs_pass(name: str) -> None:
    check_problem(problem(name), n=2)


def line(X: Array) -> Array:
    return np.column_stack([X[:, 0], 1.0 - X[:, 0] + X[:, 1]])


def line_front() -> Array:
    t = np.linspace(0.0, 1.0, 50)
    return np.column_stack([t, 1.0 - t])


HEALTHY = Problem(
    name="line",
    space=Space.of([(0, 1), (0, 1)]),
    n_objectives=2,
    objective=line,
    reference_point=np.array([1.1, 1.1]),
    front=line_front,
)


def writes(X: Array) -> Array:
    X[:] = 0.5
    return line(X)


def looks_at_neighbours(X: Array) -> Array:
    return line(X) + float(X.mean())


def global_noise(X: Array) -> Array:
    return line(X) + 0.0 * np.random.random(2)  # noqa: NPY002


def undefined_in_a_corner(X: Array) -> Array:
    return np.where(X[:, :1] == 0.0, np.nan, line(X))


def constrained(X: Array) -> Outcome:
    return line(X), X[:, :1]


class Remembers:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, X: Array) -> Array:
        self.calls += 1
        return line(X) + self.calls


@pytest.mark.parametrize(
    ("objective", "complaint"),
    [
        (writes, "read-only"),
        (looks_at_neighbours, "together"),
        (global_noise, "global random generator"),
        (undefined_in_a_corner, "not finite"),
        (constrained, "0 constraints"),
        (lambda X: line(X)[:, :1], "shape"),
        (lambda X: line(X).astype(np.float32), "float64"),
        (lambda X: line(X) - 0.1, "dominate points of its front"),
        (Remembers(), "differently"),
    ],
)
def test_the_exam_fails_broken_objectives(
    objective: Callable[[Array], Outcome], complaint: str
) -> None:
    with pytest.raises((AssertionError, ValueError), match=complaint):
        check_problem(replace(HEALTHY, objective=objective))


@pytest.mark.parametrize(
    ("front", "complaint"),
    [
        (lambda: np.array([[0.0, 1.0], [0.5, 1.5]]), "dominate one another"),
        (lambda: np.zeros((3, 1)), "shape"),
        (lambda: np.array([[0.0, np.inf]]), "better than its reference point|not finite"),
        (lambda: line_front() + 5.0, "reference point"),
    ],
)
def test_the_exam_fails_broken_fronts(front: Callable[[], Array], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_problem(replace(HEALTHY, front=front))


def test_the_exam_passes_healthy_and_maximised_problems() -> None:
    check_problem(HEALTHY)
    upside_down = replace(
        HEALTHY,
        objective=lambda X: -line(X),
        directions=("maximize", "maximize"),
        front=lambda: -line_front(),
        reference_point=np.array([-1.1, -1.1]),
    )
    check_problem(upside_down)
    X = np.array([[0.5, 0.5]])
    np.testing.assert_array_equal(objectives(upside_down, X), objectives(HEALTHY, X))
