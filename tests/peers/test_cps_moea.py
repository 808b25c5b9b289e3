from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from neuropareto import Optimizer, pareto
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.peers.cps_moea import CPSMOEA, promising
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm


def bowls(X: Array) -> Array:
    return np.stack([((X - 0.3) ** 2).sum(axis=1), ((X - 0.7) ** 2).sum(axis=1)], axis=1)


@pytest.mark.parametrize("peer", [CPSMOEA(), CPSMOEA(population=7, candidates=1)])
def test_the_algorithm_exam(peer: CPSMOEA) -> None:
    check_algorithm(peer)


def test_the_vote_equals_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    good, bad, candidates = rng.random((20, 3)), rng.random((25, 3)), rng.random((500, 3))
    theirs = KNeighborsClassifier(5).fit(
        np.concatenate([good, bad]), np.repeat([1.0, 0.0], [20, 25])
    )
    votes = promising(candidates, good, bad, 5)
    np.testing.assert_array_equal(votes, theirs.predict(candidates))
    assert 0 < votes.sum() < 500


def test_half_of_the_votes_are_not_a_majority() -> None:
    good, bad = np.array([[0.4], [0.45]]), np.array([[0.55], [0.6]])
    np.testing.assert_array_equal(promising(np.array([[0.41]]), good, bad, 4), [0.0])
    np.testing.assert_array_equal(promising(np.array([[0.41]]), good, bad, 3), [1.0])


def two_camps(n: int = 40, d: int = 6) -> Archive:
    """Good points where the first variable is small, bad ones where it is large."""
    U = np.random.default_rng(1).random((n, d))
    U[:, 0] = np.r_[np.linspace(0.0, 0.2, n // 2), np.linspace(0.8, 1.0, n - n // 2)]
    return Archive.of(U, np.stack([1000.0 * U[:, 0] + U[:, 1], 1000.0 * U[:, 0] - U[:, 1]], 1))


def test_preselection_prefers_the_good_camp() -> None:
    """With ten candidates a parent, nearly every child falls to the side of the good set."""
    archive, none = two_camps(), np.empty((0, 6))
    share = {}
    for candidates in (1, 10):
        peer = CPSMOEA(population=40, candidates=candidates, F=1.0, neighbours=3)
        drawn = [
            peer.propose(archive, 40, pending=none, memory=None, rng=Streams(0, r)).U
            for r in range(5)
        ]
        share[candidates] = (np.concatenate(drawn)[:, 0] < 0.5).mean()
    assert share[10] > 0.85 > 0.7 > share[1]


def generation(memory: Memory, F: Array, first: int, N: int) -> tuple[set[int], set[int]]:
    """Good and bad sets after the rows from ``first`` on arrived, computed from the published step."""

    def best(rows: Array, n: int) -> set[int]:
        ranks, crowd = pareto.ranks(F[rows]), np.zeros(len(rows))
        for rank in range(1, int(ranks.max()) + 1):
            crowd[ranks == rank] = pareto.crowding(F[rows][ranks == rank])
        order = sorted(range(len(rows)), key=lambda i: (ranks[i], -crowd[i]))
        return {int(rows[i]) for i in order[:n]}

    Q = np.arange(first, len(F))
    front = pareto.nondominated(F[Q])
    good = best(np.concatenate([memory["good"], Q[front]]), N // 2)
    return good, best(np.concatenate([memory["bad"], Q[~front]]), N // 2)


def test_good_and_bad_sets_follow_the_published_update() -> None:
    N = 12
    o = Optimizer([(0, 1)] * 5, 2, CPSMOEA(population=N), seed=2, n_initial=30)
    batch = o.ask(30)
    o.tell(batch, bowls(batch.X))
    batch = o.ask(N)
    assert o.memory is not None
    order = np.argsort(o.archive.ranks, kind="stable")
    assert o.archive.ranks[o.memory["good"]].max() <= o.archive.ranks[order[N]]
    assert o.archive.ranks[o.memory["bad"]].min() >= o.archive.ranks[order[-N]]
    for _ in range(3):
        before, first = o.memory, len(o.archive)
        o.tell(batch, bowls(batch.X))
        batch = o.ask(N)
        assert o.memory is not None
        good, bad = generation(before, o.archive.F, first, N)
        assert set(o.memory["good"].tolist()) == good
        assert set(o.memory["bad"].tolist()) == bad
        assert not good & bad


def test_short_rounds_serve_one_generation() -> None:
    """Population, good and bad sets stay until every parent had its child, whatever q is."""
    o = Optimizer([(0, 1)] * 5, 2, CPSMOEA(population=10), seed=3, n_initial=20)
    batch = o.ask(20)
    o.tell(batch, bowls(batch.X))
    seen = []
    for q in (4, 4, 2, 1):
        batch = o.ask(q)
        assert o.memory is not None
        seen.append(o.memory)
        o.tell(batch, bowls(batch.X))
    for now in seen[:3]:
        np.testing.assert_array_equal(now["population"], seen[0]["population"])
    assert [int(now["count"][1]) for now in seen] == [4, 8, 10, 1]
    assert int(seen[3]["count"][0]) == 30
    assert seen[3]["population"].max() >= 20, "the arrivals competed"


def test_it_beats_random_search_on_a_sphere_pair() -> None:
    o = Optimizer([(0, 1)] * 20, 2, CPSMOEA(population=20), seed=0, n_initial=40)
    for q in (40, *[20] * 8):
        batch = o.ask(q)
        o.tell(batch, bowls(batch.X))
    random = bowls(np.random.default_rng(0).random((200, 20)))
    reference = np.array([4.0, 4.0])
    assert pareto.hypervolume(o.F, reference) > 1.2 * pareto.hypervolume(random, reference)
