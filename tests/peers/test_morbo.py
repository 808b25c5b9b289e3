from __future__ import annotations

import numpy as np

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.peers.morbo import MORBO, winsorised
from neuropareto.peers.thompson import world_of
from neuropareto.peers.trust_regions import ASKED, Growth
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

NONE = np.empty((0, 6))


def small(growth: Growth = Growth(), regions: int = 2) -> MORBO:  # noqa: B008 - a frozen value
    return MORBO(
        regions=regions, candidates=128, features=64, iterations=10, growth=growth, fewest=10
    )


def proposal(
    spec: MORBO, archive: Archive, memory: Memory | None, round: int, q: int = 4
) -> Proposal:
    return spec.propose(archive, q, pending=NONE, memory=memory, rng=Streams(0, round))


def bad(U: Array) -> Array:
    """Values that improve nothing."""
    return conflicting(U, 2) + 10.0


def test_the_algorithm_exam() -> None:
    check_algorithm(small())


def test_the_worst_share_of_each_output_is_winsorised() -> None:
    Y = np.stack([np.arange(40.0), -np.arange(40.0)], axis=1)
    W = winsorised(Y, 0.05)
    assert W[:, 0].max() == 37 and (W[:38] == Y[:38])[:, 0].all()
    assert W[:, 1].max() == -2 and (W[2:] == Y[2:])[:, 1].all()


def test_first_centres_are_the_points_of_largest_exclusive_hypervolume() -> None:
    archive = example_archive(40, 6, 2)
    first = proposal(small(), archive, None, 1)
    reference = archive.reference_point
    lost = [
        pareto.hypervolume(archive.front, reference)
        - pareto.hypervolume(np.delete(archive.front, i, axis=0), reference)
        for i in range(len(archive.front))
    ]
    expected = archive.front_indices[np.argsort(lost)[::-1][:2]]
    assert first.notes["centres"] == expected.tolist()


def test_every_point_lies_in_the_region_that_proposed_it() -> None:
    archive = example_archive(40, 6, 2)
    first = proposal(small(Growth(start=0.2)), archive, None, 1, q=8)
    centres = archive.U[first.notes["centres"]][first.notes["owners"]]
    assert (np.abs(first.U - centres) <= 0.1 + 1e-9).all()


def test_failures_are_counted_in_points_and_against_the_newest_front() -> None:
    spec = small(regions=1)
    archive = example_archive(40, 6, 2)
    first = proposal(spec, archive, None, 1)
    better = archive.extended(
        first.U, archive.F.min(axis=0) - 1.0 + 0.01 * conflicting(first.U, 2)
    )
    second = proposal(spec, better, first.memory, 2)
    assert second.memory is not None and second.memory["successes"].tolist() == [1]
    # As good as the start design and worse than the first batch: no success any more.
    third = proposal(spec, better.extended(second.U, archive.F[:4]), second.memory, 3)
    assert third.memory is not None
    assert third.memory["successes"].tolist() == [0] and third.memory["failures"].tolist() == [4]


def test_failed_evaluations_count_as_failures_and_pending_ones_wait() -> None:
    spec = small(regions=1)
    archive = example_archive(40, 6, 2)
    first = proposal(spec, archive, None, 1)
    later = archive.extended(first.U[:1], bad(first.U[:1]), failed=first.U[1:2])
    second = spec.propose(later, 2, pending=first.U[2:], memory=first.memory, rng=Streams(0, 2))
    assert second.memory is not None and second.memory["failures"].tolist() == [2]
    assert len(second.memory["asked"]) == 4, "two of the first batch, two new ones"


