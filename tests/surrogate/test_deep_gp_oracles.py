"""The deep GP against exact answers: GPyTorch, the log evidence, planted noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from neuropareto.space import Array
from neuropareto.surrogate import DeepGP, Homoscedastic, Inducing, NeuralMean, Schedule
from neuropareto.surrogate.deep_gp import FittedDeepGP
from neuropareto.surrogate.kernels import structure
from neuropareto.surrogate.stack import section

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    gpytorch = pytest.importorskip("gpytorch")

SHALLOW = DeepGP(
    layers=1, inducing=25, most_inducing=25, noise=Homoscedastic(), mean=NeuralMean(hidden=0)
)


def wavy(U: Array) -> Array:
    return np.stack([np.sin(5 * U[:, 0]) + U[:, 1], (U**2).sum(axis=1)], axis=1)


def data(n: int = 25) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    U = rng.random((n, 3))
    return U, wavy(U) + 0.05 * rng.standard_normal((n, 2))


def shallow() -> tuple[FittedDeepGP, Array, Array]:
    U, F = data()
    return SHALLOW.fit(U, F, warm=None, rng=np.random.default_rng(1)), U, F


def exact_gp(
    model: FittedDeepGP, U: Array, F: Array, objective: int
) -> tuple[object, torch.Tensor]:
    """A GPyTorch exact GP with the deep GP's own hyper-parameters, and its targets."""
    state, scale = model._round.state, model._round.scale
    p = section(state, "x")
    d = U.shape[1]
    X = torch.as_tensor(2 * U - 1)
    features = torch.cat([X, structure(X)], dim=1)
    known = (p["path"] @ structure(X).T + p["bias"][:, None])[objective]
    y = torch.as_tensor(scale.standardised(F))[:, objective] - known
    stationary = gpytorch.kernels.ScaleKernel(
        gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=d, active_dims=tuple(range(d)))
    )
    linear = gpytorch.kernels.LinearKernel(
        ard_num_dims=2 * d + 2, active_dims=tuple(range(d, 3 * d + 2))
    )

    class Exact(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood(
                noise_constraint=gpytorch.constraints.GreaterThan(1e-9)
            )
            super().__init__(features, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = stationary + linear

        def forward(self, x: torch.Tensor) -> object:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    exact = Exact().double()
    stationary.base_kernel.lengthscale = torch.exp(p["log_lengthscale"][objective])
    stationary.outputscale = torch.exp(p["log_variance"][objective])
    repeats = torch.tensor([d, d, 1, 1])
    linear.variance = torch.exp(p["log_structure"][objective][:4]).repeat_interleave(repeats)
    noise = torch.exp(model._stack.noise.log_variance(section(state, "noise"), features[:1]))
    exact.likelihood.noise = noise[0, objective]
    return exact, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("objective", [0, 1])
def test_one_layer_with_inducing_points_at_the_data_is_the_exact_gp(objective: int) -> None:
    model, U, F = shallow()
    p = section(model._round.state, "x")
    Z = p["Z"].numpy()
    assert np.allclose(np.sort(Z, axis=0), np.sort(2 * U - 1, axis=0), atol=1e-9)
    exact, _ = exact_gp(model, U, F, objective)
    V = np.random.default_rng(2).random((40, 3))
    X = torch.as_tensor(2 * V - 1)
    exact.eval()  # type: ignore[attr-defined]
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        latent = exact(torch.cat([X, structure(X)], dim=1))  # type: ignore[operator]
    known = (p["path"] @ structure(X).T + p["bias"][:, None])[objective]
    centre, spread = (a[objective] for a in (model._round.scale.centre, model._round.scale.spread))
    posterior = model.posterior(V)
    mean = centre + spread * (latent.mean + known).numpy()
    std = spread * latent.variance.sqrt().numpy()
    assert np.abs(posterior.mean[:, objective] - mean).max() < 0.02 * spread
    assert np.allclose(
        np.sqrt(posterior.epistemic[:, objective]), std, rtol=0.1, atol=2e-3 * spread
    )


@pytest.mark.filterwarnings("ignore")
def test_the_bound_is_below_the_log_evidence_and_close_to_it() -> None:
    model, U, F = shallow()
    state = model._round.state
    X = torch.as_tensor(2 * U - 1)
    Y = torch.as_tensor(model._round.scale.standardised(F))
    with torch.no_grad():
        trace = model._stack.trace(state, model._factors, X, [])
        fit = trace.expected_log_likelihood(Y).sum()
        bound = float(fit - model._stack.divergence(state))
        evidence = 0.0
        for objective in range(2):
            exact, y = exact_gp(model, U, F, objective)
            exact.train()  # type: ignore[attr-defined]
            mll = gpytorch.mlls.ExactMarginalLogLikelihood(exact.likelihood, exact)  # type: ignore[attr-defined]
            with gpytorch.settings.fast_computations(False, False, False):
                evidence += float(mll(exact(exact.train_inputs[0]), y)) * len(y)  # type: ignore[operator, attr-defined]
    assert bound <= evidence + 1e-4
    assert bound > evidence - 3.0, "with every point inducing, little is lost"


def test_epistemic_variance_falls_with_data_and_rises_away_from_it() -> None:
    rng = np.random.default_rng(0)
    near, far = 0.3 * rng.random((20, 2)), 0.8 + 0.2 * rng.random((20, 2))

    def doubt(n: int, at: Array) -> float:
        U = 0.3 * np.random.default_rng(1).random((n, 2))
        F = np.sin(6 * U).sum(axis=1, keepdims=True)
        model = DeepGP().fit(U, F, warm=None, rng=np.random.default_rng(2))
        return float(np.sqrt(model.posterior(at).epistemic).mean())

    assert doubt(60, far) > 5 * doubt(60, near)
    assert doubt(60, near) < doubt(10, near)


def test_the_aleatoric_part_tracks_planted_noise_without_absorbing_the_signal() -> None:
    rng = np.random.default_rng(3)
    U = rng.random((400, 2))
    std = 0.02 + 0.5 * U[:, 0] ** 2
    signal = 2 * np.sin(4 * U[:, 1])
    F = (signal + std * rng.standard_normal(400))[:, None]
    warm = None
    spec = DeepGP(features=Inducing(32), inducing=64, schedule=Schedule(batch=256))
    for round_ in range(4):
        model = spec.fit(U, F, warm=warm, rng=np.random.default_rng(round_))
        warm = model.warm
    V = np.random.default_rng(4).random((300, 2))
    posterior = model.posterior(V)
    planted, found = 0.02 + 0.5 * V[:, 0] ** 2, np.sqrt(posterior.aleatoric[:, 0])
    assert np.asarray(np.corrcoef(planted, found))[0, 1] >= 0.8
    truth = 2 * np.sin(4 * V[:, 1])
    assert 1 - np.mean((posterior.mean[:, 0] - truth) ** 2) / truth.var() > 0.95
    assert np.median(found) == pytest.approx(np.median(planted), rel=0.5)
