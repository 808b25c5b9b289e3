from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.testing.algorithm import example_archive


def test_rows_are_read_only_and_in_order_of_arrival() -> None:
    archive = Archive.of(np.eye(3), np.arange(6.0).reshape(3, 2))
    longer = archive.extended(np.zeros((1, 3)), np.array([[9.0, 9.0]]))
    assert len(archive) == 3 and len(longer) == 4
    assert np.array_equal(longer.F[:3], archive.F) and longer.F[3].tolist() == [9, 9]
    for rows in (archive.U, archive.F, archive.G, archive.ranks, archive.front_indices):
        with pytest.raises(ValueError, match="read-only"):
            rows[...] = 0


def test_two_extensions_of_one_archive_do_not_see_each_other() -> None:
    archive = Archive.of(np.zeros((1, 1)), np.zeros((1, 1)))
    left = archive.extended(np.full((1, 1), 0.1), np.full((1, 1), 1.0))
    right = archive.extended(np.full((1, 1), 0.2), np.full((1, 1), 2.0))
    again = left.extended(np.full((1, 1), 0.3), np.full((1, 1), 3.0))
    assert left.F.ravel().tolist() == [0, 1] and right.F.ravel().tolist() == [0, 2]
    assert again.F.ravel().tolist() == [0, 1, 3]


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_the_front_grown_row_by_row_is_the_front_of_everything(seed: int, m: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    F = rng.integers(0, 6, size=(n, m)).astype(float)  # small integers make ties and duplicates
    G = rng.integers(-1, 2, size=(n, 1)).astype(float)
    grown = Archive.empty(1, m, 1)
    for i in range(n):
        grown = grown.extended(np.zeros((1, 1)), F[i : i + 1], G[i : i + 1])
        if rng.random() < 0.7:
            assert grown.front_indices is not None
    feasible = np.flatnonzero(G[:, 0] <= 0)
    expected = feasible[pareto.nondominated(F[feasible])] if len(feasible) else feasible
    assert sorted(grown.front_indices) == sorted(expected)


def test_extending_shares_storage_instead_of_copying_it() -> None:
    archive = Archive.of(np.zeros((1000, 5)), np.zeros((1000, 2)))
    longer = archive.extended(np.zeros((1, 5)), np.zeros((1, 2)))
    longest = longer.extended(np.zeros((1, 5)), np.zeros((1, 2)))
    assert np.shares_memory(longer.U, longest.U)


def test_failed_points_are_kept_and_never_enter_the_objectives() -> None:
    archive = example_archive(4, 3, 2).extended(
        np.empty((0, 3)), np.empty((0, 2)), failed=np.full((2, 3), 0.5)
    )
    assert len(archive) == 4 and archive.failed.shape == (2, 3)
    with pytest.raises(ValueError, match="finite numbers only"):
        archive.extended(np.zeros((1, 3)), np.array([[np.nan, 1.0]]))
    with pytest.raises(ValueError, match="must have shapes"):
        archive.extended(np.zeros((1, 2)), np.zeros((1, 2)))


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_labels_give_the_front_class_one_and_balance_the_rest(k: int) -> None:
    archive = example_archive(101, 4, 2)
    labels = archive.labels(k)
    assert np.array_equal(labels == 1, archive.ranks == 1)
    sizes = [int((labels == c).sum()) for c in range(2, k + 1)]
    assert max(sizes) - min(sizes) <= 1
    for worse in range(3, k + 1):
        assert archive.ranks[labels == worse].min() >= archive.ranks[labels == worse - 1].max()


def test_labels_of_few_points() -> None:
    assert Archive.empty(2, 2).labels(5).tolist() == []
    assert Archive.of(np.zeros((2, 1)), np.array([[0.0, 0], [1, 1]])).labels(5).tolist() == [1, 2]


def test_infeasible_points_rank_last_and_never_reach_the_front() -> None:
    F = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    archive = Archive.of(np.zeros((3, 1)), F, np.array([[1.0], [-1.0], [0.5]]))
    assert archive.ranks.tolist() == [3, 1, 2]
    assert archive.front_indices.tolist() == [1]


def test_reference_point_lies_beyond_the_front() -> None:
    F = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]])
    assert np.allclose(Archive.of(np.zeros((3, 1)), F).reference_point, [1.1, 1.1])
    assert np.allclose(Archive.of(np.zeros((1, 1)), F[:1]).reference_point, [0.1, 1.1])
    assert np.allclose(Archive.empty(1, 2).reference_point, [1, 1])


def test_gains_equal_hand_computed_ones() -> None:
    # Reference (4, 4): (1, 3) brings 3*1; (3, 1) brings 1*3 - 1*1 = 2; (3.5, 3.5) nothing.
    F = np.array([[1.0, 3.0], [3.0, 1.0], [3.5, 3.5]])
    gains = Archive.of(np.zeros((3, 1)), F).gains(3, reference=np.array([4.0, 4.0]))
    assert np.allclose(gains.hypervolume, [3.0, 2.0, 0.0])
    steps = [pareto.average_crowding(F[:i]) for i in range(4)]
    assert np.allclose(gains.diversity, np.diff(steps))


def test_gains_of_the_last_arrivals_are_the_tail_of_all() -> None:
    archive = example_archive(30, 3, 3)
    reference = archive.F.max(axis=0)
    every, last = archive.gains(30, reference), archive.gains(7, reference)
    assert np.allclose(every.hypervolume[-7:], last.hypervolume)
    assert np.allclose(every.diversity[-7:], last.diversity)
    assert every.hypervolume.sum() == pytest.approx(pareto.hypervolume(archive.F, reference))
