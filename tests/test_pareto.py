from __future__ import annotations

from collections.abc import Callable

import moocore
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from pymoo.indicators.igd import IGD
from pymoo.indicators.igd_plus import IGDPlus
from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from neuropareto import hypervolume as inner
from neuropareto import pareto
from neuropareto.space import Array

Indices = npt.NDArray[np.int64]
property_test = settings(deadline=None, max_examples=60)

# Multiples of 1/8 make ties, copies and exact arithmetic common.
grid = st.integers(0, 8).map(lambda i: i / 8)


@st.composite
def point_sets(draw: st.DrawFn, most: int = 12, objectives: tuple[int, int] = (1, 5)) -> Array:
    n, m = draw(st.integers(0, most)), draw(st.integers(*objectives))
    return draw(hnp.arrays(np.float64, (n, m), elements=grid))


@st.composite
def two_sets(
    draw: st.DrawFn, most: int = 12, objectives: tuple[int, int] = (1, 5)
) -> tuple[Array, Array]:
    m = draw(st.integers(*objectives))
    n, k = draw(st.integers(1, most)), draw(st.integers(0, most))
    first = draw(hnp.arrays(np.float64, (n, m), elements=grid))
    return first, draw(hnp.arrays(np.float64, (k, m), elements=grid))


def sphere(n: int, m: int, seed: int = 0) -> Array:
    rows = np.abs(np.random.default_rng(seed).standard_normal((n, m)))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def shell(n: int, m: int, seed: int = 1) -> Array:
    factor = np.random.default_rng(seed).uniform(0.85, 1.15, (n, 1))
    return np.asarray(sphere(n, m, seed) * factor)


def peeled(F: Array) -> Indices:
    """Ranks straight from the definition."""
    left, rank = np.arange(len(F)), 0
    result = np.zeros(len(F), dtype=np.int64)
    while len(left):
        rank += 1
        free = np.array(
            [not any(pareto.dominates(F[j], F[i]) for j in left) for i in left], dtype=bool
        )
        result[left[free]] = rank
        left = left[~free]
    return result


# ---- dominance and ranks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ([1, 2], [2, 3], True),
        ([1, 2], [1, 3], True),
        ([1, 2], [1, 2], False),
        ([1, 3], [2, 2], False),
        ([2, 3], [1, 2], False),
        ([1], [2], True),
    ],
)
def test_dominates(a: list[float], b: list[float], answer: bool) -> None:
    assert pareto.dominates(a, b) is answer


def test_nondominated_keeps_copies() -> None:
    F = np.array([[1, 2], [2, 1], [1, 2], [2, 2], [1.5, 1.5]])
    assert_array_equal(pareto.nondominated(F), [True, True, True, False, True])


def test_negative_zero_is_zero() -> None:
    assert pareto.nondominated([[0.0, 1.0], [-0.0, 1.0]]).all()
    assert_array_equal(pareto.ranks([[0.0, 1.0, 0.0], [-0.0, 1.0, -0.0]]), [1, 1])


@property_test
@given(point_sets())
def test_nondominated_and_ranks_follow_the_definition(F: Array) -> None:
    expected = peeled(F)
    found = pareto.ranks(F)
    assert found.dtype == np.int64
    assert_array_equal(found, expected)
    assert_array_equal(pareto.nondominated(F), expected == 1)


@property_test
@given(point_sets(most=30), st.randoms(use_true_random=False))
def test_ranks_follow_permutations_and_ignore_monotone_scales(F: Array, random: object) -> None:
    order = list(range(len(F)))
    random.shuffle(order)  # type: ignore[attr-defined]
    ranks = pareto.ranks(F)
    assert_array_equal(pareto.ranks(F[order]), ranks[order])
    assert_array_equal(pareto.ranks(np.exp(3 * F) - 100), ranks)
    assert_array_equal(pareto.ranks(F**3 * np.arange(1, F.shape[1] + 1)), ranks)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_ranks_agree_with_pymoo(m: int) -> None:
    F = np.random.default_rng(m).random((400, m))
    fronts = NonDominatedSorting().do(F)
    ranks = pareto.ranks(F)
    for r, front in enumerate(fronts):
        assert set(np.flatnonzero(ranks == r + 1)) == set(front)


