from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuropareto.space import Array

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.sampling.get_sampler import get_sampler
    from botorch.sampling.normal import SobolQMCNormalSampler

    from neuropareto.peers.posterior import ExactGPs


def example(n: int = 20, d: int = 3, o: int = 2) -> tuple[Tensor, Tensor, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    Z = np.stack([np.sin((j + 2) * X.sum(axis=1)) for j in range(o)], axis=1)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
    h = np.column_stack([rng.normal(-0.5, 0.3, (o, d)), np.full(o, -6.0), rng.normal(size=o)])
    return torch.tensor(X), torch.tensor(Z), h


def gpytorch(X: Tensor, Z: Tensor, h: Array) -> SingleTaskGP:
    """The same processes by GPyTorch."""
    model = SingleTaskGP(X, Z, outcome_transform=None)
    values, d = torch.tensor(h), X.shape[1]
    model.covar_module.lengthscale = torch.exp(values[:, None, :d])
    model.likelihood.noise = torch.exp(values[:, d : d + 1])
    model.mean_module.constant = values[:, d + 1]
    model.requires_grad_(False)
    model.eval()
    return model


@pytest.mark.parametrize("shape", [(7,), (5, 1), (4, 3), (2, 3, 2)])
def test_mean_and_covariance_are_gpytorchs(shape: tuple[int, ...]) -> None:
    X, Z, h = example()
    V = torch.tensor(np.random.default_rng(1).random((*shape, 3)))
    ours = ExactGPs(X, Z, h).posterior(V)
    theirs: Any = gpytorch(X, Z, h).posterior(V)
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-6)
    assert torch.allclose(ours.variance, theirs.variance, atol=1e-6)
    q = shape[-1]
    joint = theirs.distribution.covariance_matrix  # q rows of each output after the other
    rows = [slice(j * q, (j + 1) * q) for j in range(2)]
    blocks = torch.stack([joint[..., r, r] for r in rows], dim=-3)
    assert ours.covariance.shape == (*shape[:-1], 2, q, q)
    assert torch.allclose(ours.covariance, blocks, atol=1e-6)


def test_draws_have_the_distribution_and_sets_share_their_numbers() -> None:
    X, Z, h = example()
    V = torch.tensor(np.random.default_rng(2).random((3, 2, 3)))
    posterior = ExactGPs(X, Z, h).posterior(V)
    draws = SobolQMCNormalSampler(torch.Size([4096]), seed=0)(posterior)
    assert draws.shape == (4096, 3, 2, 2)
    assert torch.allclose(draws.mean(dim=0), posterior.mean, atol=0.01)
    apart = draws - draws.mean(dim=0)
    covariance = torch.einsum("sbqo,sbro->boqr", apart, apart) / 4096
    assert torch.allclose(covariance, posterior.covariance, atol=0.01)
    same: Any = ExactGPs(X, Z, h).posterior(V[:1].expand(3, -1, -1))
    again = SobolQMCNormalSampler(torch.Size([8]), seed=0)(same)
    assert torch.allclose(again[:, 0], again[:, 1])
    assert isinstance(get_sampler(same, torch.Size([4])), SobolQMCNormalSampler)


def test_a_criterion_and_its_slope_are_those_of_gpytorchs_model() -> None:
    X, Z, h = example(o=1)
    V = torch.tensor(np.random.default_rng(3).random((6, 1, 3)))
    found = []
    for model in (ExactGPs(X, Z, h), gpytorch(X, Z, h)):
        points = V.clone().requires_grad_()
        value = LogExpectedImprovement(model, best_f=0.8)(points)
        found.append((value.detach(), torch.autograd.grad(value.sum(), points)[0]))
    assert torch.allclose(found[0][0], found[1][0], rtol=1e-3)
    assert torch.allclose(found[0][1], found[1][1], rtol=1e-2, atol=1e-3)


def test_at_a_known_point_a_little_doubt_is_left_and_no_points_are_no_error() -> None:
    X, Z, h = example()
    h[:, 3] = -40.0
    model = ExactGPs(X, Z, h)
    assert (model.posterior(X[:, None, :]).variance > 0).all()
    assert model.posterior(X[:0]).mean.shape == (0, 2)


def test_what_it_cannot_answer_is_refused() -> None:
    model = ExactGPs(*example())
    with pytest.raises(NotImplementedError, match="latent values"):
        model.posterior(torch.zeros(1, 3), observation_noise=True)
