"""Type-II maximum likelihood: hyper-parameters by L-BFGS on the log marginal likelihood.

log p(y) = -1/2 (y^T C^-1 y + log |C| + n log 2 pi) for b outputs at once; C (b, n, n), y (b, n).
The gradient with respect to C is analytic, (a a^T - C^-1) / 2 with a = C^-1 y, so no derivative
of a Cholesky factor is taken; autograd carries it on to the hyper-parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure, cholesky
from neuropareto.surrogate.scaling import array

Hyper = dict[str, Tensor]

# Worse than any real value, yet finite: the line search interpolates between values.
_BROKEN = 1e15


class _Evidence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, C: Tensor, y: Tensor) -> Tensor:
        L = cholesky(C)
        alpha = torch.cholesky_solve(y[..., None], L)[..., 0]
        ctx.save_for_backward(L, alpha)
        half_log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        quadratic = 0.5 * (y * alpha).sum(-1)
        return -quadratic - half_log_det - 0.5 * y.shape[-1] * math.log(2.0 * math.pi)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor]:
        L, alpha = ctx.saved_tensors  # type: ignore[attr-defined]
        gap = alpha[..., :, None] * alpha[..., None, :] - torch.cholesky_inverse(L)
        return 0.5 * grad[..., None, None] * gap, -grad[..., None] * alpha


def log_evidence(C: Tensor, y: Tensor) -> Tensor:
    """log N(y | 0, C) (b,) with its analytic gradient; raises NumericalFailure if C is broken."""
    value: Tensor = _Evidence.apply(C, y)  # type: ignore[no-untyped-call]
    return value


def log_normal(log_value: Tensor, location: float, scale: float) -> Tensor:
    """Sum of normal log densities of logarithms, up to a constant: a log-normal prior's term."""
    return -0.5 * ((log_value - location) / scale).square().sum()


def maximise(
    objective: Callable[[Hyper], Tensor],
    start: Hyper,
    bounds: Mapping[str, tuple[float, float]],
    iterations: int,
) -> Hyper:
    """Hyper-parameters that maximise a scalar ``objective`` within box ``bounds``, by L-BFGS.

    A step on which the objective breaks down numerically counts as infinitely bad, so the line
    search turns back; if the start itself breaks down, NumericalFailure is raised.
    """
    names = list(start)
    shapes = [start[k].shape for k in names]
    sizes = [start[k].numel() for k in names]
    device = start[names[0]].device

    def unpacked(flat: Array) -> Hyper:
        vector = torch.tensor(np.array(flat), device=device)
        parts = torch.split(vector, sizes)
        return {
            k: p.reshape(s).requires_grad_() for k, p, s in zip(names, parts, shapes, strict=True)
        }

    def loss(flat: Array) -> tuple[float, Array]:
        hyper = unpacked(flat)
        try:
            value = -objective(hyper)
            grads = torch.autograd.grad(value, list(hyper.values()))
        except NumericalFailure:
            return _BROKEN, np.zeros_like(flat)
        gradient = torch.cat([g.reshape(-1) for g in grads])
        if not (torch.isfinite(value) and torch.isfinite(gradient).all()):
            return _BROKEN, np.zeros_like(flat)
        return float(value.detach()), array(gradient)

    flat = array(torch.cat([start[k].reshape(-1) for k in names]))
    low = np.concatenate([np.full(s, bounds[k][0]) for k, s in zip(names, sizes, strict=True)])
    high = np.concatenate([np.full(s, bounds[k][1]) for k, s in zip(names, sizes, strict=True)])
    flat = np.clip(flat, low, high)
    if loss(flat)[0] >= _BROKEN:
        raise NumericalFailure("The marginal likelihood is not finite at its starting point.")
    options = {"maxiter": iterations, "maxfun": 2 * iterations}
    found = minimize(
        loss,
        flat,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options=options,
    )
    return {k: v.detach() for k, v in unpacked(found.x).items()}
