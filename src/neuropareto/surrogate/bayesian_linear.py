"""Bayesian linear regression on groups of features, with each group's prior variance learned.

y_m = c_m + sum_g Phi_g(x) w_{m,g} + e, w_{m,g} ~ N(0, t_{m,g} I), e ~ N(0, noise_m). The n x n
form is used throughout: C_m = sum_g t_{m,g} Phi_g Phi_g^T + noise_m I, so the number of features
hardly matters. Notation: X (n, d), Phi (n, f), weights (m, f), m objectives at once.
Paper: the proxies of section "Two stage surrogate evaluation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky, solve_lower
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.evidence import Hyper, log_evidence, log_normal, maximise
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.scaling import Scale, array, centred

_BOUNDS = {"log_prior": (-14.0, 6.0), "log_noise": (-13.8, 2.0), "constant": (-20.0, 20.0)}
_EVIDENCE_POINTS = 400


class FeatureMap(Protocol):
    """Features of points in [-1, 1]^d."""

    @property
    def sizes(self) -> Sequence[int]:
        """The number of features of each group."""
        ...

    def __call__(self, X: Tensor) -> Tensor:
        """Phi (..., n, f), groups side by side, for X (..., n, d)."""
        ...


def regress(
    phi: FeatureMap,
    data: tuple[Array, Array],
    scale: Scale,
    warm: Memory | None,
    iterations: int,
    device: torch.device,
) -> FittedLinear:
    """Learn the prior variances from points U (n, d) and objectives F (n, m), and condition."""
    X = centred(data[0], device)
    Y = torch.tensor(scale.standardised(data[1]).T.copy(), device=device)
    few = torch.tensor(even_subsample(len(X), _EVIDENCE_POINTS), device=device)
    groups = torch.split(phi(X[few]), list(phi.sizes), dim=-1)
    grams = torch.stack([g @ g.T for g in groups])

    def objective(hyper: Hyper) -> Tensor:
        noise = torch.exp(hyper["log_noise"])[:, None]
        C = torch.einsum("mg,gij->mij", torch.exp(hyper["log_prior"]), grams)
        C = C + torch.diag_embed(noise.expand(len(Y), len(few)))
        density = log_normal(hyper["log_prior"], -3.0, 2.0)
        density = density + log_normal(hyper["log_noise"], -4.0, 2.0)
        return log_evidence(C, Y[:, few] - hyper["constant"][:, None]).sum() + density

    start = _start(len(Y), len(groups), warm, device)
    hyper = maximise(objective, start, _BOUNDS, iterations)
    return FittedLinear(phi, hyper, scale, X, Y)


class FittedLinear:
    """A conditioned Bayesian linear model."""

    def __init__(self, phi: FeatureMap, hyper: Hyper, scale: Scale, X: Tensor, Y: Tensor) -> None:
        self._phi, self._hyper, self._scale = phi, hyper, scale
        sizes = torch.tensor(list(phi.sizes), device=X.device)
        self._prior = torch.exp(hyper["log_prior"]).repeat_interleave(sizes, dim=-1)
        self._noise = torch.exp(hyper["log_noise"])
        self._Phi = phi(X)
        C = (self._Phi * self._prior[:, None, :]) @ self._Phi.T
        C = C + torch.diag_embed(self._noise[:, None].expand_as(Y))
        self._L = cholesky(C)
        self._residual = Y - hyper["constant"][:, None]
        self._weights = self._pulled(self._residual[..., None])[..., 0]

    def _pulled(self, residual: Tensor) -> Tensor:
        """prior Phi^T C^-1 residual: (m, n, s) -> (m, f, s)."""
        return self._prior[..., None] * (self._Phi.T @ torch.cholesky_solve(residual, self._L))

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (n, d); the noise is the same everywhere."""
        Phi = self._phi(centred(U, self._L.device))
        mean = Phi @ self._weights.T + self._hyper["constant"]
        K = self._Phi @ (Phi * self._prior[:, None, :]).transpose(-1, -2)
        explained = solve_lower(self._L, K).square().sum(-2)
        prior = self._prior @ Phi.square().T
        return self._scale.posterior(
            mean, (prior - explained).clamp_min(1e-12).T, self._noise.expand_as(mean)
        )

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, (n, len(U), m): each is one linear function."""
        Phi = self._phi(centred(U, self._L.device))
        generator = torch.Generator(Phi.device).manual_seed(torch_seed(rng))
        m, f = self._weights.shape

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=Phi.dtype, device=Phi.device)

        # A prior draw, corrected by what it gets wrong about the data (Matheron's rule).
        free = self._prior.sqrt()[..., None] * normal(m, f, n)
        noise = self._noise.sqrt()[:, None, None] * normal(m, len(self._Phi), n)
        weights = free + self._pulled(self._residual[..., None] - self._Phi @ free - noise)
        values = Phi @ weights + self._hyper["constant"][:, None, None]
        return self._scale.draws(values.permute(2, 1, 0))

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u, (len(U), m, d)."""
        m = len(self._weights)
        # One copy of the points for each objective: their gradients then come in one pass.
        X = centred(U, self._L.device).repeat(m, 1, 1).requires_grad_()
        (G,) = torch.autograd.grad((self._phi(X) @ self._weights[..., None]).sum(), X)
        return self._scale.gradient(G.transpose(0, 1))

    @property
    def warm(self) -> Memory:
        """The hyper-parameters."""
        return {k: array(v) for k, v in self._hyper.items()}

    @property
    def notes(self) -> dict[str, object]:
        """The noise on the unit scale and the prior variance of each group."""
        prior = array(torch.exp(self._hyper["log_prior"]))
        return {"noise": array(self._noise).tolist(), "prior": prior.tolist()}


def _start(m: int, groups: int, warm: Memory | None, device: torch.device) -> Hyper:
    cold = {
        "log_prior": np.full((m, groups), -2.0),
        "log_noise": np.full(m, -3.0),
        "constant": np.zeros(m),
    }
    known = warm is not None and all(
        k in warm and warm[k].shape == v.shape and np.isfinite(warm[k]).all()
        for k, v in cold.items()
    )
    chosen = warm if known and warm is not None else cold
    return {k: torch.tensor(np.array(chosen[k], dtype=np.float64), device=device) for k in cold}


@dataclass(frozen=True)
class Joined:
    """Several feature maps side by side."""

    maps: tuple[FeatureMap, ...]

    @property
    def sizes(self) -> list[int]:
        """The groups of all maps, in order."""
        return [size for one in self.maps for size in one.sizes]

    def __call__(self, X: Tensor) -> Tensor:
        """Phi (..., n, f)."""
        return torch.cat([one(X) for one in self.maps], dim=-1)
