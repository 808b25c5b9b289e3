from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.peers.clmea import (
    CLMEA,
    Knowledge,
    RankNetwork,
    farthest,
    rank_classes,
    reference_point,
    survivors,
)
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

QUICK = CLMEA(
    population=20,
    classifier_rounds=10,
    global_generations=8,
    local_generations=5,
    extreme_generations=3,
)


def proposed(archive: Archive, q: int, memory: Memory | None = None) -> Proposal:
    nobody = np.empty((0, archive.d))
    return QUICK.propose(archive, q, pending=nobody, memory=memory, rng=Streams(3, 1))


def test_the_algorithm_exam() -> None:
    check_algorithm(QUICK)


def test_the_published_settings() -> None:
    assert (CLMEA().batch, CLMEA().population, CLMEA().wide_population) == (1, 100, 200)


def test_the_network_learns_separable_ranks() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([0.1, 0.4, 0.65, 0.9])
    classes = np.repeat(np.arange(1, 5), (10, 30, 40, 20))
    U = centres[classes - 1][:, None] + rng.uniform(-0.08, 0.08, (100, 5))
    network = RankNetwork.of(U, classes)
    asked = np.repeat(np.arange(1, 5), 25)
    V = centres[asked - 1][:, None] + rng.uniform(-0.08, 0.08, (100, 5))
    assert (network.predict(V) == asked).all()


def test_the_network_adds_up_bumps_of_each_class() -> None:
    """Spread 1 / sqrt(6): one near point of class 1 against two farther ones of class 2."""
    network = RankNetwork.of(np.array([[0.0], [1.0], [0.9]]), np.array([1, 2, 2]))
    x = np.linspace(0.3, 0.6, 61)
    score = 2.0 ** -(6.0 * x**2)
    other = 2.0 ** -(6.0 * (x - 1.0) ** 2) + 2.0 ** -(6.0 * (x - 0.9) ** 2)
    assert network.spread == pytest.approx(6.0**-0.5)
    assert np.array_equal(network.predict(x[:, None]), np.where(score >= other, 1, 2))


def test_the_network_answers_far_away_too() -> None:
    network = RankNetwork.of(np.array([[0.0], [1e-3]]), np.array([1, 2]))
    assert network.predict(np.array([[-1.0], [1.0]])).tolist() == [1, 2]


def test_classes_are_cut_in_the_published_shares() -> None:
    shares = CLMEA().class_shares
    assert np.bincount(rank_classes(100, shares)).tolist() == [0, 10, 30, 40, 20]
    assert rank_classes(4, shares).tolist() == [1, 2, 3, 4]
    assert rank_classes(6, shares).min() == 1


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 40), keep=st.integers(1, 50), seed=st.integers(0, 99))
def test_survivors_are_the_best_ranks(n: int, keep: int, seed: int) -> None:
    Z = np.random.default_rng(seed).random((n, 2))
    ranks, kept = pareto.ranks(Z), survivors(Z, keep)
    assert len(np.unique(kept)) == min(n, keep)
    assert (np.diff(ranks[kept]) >= 0).all()
    assert np.sort(ranks[kept]).tolist() == np.sort(ranks)[: len(kept)].tolist()


def test_farthest_spreads_out() -> None:
    X = np.array([[0.1], [0.9], [1.0], [0.5]])
    assert farthest(X, np.array([[0.0]]), 3).tolist() == [2, 3, 0]
    assert len(farthest(X[:0], X, 2)) == 0


def test_the_reference_point() -> None:
    front = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert np.allclose(reference_point(front, 1.2), [1.0 + 1.32 * 2.0, 5.132])


def test_turns_go_round_and_survive_in_memory() -> None:
    archive = example_archive(30, 4, 2)
    names, memory = [], None
    for _ in range(8):
        proposal = proposed(archive, 1, memory)
        archive = archive.extended(proposal.U, conflicting(proposal.U, 2))
        memory = proposal.memory
        names += proposal.notes["strategies"]
    start = ["extremes"] * 2
    assert names[:8] == start + ["classifier", "hypervolume", "local"] * 2


def test_the_strategies_give_distinct_points() -> None:
    archive = example_archive(60, 6, 2)
    proposal = proposed(archive, 3, {"turn": np.array([2])})
    assert sorted(proposal.notes["strategies"]) == ["classifier", "hypervolume", "local"]
    gaps = cdist(proposal.U, np.concatenate([proposal.U, archive.U]))
    gaps[np.arange(3), np.arange(3)] = np.inf
    assert gaps.min() > QUICK.apart


def test_many_points_at_once_are_all_different() -> None:
    proposal = proposed(example_archive(60, 6, 2), 50)
    gaps = cdist(proposal.U, proposal.U)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() > QUICK.apart
    assert set(proposal.notes["strategies"]) >= {"extremes", "classifier", "hypervolume", "local"}


def test_the_extremes_minimise_their_objective() -> None:
    """Of a quadratic with its minimum inside, the model's minimiser beats the start design."""
    rng = np.random.default_rng(1)
    U = rng.random((60, 3))

    def f(X: Array) -> Array:
        return np.stack([((X - t) ** 2).sum(axis=1) for t in (0.3, 0.7)], axis=1)

    points = proposed(Archive.of(U, f(U)), 2).U
    assert (np.diag(f(points)) < f(U).min(axis=0)).all()


def test_the_hypervolume_strategy_improves_the_front() -> None:
    archive = example_archive(60, 6, 2)
    found = proposed(archive, 1, {"turn": np.array([3])})
    assert found.notes["strategies"] == ["hypervolume"]
    gain = pareto.improvement(conflicting(found.U, 2), archive.front, archive.reference_point)
    assert gain[0] > 0


def test_the_units_of_the_objectives_do_not_matter() -> None:
    archive = example_archive(40, 5, 2)
    other = Archive.of(archive.U, archive.F * [1e6, 1e-3] - [3e6, 7.0])
    size, known = 20, archive.U
    ours, theirs = (Knowledge.of(a, known, size, 1e-5) for a in (archive, other))
    assert np.allclose(ours.Z, theirs.Z) and np.array_equal(ours.best, theirs.best)
