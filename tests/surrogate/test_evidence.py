from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.evidence import Hyper, log_evidence, maximise

ROOT = torch.tensor(np.random.default_rng(0).standard_normal((2, 5, 5)))
C = ROOT @ ROOT.transpose(-1, -2) + torch.eye(5, dtype=torch.float64)
Y = torch.tensor(np.random.default_rng(1).standard_normal((2, 5)))


def test_the_evidence_is_the_normal_log_density() -> None:
    normal = torch.distributions.MultivariateNormal(torch.zeros(2, 5, dtype=torch.float64), C)
    expected: Tensor = normal.log_prob(Y)  # type: ignore[no-untyped-call]
    assert torch.allclose(log_evidence(C, Y), expected, atol=1e-6)


def test_its_gradient_is_analytic_and_right() -> None:
    def value(root: Tensor, y: Tensor) -> Tensor:
        eye = torch.eye(5, dtype=torch.float64)
        return log_evidence(root @ root.transpose(-1, -2) + eye, y)

    assert torch.autograd.gradcheck(
        value, (ROOT.clone().requires_grad_(), Y.clone().requires_grad_()), atol=1e-4
    )


def test_maximise_finds_the_variance_of_noise() -> None:
    """For C = v I the evidence is largest at v = mean of squares."""
    y = torch.tensor(np.random.default_rng(2).standard_normal((3, 40)))

    def objective(hyper: Hyper) -> Tensor:
        eye = torch.eye(40, dtype=torch.float64)
        return log_evidence(torch.exp(hyper["log_v"])[:, None, None] * eye, y).sum()

    start = {"log_v": torch.zeros(3, dtype=torch.float64)}
    found = maximise(objective, start, {"log_v": (-5.0, 5.0)}, 50)
    assert torch.allclose(torch.exp(found["log_v"]), y.square().mean(1), rtol=1e-3)


def test_maximise_steps_back_from_a_breakdown_and_reports_one_at_the_start() -> None:
    def objective(hyper: Hyper) -> Tensor:
        if float(hyper["x"].detach()) > 1.0:
            raise NumericalFailure("too far")
        return -((hyper["x"] - 0.9) ** 2).sum()

    bounds = {"x": (-10.0, 10.0)}
    found = maximise(objective, {"x": torch.tensor([-3.0], dtype=torch.float64)}, bounds, 50)
    assert float(found["x"]) == pytest.approx(0.9, abs=1e-2)
    with pytest.raises(NumericalFailure, match="starting point"):
        maximise(objective, {"x": torch.tensor([2.0], dtype=torch.float64)}, bounds, 50)
