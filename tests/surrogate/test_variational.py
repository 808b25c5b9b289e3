from __future__ import annotations

import numpy as np
import torch

from neuropareto.surrogate.variational import (
    Coordinates,
    block_diagonal,
    divergence,
    draws,
    marginal,
    moved,
    natural_step,
    prior,
)

RNG = np.random.default_rng(0)
A = torch.tensor(RNG.standard_normal((2, 4, 30)))
Y = torch.tensor(RNG.standard_normal((2, 30)))
PRECISION = torch.tensor(RNG.uniform(0.5, 3.0, (2, 30)))


def exact() -> tuple[torch.Tensor, torch.Tensor]:
    Lambda = torch.eye(4, dtype=torch.float64) + (A * PRECISION[:, None]) @ A.transpose(-1, -2)
    mean = torch.linalg.solve(Lambda, (A @ (PRECISION * Y)[..., None]))[..., 0]
    return mean, Lambda


def test_a_full_natural_step_is_the_exact_posterior_of_linear_regression() -> None:
    mean, Lambda = exact()
    start = natural_step(*prior(2, 4, torch.device("cpu")), A, Y, PRECISION, 0.3)
    q_mean, q_factor = natural_step(*start, A, PRECISION * Y, PRECISION, 1.0)
    assert torch.allclose(q_mean, mean)
    assert torch.allclose(q_factor @ q_factor.transpose(-1, -2), Lambda)


def test_short_natural_steps_converge_to_it() -> None:
    mean, _ = exact()
    q = prior(2, 4, torch.device("cpu"))
    for _ in range(60):
        q = natural_step(*q, A, PRECISION * Y, PRECISION, 0.3)
    assert torch.allclose(q[0], mean, atol=1e-6)


def test_the_divergence_equals_that_of_torch() -> None:
    mean, Lambda = exact()
    q = torch.distributions.MultivariateNormal(mean, precision_matrix=Lambda)
    p = torch.distributions.MultivariateNormal(
        torch.zeros(2, 4, dtype=torch.float64), torch.eye(4, dtype=torch.float64)
    )
    expected = torch.distributions.kl_divergence(q, p).sum()
    assert torch.allclose(divergence(mean, torch.linalg.cholesky(Lambda)), expected)
    assert float(divergence(*prior(3, 5, torch.device("cpu")))) == 0.0


def test_marginals_and_draws_have_the_moments_of_q() -> None:
    mean, Lambda = exact()
    factor = torch.linalg.cholesky(Lambda)
    nothing = torch.zeros(2, 30, dtype=torch.float64)
    at = marginal(Coordinates(nothing + 1.0, A, nothing + 0.5), mean, factor)
    covariance = A.transpose(-1, -2) @ torch.linalg.solve(Lambda, A)
    assert torch.allclose(at.centre, 1.0 + (A.transpose(-1, -2) @ mean[..., None])[..., 0])
    assert torch.allclose(at.variance, 0.5 + covariance.diagonal(dim1=-2, dim2=-1))
    drawn = draws(mean, factor, 20_000, torch.Generator().manual_seed(0))
    assert torch.allclose(drawn.mean(1), mean, atol=0.02)
    centred = drawn - drawn.mean(1, keepdim=True)
    sample = centred.transpose(-1, -2) @ centred / 20_000
    assert torch.allclose(sample, torch.linalg.inv(Lambda), atol=0.01)


def test_a_posterior_moved_to_other_anchors_predicts_the_same_there() -> None:
    """Old anchors explain part of the new ones; mean and covariance there must survive."""
    mean, Lambda = exact()
    factor = torch.linalg.cholesky(Lambda)
    old = A[:, :, :3]
    root = torch.tensor(np.random.default_rng(1).standard_normal((2, 3, 3)))
    open_ = root @ root.transpose(-1, -2)
    K = old.transpose(-1, -2) @ old + open_
    L = torch.linalg.cholesky(K)
    new_mean, new_factor = moved(mean, factor, old, open_, L)
    expected = open_ + old.transpose(-1, -2) @ torch.linalg.solve(Lambda, old)
    S = torch.linalg.inv(new_factor @ new_factor.transpose(-1, -2))
    assert torch.allclose(L @ S @ L.transpose(-1, -2), expected, atol=1e-5)
    assert torch.allclose((L @ new_mean[..., None])[..., 0], (mean[:, None] @ old)[:, 0])


def test_block_diagonal_matches_torch() -> None:
    a, b = A[:, :2, :3], A[:, :3, :2]
    expected = torch.stack(
        [
            torch.block_diag(a[i], b[i])  # type: ignore[no-untyped-call]
            for i in range(2)
        ]
    )
    assert torch.equal(block_diagonal(a, b), expected)
