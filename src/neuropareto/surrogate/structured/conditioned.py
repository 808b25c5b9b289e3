"""One objective's Gaussian process, conditioned on data: a pure function of the points asked.

Notation: X n data points, C = K + noise I = L L^T, alpha = C^-1 z; A b points asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky, solve_lower
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.structured.evidence import leave_one_out, noise
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.parameters import Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import Against
from neuropareto.surrogate.structured.warp import Inverse, Units, standardised


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A GP with fixed hyper-parameters ``P`` given data; build with :meth:`on`."""

    kernel: Kernel
    P: Values
    X: Points
    L: Tensor
    alpha: Tensor
    inverse: Inverse
    density: float

    @classmethod
    def on(cls, kernel: Kernel, P: Values, X: Points, y: Array) -> Conditioned:
        """Condition on outputs ``y`` (n,) at ``X``; NumericalFailure if the covariance is broken."""
        units = Units.of(y)
        v = units.scaled(y)
        with torch.no_grad():
            z, jacobian, _, _ = standardised(P, v)
            C = kernel.against(P, X)(X)[0] + torch.diag(noise(P).expand(len(X)))
            L = cholesky(C, jitter=1e-10)
            alpha = torch.cholesky_solve(z[:, None], L)[:, 0]
            density = leave_one_out(L, alpha, jacobian)
        # A copy of X: the matrices that a fit keeps with its points would stay with the model.
        return cls(kernel, P, replace(X), L, alpha, Inverse.of(P, v, units), density)

    @cached_property
    def _cross(self) -> Against:
        """A -> K (b, n) between points and the data, with its pull."""
        return self.kernel.against(self.P, self.X)

    @property
    def noise(self) -> Tensor:
        """The standard deviation of the noise on z, (1,)."""
        return noise(self.P).sqrt()

    @property
    def unforeseen(self) -> Tensor:
        """How far each z lies from its mean given all others, alpha_i / (C^-1)_ii; (n,)."""
        return self.alpha / torch.cholesky_inverse(self.L).diagonal()

    def mean(self, A: Points) -> Tensor:
        """The latent mean at b points, (b,)."""
        return self._cross(A)[0] @ self.alpha

    def mean_and_slope(self, A: Points) -> tuple[Tensor, Tensor]:
        """The latent mean (b,) and its gradient (b, d)."""
        K, pull = self._cross(A)
        return K @ self.alpha, pull(self.alpha.expand_as(K))

    def moments(self, A: Points) -> tuple[Tensor, Tensor]:
        """The latent mean and standard deviation at b points, (b,) each."""
        K, _ = self._cross(A)
        explained = solve_lower(self.L, K.T).square().sum(0)
        variance = self.kernel.diagonal(self.P, A) - explained
        return K @ self.alpha, variance.clamp_min(1e-12).sqrt()

    def joint(self, A: Points) -> tuple[Tensor, Tensor]:
        """The latent mean (b,) and covariance (b, b)."""
        K, _ = self._cross(A)
        S = solve_lower(self.L, K.T)
        return K @ self.alpha, self.kernel.against(self.P, A)(A)[0] - S.T @ S

    def curves(self, A: Points, grid: Tensor) -> Tensor:
        """The additive part of the latent mean around each point, by variable, (b, d, g).

        With the modulating variables held at a point's values, the mean is a sum of curves with
        dual weights alpha_n Mod(u_J, x_nJ): all of them follow from one matrix product.
        """
        a = self.kernel.modulation.against(self.P, self.X)(A)[0] * self.alpha
        return self.kernel.curves(self.P, a, self.X, grid)


def posterior(models: tuple[Conditioned, ...], factors: Array, U: Array) -> Posterior:
    """Means, epistemic and aleatoric variances of conditioned models, (b, m) each."""
    A = Points.of(torch.tensor(np.asarray(U, dtype=np.float64)))
    mean, epistemic, aleatoric = (np.empty((len(A), len(models))) for _ in range(3))
    with torch.no_grad():
        for j, model in enumerate(models):
            middle, deviation = model.moments(A)
            mean[:, j] = model.inverse.value(middle)
            epistemic[:, j] = model.inverse.deviation(middle, deviation).square()
            aleatoric[:, j] = model.inverse.deviation(middle, model.noise).square()
    tiny = np.finfo(np.float64).tiny
    return Posterior(mean, np.maximum(factors**2 * epistemic, tiny), np.maximum(aleatoric, tiny))
