from __future__ import annotations

import numpy as np
import pytest

from neuropareto.surrogate import Coregional, ExactGP, LinearProxy

RNG = np.random.default_rng(0)
U = RNG.random((60, 3))
G = np.stack([np.sin(4 * U[:, 0]), U[:, 1] ** 2 + U[:, 2]], axis=1)


def test_the_mean_is_the_mixed_latent_mean() -> None:
    F = G @ np.array([[1.0, 0.8], [0.2, -0.5]])
    model = Coregional(ExactGP(iterations=40)).fit(U, F, warm=None, rng=np.random.default_rng(0))
    assert np.allclose(model.posterior(U).mean, F, atol=0.05)


@pytest.mark.parametrize("rho", [0.9, -0.6])
def test_a_planted_correlation_is_recovered(rho: float) -> None:
    """Objectives that share one latent function predict errors of the planted correlation."""
    rng = np.random.default_rng(1)
    V = rng.random((150, 2))
    noise = rng.standard_normal((150, 2))
    F = 5.0 + noise @ np.linalg.cholesky([[1.0, rho], [rho, 1.0]]).T
    model = Coregional(LinearProxy()).fit(V, F, warm=None, rng=rng)
    C = model.W @ model.W.T
    assert C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]) == pytest.approx(rho, abs=0.1)


def test_the_covariance_is_that_of_the_equation_and_its_diagonal_the_posterior() -> None:
    F = G @ np.array([[1.0, 0.8], [0.2, -0.5]]) + 0.1 * RNG.standard_normal((60, 2))
    model = Coregional(ExactGP(iterations=20)).fit(U, F, warm=None, rng=np.random.default_rng(0))
    V = np.random.default_rng(3).random((5, 3))
    g, posterior = model.latent.posterior(V), model.posterior(V)
    scale = np.diag(model.scale.spread)
    for i in range(5):
        noise = np.diag((model.W**2) @ g.aleatoric[i] + model.left)
        C = scale @ (model.W @ np.diag(g.epistemic[i]) @ model.W.T + noise) @ scale
        assert np.allclose(model.covariance(V)[i], C)
    assert np.allclose(np.einsum("nii->ni", model.covariance(V)), posterior.variance)
    R = model.correlation(V)
    assert np.allclose(np.diag(R), 1) and np.abs(R).max() <= 1 + 1e-12


def test_draws_carry_the_correlation() -> None:
    F = np.stack([G[:, 0], 2 * G[:, 0] + 0.05 * G[:, 1]], axis=1)
    model = Coregional(ExactGP(iterations=20)).fit(
        U[:15], F[:15], warm=None, rng=np.random.default_rng(0)
    )
    far = np.array([[0.99, 0.01, 0.99]])
    draws = model.samples(far, 4000, rng=np.random.default_rng(1))[:, 0]
    assert np.asarray(np.corrcoef(draws.T))[0, 1] > 0.8


def test_a_lower_rank_keeps_the_rest_as_noise() -> None:
    F = np.stack([G[:, 0], G[:, 0] + 0.3 * RNG.standard_normal(60)], axis=1)
    model = Coregional(ExactGP(iterations=10), rank=1).fit(
        U, F, warm=None, rng=np.random.default_rng(0)
    )
    assert model.W.shape == (2, 1) and (model.left > 0).any()
