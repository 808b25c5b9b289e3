"""Window, running magnitude, normalised targets and the replay buffer, by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.acquisition import History, normalised, running_magnitude, window_statistics
from neuropareto.space import Array, Categorical, Integer, Real, Space


def test_window_statistics_by_hand() -> None:
    assert window_statistics(np.array([9.0, 1.0, 3.0]), 2) == (2.0, 1.0)
    assert window_statistics(np.array([2.0]), 5) == (2.0, 0.0)
    assert window_statistics(np.empty(0), 5) == (0.0, 0.0)
    with pytest.raises(ValueError, match="at least one"):
        window_statistics(np.ones(3), 0)


def test_running_magnitude_and_normalised_target_by_hand() -> None:
    gains = np.array([1.0, -3.0, 0.0])
    # Weights 1; (1, 2) / 3; (1, 2, 4) / 7 with memory 1/2.
    magnitude = [1.0, 7 / 3, 1.0]
    assert running_magnitude(gains, 0.5) == pytest.approx(magnitude)
    assert normalised(gains, 0.5, epsilon=0.0) == pytest.approx([1.0, -9 / 7, 0.0])
    assert normalised(gains, 0.5, epsilon=1.0) == pytest.approx([0.5, -3 / (10 / 3), 0.0])


def test_no_gains_and_no_movement_are_harmless() -> None:
    assert normalised(np.zeros(4)).tolist() == [0.0] * 4
    assert normalised(np.empty(0)).shape == (0,)
    with pytest.raises(ValueError, match="running average"):
        running_magnitude(np.ones(2), 1.0)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(1e-3, 1e3),
)
def test_targets_do_not_depend_on_units_nor_on_the_future(gains: list[float], unit: float) -> None:
    raw = np.array([0.0 if abs(g) < 1e-3 else g for g in gains])
    targets = normalised(raw)
    assert normalised(raw * unit) == pytest.approx(targets, rel=1e-5)
    assert normalised(raw[:-1]) == pytest.approx(targets[:-1])
    # A spike is divided by an average in which it takes part with this weight.
    share = 0.1 / (1 - 0.9 ** np.arange(1, len(raw) + 1))
    assert (np.abs(targets) <= 1 / share + 1e-9).all()


def rows(q: int, start: int, d: int = 2) -> tuple[Array, Array, Array]:
    """q proposals numbered from ``start``: points, features, estimates."""
    number = np.arange(start, start + q, dtype=np.float64)
    return np.tile(number[:, None] / 1000, (1, d)), np.tile(number[:, None], (1, 3)), number


def test_the_buffer_keeps_the_latest_and_is_bounded() -> None:
    history = History.empty(2, 3)
    for start in range(0, 100, 10):
        before = len(history)
        longer = history.extended(*rows(10, start), capacity=25)
        assert len(history) == before, "a history is a value"
        history = longer
    assert len(history) == 25
    assert history.estimate.tolist() == list(range(75, 100))
    assert history.features[0].tolist() == [75.0] * 3


def test_the_buffer_survives_storage_without_pickle() -> None:
    history = History.empty(2, 3).extended(*rows(7, 0))
    file = io.BytesIO()
    np.savez(file, **dict(history.memory))  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        again = History.recalled({name: read[name] for name in read.files}, 2, 3)
    for name, value in history.memory.items():
        assert np.array_equal(value, again.memory[name])


def test_a_memory_of_another_shape_is_forgotten() -> None:
    memory = History.empty(2, 3).extended(*rows(7, 0)).memory
    assert len(History.recalled(memory, 2, 3)) == 7
    assert len(History.recalled(memory, 2, 4)) == 0
    assert len(History.recalled(memory, 3, 3)) == 0
    assert len(History.recalled(None, 2, 3)) == 0
    assert len(History.recalled({"U": memory["U"]}, 2, 3)) == 0
    assert len(History.recalled({**memory, "estimate": np.ones(2)}, 2, 3)) == 0


def test_outcomes_are_matched_by_the_point_in_whatever_order_they_arrive() -> None:
    history = History.empty(2, 3).extended(*rows(4, 0))
    archive = np.concatenate([np.full((3, 2), 0.9), history.U[[2, 0]]])
    here, there = history.matched(archive)
    assert here.tolist() == [2, 0] and there.tolist() == [3, 4]
    assert np.array_equal(history.U[here], archive[there])


def test_nearly_equal_points_do_not_match_and_signed_zeros_do() -> None:
    history = History.empty(2, 1).extended(np.array([[0.0, 0.3]]), np.ones((1, 1)), np.ones(1))
    near = np.array([[0.0, np.nextafter(0.3, 1.0)], [-0.0, 0.3]])
    assert history.matched(near)[1].tolist() == [1]
    assert history.matched(np.empty((0, 2)))[0].shape == (0,)
    assert History.empty(2, 1).matched(near)[0].shape == (0,)


def test_repeated_points_are_matched_one_to_one_from_the_latest() -> None:
    U = np.array([[0.5, 0.5], [0.5, 0.5]])
    history = History.empty(2, 1).extended(U, np.ones((2, 1)), np.array([1.0, 2.0]))
    here, there = history.matched(np.array([[0.5, 0.5]] * 3))
    assert here.tolist() == [0, 1] and there.tolist() == [1, 2]
    here, there = history.matched(np.array([[0.5, 0.5]]))
    assert here.tolist() == [1] and there.tolist() == [0]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 2**31))
def test_matching_equals_a_search_over_all_pairs(b: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = rng.permutation(np.array([[i / 7, j / 7] for i in range(8) for j in range(8)]))
    U, archive = pool[:b], rng.permutation(pool)[:n]
    history = History(U, np.zeros((b, 1)), np.zeros(b))
    here, there = history.matched(archive)
    pairs = {(i, j) for i in range(b) for j in range(n) if (U[i] == archive[j]).all()}
    assert set(zip(here.tolist(), there.tolist(), strict=True)) == pairs
    assert (np.diff(there) > 0).all()


def test_proposals_settle_where_they_were_evaluated() -> None:
    space = Space.of([Integer(0, 9), Categorical(("a", "b")), Real(0.0, 3.0)])
    rng = np.random.default_rng(0)
    U = rng.random((8, 3))
    really = space.to_unit(space.from_unit(U))
    history = History.empty(3, 1).extended(U, np.arange(8.0)[:, None], np.zeros(8))
    assert len(history.matched(really)[0]) == 0
    order = rng.permutation(8)
    settled = history.settled(np.concatenate([np.full((3, 3), 0.5), really[order]]))
    assert np.abs(settled.U - U).max() <= 0.25
    assert np.array_equal(settled.features, history.features)
    assert len(settled.matched(really)[0]) >= 6  # a cell may hold two proposals


def test_rounding_settles_every_proposal_and_settling_twice_changes_nothing() -> None:
    U = np.random.default_rng(0).random((10, 30))
    history = History.empty(30, 1).extended(U, np.ones((10, 1)), np.ones(10))
    really = np.nextafter(U, 1.0)[::-1]
    settled = history.settled(really)
    assert np.array_equal(settled.U, really[::-1])
    assert settled.settled(really) is settled
    assert history.settled(np.empty((0, 30))) is history


def test_points_far_away_or_taken_are_left_alone() -> None:
    history = History.empty(2, 1).extended(
        np.array([[0.1, 0.1], [0.12, 0.1], [0.9, 0.9]]), np.ones((3, 1)), np.ones(3)
    )
    settled = history.settled(np.array([[0.11, 0.1], [0.12, 0.1], [0.5, 0.9]]))
    assert settled.U.tolist() == [[0.11, 0.1], [0.12, 0.1], [0.9, 0.9]]


def test_features_stay_as_they_were_when_the_point_was_proposed() -> None:
    # A model refitted after the outcome describes the point otherwise; the history must not care.
    U, features, estimate = rows(5, 0)
    history = History.empty(2, 3).extended(U, features, estimate)
    kept = features.copy()
    features[:] = -1.0  # the caller's array is overwritten in the next round
    later = history.extended(*rows(5, 5))
    assert np.array_equal(later.features[:5], kept)
    assert not np.shares_memory(history.features, features)


def test_wrong_shapes_are_refused() -> None:
    U, features, estimate = rows(4, 0)
    history = History.empty(2, 3)
    for wrong in ((U[:, :1], features, estimate), (U, features[:3], estimate)):
        with pytest.raises(ValueError, match="shapes"):
            history.extended(*wrong)
    with pytest.raises(ValueError, match="capacity"):
        history.extended(U, features, estimate, capacity=0)
