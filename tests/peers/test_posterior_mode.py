from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from neuropareto.peers.posterior_mode import fitted, log_posterior, starts
from neuropareto.space import Array
from neuropareto.testing.algorithm import conflicting

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood


def data(n: int = 25, d: int = 4) -> tuple[Array, Array]:
    U = np.random.default_rng(n).random((n, d))
    f = conflicting(U, 2)[:, 0]
    return U, (f - f.mean()) / f.std(ddof=1)


def gpytorch_criterion(U: Array, z: Array, h: Array) -> float:
    """n times GPyTorch's marginal likelihood with priors."""
    d = U.shape[1]
    model = SingleTaskGP(torch.tensor(U), torch.tensor(z[:, None]), outcome_transform=None)
    model.covar_module.lengthscale = torch.tensor(np.exp(h[:d]))[None]
    model.likelihood.noise = torch.tensor([np.exp(h[d])])
    model.mean_module.constant = torch.tensor(h[d + 1])
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    model.train()
    value = mll(model(*model.train_inputs), model.train_targets).detach()
    return float(value) * len(U)


def test_the_criterion_is_gpytorchs() -> None:
    U, z = data()
    one, other = starts(4)[0], np.array([0.5, -0.3, 1.2, 0.1, -3.0, 0.4])
    ours = log_posterior(U, z, other)[0] - log_posterior(U, z, one)[0]
    theirs = gpytorch_criterion(U, z, other) - gpytorch_criterion(U, z, one)
    # The jitter of 1e-8 that both sides add in their own way is all that may differ.
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_the_criterion(seed: int) -> None:
    U, z = data()
    rng = np.random.default_rng(seed)
    h = np.append(rng.normal(0.5, 0.5, 4), [rng.uniform(-6, -1), rng.normal()])
    slope = approx_fprime(h, lambda x: log_posterior(U, z, x)[0], 1e-6)
    assert log_posterior(U, z, h)[1] == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_the_fit_climbs_and_keeps_the_higher_of_its_two_tops() -> None:
    U, z = data()
    value = log_posterior(U, z, fitted(U, z, iterations=75))[0]
    for start in starts(4):
        assert value > log_posterior(U, z, start)[0] + 1.0
    near = fitted(U, z, iterations=75) + np.append(np.full(4, 0.05), [0.05, 0.01])
    assert value > log_posterior(U, z, near)[0]


def test_a_covariance_that_breaks_down_is_very_bad_and_no_error() -> None:
    U, z = data()
    value, slope = log_posterior(U, z, np.full(6, np.nan))
    assert value == -1e15 and not slope.any()
