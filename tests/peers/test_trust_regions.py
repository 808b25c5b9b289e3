from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.archive import Indices
from neuropareto.peers.trust_regions import (
    ENDED,
    Growth,
    Regions,
    aged,
    box,
    decay,
    inside,
    perturbed,
    recentred,
    training_rows,
)

D = 6


def begun(n: int, growth: Growth) -> Regions:
    return replace(growth.begun(n), centre=np.arange(n))


def ints(*values: int) -> Indices:
    return np.array(values, dtype=np.int64)


def test_a_region_grows_after_a_streak_of_successes_up_to_the_most() -> None:
    growth = Growth(start=0.5, most=1.6, successes=2)
    regions = begun(2, growth)
    lengths = []
    for _ in range(6):
        regions = growth.counted(regions, ints(3, 0), np.array([True, False]), D)
        lengths.append(float(regions.length[0]))
    assert lengths == [0.5, 1.0, 1.0, 1.6, 1.6, 1.6]
    assert regions.length[1] == 0.5, "a region without points stays as it is"


def test_the_published_streak_never_grows_a_region() -> None:
    growth, regions = Growth(), begun(1, Growth())
    for _ in range(50):
        regions = growth.counted(regions, ints(10), np.array([True]), D)
    assert regions.length[0] == 0.8


@pytest.mark.parametrize(("d", "limit"), [(6, 10), (30, 10), (200, 66)])
def test_a_region_shrinks_after_so_many_failed_points(d: int, limit: int) -> None:
    growth = Growth()
    failed = np.array([False])
    regions = growth.counted(begun(1, growth), ints(limit - 1), failed, d)
    assert regions.length[0] == 0.8 and regions.failures[0] == limit - 1
    regions = growth.counted(regions, ints(1), failed, d)
    assert regions.length[0] == 0.4 and regions.failures[0] == 0


def test_a_success_ends_a_streak_of_failures() -> None:
    growth = Growth()
    regions = growth.counted(begun(1, growth), ints(9), np.array([False]), D)
    regions = growth.counted(regions, ints(1), np.array([True]), D)
    assert regions.failures[0] == 0 and regions.successes[0] == 1
    regions = growth.counted(regions, ints(9), np.array([False]), D)
    assert regions.length[0] == 0.8 and regions.successes[0] == 0


def test_below_the_least_length_a_region_ends_and_its_centre_is_tabu_for_a_while() -> None:
    growth = Growth(start=0.8, least=0.3, tenure=3)
    regions = replace(begun(2, growth), centre=ints(7, 9))
    for _ in range(2):
        regions = growth.counted(regions, ints(10, 0), np.array([False, False]), D)
    assert regions.centre.tolist() == [ENDED, 9] and regions.tabu.tolist() == [7]
    front = ints(7, 9)
    assert aged(aged(regions, front), front).tabu.tolist() == [7]
    assert aged(aged(aged(regions, front), front), front).tabu.tolist() == []
    assert aged(regions, ints(9)).tabu.tolist() == [], "off the front it needs no tabu"


def test_a_restart_is_smaller_the_later_it_comes() -> None:
    growth = Growth()
    regions = replace(begun(2, growth), centre=ints(ENDED, 4))
    late = growth.restarted(regions, 0, 11, decay(300, 100, 300))
    assert late.centre.tolist() == [11, 4]
    assert np.isclose(late.length[0], 0.01 + 0.79 * 0.5) and late.length[1] == 0.8


def test_decay_runs_from_one_to_one_half() -> None:
    assert decay(100, 100, 300) == 1.0 and decay(300, 300, 300) == 1.0
    assert np.isclose(decay(300, 100, 300), 0.5) and np.isclose(decay(500, 100, 300), 0.5)
    assert np.isclose(decay(150, 100, 300), 1 - 0.5 * np.log(51) / np.log(201))


def test_centres_go_to_the_largest_contributions_in_turn() -> None:
    U = np.linspace(0, 1, 5)[:, None] * np.ones((1, D))
    front, contribution = np.arange(5), np.array([0.1, 0.5, 0.2, 0.4, 0.3])
    regions = recentred(Growth().begun(3), np.arange(3), U, front, contribution)
    assert regions.centre.tolist() == [1, 3, 4]


def test_a_region_prefers_front_points_in_its_box_and_avoids_tabu_and_other_centres() -> None:
    U = np.linspace(0, 1, 5)[:, None] * np.ones((1, D))
    front, contribution = np.arange(5), np.array([0.1, 0.5, 0.2, 0.9, 0.3])
    regions = replace(begun(2, Growth(start=0.6)), centre=ints(0, 4))
    moved = recentred(regions, ints(0), U, front, contribution)
    assert moved.centre.tolist() == [1, 4], "row 3 is larger but outside"
    tabu = replace(regions, tabu=ints(1))
    assert recentred(tabu, ints(0), U, front, contribution).centre[0] == 0
    crowded = replace(regions, tabu=ints(0, 1))
    assert recentred(crowded, ints(0), U, front, contribution).centre[0] == 3
    full = replace(regions, tabu=np.arange(5))
    assert recentred(full, ints(0), U, front, contribution).centre[0] == 3


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.01, 1.6), st.floats(0.02, 1.0), st.integers(1, 40))
def test_candidates_stay_in_the_region_and_always_move(
    seed: int, length: float, probability: float, d: int
) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.random(d)
    region = box(centre, length)
    parents = np.vstack(
        [centre, region.lower + (region.upper - region.lower) * rng.random((3, d))]
    )
    C = perturbed(parents, region, 50, probability, rng=rng)
    assert C.shape == (50, d)
    assert inside(C, centre, length).all() and (C >= 0).all() and (C <= 1).all()
    assert (C[:, None] != parents).any(axis=2).all(), "no candidate repeats a parent"


def test_few_variables_are_redrawn_at_a_small_probability() -> None:
    rng, d = np.random.default_rng(0), 200
    C = perturbed(np.full((1, d), 0.5), box(np.full(d, 0.5), 0.8), 400, 0.05, rng=rng)
    moved = (C != 0.5).sum(axis=1)
    assert moved.min() >= 1 and 9 < moved.mean() < 11


def test_training_rows_are_those_of_the_double_box_within_limits() -> None:
    U = np.linspace(0, 1, 101)[:, None]
    centre = np.array([0.5])
    assert training_rows(U, centre, 0.1, 5, 50).tolist() == list(range(40, 61))
    assert training_rows(U, centre, 0.1, 31, 50).tolist() == list(range(35, 66))
    assert training_rows(U, centre, 0.1, 3, 11).tolist() == list(range(45, 56))
    assert len(training_rows(U, centre, 0.1, 500, 600)) == 101
