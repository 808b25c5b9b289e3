"""The rover: closed forms of length and hazard, the conflict, smoothness, speed of evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from neuropareto.problems import problem
from neuropareto.problems.rover import GOAL, HILLS, START, hazard, path, straight
from neuropareto.space import Array
from neuropareto.testing.problem import check_problem, objectives


def test_straight_line_has_the_length_of_the_straight_line() -> None:
    effort = objectives(problem("rover"), straight(60)[None])[0, 1]
    assert effort == pytest.approx(np.hypot(0.9, 0.9), rel=1e-9)
    assert ((straight(60) >= 0) & (straight(60) <= 1)).all()


def test_path_runs_from_start_to_goal() -> None:
    near = path(straight(60)[None])[0]
    np.testing.assert_allclose(near[0], START, atol=0.01)
    np.testing.assert_allclose(near[-1], GOAL, atol=0.01)
    P = path(np.random.default_rng(0).random((5, 60)))
    assert P.min() >= 0 and P.max() <= 1  # a B-spline stays in the hull of its control points


def test_objectives_equal_fine_numerical_integrals() -> None:
    """Against a polygon of 20,000 pieces of the same spline."""
    rng = np.random.default_rng(1)
    x = np.clip(straight(20) + 0.05 * rng.normal(size=20), 0, 1)
    control = np.vstack([START, x.reshape(-1, 2), GOAL])
    knots = np.r_[np.zeros(3), np.linspace(0, 1, len(control) - 2), np.ones(3)]
    curve = BSpline(knots, control, 3)
    t = np.linspace(0, 1, 20_001)
    pieces = np.linalg.norm(np.diff(curve(t), axis=0), axis=1)
    middle = curve((t[1:] + t[:-1]) / 2)
    turning = (curve.derivative(2)(t) ** 2).sum(axis=1).mean()
    expected = [pieces @ hazard(middle), pieces.sum() + 1e-5 * turning]
    np.testing.assert_allclose(objectives(problem("rover", 20), x[None])[0], expected, rtol=1e-2)


def test_hazard_is_a_sum_of_hills() -> None:
    far = np.array([[5.0, 5.0]])
    assert hazard(far)[0] == pytest.approx(0.02)
    tops = hazard(HILLS[:, :2])
    assert (tops >= HILLS[:, 3]).all()


def test_safer_paths_cost_more() -> None:
    """Going round the hills at the diagonal lowers the exposure and raises the effort."""
    made = problem("rover")
    x = straight(60).reshape(-1, 2)
    bow = 0.25 * np.sin(np.linspace(0, np.pi, 30))[:, None] * np.array([1.0, -1.0])
    around = np.clip(x + bow, 0, 1)
    F = objectives(made, np.vstack([x.reshape(1, -1), around.reshape(1, -1)]))
    assert F[1, 0] < F[0, 0] and F[1, 1] > F[0, 1]


def test_random_paths_reach_the_reference_point_and_good_ones_are_far_better() -> None:
    made = problem("rover")
    assert made.reference_point is not None
    F = objectives(made, np.random.default_rng(0).random((1000, 60)))
    share = (F - made.reference_point < 0).all(axis=1).mean()
    assert 0.2 < share < 1.0
    assert (objectives(made, straight(60)[None])[0] < 0.2 * made.reference_point).all()


def gradient_by_differences(x: Array, step: float) -> Array:
    E = step * np.eye(len(x))
    made = problem("rover", len(x))
    return (objectives(made, x + E) - objectives(made, x - E)) / (2 * step)


def test_objectives_are_smooth() -> None:
    x = np.random.default_rng(2).random(12)
    np.testing.assert_allclose(
        gradient_by_differences(x, 1e-4), gradient_by_differences(x, 1e-5), rtol=1e-4, atol=1e-5
    )


def test_sizes() -> None:
    check_problem(problem("rover", 6))
    with pytest.raises(ValueError, match="odd d=7"):
        problem("rover", 7)
    with pytest.raises(ValueError, match="d >= 6"):
        problem("rover", 4)
    with pytest.raises(ValueError, match="m=2"):
        problem("rover", m=3)
