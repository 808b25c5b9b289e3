from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from neuropareto.peers.cl_ego import (
        CLEGO,
        LIES,
        Climbed,
        Preselected,
        halves,
        lied,
    )
    from neuropareto.peers.gp_ei import folded, improvement
    from neuropareto.peers.models import independent_gps

NONE = np.empty((0, 2))


def small() -> CLEGO:
    return CLEGO(search=Climbed(starts=16, restarts=1, iterations=4), fit_iterations=8)


def sheet(n: int = 25) -> Archive:
    return example_archive(n, 2, 2)


@pytest.mark.parametrize("spec", [small(), replace(small(), search=Preselected(pool=100))])
def test_the_algorithm_exam(spec: CLEGO) -> None:
    check_algorithm(spec)


def test_the_three_lies() -> None:
    s = np.array([3.0, 1.0, 5.0])
    assert {name: lie(s) for name, lie in LIES.items()} == {"min": 1.0, "mean": 3.0, "max": 5.0}
    with pytest.raises(ValueError, match="one of min, mean, max, got 'median'"):
        CLEGO(lie="median")


def test_a_lie_is_believed_at_its_point_and_nowhere_far_away() -> None:
    archive = sheet()
    s = folded(archive.F, np.array([0.5, 0.5]), 0.05)
    gps = independent_gps(archive.U, s[:, None])
    U = np.array([[0.95, 0.05]])
    told = lied(gps, U, 5.0)
    before, after = gps.mean(U)[0, 0], told.mean(U)[0, 0]
    goal = gps.scaled(np.array([5.0]))[0]
    assert abs(after - goal) < abs(before - goal)
    assert np.array_equal(gps.hyper, told.hyper)
    assert len(gps.Z) == 25 and len(told.Z) == 26, "the processes without the lie stay"


def test_a_lie_takes_the_improvement_from_its_point() -> None:
    archive = sheet()
    s = folded(archive.F, np.array([0.5, 0.5]), 0.05)
    gps = independent_gps(archive.U, s[:, None])
    criterion = improvement(gps, archive.violation, s)
    u = Climbed(starts=64).best(criterion, archive, s, rng=np.random.default_rng(0))
    at = torch.tensor(u[None])
    for lie in LIES.values():
        after = improvement(lied(gps, u, lie(s)), archive.violation, s)
        assert float(after(at).detach()) < float(criterion(at).detach())


def spread(lie: str) -> float:
    spec = replace(small(), lie=lie)
    gaps = []
    for round in range(3):
        U = spec.propose(sheet(), 5, pending=NONE, memory=None, rng=Streams(0, round)).U
        distance = np.linalg.norm(U[:, None] - U, axis=2)
        gaps.append(distance[np.triu_indices(5, 1)].mean())
    return float(np.mean(gaps))


def test_the_worst_lie_spreads_a_batch_more_than_the_best() -> None:
    assert spread("max") > spread("min")


def test_the_first_point_of_a_batch_is_egos() -> None:
    """Lies touch only what is chosen after them."""
    archive = sheet()
    one = small().propose(archive, 1, pending=NONE, memory=None, rng=Streams(0, 1)).U
    five = small().propose(archive, 5, pending=NONE, memory=None, rng=Streams(0, 1)).U
    assert np.array_equal(one[0], five[0])
    distance = np.linalg.norm(five[:, None] - five, axis=2)
    assert distance[np.triu_indices(5, 1)].min() > 1e-6


def test_pending_points_are_lied_about_too() -> None:
    archive = sheet()
    first = small().propose(archive, 1, pending=NONE, memory=None, rng=Streams(0, 1)).U
    next_ = small().propose(archive, 1, pending=first, memory=None, rng=Streams(0, 1)).U
    assert np.linalg.norm(first - next_) > 1e-6


def test_halves_are_ordered_by_rank() -> None:
    archive = example_archive(21, 4, 2)
    good, bad = halves(archive)
    assert len(good) == 10 and len(bad) == 11
    assert archive.ranks[good].max() <= archive.ranks[bad].min()


def test_preselection_calls_good_what_lies_among_good_points() -> None:
    rng = np.random.default_rng(0)
    U = np.concatenate([0.2 + 0.1 * rng.random((10, 3)), 0.7 + 0.1 * rng.random((10, 3))])
    children = np.array([[0.25, 0.25, 0.25], [0.75, 0.75, 0.75]])
    called = Preselected().called_good(U, np.arange(10), np.arange(10, 20), children)
    assert called.tolist() == [True, False]


def ours(spec: CLEGO) -> Array:
    archive = example_archive(20, 6, 2)
    for round in range(5):
        step = spec.propose(
            archive, 5, pending=np.empty((0, 6)), memory=None, rng=Streams(0, round)
        )
        archive = archive.extended(step.U, conflicting(step.U, 2))
    return archive.F


def test_it_beats_random_search_on_a_smooth_problem() -> None:
    reference = np.array([0.5, 0.5])
    random = pareto.hypervolume(example_archive(45, 6, 2, seed=3).F, reference)
    assert pareto.hypervolume(ours(small()), reference) > random
