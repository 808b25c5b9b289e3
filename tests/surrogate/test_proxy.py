from __future__ import annotations

import numpy as np
import pytest

from neuropareto.space import Array
from neuropareto.surrogate import FourierProxy, LinearProxy
from neuropareto.surrogate.proxy import FittedLinear, Parabolas, Waves


def parabola(U: Array) -> Array:
    return np.stack([U.sum(axis=1), ((U - 0.3) ** 2).sum(axis=1)], axis=1)


def fitted(spec: LinearProxy | FourierProxy, n: int, d: int, noise: float = 0.0) -> FittedLinear:
    rng = np.random.default_rng(0)
    U = rng.random((n, d))
    F = parabola(U) + noise * rng.standard_normal((n, 2))
    return spec.fit(U, F, warm=None, rng=np.random.default_rng(1))


def test_the_linear_proxy_recovers_a_parabola() -> None:
    V = np.random.default_rng(2).random((50, 4))
    posterior = fitted(LinearProxy(), 60, 4).posterior(V)
    assert np.allclose(posterior.mean, parabola(V), atol=1e-3)


def test_the_posterior_equals_ridge_regression_in_weight_space() -> None:
    """The dual form with eigenvectors against the textbook formulas with r x r matrices."""
    model = fitted(LinearProxy(), 40, 3, noise=0.2)
    rng = np.random.default_rng(0)
    U = rng.random((40, 3))
    F = parabola(U) + 0.2 * rng.standard_normal((40, 2))
    Phi, Y = Parabolas()(2 * U - 1), (F - model.scale.centre) / model.scale.spread
    V = rng.random((7, 3))
    phi = Parabolas()(2 * V - 1)
    posterior = model.posterior(V)
    for j in range(2):
        precision = Phi.T @ Phi / model.noise[j] + np.eye(Phi.shape[1]) / model.signal[j]
        mean = phi @ np.linalg.solve(precision, Phi.T @ Y[:, j]) / model.noise[j]
        variance = np.einsum("nr,rs,ns->n", phi, np.linalg.inv(precision), phi)
        spread = model.scale.spread[j]
        assert np.allclose(posterior.mean[:, j], model.scale.centre[j] + spread * mean, rtol=1e-6)
        assert np.allclose(posterior.epistemic[:, j], spread**2 * variance, rtol=1e-5)


def test_the_noise_is_found_by_evidence() -> None:
    model = fitted(LinearProxy(), 400, 3, noise=0.3)
    assert np.sqrt(model.posterior(np.full((1, 3), 0.5)).aleatoric) == pytest.approx(0.3, rel=0.2)


@pytest.mark.parametrize("features", [64, 4096])
def test_fourier_features_approach_their_kernel(features: int) -> None:
    """The error of the kernel falls as one over the root of the number of features."""
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        omega = rng.standard_normal((3, features // 2))
        X = rng.uniform(-1, 1, (20, 3))
        Phi = Waves(omega)(X)[:, :-1]
        squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        errors.append(np.sqrt(np.mean((Phi @ Phi.T - np.exp(-squared / 2)) ** 2)))
    assert np.mean(errors) * np.sqrt(features) == pytest.approx(1.0, rel=0.5)


def test_the_fourier_proxy_ranks_better_than_chance_in_thirty_variables() -> None:
    V = np.random.default_rng(2).random((200, 30))
    mean = fitted(FourierProxy(), 150, 30).posterior(V).mean
    assert np.corrcoef(mean[:, 1], parabola(V)[:, 1])[0, 1] > 0.7


def test_the_same_seed_gives_the_same_proxy() -> None:
    V = np.random.default_rng(3).random((5, 4))
    a, b = (fitted(FourierProxy(), 30, 4).posterior(V) for _ in range(2))
    assert np.array_equal(a.mean, b.mean)