@pytest.mark.parametrize("levels", [0, 6])
def test_staircase_ranks_agree_with_moocore(levels: int) -> None:
    rng = np.random.default_rng(levels)
    F = rng.random((3000, 1)) + 0.01 * rng.standard_normal((3000, 3))
    F = np.round(F * levels) if levels else F
    assert_array_equal(pareto._ranks_3d(F), moocore.pareto_rank(F) + 1)


def test_a_large_correlated_set_takes_the_staircase_way_with_equal_ranks() -> None:
    rng = np.random.default_rng(0)
    F = rng.random((12_000, 1)) + 0.0005 * rng.standard_normal((12_000, 3))
    assert pareto._many_fronts(F)
    assert not pareto._many_fronts(rng.random((12_000, 3)))
    assert_array_equal(pareto.ranks(F), moocore.pareto_rank(F) + 1)


def test_constrained_ranks_put_feasible_rows_first() -> None:
    F = np.array([[0.0, 0], [2, 2], [1, 1], [0, 0], [5, 5]])
    violation = np.array([0.5, 0, 0, 2.0, 0.5])
    assert_array_equal(pareto.constrained_ranks(F, violation), [3, 2, 1, 4, 3])


@property_test
@given(point_sets(), st.data())
def test_constrained_ranks_order_by_feasibility_then_violation(
    F: Array, data: st.DataObject
) -> None:
    violation = data.draw(hnp.arrays(np.float64, len(F), elements=st.sampled_from([0.0, 0.5, 2])))
    ranks = pareto.constrained_ranks(F, violation)
    feasible = violation == 0
    assert_array_equal(ranks[feasible], pareto.ranks(F[feasible]))
    for i in np.flatnonzero(~feasible):
        assert (ranks[i] > ranks[feasible]).all()
        assert_array_equal(ranks[~feasible] < ranks[i], violation[~feasible] < violation[i])
    if len(F):
        assert_array_equal(np.unique(ranks), np.arange(1, ranks.max() + 1))


# ---- crowding -----------------------------------------------------------------------------------


def test_crowding_by_hand() -> None:
    F = np.array([[0.0, 10], [1, 6], [4, 2], [10, 0]])
    assert_allclose(pareto.crowding(F), [np.inf, 0.4 + 0.8, 0.9 + 0.6, np.inf])
    assert_allclose(pareto.crowding(F, boundary=7.0), [7, 1.2, 1.5, 7])


def test_crowding_by_rank_looks_at_one_front_at_a_time() -> None:
    F = np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [3.0, 5.0], [4.0, 4.0], [5.0, 3.0]])
    ranks = np.array([1, 1, 1, 2, 2, 2])
    found = pareto.crowding_by_rank(F, ranks)
    assert np.array_equal(found, np.concatenate([pareto.crowding(F[:3]), pareto.crowding(F[3:])]))
    assert found[1] == found[4] == 2.0


def test_crowding_of_small_and_flat_sets() -> None:
    assert pareto.crowding(np.empty((0, 2))).shape == (0,)
    assert_array_equal(pareto.crowding([[1.0, 2.0]]), [np.inf])
    assert_array_equal(pareto.crowding([[1.0, 2.0], [2.0, 1.0]]), [np.inf, np.inf])
    assert_array_equal(pareto.crowding([[1.0, 2.0]] * 3), [0, 0, 0])
    flat = np.array([[0.0, 5], [1, 5], [3, 5]])
    assert_allclose(pareto.crowding(flat), [np.inf, 1, np.inf])


@pytest.mark.parametrize("m", [2, 3, 4])
def test_crowding_agrees_with_pymoo(m: int) -> None:
    F = np.random.default_rng(m).random((50, m))
    # pymoo divides the sum over objectives by their number.
    assert_allclose(pareto.crowding(F), m * calc_crowding_distance(F))


