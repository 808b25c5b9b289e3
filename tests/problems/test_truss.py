"""The truss: against a dense stiffness matrix, equilibrium, convexity, optimality of the front."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.problem import Problem
from neuropareto.problems import problem
from neuropareto.problems.truss import Bridge, Truss, best_designs, pareto_designs
from neuropareto.space import Array
from neuropareto.testing.problem import objectives

YOUNG = 2.1e8


def dense_compliance(panels: int, areas: Array) -> float:
    """f'u of one design by assembling bar after bar and striking out the supported movements."""
    bridge = Bridge(panels)
    size = 2 * len(bridge.nodes)
    K = np.zeros((size, size))
    for (i, j), area in zip(bridge.bars, areas, strict=True):
        run = bridge.nodes[j] - bridge.nodes[i]
        length = np.hypot(*run)
        c = np.r_[-run, run] / length
        where = np.r_[2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
        K[np.ix_(where, where)] += YOUNG * area * 1e-4 / length * np.outer(c, c)
    free = np.setdiff1d(np.arange(size), bridge.supported)
    f = bridge.loads[free]
    return float(np.sum(f * np.linalg.solve(K[np.ix_(free, free)], f)))


@pytest.mark.parametrize("panels", [2, 3, 25])
def test_compliance_equals_the_dense_solution(panels: int) -> None:
    made = problem("truss", 5 * panels + 1)
    X = made.space.from_unit(np.random.default_rng(0).random((4, made.d)))
    expected = [dense_compliance(panels, x) for x in X]
    np.testing.assert_allclose(objectives(made, X)[:, 1], expected, rtol=1e-9)


def test_mass_is_density_times_volume() -> None:
    bridge = Bridge(25)
    assert bridge.lengths[:50] == pytest.approx(4.0)
    assert bridge.lengths[50:100] == pytest.approx(np.hypot(4.0, 8.0))
    assert bridge.lengths[100:] == pytest.approx(8.0)
    mass = objectives(problem("truss"), np.full((1, 126), 100.0))[0, 0]
    assert mass == pytest.approx(7.85 * 0.01 * bridge.lengths.sum())


def test_bar_forces_balance_the_loads() -> None:
    bridge = Bridge(6)
    A = 1e-4 * np.random.default_rng(0).uniform(5, 400, (1, 31))
    u = np.moveaxis(Truss(bridge).movements(A), 0, 1).reshape(-1, 3)
    forces = (YOUNG * A[0] / bridge.lengths)[:, None] * (bridge.directions @ u)
    np.testing.assert_allclose(bridge.directions.T @ forces, bridge.loads, atol=1e-8)
    assert bridge.loads[:, 0].sum() == pytest.approx(-20.0 * 24 + 2 * 20.0 * 2)  # ends on supports


def test_the_bridge_is_symmetric() -> None:
    """The half-load cases are mirror images, so mirrored designs are equally stiff."""
    bridge = Bridge(5)
    lines = np.arange(12).reshape(6, 2)[::-1].ravel()
    image = {frozenset(bar): k for k, bar in enumerate(bridge.bars.tolist())}
    mirror = [image[frozenset((lines[a], lines[b]))] for a, b in bridge.bars]
    X = np.random.default_rng(0).uniform(5, 400, (3, 26))
    made = problem("truss", 26)
    np.testing.assert_allclose(objectives(made, X), objectives(made, X[:, mirror]), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_compliance_is_convex_and_falls_with_area(seed: int, share: float) -> None:
    made = problem("truss", 21)
    A, B = np.random.default_rng(seed).uniform(5, 400, (2, 1, 21))
    between = objectives(made, share * A + (1 - share) * B)[0]
    chord = share * objectives(made, A)[0] + (1 - share) * objectives(made, B)[0]
    assert between[0] == pytest.approx(chord[0])
    assert between[1] <= chord[1] * (1 + 1e-9)
    thicker = A.copy()
    thicker[0, seed % 21] += 1.0
    assert objectives(made, thicker)[0, 1] <= objectives(made, A)[0, 1] * (1 + 1e-9)


def small() -> Problem:
    return problem("truss", 21)


def test_front_is_attained_and_not_dominated() -> None:
    made = small()
    assert made.front is not None and made.reference_point is not None
    F, X = made.front(), pareto_designs(4)
    assert (made.space.lower <= X).all() and (made.space.upper >= X).all()
    np.testing.assert_allclose(objectives(made, X), F)
    assert F.shape == (10_000, 2)
    assert moocore.is_nondominated(F).all()
    assert (F - made.reference_point < 0).all(axis=1).any()
    ends = objectives(made, np.array([[400.0], [5.0]]) * np.ones((2, 21)))
    np.testing.assert_allclose(F[-1], ends[1], rtol=1e-6)
    assert F[0, 1] == pytest.approx(ends[0, 1], rel=1e-3)


def test_front_satisfies_the_optimality_conditions() -> None:
    """Each bar off its bounds saves as much compliance per mass as the price says."""
    bridge, price = Bridge(4), 2.0
    made = small()
    x = best_designs(bridge, np.array([price]), sweeps=3000)
    E = 1e-3 * np.eye(21)
    slopes = (objectives(made, x + E) - objectives(made, x - E)) / 2e-3
    worth = -slopes[:, 1] / slopes[:, 0]
    inside = (x[0] > 5 + 1e-6) & (x[0] < 400 - 1e-6)
    assert inside.sum() >= 5
    np.testing.assert_allclose(worth[inside], price, rtol=1e-3)
    assert (worth[x[0] <= 5 + 1e-6] <= price * 1.001).all()
    assert (worth[x[0] >= 400 - 1e-6] >= price * 0.999).all()


def test_interpolated_designs_are_as_good_as_solved_ones() -> None:
    made = small()
    assert made.front is not None
    F = made.front()
    for design in best_designs(Bridge(4), np.array([0.3, 3.0, 30.0])):
        mass, compliance = objectives(made, design[None])[0]
        on_front = np.interp(mass, F[::-1, 0], F[::-1, 1])
        assert compliance == pytest.approx(on_front, rel=1e-3)


def test_random_designs_reach_the_reference_point() -> None:
    made = problem("truss")
    assert made.reference_point is not None and made.d == 126
    F = objectives(made, made.space.from_unit(np.random.default_rng(0).random((1000, 126))))
    assert (F - made.reference_point < 0).all(axis=1).mean() > 0.2


def test_sizes() -> None:
    assert problem("truss", 501).d == 501
    with pytest.raises(ValueError, match="nearest is d=101"):
        problem("truss", 100)
    with pytest.raises(ValueError, match="d >= 11"):
        problem("truss", 6)
    with pytest.raises(ValueError, match="m=2"):
        problem("truss", m=3)
