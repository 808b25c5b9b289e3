"""A rover's path over hazardous ground: exposure against effort, 60 variables (of our own making).

The path is a clamped cubic B-spline from (0.05, 0.05) to (0.95, 0.95) in the unit square; the
variables are its 30 free control points, (x1, y1, x2, y2, ...). Objectives: exposure, the integral
along the path of a ground hazard made of smooth hills, and effort, path length plus 1e-5 times the
integral of the squared second derivative (turning and changing speed). The straight line is the
cheapest path and crosses several hills; safe paths wind between them. Notation: n paths, s samples,
c control points; P = B C with the basis B (s, c) fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import BSpline

from neuropareto.problem import Problem
from neuropareto.problems.sizes import chosen, fixed
from neuropareto.space import Array, Space

START, GOAL = (0.05, 0.05), (0.95, 0.95)
_SAMPLES = 200
_TURNING = 1e-5
_FLAT = 0.02
# Hills of hazard: centre x, centre y, radius, height.
HILLS = np.array(
    [
        (0.22, 0.18, 0.09, 2.0),
        (0.15, 0.42, 0.10, 1.5),
        (0.42, 0.38, 0.11, 3.0),
        (0.40, 0.12, 0.08, 1.2),
        (0.65, 0.22, 0.10, 2.0),
        (0.33, 0.66, 0.10, 2.5),
        (0.62, 0.58, 0.09, 3.0),
        (0.55, 0.80, 0.08, 1.5),
        (0.86, 0.45, 0.09, 1.8),
        (0.82, 0.74, 0.08, 2.5),
        (0.12, 0.80, 0.09, 1.0),
        (0.78, 0.93, 0.06, 1.5),
        (0.90, 0.12, 0.10, 1.0),
    ]
)


@lru_cache(maxsize=8)
def _bases(control: int) -> tuple[Array, Array, Array]:
    """Values, first and second derivatives of the spline basis at the sample midpoints; (s, c)."""
    degree = 3
    inner = np.linspace(0.0, 1.0, control - degree + 1)
    knots = np.r_[np.zeros(degree), inner, np.ones(degree)]
    t = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
    spline = BSpline(knots, np.eye(control), degree)
    return spline(t), spline.derivative(1)(t), spline.derivative(2)(t)


def hazard(P: Array) -> Array:
    """The hazard at points P (..., 2); (...)."""
    squares = np.sum((P[..., None, :] - HILLS[:, :2]) ** 2, axis=-1)
    level: Array = _FLAT + np.exp(-squares / (2.0 * HILLS[:, 2] ** 2)) @ HILLS[:, 3]
    return level


def path(X: Array) -> Array:
    """The sampled paths of n rows of control points; (n, d) -> (n, s, 2)."""
    C = _control_points(X)
    return np.asarray(_bases(C.shape[1])[0] @ C)


def _control_points(X: Array) -> Array:
    free = np.asarray(X, dtype=np.float64).reshape(len(X), -1, 2)
    ends = [np.broadcast_to(np.array(end), (len(X), 1, 2)) for end in (START, GOAL)]
    return np.concatenate([ends[0], free, ends[1]], axis=1)


@dataclass(frozen=True, eq=False)
class Rover:
    """The objective: control points X (n, d) -> exposure and effort, F (n, 2)."""

    def __call__(self, X: Array) -> Array:
        """Evaluate n paths."""
        C = _control_points(X)
        B, B1, B2 = _bases(C.shape[1])
        speed = np.linalg.norm(B1 @ C, axis=2)
        turning = np.sum((B2 @ C) ** 2, axis=2)
        exposure = np.mean(hazard(B @ C) * speed, axis=1)
        effort = np.mean(speed + _TURNING * turning, axis=1)
        return np.column_stack([exposure, effort])


def straight(d: int) -> Array:
    """The straight path at an even pace, the one of least effort but for its ends; (d,)."""
    control = d // 2 + 2
    # Greville abscissae: control points there reproduce a straight line at constant speed.
    inner = np.linspace(0.0, 1.0, control - 2)
    knots = np.r_[np.zeros(3), inner, np.ones(3)]
    greville = np.array([knots[i + 1 : i + 4].mean() for i in range(control)])[1:-1]
    line = np.array(START) + greville[:, None] * (np.array(GOAL) - np.array(START))
    flat: Array = line.reshape(-1)
    return flat


def rover(d: int | None = None, m: int | None = None) -> Problem:
    """The rover with d / 2 free control points (d = 60 if not given, even, >= 6); m = 2.

    Reference point: (20, 20), about the middle of random paths. Raises ValueError for other d, m.
    """
    fixed("rover", "m", m, 2)
    d = chosen("rover", "d", d, 60, least=6)
    if d % 2:
        raise ValueError(f"A rover needs two variables per control point, got the odd d={d}.")
    return Problem(
        name="rover",
        space=Space.of([(0.0, 1.0)] * d),
        n_objectives=2,
        objective=Rover(),
        reference_point=np.array([20.0, 20.0]),
    )