def test_average_crowding_by_hand() -> None:
    F = np.array([[0.0, 10], [1, 6], [4, 2], [10, 0]])
    first = np.array([2 * 1, 4 - 0, 10 - 1, 2 * 6]) / 10
    second = np.array([2 * 4, 10 - 2, 6 - 0, 2 * 2]) / 10
    assert pareto.average_crowding(F) == pytest.approx((first + second).mean())


def test_average_crowding_of_small_and_flat_sets() -> None:
    assert pareto.average_crowding(np.empty((0, 3))) == 0
    assert pareto.average_crowding([[1.0, 2.0]]) == 0
    assert pareto.average_crowding([[1.0, 2.0], [2.0, 1.0]]) == 4
    assert pareto.average_crowding([[1.0, 2.0]] * 4) == 0


@property_test
@given(point_sets(most=20))
def test_average_crowding_is_the_mean_over_points(F: Array) -> None:
    total = 0.0
    for column in F.T:
        value = np.sort(column)
        if len(value) and value[-1] > value[0]:
            mirrored = np.concatenate(
                [[2 * value[0] - value[1]], value, [2 * value[-1] - value[-2]]]
            )
            total += (mirrored[2:] - mirrored[:-2]).sum() / (value[-1] - value[0])
    assert pareto.average_crowding(F) == pytest.approx(total / max(1, len(F)))


def test_average_crowding_sees_the_ends_of_a_set_but_not_its_inside() -> None:
    even = np.array([[0.0, 9], [1, 8], [4, 5], [8, 1], [9, 0]])
    uneven = np.array([[0.0, 9], [1, 8], [1.5, 7.5], [8, 1], [9, 0]])
    far_end = np.array([[0.0, 9], [1, 8], [4, 5], [6, 3], [9, 0]])
    assert pareto.average_crowding(even) == pytest.approx(pareto.average_crowding(uneven))
    assert pareto.average_crowding(far_end) > pareto.average_crowding(even)


# ---- the front as it grows ----------------------------------------------------------------------


@property_test
@given(point_sets(most=40))
def test_front_after_and_front_exits_follow_every_arrival(F: Array) -> None:
    front = np.empty(0, dtype=np.int64)
    exits = pareto.front_exits(F)
    for t in range(len(F)):
        front = pareto.front_after(front, F, t)
        assert_array_equal(front, np.flatnonzero(pareto.nondominated(F[: t + 1])))
        assert_array_equal(front, np.flatnonzero(exits[: t + 1] >= t + 1))


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_front_exits_over_many_blocks(m: int, spread: float) -> None:
    rng = np.random.default_rng(m)
    # Slowly improving arrivals, so that rows leave in the block of their arrival and later.
    F = sphere(1500, m) * (2 - np.linspace(0, 0.5, 1500)[:, None] + spread * rng.random((1500, 1)))
    exits = pareto.front_exits(F)
    front = np.empty(0, dtype=np.int64)
    for t in range(len(F)):
        front = pareto.front_after(front, F, t)
        assert_array_equal(front, np.flatnonzero(exits[: t + 1] >= t + 1))
    assert (exits[exits < len(F)] > np.flatnonzero(exits < len(F))).any()


def test_front_after_returns_the_same_front_for_a_dominated_arrival() -> None:
    F = np.array([[0.0, 1], [1, 0], [1, 1]])
    front = np.array([0, 1])
    assert pareto.front_after(front, F, 2) is front


# ---- hypervolume --------------------------------------------------------------------------------


def test_hypervolume_by_hand() -> None:
    assert pareto.hypervolume(np.array([[1, 3], [2, 2], [3, 1]]), [4, 4]) == 6
    assert pareto.hypervolume(np.array([[1, 1, 1], [0, 2, 2]]), [3, 3, 3]) == 8 + 1
    assert pareto.hypervolume([[1.0], [3.0]], [5.0]) == 4
    assert pareto.hypervolume(np.zeros((1, 8)), np.full(8, 2.0)) == 2**8


