from __future__ import annotations

import warnings

import numpy as np
import pytest

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from neuropareto.peers import egbo
    from neuropareto.peers.egbo import EGBO, fresh, offspring, reference_directions
    from neuropareto.peers.models import Criterion

SMALL = EGBO(batch=4, brood=16, samples=4, starts=4, iterations=2, joint=2, fit_iterations=8)
NONE = np.empty((0, 3))


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL, shapes=((3, 2), (8, 3), (4, 4)))


def test_the_best_of_both_sources_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores decide alone: two gradient points and two children are put in front, in this order."""
    archive = example_archive(20, 3, 2)
    brood = np.random.default_rng(0).random((16, 3))
    pools = []

    def scores(criterion: Criterion, U: Array) -> Array:
        pools.append(U)
        value = np.zeros(len(U))
        value[[17, 1, 10, 3]] = [4.0, 3.0, 2.0, 1.0]
        return value

    monkeypatch.setattr(egbo, "offspring", lambda archive, n, directions, rng: brood)
    monkeypatch.setattr(egbo, "_scores", scores)
    proposal = SMALL.propose(archive, 4, pending=NONE, memory=None, rng=Streams(0, 1))
    (pool,) = pools
    assert len(pool) == 4 + 16 and np.array_equal(pool[4:], brood)
    assert np.array_equal(proposal.U, pool[[17, 1, 10, 3]])
    assert proposal.notes["from_gradients"] == 2


def test_children_win_where_the_criterion_prefers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A brood that lies on the Pareto set beats the result of gradients that hardly moved."""
    archive = example_archive(25, 3, 2)
    ideal = np.linspace(0.25, 0.75, 16)[:, None].repeat(3, axis=1)
    monkeypatch.setattr(egbo, "offspring", lambda archive, n, directions, rng: ideal)
    spec = EGBO(samples=16, starts=2, iterations=1, joint=1)
    proposal = spec.propose(archive, 4, pending=NONE, memory=None, rng=Streams(0, 1))
    assert proposal.notes["from_gradients"] <= 1
    gain = pareto.improvement(conflicting(proposal.U, 2), archive.front, archive.reference_point)
    assert (gain > 0).sum() >= 3


def test_gradients_win_where_the_brood_is_poor(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = example_archive(25, 3, 2)
    poor = np.random.default_rng(0).random((16, 3)) * 0.01 + [0.99, 0.0, 0.99]
    monkeypatch.setattr(egbo, "offspring", lambda archive, n, directions, rng: poor)
    spec = EGBO(samples=16, starts=32, iterations=20, joint=2)
    proposal = spec.propose(archive, 2, pending=NONE, memory=None, rng=Streams(0, 1))
    assert proposal.notes["from_gradients"] == 2


def two_camps(sign: float, limited: bool = False) -> Archive:
    """Twenty points near u = 0.1 and twenty near u = 0.9, on the same rays of objective space."""
    rng = np.random.default_rng(0)
    U = np.concatenate([0.2 * rng.random((20, 4)), 0.8 + 0.2 * rng.random((20, 4))])
    t = np.tile(np.linspace(0.0, 1.0, 20), 2)
    far = np.repeat([1.0, 10.0], 20)
    if limited:  # the objectives are equal, only the limits tell the camps apart
        return Archive.of(U, np.stack([t, 1.0 - t], axis=1), sign * (far[:, None] - 5.0))
    return Archive.of(U, sign * far[:, None] * np.stack([t, 1.0 - t], axis=1))


@pytest.mark.parametrize("limited", [False, True])
def test_the_brood_comes_from_the_better_camp(limited: bool) -> None:
    low = offspring(two_camps(1.0, limited), 200, 2, rng=np.random.default_rng(1))
    high = offspring(two_camps(-1.0, limited), 200, 2, rng=np.random.default_rng(1))
    assert low.shape == (200, 4) and (low >= 0).all() and (low <= 1).all()
    assert low.mean() < 0.45 < 0.55 < high.mean()


def test_directions_cover_the_simplex() -> None:
    W = reference_directions(3, 8)
    assert W.shape == (8, 3) and W.sum(axis=1) == pytest.approx(1.0)
    assert W.max(axis=0) == pytest.approx(1.0, abs=1e-6)
    assert reference_directions(5, 2).shape == (5, 5)


def test_nothing_known_enters_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    known = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    U = np.array([[0.4, 0.5, 0.6], [0.7, 0.7, 0.7], [0.7, 0.7, 0.7], [0.0, 0.0, 0.0]])
    assert np.array_equal(fresh(U, known), U[[1, 3]])
    archive = example_archive(20, 3, 2)
    monkeypatch.setattr(egbo, "offspring", lambda archive, n, directions, rng: known)
    proposal = SMALL.propose(archive, 6, pending=known, memory=None, rng=Streams(0, 1))
    assert len(proposal.U) == 6
    assert not (proposal.U[:, None] == known[None]).all(axis=2).any()
