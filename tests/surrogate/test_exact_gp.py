from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch

from neuropareto.surrogate import RBF, ExactGP, Matern52
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.kernels import Stationary
from neuropareto.surrogate.scaling import Scale
from neuropareto.testing.surrogate import smooth

U, F = smooth(30, 3, noise=0.1)
V = smooth(9, 3, seed=1)[0]


@pytest.mark.parametrize("kernel", [RBF(), Matern52()], ids=["rbf", "matern"])
def test_the_posterior_equals_gpytorch_at_the_same_hyper_parameters(kernel: Stationary) -> None:
    model = ExactGP(kernel=kernel, iterations=20).fit(
        U, F, warm=None, rng=np.random.default_rng(0)
    )
    posterior, scale = model.posterior(V), Scale.of(F)
    for o in range(2):
        shape = (
            gpytorch.kernels.RBFKernel(ard_num_dims=3)
            if isinstance(kernel, RBF)
            else gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3)
        )
        oracle = gpytorch.kernels.ScaleKernel(shape).double()
        shape.lengthscale = torch.tensor(np.exp(model.warm["log_lengthscale"][o]))[None]
        oracle.outputscale = torch.tensor(np.exp(model.warm["log_variance"][o]))
        X, A = torch.tensor(2 * U - 1), torch.tensor(2 * V - 1)
        noise, constant = np.exp(model.warm["log_noise"][o]), model.warm["constant"][o]
        y = torch.tensor(scale.standardised(F)[:, o])
        with torch.no_grad():
            K = oracle(X).to_dense() + noise * torch.eye(30, dtype=torch.float64)
            k = oracle(A, X).to_dense()
            mean = constant + k @ torch.linalg.solve(K, y - constant)
            variance = oracle(A).to_dense() - k @ torch.linalg.solve(K, k.T)
        spread = scale.spread[o]
        assert np.allclose(posterior.mean[:, o], scale.centre[o] + spread * mean.numpy())
        assert np.allclose(
            posterior.epistemic[:, o], spread**2 * variance.diagonal().numpy(), rtol=1e-3
        )
        assert np.allclose(posterior.aleatoric[:, o], spread**2 * noise)


def test_noise_is_found_by_evidence() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((200, 2))
    values = np.sin(3 * points[:, :1]) + 0.2 * rng.standard_normal((200, 1))
    model = ExactGP().fit(points, values, warm=None, rng=rng)
    assert np.sqrt(model.posterior(points[:1]).aleatoric) == pytest.approx(0.2, rel=0.2)


def test_the_variable_that_matters_gets_the_shortest_lengthscale() -> None:
    points = np.random.default_rng(0).random((80, 40))
    model = ExactGP().fit(
        points, np.sin(6 * points[:, 5:6]), warm=None, rng=np.random.default_rng(0)
    )
    assert model.warm["log_lengthscale"][0].argmin() == 5


def test_a_warm_start_needs_no_more_steps_than_it_is_given() -> None:
    first = ExactGP().fit(U, F, warm=None, rng=np.random.default_rng(0))
    again = ExactGP(iterations=1).fit(U, F, warm=first.warm, rng=np.random.default_rng(0))
    assert np.allclose(first.posterior(V).mean, again.posterior(V).mean, atol=0.05)


def test_subsamples_keep_the_latest_points() -> None:
    kept = even_subsample(1000, 100)
    assert len(kept) == len(set(kept.tolist())) == 100
    assert set(range(950, 1000)) <= set(kept.tolist())
    assert even_subsample(5, 100).tolist() == [0, 1, 2, 3, 4]
