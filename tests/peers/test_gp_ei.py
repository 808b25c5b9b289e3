from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import norm

from neuropareto.randomness import Streams
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from neuropareto.peers.gp_ei import GPEI, folded, improvement
    from neuropareto.peers.models import independent_gps

SMALL = GPEI(starts=16, restarts=2, iterations=5, fit_iterations=8)


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL)


def test_the_fold_by_hand_and_in_any_units() -> None:
    F = np.array([[0.0, 10.0], [10.0, 0.0], [5.0, 5.0]])
    w = np.array([0.5, 0.5])
    s = folded(F, w, 0.05)
    assert s == pytest.approx([0.525, 0.525, 0.275])
    assert folded(F * [1e6, 1.0] + [7.0, -3.0], w, 0.05) == pytest.approx(s)
    assert folded(np.ones((3, 2)), w, 0.05) == pytest.approx(0.0)


def test_the_criterion_is_the_closed_form() -> None:
    archive = example_archive(20, 3, 2)
    s = folded(archive.F, np.array([0.3, 0.7]), 0.05)
    gps = independent_gps(archive.U, s[:, None])
    V = np.random.default_rng(0).random((15, 3))
    posterior = gps.model.posterior(torch.tensor(V))
    # In the user's units and minimised, as in the source.
    mu = gps.centre - gps.spread * posterior.mean.numpy()
    sigma = gps.spread * posterior.variance.sqrt().numpy()
    z = (s.min() - mu) / sigma
    expected = ((s.min() - mu) * norm.cdf(z) + sigma * norm.pdf(z))[:, 0]
    value = improvement(gps, archive.violation, s)(torch.tensor(V)[:, None])
    kept = expected > 1e-8
    assert kept.sum() > 3
    found = np.exp(value.numpy()) * gps.spread
    assert found[kept] == pytest.approx(expected[kept], rel=1e-4)


def test_constraints_weigh_by_the_probability_of_being_feasible() -> None:
    archive = example_archive(20, 3, 2)
    s, G = folded(archive.F, np.array([0.5, 0.5]), 0.05), archive.U[:, :1] - 0.5
    gps = independent_gps(archive.U, np.concatenate([s[:, None], G], axis=1))
    X = torch.tensor(np.random.default_rng(0).random((10, 1, 3)))
    posterior = gps.model.posterior(X)
    mean, std = posterior.mean[:, 0, 1].numpy(), posterior.variance[:, 0, 1].sqrt().numpy()
    # G <= 0 with G = centre - spread Z.
    log_feasible = norm.logcdf((mean - gps.centre[1] / gps.spread[1]) / std)
    nothing = improvement(gps, np.ones(20), s)(X).numpy()
    assert nothing == pytest.approx(log_feasible, rel=1e-3, abs=1e-4)
    alone = independent_gps(archive.U, s[:, None]).told(np.empty((0, 3)), gps.Z[:0, :1])
    both = improvement(gps, np.zeros(20), s)(X).numpy()
    plain = improvement(alone, np.zeros(20), s)(X).numpy()
    clear = plain > -15
    assert clear.any()
    assert both[clear] == pytest.approx((plain + log_feasible)[clear], rel=0.02, abs=0.02)


def test_a_point_improves_the_fold_it_was_chosen_for() -> None:
    archive = example_archive(40, 3, 2)
    none = np.empty((0, 3))
    better = 0
    for seed in range(4):
        proposal = GPEI(starts=64, iterations=30).propose(
            archive, 1, pending=none, memory=None, rng=Streams(seed, 1)
        )
        F = np.concatenate([archive.F, conflicting(proposal.U, 2)])
        s = folded(F, np.array(proposal.notes["weights"][0]), 0.05)
        better += bool(s[-1] < s[:-1].min())
    assert better >= 3


def test_each_point_of_a_batch_has_its_own_weights_and_place() -> None:
    archive = example_archive(20, 3, 2)
    proposal = SMALL.propose(archive, 3, pending=np.empty((0, 3)), memory=None, rng=Streams(0, 1))
    weights = np.array(proposal.notes["weights"])
    assert weights.sum(axis=1) == pytest.approx(1.0)
    assert len(np.unique(weights, axis=0)) == 3 == len(np.unique(proposal.U, axis=0))