def test_hypervolume_ignores_points_outside_the_reference() -> None:
    inside = np.array([[1.0, 3], [2, 2]])
    outside = np.array([[0.0, 4], [-5, 9], [4, 0]])
    assert pareto.hypervolume(np.vstack([inside, outside]), [4, 4]) == 5
    assert pareto.hypervolume(outside, [4, 4]) == 0
    assert pareto.hypervolume(np.empty((0, 2)), [4, 4]) == 0
    assert_array_equal(pareto.contributions(outside, [4, 4]), [0, 0, 0])
    assert_array_equal(pareto.improvement(outside, inside, [4, 4]), [0, 0, 0])


def inclusion_exclusion(F: Array, z: Array) -> float:
    total = 0.0
    for subset in range(1, 2 ** len(F)):
        rows = F[[i for i in range(len(F)) if subset >> i & 1]]
        volume = np.prod(np.maximum(z - rows.max(axis=0), 0))
        total += float(volume) * (1 if len(rows) % 2 else -1)
    return total


@settings(deadline=None, max_examples=40)
@given(point_sets(most=6, objectives=(1, 8)), st.sampled_from([0.5, 1.0, 1.25]))
def test_hypervolume_equals_inclusion_exclusion(F: Array, level: float) -> None:
    z = np.full(F.shape[1], level)
    assert pareto.hypervolume(F, z) == pytest.approx(inclusion_exclusion(F, z), abs=1e-12)


