from __future__ import annotations

import numpy as np
import pytest
import torch

from neuropareto.surrogate.features import (
    Features,
    Inducing,
    Nystroem,
    RandomFourier,
    fourier_features,
    nystroem_features,
)
from neuropareto.surrogate.kernels import RBF, Matern52, Stationary, squared_distance

H = torch.tensor(np.random.default_rng(0).standard_normal((2, 15, 3)))
Z = torch.tensor(np.random.default_rng(1).standard_normal((2, 6, 3)))
ALL = [RandomFourier(512, anchors=6), Nystroem(6), Inducing(6)]
NAMES = ["fourier", "nystroem", "inducing"]


@pytest.mark.parametrize("kernel", [RBF(), Matern52()], ids=["rbf", "matern"])
def test_the_error_of_fourier_features_falls_as_one_over_the_root(kernel: Stationary) -> None:
    exact = kernel.correlation(squared_distance(H[0], H[0]))

    def error(features: int) -> float:
        squares = []
        for seed in range(20):
            omega = kernel.frequencies(features // 2, 3, torch.Generator().manual_seed(seed))
            Phi = fourier_features(H[0], omega)
            squares.append((Phi @ Phi.T - exact).square().mean())
        return float(torch.stack(squares).mean().sqrt())

    for few in (64, 256):
        assert error(few) / error(16 * few) == pytest.approx(4.0, rel=0.3)


def test_nystroem_features_are_exact_at_their_landmarks_and_project_elsewhere() -> None:
    Phi = nystroem_features(Z[0], Z[0], RBF())
    assert torch.allclose(Phi @ Phi.T, RBF().correlation(squared_distance(Z[0], Z[0])), atol=1e-4)
    K_hz = RBF().correlation(squared_distance(H[0], Z[0]))
    K_zz = RBF().correlation(squared_distance(Z[0], Z[0]))
    low_rank = K_hz @ torch.linalg.solve(K_zz, K_hz.T)
    Phi = nystroem_features(H[0], Z[0], RBF())
    assert torch.allclose(Phi @ Phi.T, low_rank, atol=1e-4)


@pytest.mark.parametrize("features", ALL, ids=NAMES)
def test_what_anchors_explain_and_what_they_leave_open_make_the_prior(features: Features) -> None:
    fixed = features.fixed(3, torch.Generator().manual_seed(0))
    projection = features.projection(Z, fixed)
    psi, rest = projection.split(H)
    prior = projection.prior(H).diagonal(dim1=-2, dim2=-1)
    assert torch.allclose(psi.square().sum(-1) + rest, prior, atol=1e-6)
    at_anchors, left = projection.split(Z)
    assert left.max() < 1e-4
    covariance = at_anchors @ at_anchors.transpose(-1, -2)
    assert torch.allclose(covariance, projection.prior(Z), atol=1e-4)


@pytest.mark.parametrize("features", ALL, ids=NAMES)
def test_paths_with_standard_normal_coordinates_are_draws_from_the_prior(
    features: Features,
) -> None:
    generator = torch.Generator().manual_seed(3)
    projection = features.projection(Z, features.fixed(3, generator))
    s = 4000
    whitened = torch.randn(2, s, 6, generator=generator, dtype=torch.float64)
    points = H[:, None, :4].expand(2, s, 4, 3)
    drawn = projection.paths(points, whitened, generator)
    assert drawn.shape == (2, s, 4)
    covariance = drawn.transpose(-1, -2) @ drawn / s
    assert torch.allclose(covariance, projection.prior(H[:, :4]), atol=0.1)


@pytest.mark.parametrize("features", ALL, ids=NAMES)
def test_paths_go_through_the_values_that_their_coordinates_say(features: Features) -> None:
    generator = torch.Generator().manual_seed(3)
    projection = features.projection(Z, features.fixed(3, generator))
    whitened = torch.randn(2, 1, 6, generator=generator, dtype=torch.float64)
    drawn = projection.paths(Z[:, None], whitened, generator)[:, 0]
    psi, _ = projection.split(Z)
    assert torch.allclose(drawn, (psi @ whitened[:, 0, :, None])[..., 0], atol=2e-2)
