from __future__ import annotations

import numpy as np
import pytest

from neuropareto.problem import Problem, signs
from neuropareto.space import Array, Space


def two(X: Array) -> Array:
    return np.stack([X.sum(axis=1), -X.sum(axis=1)], axis=1)


def test_a_problem_evaluates_rows_and_knows_its_size() -> None:
    problem = Problem("two", Space.of([(0, 1)] * 3), 2, two, reference_point=np.array([4.0, 4.0]))
    assert problem.d == 3
    outcome = problem(np.ones((2, 3)))
    assert isinstance(outcome, np.ndarray) and outcome.shape == (2, 2)
    assert problem.reference_point is not None and not problem.reference_point.flags.writeable


def test_directions_become_signs_at_the_border() -> None:
    assert signs(None, 3).tolist() == [1, 1, 1]
    assert signs(["minimize", "maximize"], 2).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("directions", "words"),
    [
        (["minimize"], "for each of 2 objectives"),
        ("minimize", "for each of 2 objectives"),
        (["minimize", "up"], "got 'up'"),
    ],
)
def test_bad_directions(directions: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        signs(directions, 2)


def test_bad_problems() -> None:
    space = Space.of([(0, 1)])
    with pytest.raises(ValueError, match="n_objectives >= 1"):
        Problem("p", space, 0, two)
    with pytest.raises(ValueError, match="needs 2 values"):
        Problem("p", space, 2, two, reference_point=np.array([1.0]))