@property_test
@given(two_sets(), st.randoms(use_true_random=False))
def test_hypervolume_is_monotone_and_ignores_order(
    sets: tuple[Array, Array], random: object
) -> None:
    F, more = sets
    z = np.full(F.shape[1], 1.1)
    volume = pareto.hypervolume(F, z)
    assert pareto.hypervolume(np.vstack([F, more]), z) >= volume - 1e-12
    assert pareto.hypervolume(F * 0.9, z) >= volume - 1e-12
    order = list(range(len(F)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert pareto.hypervolume(F[order], z) == pytest.approx(volume, abs=1e-12)


def test_contributions_by_hand() -> None:
    # Row 3 is dominated by row 1 alone, so it lowers what row 1 contributes from 3 to 2.
    F = np.array([[1.0, 5], [4, 2], [5, 1], [4, 4], [5, 1]])
    assert_allclose(pareto.contributions(F, [6, 6]), [3, 2, 0, 0, 0])
    assert_allclose(pareto.contributions([[1.0], [2.0], [9.0]], [5.0]), [1, 0, 0])


@settings(deadline=None, max_examples=100)
@given(point_sets(most=10, objectives=(1, 6)), st.sampled_from([0.75, 1.1]))
def test_contributions_are_what_the_set_loses(F: Array, level: float) -> None:
    z = np.full(F.shape[1], level)
    volume = pareto.hypervolume(F, z)
    lost = pareto.contributions(F, z)
    expected = [volume - pareto.hypervolume(np.delete(F, i, axis=0), z) for i in range(len(F))]
    assert_allclose(lost, expected, atol=1e-12)
    assert lost.sum() <= volume + 1e-9


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_contributions_agree_with_moocore(m: int) -> None:
    F, z = shell(60, m), np.full(m, 1.2)
    expected = moocore.hv_contributions(F, z, ignore_dominated=False)
    assert_allclose(pareto.contributions(F, z), expected, atol=1e-12)


# ---- improvement --------------------------------------------------------------------------------


def differences(C: Array, P: Array, z: Array) -> Array:
    before = pareto.hypervolume(P, z)
    return np.array([pareto.hypervolume(np.vstack([P, c[None]]), z) - before for c in C])


def test_improvement_by_hand() -> None:
    front = np.array([[1.0, 3], [2, 2], [3, 1]])
    C = np.array([[2.0, 2], [1, 1], [0, 3.5], [1.5, 2.5], [3.5, 3.5], [5, 0]])
    assert_array_equal(pareto.improvement(C, front, [4, 4]), [0, 3, 0.5, 0.25, 0, 0])
    assert_array_equal(pareto.improvement(C[:1], front, [4, 4]), [0])
    assert_array_equal(pareto.improvement([[1.0], [3.0]], [[2.0], [4.0]], [5.0]), [1, 0])


@settings(deadline=None, max_examples=150)
@given(two_sets(objectives=(1, 6)), st.sampled_from([0.75, 1.0, 1.25]))
def test_improvement_equals_the_difference_of_hypervolumes(
    sets: tuple[Array, Array], level: float
) -> None:
    C, P = sets
    z = np.full(C.shape[1], level)
    expected = differences(C, P, z)
    assert_allclose(pareto.improvement(C, P, z), expected, atol=1e-12)
    # Enough copies reach the way that many candidates take.
    many = np.tile(C, (40, 1))
    assert_allclose(pareto.improvement(many, P, z), np.tile(expected, 40), atol=1e-12)


@pytest.mark.parametrize(
    ("m", "k"), [(2, 100), (3, 80), (4, 150), (5, 25), (6, 15), (7, 10), (8, 8)]
)
def test_improvement_of_many_candidates(m: int, k: int) -> None:
    P, z = sphere(k, m), np.full(m, 1.1)
    C = np.vstack([P, P * 1.05, shell(400, m)])
    found = pareto.improvement(C, P, z)
    assert_allclose(found[-60:], differences(C[-60:], P, z), atol=1e-12)
    worse: npt.NDArray[np.bool_] = np.all(C[:, None] >= P[None], axis=2)
    covered = worse.any(axis=1) | (C.max(axis=1) >= 1.1)
    assert_array_equal(found > 0, ~covered)


def test_the_boxes_are_disjoint_and_fill_what_the_front_leaves() -> None:
    z = np.full(4, 1.1)
    P = np.round(sphere(30, 4) * 8) / 8  # ties in single objectives
    P = P[moocore.is_nondominated(P)]
    boxes = inner._boxes(P, z)
    assert boxes is not None
    low, high = boxes
    X = np.random.default_rng(0).uniform(-0.1, 1.1, (2000, 4))
    times = ((low.T[None] <= X[:, None]) & (X[:, None] < high.T[None])).all(axis=2).sum(axis=1)
    covered = (P[None] <= X[:, None]).all(axis=2).any(axis=1)
    assert_array_equal(times, np.where(covered, 0, 1))


def test_too_many_boxes_fall_back_to_one_call_per_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    C, P, z = shell(80, 4), sphere(20, 4), np.full(4, 1.1)
    expected = pareto.improvement(C, P, z)
    monkeypatch.setattr(inner, "_BOX_NUMBERS", 500)
    assert inner._boxes(P, z) is None
    assert_allclose(pareto.improvement(C, P, z), expected, atol=1e-12)


def test_improvement_in_two_objectives_does_not_depend_on_the_origin() -> None:
    C, P, z = shell(50, 2), sphere(20, 2), np.full(2, 1.1)
    assert_allclose(
        pareto.improvement(C + 1e3, P + 1e3, z + 1e3), pareto.improvement(C, P, z), atol=1e-9
    )


# ---- greedy choice ------------------------------------------------------------------------------


def plain_greedy(C: Array, P: Array, z: Array, q: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(q):
        gains = np.array([inner._gain(c, P, z) for c in C])
        if gains.max() <= 0:
            break
        chosen.append(int(np.argmax(gains)))
        P = np.vstack([P, C[chosen[-1]]])
    return chosen


@settings(deadline=None, max_examples=80)
@given(two_sets(objectives=(2, 5)), st.sampled_from([0.75, 1.1]))
def test_lazy_greedy_equals_plain_greedy(sets: tuple[Array, Array], level: float) -> None:
    C, P = sets
    z = np.full(C.shape[1], level)
    found = pareto.greedy_improvement(C, P, z, len(C))
    assert sorted(found.tolist()) == list(range(len(C)))
    expected = plain_greedy(C, P, z, len(C))
    front = P
    for i, (a, b) in enumerate(zip(found.tolist(), expected, strict=False)):
        gains = pareto.improvement(C, front, z)
        # On a grid gains are often equal but for rounding; either order is then greedy.
        assert gains[a] == pytest.approx(gains.max(), abs=1e-12)
        if a != b:
            assert gains[b] == pytest.approx(gains[a], abs=1e-12)
            return
        front = np.vstack([front, C[found[i]]])


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_lazy_greedy_equals_plain_greedy_on_a_front(m: int) -> None:
    C, P, z = shell(150, m), sphere(40, m), np.full(m, 1.1)
    found = pareto.greedy_improvement(C, P, z, 8)
    assert found.dtype == np.int64
    assert found.tolist() == plain_greedy(C, P, z, 8)
    assert found[0] == np.argmax(pareto.improvement(C, P, z))


def test_greedy_counts_pending_as_known() -> None:
    C, P, z = shell(80, 3), sphere(20, 3), np.full(3, 1.1)
    first = pareto.greedy_improvement(C, P, z, 5)
    later = pareto.greedy_improvement(C, P, z, 3, pending=C[first[:2]])
    assert later.tolist() == first[2:].tolist()


def test_greedy_ties_go_to_the_lower_index() -> None:
    C = np.array([[0.5, 0.5], [0.2, 0.2], [0.2, 0.2], [0.5, 0.5]])
    found = pareto.greedy_improvement(C, np.empty((0, 2)), [1, 1], 4)
    # Nothing adds to row 1; the rest are as near as can be, with its copy last.
    assert found.tolist() == [1, 0, 3, 2]


def test_greedy_without_improvement_orders_by_additive_epsilon() -> None:
    front = np.array([[0.0, 0.0]])
    C = np.array([[0.9, 0.9], [0.1, 0.3], [0.2, 0.2], [0.3, 0.1]])
    assert pareto.greedy_improvement(C, front, [1, 1], 4).tolist() == [2, 1, 3, 0]
    beyond = C + 2
    assert pareto.greedy_improvement(beyond, np.empty((0, 2)), [1, 1], 2).tolist() == [2, 1]
    # In units of the front's extent: the second objective is a thousand times as wide.
    wide = C * [1, 1000]
    assert pareto.greedy_improvement(wide, front, [1, 1000], 4).tolist() == [2, 1, 3, 0]


# ---- distances ----------------------------------------------------------------------------------


def test_igd_by_hand() -> None:
    front = np.array([[0.0, 1], [1, 0]])
    F = np.array([[0.0, 2], [4, 4]])
    assert pareto.igd(F, front) == pytest.approx((1 + np.sqrt(5)) / 2)
    # Only what is worse than the front point counts: (0, 1) -> 1, (1, 0) -> 2.
    assert pareto.igd_plus(F, front) == pytest.approx((1 + 2) / 2)
    assert pareto.igd(front, front) == 0
    assert pareto.igd_plus(front - 1, front) == 0


@pytest.mark.parametrize("n", [1, 30, 400])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_distances_agree_with_moocore_and_pymoo(n: int, m: int) -> None:
    F, front = sphere(n, m, 3) * 1.5 + 0.1, sphere(200, m, 4)
    assert pareto.igd(F, front) == pytest.approx(moocore.igd(F, front), rel=1e-12)
    assert pareto.igd(F, front) == pytest.approx(IGD(front)(F), rel=1e-9)
    assert pareto.igd_plus(F, front) == pytest.approx(moocore.igd_plus(F, front), rel=1e-12)
    assert pareto.igd_plus(F, front) == pytest.approx(IGDPlus(front)(F), rel=1e-9)


@pytest.mark.parametrize(("n", "p"), [(40, 50), (300, 2100)])
def test_igd_history_is_the_igd_of_every_beginning(n: int, p: int) -> None:
    F, front = shell(n, 3), sphere(p, 3)
    history = pareto.igd_history(F, front)
    for i in {1, 2, n // 2, 128, 129, n} & set(range(1, n + 1)):
        assert history[i - 1] == pytest.approx(pareto.igd(F[:i], front), rel=1e-12)
    assert (np.diff(history) <= 1e-15).all()
    assert pareto.igd_history(np.empty((0, 3)), front).shape == (0,)


# ---- the border ---------------------------------------------------------------------------------

CALLS: list[Callable[[Array], object]] = [
    pareto.nondominated,
    pareto.ranks,
    pareto.crowding,
    pareto.average_crowding,
    pareto.front_exits,
    lambda F: pareto.constrained_ranks(F, np.zeros(len(F))),
    lambda F: pareto.hypervolume(F, [2, 2, 2]),
    lambda F: pareto.contributions(F, [2, 2, 2]),
    lambda F: pareto.improvement(F, np.ones((1, 3)), [2, 2, 2]),
    lambda F: pareto.improvement(np.ones((1, 3)), F, [2, 2, 2]),
    lambda F: pareto.greedy_improvement(F, np.ones((1, 3)), [2, 2, 2], 2),
    lambda F: pareto.greedy_improvement(np.ones((3, 3)), F, [2, 2, 2], 2, pending=F),
    lambda F: pareto.igd(F, np.ones((1, 3))),
    lambda F: pareto.igd_plus(np.ones((1, 3)), F),
    lambda F: pareto.igd_history(F, np.ones((1, 3))),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused(
    call: Callable[[Array], object], value: float
) -> None:
    F = sphere(5, 3)
    F[3, 1] = value
    with pytest.raises(ValueError, match=r"must be finite numbers, got \[.*\] in row 3"):
        call(F)


@pytest.mark.parametrize("call", CALLS)
def test_inputs_may_be_read_only_lists_or_columns_and_stay_as_they_are(
    call: Callable[[Array], object],
) -> None:
    F = shell(60, 3)
    kept = F.copy()
    F.setflags(write=False)
    expected = call(F)
    assert_array_equal(F, kept)
    assert_array_equal(call(np.asfortranarray(F)), expected)
    assert_array_equal(call(F.tolist()), expected)


def test_front_after_leaves_its_inputs_alone_and_refuses_nan() -> None:
    F = np.array([[1.0, 1], [0, 0], [np.nan, 0]])
    front = np.array([0])
    F.setflags(write=False)
    front.setflags(write=False)
    assert pareto.front_after(front, F, 1).tolist() == [1]
    assert front.tolist() == [0]
    with pytest.raises(ValueError, match="in row 2"):
        pareto.front_after(front, F, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pareto.ranks([1.0, 2.0]), r"shape \(n, m\).*got shape \(2,\)"),
        (lambda: pareto.ranks([["a", "b"]]), "must be real numbers"),
        (lambda: pareto.dominates([1, 2], [1, 2, 3]), "same number of objectives, got 2 and 3"),
        (lambda: pareto.hypervolume([[1.0, 1]], [2, 2, 2]), "needs 2 finite values"),
        (lambda: pareto.hypervolume([[1.0, 1]], [2, np.nan]), "needs 2 finite values"),
        (lambda: pareto.hypervolume(np.ones((1, 9)), np.ones(9)), "1 to 8 objectives, got 9"),
        (lambda: pareto.improvement([[1.0]], [[1.0, 2]], [2, 2]), "equally many objectives"),
        (
            lambda: pareto.greedy_improvement([[1.0, 1]], [[1.0, 2]], [2, 2], 2),
            "got 2; offer more",
        ),
        (lambda: pareto.igd(np.empty((0, 2)), [[1.0, 2]]), "must have rows"),
        (lambda: pareto.igd([[1.0, 2, 3]], [[1.0, 2]]), "equally many objectives"),
        (lambda: pareto.constrained_ranks([[1.0]], [-1.0]), ">= 0, got -1.0 in row 0"),
        (lambda: pareto.constrained_ranks([[1.0]], [np.nan]), "got nan in row 0"),
        (lambda: pareto.constrained_ranks([[1.0]], [0.0, 0.0]), "one number per row"),
    ],
)
def test_errors_say_what_was_expected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
