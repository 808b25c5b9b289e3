"""Finite features of a kernel: random Fourier features, Nystroem features, inducing points.

Notation: b outputs, p rows, w inputs; H (b, p, w) already divided by the lengthscales, anchors
Z (b, r, w). Each choice maps H to whitened coordinates psi (b, p, r), the part of the function
that its r pseudo-outputs at Z decide, and to the variance that they leave open, rest (b, p):
k(h, h) = |psi(h)|^2 + rest(h) = 1. Random Fourier: k = phi phi^T with phi (p, features).
Paper: section "Sparse variational training, randomized features and practical mitigations".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import cholesky, solve_lower
from neuropareto.surrogate.kernels import RBF, Stationary, squared_distance

# Anchors are images of data, often close together; the bound stays valid with this much nugget.
_NUGGET = 1e-6


def fourier_features(H: Tensor, frequencies: Tensor) -> Tensor:
    """phi(h) = [cos(h w), sin(h w)] / sqrt(f) (..., p, 2 f) for frequencies w (f, inputs).

    phi(h) phi(h')^T is an unbiased estimate of the kernel whose spectral density the frequencies
    were drawn from; its error falls as 1 / sqrt(f) (Rahimi and Recht 2007).
    """
    angle = H @ frequencies.T
    return torch.cat([angle.cos(), angle.sin()], dim=-1) * (1.0 / math.sqrt(len(frequencies)))


def nystroem_features(H: Tensor, Z: Tensor, kernel: Stationary) -> Tensor:
    """phi(h) = L^-1 k(Z, h) (..., p, r) with L L^T = k(Z, Z): phi phi^T = K_hZ K_ZZ^-1 K_Zh."""
    L = cholesky(kernel.correlation(squared_distance(Z, Z)), _NUGGET)
    return solve_lower(L, kernel.correlation(squared_distance(Z, H))).transpose(-1, -2)


class Projection(Protocol):
    """A kernel with its anchors factorised, ready to be evaluated at any inputs."""

    def split(self, H: Tensor) -> tuple[Tensor, Tensor]:
        """psi (b, p, r) and rest (b, p) at H (b, p, w)."""
        ...

    def prior(self, H: Tensor) -> Tensor:
        """The kernel's matrix (b, p, p) at H (b, p, w)."""
        ...

    def paths(self, H: Tensor, whitened: Tensor, generator: torch.Generator) -> Tensor:
        """Joint function values (b, s, p) at H (b, s, p, w) given coordinates (b, s, r)."""
        ...


class Features(Protocol):
    """How layers l >= 2 represent their kernel."""

    @property
    def anchors(self) -> int:
        """r, the number of pseudo-outputs of the variational posterior."""
        ...

    def fixed(self, width: int, generator: torch.Generator) -> Tensor:
        """Random numbers that stay with the layer for its life (frequencies); may be empty."""
        ...

    def projection(self, Z: Tensor, fixed: Tensor) -> Projection:
        """The kernel with its anchors at Z (b, r, w)."""
        ...


@dataclass(frozen=True)
class RandomFourier:
    """``features`` random Fourier features whose weights have a posterior of rank ``anchors``.

    Prior w ~ N(0, I). The posterior is a full Gaussian in the span of phi(Z) and the prior in its
    complement: a diagonal posterior over 2048 weights would lose the variance away from data.
    Paper: D_rff = 2048 for layers l >= 2.
    """

    features: int = 2048
    anchors: int = 64
    kernel: Stationary = RBF()

    def fixed(self, width: int, generator: torch.Generator) -> Tensor:
        """Frequencies (features / 2, width)."""
        return self.kernel.frequencies(self.features // 2, width, generator)

    def projection(self, Z: Tensor, fixed: Tensor) -> Projection:
        """phi(Z) orthonormalised."""
        Phi = fourier_features(Z, fixed)
        L = cholesky(Phi @ Phi.transpose(-1, -2), _NUGGET)
        return _FourierProjection(fixed, solve_lower(L, Phi))


@dataclass(frozen=True)
class _FourierProjection:
    frequencies: Tensor
    basis: Tensor  # (b, r, features), nearly orthonormal rows

    def split(self, H: Tensor) -> tuple[Tensor, Tensor]:
        # fourier_features(H) @ basis^T without writing the features, the largest array here.
        angle = H @ self.frequencies.to(H.dtype).T
        scaled = (self.basis / math.sqrt(len(self.frequencies))).to(H.dtype).transpose(-1, -2)
        even, odd = torch.split(scaled, len(self.frequencies), dim=-2)
        psi = angle.cos() @ even + angle.sin() @ odd
        return psi, (1.0 - psi.square().sum(-1)).clamp_min(0.0)

    def prior(self, H: Tensor) -> Tensor:
        Phi = fourier_features(H, self.frequencies)
        return Phi @ Phi.transpose(-1, -2)

    def paths(self, H: Tensor, whitened: Tensor, generator: torch.Generator) -> Tensor:
        Phi = fourier_features(H, self.frequencies)
        shape = (*H.shape[:2], Phi.shape[-1])
        free = torch.randn(shape, generator=generator, dtype=H.dtype, device=H.device)
        weights = free + (whitened - free @ self.basis.transpose(-1, -2)) @ self.basis
        return (Phi @ weights[..., None])[..., 0]


@dataclass(frozen=True)
class Nystroem:
    """Nystroem features of ``anchors`` landmarks: the kernel is cut down to their span."""

    anchors: int = 96
    kernel: Stationary = RBF()

    def fixed(self, width: int, generator: torch.Generator) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(0, dtype=torch.float64)

    def projection(self, Z: Tensor, fixed: Tensor) -> Projection:
        """k(Z, Z) factorised."""
        return _NystroemProjection(Z, self.kernel, _factor(Z, self.kernel))


@dataclass(frozen=True)
class Inducing:
    """Inducing points: the exact kernel, ``anchors`` of whose values are variational."""

    anchors: int = 96
    kernel: Stationary = RBF()

    def fixed(self, width: int, generator: torch.Generator) -> Tensor:
        """Nothing is drawn."""
        return torch.zeros(0, dtype=torch.float64)

    def projection(self, Z: Tensor, fixed: Tensor) -> Projection:
        """k(Z, Z) factorised."""
        return _InducingProjection(Z, self.kernel, _factor(Z, self.kernel))


def _factor(Z: Tensor, kernel: Stationary) -> Tensor:
    return cholesky(kernel.correlation(squared_distance(Z, Z)), _NUGGET)


@dataclass(frozen=True)
class _InducingProjection:
    Z: Tensor
    kernel: Stationary
    L: Tensor

    def split(self, H: Tensor) -> tuple[Tensor, Tensor]:
        psi = _whitened(self.Z, H, self.kernel, self.L)
        return psi, (1.0 - psi.square().sum(-1)).clamp_min(0.0)

    def prior(self, H: Tensor) -> Tensor:
        return self.kernel.correlation(squared_distance(H, H))

    def paths(self, H: Tensor, whitened: Tensor, generator: torch.Generator) -> Tensor:
        psi = _whitened(self.Z[:, None], H, self.kernel, self.L[:, None])
        open_ = self.kernel.correlation(squared_distance(H, H)) - psi @ psi.transpose(-1, -2)
        base = torch.randn(H.shape[:3], generator=generator, dtype=H.dtype, device=H.device)
        return (psi @ whitened[..., None] + cholesky(open_, 1e-6) @ base[..., None])[..., 0]


@dataclass(frozen=True)
class _NystroemProjection:
    Z: Tensor
    kernel: Stationary
    L: Tensor

    def split(self, H: Tensor) -> tuple[Tensor, Tensor]:
        psi = _whitened(self.Z, H, self.kernel, self.L)
        return psi, torch.zeros_like(psi[..., 0])

    def prior(self, H: Tensor) -> Tensor:
        psi, _ = self.split(H)
        return psi @ psi.transpose(-1, -2)

    def paths(self, H: Tensor, whitened: Tensor, generator: torch.Generator) -> Tensor:
        psi = _whitened(self.Z[:, None], H, self.kernel, self.L[:, None])
        return (psi @ whitened[..., None])[..., 0]


def _whitened(Z: Tensor, H: Tensor, kernel: Stationary, L: Tensor) -> Tensor:
    K = kernel.correlation(squared_distance(Z.to(H.dtype), H))
    return solve_lower(L.to(H.dtype), K).transpose(-1, -2)
