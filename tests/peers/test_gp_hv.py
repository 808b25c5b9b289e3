from __future__ import annotations

import warnings

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
    from neuropareto.peers.gp_hv import GPHV
    from neuropareto.peers.models import GPs, independent_gps

SMALL = GPHV(samples=8, starts=8, restarts=2, iterations=3, joint=2, fit_iterations=8)
NONE = np.empty((0, 3))


def setting() -> tuple[Archive, GPs]:
    archive = example_archive(25, 3, 2)
    return archive, independent_gps(archive.U, archive.F)


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL)


def test_an_unknown_criterion_is_refused() -> None:
    with pytest.raises(ValueError, match="qLogEHVI, qEHVI"):
        GPHV(criterion="ehvi")


@pytest.mark.parametrize("criterion", ["qLogEHVI", "qEHVI"])
def test_the_gain_is_the_mean_hypervolume_improvement_of_posterior_draws(criterion: str) -> None:
    archive, gps = setting()
    spec = GPHV(samples=512, criterion=criterion)
    rng = np.random.default_rng(0)
    V = 0.2 + 0.6 * rng.random((1, 3)).repeat(3, axis=1)[:, :3]
    gain = spec._gain(
        gps, gps.scaled(archive.front), gps.scaled(archive.reference_point), NONE, rng
    )
    with torch.no_grad():
        value = float(gain(torch.tensor(V)[None])[0])
        posterior = gps.model.posterior(torch.tensor(V))
    found = np.exp(value) if criterion == "qLogEHVI" else value
    mean, std = posterior.mean.numpy(), posterior.variance.sqrt().numpy()
    Z = mean + std * rng.standard_normal((20000, 2))
    front, reference = gps.scaled(archive.front), gps.scaled(archive.reference_point)
    expected = pareto.improvement(-Z, -front.numpy(), -reference.numpy()).mean()
    assert expected > 1e-4
    assert found == pytest.approx(expected, rel=0.1)


def test_beside_a_waiting_point_its_neighbour_adds_little_and_a_far_one_much() -> None:
    """The criterion is that of the whole group, so what a point adds is the difference."""
    archive, gps = setting()
    front, point = gps.scaled(archive.front), np.full((1, 3), 0.4)
    near, far = point + 0.001, np.full((1, 3), 0.7)

    def gain(waiting: Array, U: Array) -> float:
        spec = GPHV(samples=256, criterion="qEHVI")
        z = gps.scaled(archive.reference_point)
        of = spec._gain(gps, front, z, waiting, np.random.default_rng(0))
        return float(of(torch.tensor(U)[None]).detach()[0])

    alone = gain(NONE, point)
    assert gain(point, near) - alone < 0.2 * gain(NONE, near)
    assert gain(point, far) - alone > 0.5 * gain(NONE, far) > 0


def test_a_batch_adds_more_hypervolume_than_random_points() -> None:
    archive = example_archive(25, 3, 2)
    proposal = GPHV(samples=32, starts=32, iterations=20).propose(
        archive, 3, pending=NONE, memory=None, rng=Streams(0, 1)
    )
    z = archive.reference_point

    def after(U: Array) -> float:
        return pareto.hypervolume(np.concatenate([archive.F, conflicting(U, 2)]), z)

    rng = np.random.default_rng(0)
    assert after(proposal.U) > max(after(rng.random((3, 3))) for _ in range(50))


def test_groups_follow_each_other_without_repeats() -> None:
    archive = example_archive(25, 3, 2)
    proposal = SMALL.propose(archive, 5, pending=NONE, memory=None, rng=Streams(0, 1))
    assert len(np.unique(proposal.U, axis=0)) == 5 == len(proposal.notes["values"])
