from __future__ import annotations

import warnings

import numpy as np
import torch
from scipy.optimize import check_grad

from neuropareto.peers.local_gp import Box, Kernel, Paths, fit_local_gp, negative_evidence
from neuropareto.space import Array

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    import gpytorch

N, D = 25, 4
THETA = np.array([-0.3, 0.2, 0.5, 0.9, 0.4, -3.0, 0.3])


def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    Z = rng.random((N, D))
    return Z, np.sin(4 * Z[:, 0]) + Z[:, 1] ** 2 + 0.1 * rng.standard_normal(N)


def theirs(Z: Array, y: Array) -> tuple[gpytorch.models.ExactGP, gpytorch.likelihoods.Likelihood]:
    """The same process in GPyTorch."""

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: gpytorch.likelihoods.Likelihood) -> None:
            super().__init__(torch.tensor(Z), torch.tensor(y), likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=D)
            )

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_prior=gpytorch.priors.GammaPrior(0.9, 10.0)
    )
    model = Model(likelihood).double()
    model.covar_module.base_kernel.lengthscale = torch.tensor(np.exp(THETA[:D]))
    model.covar_module.outputscale = float(np.exp(THETA[D]))
    likelihood.noise = float(np.exp(THETA[D + 1]))
    model.mean_module.constant.data = torch.tensor(THETA[D + 2])
    return model, likelihood


def test_the_evidence_is_gpytorchs() -> None:
    Z, y = data()
    model, likelihood = theirs(Z, y)
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    expected = -float(mll(model(torch.tensor(Z)), torch.tensor(y)).detach())
    # The Gamma density's constant, 0.9 ln 10 - ln Gamma(0.9), moves no maximum and is left out.
    constant = 0.9 * np.log(10.0) - float(torch.lgamma(torch.tensor(0.9, dtype=torch.float64)))
    assert np.isclose(negative_evidence(THETA, Z, y)[0], expected + constant / N, atol=1e-8)


def test_the_gradient_is_that_of_the_evidence() -> None:
    Z, y = data()
    error = check_grad(
        lambda t: negative_evidence(t, Z, y)[0], lambda t: negative_evidence(t, Z, y)[1], THETA
    )
    assert error < 1e-5


def test_the_kernel_is_matern_five_halves() -> None:
    Z, y = data()
    model, _ = theirs(Z, y)
    kernel = Kernel(np.exp(THETA[:D]), float(np.exp(THETA[D])), 0.01, 0.0)
    expected = model.covar_module(torch.tensor(Z)).to_dense().detach().numpy()
    assert np.allclose(kernel(Z, Z), expected, atol=1e-7)


def test_the_mean_nearly_interpolates_and_keeps_units() -> None:
    rng = np.random.default_rng(1)
    U = 0.4 + 0.2 * rng.random((40, 3))
    Y = np.stack([1e6 * U.sum(axis=1) - 3e6, U[:, 0] ** 2, np.full(40, 7.0)], axis=1)
    gp = fit_local_gp(U, Y, Box(np.full(3, 0.4), np.full(3, 0.6)), iterations=50)
    V = 0.45 + 0.1 * rng.random((20, 3))
    expected = np.stack([1e6 * V.sum(axis=1) - 3e6, V[:, 0] ** 2, np.full(20, 7.0)], axis=1)
    error = np.abs(gp.mean(V) - expected) / np.array([1e6, 1.0, 1.0])
    assert error.max() < 2e-3


def test_sample_functions_have_the_posteriors_moments() -> None:
    Z, y = data()
    gp = fit_local_gp(Z, y[:, None], Box(np.zeros(D), np.ones(D)), iterations=20)
    V = np.random.default_rng(9).random((6, D))
    paths: Paths = gp.paths(4000, features=20_000, rng=np.random.default_rng(2))
    sample = paths(V)[:, :, 0]
    kernel, factor = gp.kernels[0], gp.factors[0]
    across = np.linalg.solve(factor, kernel(gp.Z, V))
    covariance = float(gp.scale[0]) ** 2 * (kernel(V, V) - across.T @ across)
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((sample.mean(axis=1) - gp.mean(V)[:, 0]) / scale).max() < 0.1
    assert np.abs((np.cov(sample) - covariance) / np.outer(scale, scale)).max() < 0.15
    assert np.allclose(paths.some(slice(3, 4))(V)[:, 0], paths(V)[:, 3], atol=1e-4)