def test_a_region_that_ends_restarts_at_a_new_evaluated_centre() -> None:
    spec = small(Growth(start=0.8, least=0.5, failures=1), regions=1)
    archive = example_archive(40, 6, 2)
    first = proposal(spec, archive, None, 1)
    archive = archive.extended(first.U, bad(first.U))
    second = proposal(spec, archive, first.memory, 2)
    assert second.notes["restarts"] == 4, "with no region at work all points are restarts"
    assert second.memory is not None and second.memory["centre"].tolist() == [ASKED]
    assert second.memory["tabu"].tolist() == first.notes["centres"]
    arrived = archive.extended(second.U, conflicting(second.U, 2))
    third = proposal(spec, arrived, second.memory, 3)
    assert third.notes["centres"] == [44] and third.notes["restarts"] == 0
    assert 0.5 < third.notes["lengths"][0] < 0.8
    lost = archive.extended(NONE, np.empty((0, 2)), failed=second.U)
    assert proposal(spec, lost, second.memory, 3).notes["restarts"] == 4, "it is asked again"


def test_other_regions_work_on_while_one_restarts() -> None:
    spec = small(Growth(start=0.8, least=0.5, failures=1))
    archive = example_archive(40, 6, 2)
    first = proposal(spec, archive, None, 1, q=6)
    assert first.memory is not None
    owners = np.array([0, 0, 0, 1, 1, 1])  # whoever chose them, as if each region had three
    # Region 0 brings nothing, region 1 a clear gain.
    F = np.where(owners[:, None] == 0, bad(first.U), archive.F.min(axis=0) - 1.0)
    memory = {**first.memory, "owner": owners}
    second = proposal(spec, archive.extended(first.U, F), memory, 2)
    assert second.notes["restarts"] == 1 and second.notes["owners"] == [1, 1, 1]


def test_points_of_a_batch_share_the_hypervolume() -> None:
    """With sample functions all but known, a second point near the first gains little."""
    rng = np.random.default_rng(0)
    U = rng.random((60, 2))
    F = np.stack([U[:, 0], 1.0 - U[:, 0] + (U[:, 1] - 0.5) ** 2], axis=1)
    archive = Archive.of(U, F)
    spec = MORBO(regions=1, candidates=512, features=256, fewest=10)
    chosen = spec.propose(archive, 8, pending=np.empty((0, 2)), memory=None, rng=Streams(0, 1)).U
    gaps = np.abs(chosen[:, None, 0] - chosen[None, :, 0])[np.triu_indices(8, 1)]
    assert gaps.min() > 1e-3
    values = np.stack([chosen[:, 0], 1.0 - chosen[:, 0] + (chosen[:, 1] - 0.5) ** 2], axis=1)
    alone = pareto.improvement(values, archive.front, archive.reference_point)
    together = pareto.hypervolume(
        np.vstack([archive.front, values]), archive.reference_point
    ) - pareto.hypervolume(archive.front, archive.reference_point)
    assert together > 0.5 * alone.sum(), "the points mostly cover different parts"


def test_without_feasible_points_the_least_violating_are_the_centres() -> None:
    archive = example_archive(30, 6, 2)
    G = 1.0 + archive.U[:, :1]
    limited = Archive.of(archive.U, archive.F, G)
    first = small().propose(limited, 3, pending=NONE, memory=None, rng=Streams(0, 1))
    assert first.notes["centres"] == np.argsort(G[:, 0])[:2].tolist()
    assert first.notes["by_hypervolume"] == 0


def test_the_shared_view_does_not_depend_on_units() -> None:
    archive = example_archive(30, 6, 2)
    scaled = Archive.of(archive.U, archive.F * np.array([1e6, 1e-3]) + np.array([5.0, -2.0]))
    a, b = world_of(archive), world_of(scaled)
    assert np.allclose(a.Z, b.Z) and np.allclose(a.contribution, b.contribution)


def test_it_beats_random_search_on_a_smooth_problem() -> None:
    archive = example_archive(30, 6, 2)
    spec, memory = small(), None
    for round in range(1, 6):
        step = proposal(spec, archive, memory, round, q=6)
        memory = step.memory
        archive = archive.extended(step.U, conflicting(step.U, 2))
    random = example_archive(60, 6, 2, seed=3)
    reference = np.array([0.5, 0.5])
    ours = pareto.hypervolume(archive.F, reference)
    assert ours > pareto.hypervolume(random.F, reference)
