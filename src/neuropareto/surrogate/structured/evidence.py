"""The penalised evidence of one objective, its gradient, and leave-one-out density.

L(theta) = z^T C^-1 z / 2 + log|C| / 2 - log Jacobian - log prior, C = K + noise I. With
alpha = C^-1 z and G = (C^-1 - alpha alpha^T) / 2 the gradient is sum_ij G_ij dK_ij + alpha . dz + ...,
so nothing is differentiated through a Cholesky factor. Notation: X n points, z (n,) warped outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.structured.kernel import Kernel, Memo
from neuropareto.surrogate.structured.parameters import Normal, Parameter, Table, Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.warp import standardised, warp_parameters

NOISE_FLOOR = 1e-9
# Worse than any real value, yet finite: the line search interpolates between values.
_BROKEN = 1e10


@dataclass(frozen=True, eq=False)
class Evidence:
    """The loss of hyper-parameters given ``X`` (n points) and scaled outputs ``v`` (n,).

    Without ``warped`` the outputs are taken as they are.
    """

    kernel: Kernel
    X: Points
    v: Tensor
    warped: bool = True

    @cached_property
    def table(self) -> Table:
        """The hyper-parameters of kernel, noise and output warp."""
        noise = {"noise": Parameter.alike(1, -7.0, -18.0, 0.0, Normal(2.0))}
        return Table(self.kernel.parameters(self.X.d) | noise | warp_parameters(self.warped))

    def loss(self, P: Values, memo: Memo | None = None) -> float:
        """L at ``P``; a large number where C is not positive definite."""
        with torch.no_grad():
            K = self.kernel.matrix(P, self.X, {} if memo is None else memo)
            z, jacobian, _, _ = standardised(P, self.v)
            found = _solved(K, noise(P), z)
            if found is None:
                return _BROKEN
            L, alpha = found
            value = 0.5 * (z @ alpha) + L.diagonal().log().sum() - jacobian
            return float(value + self.table.penalty(P))

    def advantage(self, P: Values) -> float:
        """How much better than independent noise the model is, in nats for each row.

        The penalties count, so that fitting noise with many weights does not pay.
        """
        with torch.no_grad():
            white = 0.5 * len(self.v) - float(standardised(P, self.v)[1])
        return (white - self.loss(P)) / len(self.v)

    def scan(self, P: Values, changes: Iterable[Values]) -> list[float]:
        """L at ``P`` with each of several ``changes``; unchanged terms are computed once."""
        memo: Memo = {}
        return [self.loss(self.table.start(P | change), memo) for change in changes]

    def loss_and_gradient(
        self, theta: Array, moving: AbstractSet[str] | None = None, known: Memo | None = None
    ) -> tuple[float, Array]:
        """L and dL/dtheta at a flat vector; a large number and zeros where C is broken.

        The gradient is that by the ``moving`` parameters (default: all that are not kept apart), else
        0. ``known`` are matrices made before.
        """
        flat = torch.tensor(theta, requires_grad=True)
        moving = self.table.together if moving is None else moving
        P = {k: v if k in moving else v.detach() for k, v in self.table.split(flat).items()}
        memo: Memo = dict(known or {})
        z, jacobian, _, _ = standardised(P, self.v)
        spread = noise(P)
        rest = self.table.penalty(P) - jacobian
        with torch.no_grad():
            fixed = {k: v.detach() for k, v in P.items()}
            K = self.kernel.matrix(fixed, self.X, memo)
            found = _solved(K, spread, z)
            if found is None:
                return _BROKEN, np.zeros_like(theta)
            L, alpha = found
            value = float(0.5 * (z @ alpha) + L.diagonal().log().sum() + rest)
            G = 0.5 * (torch.cholesky_inverse(L) - alpha[:, None] * alpha[None])
        linear = self.kernel.contraction(P, G, self.X, memo)
        linear = linear + G.diagonal().sum() * spread.sum() + alpha @ z + rest
        (gradient,) = torch.autograd.grad(linear, flat)
        if not (math.isfinite(value) and torch.isfinite(gradient).all()):
            return _BROKEN, np.zeros_like(theta)
        return value, gradient.numpy()

    def improved(
        self, P: Values, iterations: int, moving: AbstractSet[str] | None = None
    ) -> tuple[Values, float]:
        """Hyper-parameters after at most ``iterations`` steps of L-BFGS-B from ``P``, and L there.

        Only the ``moving`` ones change; by default all that are not kept apart.
        """
        start = self.table.flat(P)
        moving = self.table.together if moving is None else moving
        free = self.table.mask(moving)
        low, high = (np.where(free, side, start) for side in (self.table.low, self.table.high))
        known = self.kernel.resting(self.table.split(torch.tensor(start)), self.X, moving)
        found = minimize(
            self.loss_and_gradient,
            start,
            args=(moving, known),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": iterations, "maxfun": int(1.3 * iterations) + 5, "maxcor": 30},
        )
        if not found.fun < _BROKEN:
            return P, _BROKEN
        return self.table.split(torch.tensor(found.x)), float(found.fun)


def noise(P: Values) -> Tensor:
    """The variance of the noise on z: e^noise and a floor that keeps C invertible; (1,)."""
    return torch.exp(P["noise"]) + NOISE_FLOOR


def leave_one_out(L: Tensor, alpha: Tensor, jacobian: Tensor) -> float:
    """The mean log density of each scaled output given all others, hyper-parameters fixed.

    mean_i [log d_i / 2 - alpha_i^2 / (2 d_i) - log(2 pi) / 2] + log Jacobian / n, d = diag C^-1.
    """
    d = torch.cholesky_inverse(L).diagonal()
    densities = 0.5 * d.log() - 0.5 * alpha.square() / d - 0.5 * math.log(2.0 * math.pi)
    return float(densities.mean() + jacobian / len(alpha))


def _solved(K: Tensor, spread: Tensor, z: Tensor) -> tuple[Tensor, Tensor] | None:
    """The Cholesky factor of K + spread I and alpha, or None if there is none."""
    C = K.detach() + torch.diag(spread.detach().expand(len(K)))
    L, failed = torch.linalg.cholesky_ex(C)
    if failed or not torch.isfinite(L).all():
        return None
    return L, torch.cholesky_solve(z.detach()[:, None], L)[:, 0]
