from __future__ import annotations

import numpy as np
import pytest
import torch

from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, FourierProxy, LinearProxy
from neuropareto.surrogate.bayesian_linear import FittedLinear
from neuropareto.surrogate.kernels import structure
from neuropareto.surrogate.scaling import Scale


def parabola(U: Array) -> Array:
    return np.stack([U.sum(axis=1), ((U - 0.3) ** 2).sum(axis=1)], axis=1)


def fitted(spec: LinearProxy | FourierProxy, n: int, d: int, noise: float = 0.0) -> FittedLinear:
    rng = np.random.default_rng(0)
    U = rng.random((n, d))
    F = parabola(U) + noise * rng.standard_normal((n, 2))
    return spec.fit(U, F, warm=None, rng=np.random.default_rng(1))


@pytest.mark.parametrize("spec", [LinearProxy(), FourierProxy()], ids=["linear", "fourier"])
def test_a_parabola_is_recovered(spec: LinearProxy | FourierProxy) -> None:
    V = np.random.default_rng(2).random((50, 4))
    assert np.allclose(fitted(spec, 60, 4).posterior(V).mean, parabola(V), atol=0.02)


def test_the_posterior_equals_ridge_regression_in_weight_space() -> None:
    """The n x n form against the textbook formulas with f x f matrices."""
    model = fitted(LinearProxy(), 40, 3, noise=0.2)
    rng = np.random.default_rng(0)
    U = rng.random((40, 3))
    F = parabola(U) + 0.2 * rng.standard_normal((40, 2))
    scale = Scale.of(F)
    V = rng.random((7, 3))
    Phi, phi = (structure(torch.tensor(2 * P - 1)).numpy() for P in (U, V))
    posterior = model.posterior(V)
    for j in range(2):
        prior = np.exp(model.warm["log_prior"][j])[[0, 0, 0, 1, 1, 1, 2, 3]]
        noise, constant = np.exp(model.warm["log_noise"][j]), model.warm["constant"][j]
        precision = Phi.T @ Phi / noise + np.diag(1.0 / prior)
        y = scale.standardised(F)[:, j] - constant
        mean = constant + phi @ np.linalg.solve(precision, Phi.T @ y) / noise
        variance = np.einsum("nr,rs,ns->n", phi, np.linalg.inv(precision), phi)
        spread = scale.spread[j]
        assert np.allclose(posterior.mean[:, j], scale.centre[j] + spread * mean, rtol=1e-4)
        assert np.allclose(posterior.epistemic[:, j], spread**2 * variance, rtol=1e-3)


def test_the_noise_is_found_by_evidence() -> None:
    model = fitted(LinearProxy(), 400, 3, noise=0.3)
    assert np.sqrt(model.posterior(np.full((1, 3), 0.5)).aleatoric) == pytest.approx(0.3, rel=0.2)


def test_sums_over_variables_let_few_points_teach_many_squares() -> None:
    """Thirty variables that act alike, forty points: the pooled features carry it."""
    rng = np.random.default_rng(0)
    U, V = rng.random((40, 30)), rng.random((200, 30))
    model = LinearProxy().fit(U, parabola(U), warm=None, rng=rng)
    error = (model.posterior(V).mean - parabola(V)).var(axis=0) / parabola(V).var(axis=0)
    assert (error < 0.05).all()


def test_the_fourier_proxy_sees_a_bend_that_the_linear_one_cannot() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.random((120, 20)), rng.random((300, 20))

    def bend(P: Array) -> Array:
        return np.asarray(np.cos(6 * P[:, :1]) * (1 + P[:, 1:].mean(axis=1, keepdims=True)))

    errors = [
        float(((spec.fit(U, bend(U), warm=None, rng=rng).posterior(V).mean - bend(V)) ** 2).mean())
        for spec in (LinearProxy(), FourierProxy())
    ]
    assert errors[1] < 0.2 * errors[0]


def test_the_fourier_proxy_is_no_worse_than_an_exact_gp_in_many_variables() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.random((100, 30)), rng.random((300, 30))
    proxy = FourierProxy().fit(U, parabola(U), warm=None, rng=rng).posterior(V).mean
    exact = ExactGP().fit(U, parabola(U), warm=None, rng=rng).posterior(V).mean
    error = [((mean - parabola(V)) ** 2).sum() for mean in (proxy, exact)]
    assert error[0] <= error[1]


def test_the_same_seed_gives_the_same_proxy_and_another_seed_other_features() -> None:
    rng = np.random.default_rng(3)
    U, V = rng.random((30, 4)), rng.random((5, 4))
    a, b, c = (
        FourierProxy().fit(U, parabola(U), warm=None, rng=np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert np.array_equal(a.posterior(V).mean, b.posterior(V).mean)
    assert not np.array_equal(a.posterior(V).mean, c.posterior(V).mean)


def test_a_proxy_without_features_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 6 features"):
        FourierProxy(features=2)
