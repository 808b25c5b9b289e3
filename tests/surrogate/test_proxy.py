from __future__ import annotations

import numpy as np
import pytest

from neuropareto.space import Array
from neuropareto.surrogate import Fitted, FourierProxy, LinearProxy


def parabola(U: Array) -> Array:
    return np.stack([U.sum(axis=1), ((U - 0.3) ** 2).sum(axis=1)], axis=1)


def fitted(spec: LinearProxy | FourierProxy, n: int, d: int, noise: float = 0.0) -> Fitted:
    rng = np.random.default_rng(0)
    U = rng.random((n, d))
    F = parabola(U) + noise * rng.standard_normal((n, 2))
    return spec.fit(U, F, warm=None, rng=np.random.default_rng(1))


def test_the_linear_proxy_recovers_a_parabola() -> None:
    V = np.random.default_rng(2).random((50, 4))
    posterior = fitted(LinearProxy(), 60, 4).posterior(V)
    assert np.allclose(posterior.mean, parabola(V), atol=0.02)


def test_the_noise_is_found_by_evidence() -> None:
    model = fitted(LinearProxy(), 400, 3, noise=0.3)
    found = np.sqrt(model.posterior(np.full((1, 3), 0.5)).aleatoric)
    assert found == pytest.approx(0.3, rel=0.2)


def test_the_fourier_proxy_ranks_well_in_thirty_variables() -> None:
    V = np.random.default_rng(2).random((200, 30))
    mean = fitted(FourierProxy(), 150, 30).posterior(V).mean
    assert np.asarray(np.corrcoef(mean[:, 1], parabola(V)[:, 1]))[0, 1] > 0.8


def test_the_same_seed_gives_the_same_proxy() -> None:
    V = np.random.default_rng(3).random((5, 4))
    a, b = (fitted(FourierProxy(), 30, 4).posterior(V) for _ in range(2))
    assert np.array_equal(a.mean, b.mean)


def test_too_few_features_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 6 features"):
        FourierProxy(features=2)
