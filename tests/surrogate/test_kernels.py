from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch

from neuropareto.surrogate.cholesky import NumericalFailure, cholesky
from neuropareto.surrogate.kernels import (
    RBF,
    Matern52,
    Stationary,
    Structured,
    scaled_distance,
    squared_distance,
    structure,
    typical_log_lengthscale,
)
from neuropareto.surrogate.mean import NeuralMean

X = torch.tensor(np.random.default_rng(0).uniform(-1, 1, (7, 3)))
Z = torch.tensor(np.random.default_rng(1).uniform(-1, 1, (5, 3)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (RBF(), gpytorch.kernels.RBFKernel(ard_num_dims=3)),
        (Matern52(), gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3)),
    ],
    ids=["rbf", "matern"],
)
def test_stationary_kernels_equal_gpytorch(
    ours: Stationary, theirs: gpytorch.kernels.Kernel
) -> None:
    lengthscale = torch.tensor([[0.5, 1.0, 2.0]], dtype=torch.float64)
    theirs = theirs.double()
    theirs.lengthscale = lengthscale
    expected = theirs(X, Z).to_dense().detach()
    assert torch.allclose(
        ours.correlation(scaled_distance(X, Z, lengthscale.log()))[0], expected, atol=1e-10
    )


@pytest.mark.parametrize("kernel", [RBF(), Matern52()], ids=["rbf", "matern"])
def test_frequencies_have_the_kernel_as_their_characteristic_function(kernel: Stationary) -> None:
    omega = kernel.frequencies(200_000, 2, torch.Generator().manual_seed(0))
    lag = torch.tensor([[0.3, -0.4], [1.0, 0.5], [2.0, 0.0]], dtype=torch.float64)
    estimate = torch.cos(lag @ omega.T).mean(1)
    assert torch.allclose(estimate, kernel.correlation(lag.square().sum(1)), atol=0.01)


def test_distances_of_far_points_do_not_cancel() -> None:
    far = X + 1e6
    exact = (X[:, None] - X[None]).square().sum(-1)
    assert torch.allclose(squared_distance(far, far), exact, atol=1e-5)


def test_structure_features_are_standardised_for_uniform_points() -> None:
    U = torch.rand(50_000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    Phi = structure(2 * U - 1)
    assert torch.allclose(Phi.mean(0), torch.zeros(10, dtype=torch.float64), atol=0.02)
    variance = torch.tensor([0.25] * 8 + [1.0, 1.0], dtype=torch.float64)
    assert torch.allclose(Phi.var(0), variance, rtol=0.05)


def test_the_structured_kernel_is_the_sum_of_its_parts() -> None:
    kernel = Structured(Matern52(), NeuralMean(hidden=4))
    p = {
        "log_lengthscale": torch.zeros(2, 3, dtype=torch.float64),
        "log_variance": torch.tensor([0.0, -1.0], dtype=torch.float64),
        "log_structure": torch.tensor(
            [[-1.0, -2.0, -3.0, -4.0, -5.0], [0.0] * 5], dtype=torch.float64
        ),
        **kernel.mean.start(3, torch.Generator().manual_seed(0), torch.device("cpu")),
    }
    K = kernel.covariance(p, X, Z)
    a, b = structure(X), structure(Z)
    hidden = [torch.tanh(P @ p["hidden"].T + p["hidden_bias"]) / 2.0 for P in (X, Z)]
    groups = [slice(0, 3), slice(3, 6), slice(6, 7), slice(7, 8)]
    for o in range(2):
        t = torch.exp(p["log_structure"][o])
        near = Matern52().correlation(squared_distance(X, Z))
        parts = [t[g] * a[:, cut] @ b[:, cut].T for g, cut in enumerate(groups)]
        whole = (
            torch.exp(p["log_variance"][o]) * near + sum(parts) + t[4] * hidden[0] @ hidden[1].T
        )
        assert torch.allclose(K[o], whole)
    diagonal = torch.stack([k.diagonal() for k in kernel.covariance(p, X, X)])
    assert torch.allclose(kernel.diagonal(p, X), diagonal)


def test_the_typical_lengthscale_grows_with_the_root_of_the_dimension() -> None:
    ratio = np.exp(typical_log_lengthscale(400) - typical_log_lengthscale(100))
    assert ratio == pytest.approx(2.0)


def test_cholesky_adds_as_little_jitter_as_it_needs() -> None:
    ones = torch.ones(1, 6, 6, dtype=torch.float64)
    L = cholesky(ones, 1e-13)
    assert (L @ L.transpose(-1, -2) - ones).abs().max() < 1e-6
    good = torch.eye(4, dtype=torch.float64)[None] * 3.0
    assert torch.allclose(cholesky(good), np.sqrt(3.0) * torch.eye(4, dtype=torch.float64))


def test_cholesky_gives_up_on_what_is_not_a_covariance() -> None:
    for K in (-torch.eye(3, dtype=torch.float64)[None], torch.full((1, 2, 2), torch.nan)):
        with pytest.raises(NumericalFailure, match="not positive definite"):
            cholesky(K)
