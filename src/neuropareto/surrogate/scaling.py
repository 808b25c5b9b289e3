"""Scales on which surrogates work: inputs in [-1, 1], outputs centred with unit robust spread.

Notation: U (n, d) in the unit cube, X = 2 U - 1; F (n, m) in the user's units,
Y = (F - centre) / spread. Means go back with both, variances with the squared spread.
Paper: section "Complexity reduced Deep Gaussian Process surrogates" (leaves the scales open).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior


@dataclass(frozen=True)
class Scale:
    """The affine scale of m outputs: ``centre`` (m,) and ``spread`` (m,), both finite."""

    centre: Array
    spread: Array

    @classmethod
    def of(cls, F: Array) -> Scale:
        """Centre and robust spread of the columns of ``F`` (n, m).

        The spread is the standard deviation after pulling values in to five robust deviations
        around the median, so that a few crashed or exotic points do not flatten all others.
        """
        low, middle, high = np.quantile(F, [0.1, 0.5, 0.9], axis=0)
        # The middle 80 % of a normal distribution are 2.563 deviations wide.
        robust = (high - low) / 2.563
        reach = 5.0 * np.where(robust > 0.0, robust, F.std(axis=0))
        pulled = np.clip(F, middle - reach, middle + reach)
        centre, spread = pulled.mean(axis=0), pulled.std(axis=0)
        # Differences below the rounding of the values themselves are not information.
        rounding = 1e-12 * np.maximum(np.abs(centre), 1e-150)
        return cls(centre, np.where(spread > rounding, spread, 1.0))

    def standardised(self, F: Array) -> Array:
        """``F`` (n, m) on the unit scale; beyond ten spreads only the logarithm still grows."""
        Y = (F - self.centre) / self.spread
        beyond = np.maximum(np.abs(Y) - 10.0, 0.0)
        return np.asarray(np.sign(Y) * (np.abs(Y) - beyond + np.log1p(beyond)), dtype=np.float64)

    def posterior(self, mean: Tensor, epistemic: Tensor, aleatoric: Tensor) -> Posterior:
        """A posterior in the user's units from tensors (n, m) on the unit scale."""
        tiny = np.finfo(np.float64).tiny
        return Posterior(
            mean=self.centre + self.spread * array(mean),
            epistemic=np.maximum(self.spread**2 * array(epistemic), tiny),
            aleatoric=np.maximum(self.spread**2 * array(aleatoric), tiny),
        )

    def draws(self, Y: Tensor) -> Array:
        """Sampled outputs (s, n, m) in the user's units."""
        return np.asarray(self.centre + self.spread * array(Y), dtype=np.float64)

    def gradient(self, G: Tensor) -> Array:
        """d mean / d u in the user's units from d mean / d x (n, m, d); dx / du = 2."""
        return np.asarray(2.0 * self.spread[None, :, None] * array(G), dtype=np.float64)


def centred(U: Array, device: torch.device) -> Tensor:
    """Points of the unit cube as a float64 tensor in [-1, 1]."""
    # Copied, here and wherever arrays become tensors: products of memory that is not aligned as
    # torch aligns it may differ in the last bit, and a resumed run would no longer be the same.
    return torch.tensor(2.0 * np.asarray(U, dtype=np.float64) - 1.0, device=device)


def array(tensor: Tensor) -> Array:
    """A tensor as a float64 array that nobody else writes to."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float64, order="C")


def check_data(U: Array, F: Array) -> tuple[Array, Array]:
    """``U`` (n, d) and ``F`` (n, m) as finite arrays with n, d, m >= 1, or a ValueError."""
    U, F = np.asarray(U, dtype=np.float64), np.asarray(F, dtype=np.float64)
    if U.ndim != 2 or F.ndim != 2 or len(U) != len(F) or U.size == 0 or F.size == 0:
        raise ValueError(
            f"A surrogate needs points (n, d) and objectives (n, m) with n >= 1, got shapes "
            f"{U.shape} and {F.shape}; pass the evaluated points and their objectives."
        )
    if not (np.isfinite(U).all() and np.isfinite(F).all()):
        raise ValueError(
            "A surrogate needs finite points and objectives, got NaN or infinity; drop failed "
            "evaluations first, or wrap the surrogate in a Ladder."
        )
    return U, F
