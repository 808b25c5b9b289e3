"""Adaptive Monte Carlo dropout (sections "Temperature calibration and adaptive MC dropout",
"Adaptive MC-Dropout variance control" and "On formula as information gain").

Notation: n points, S passes, K classes, H hidden units; P (n, S, K) are the probabilities of each
pass. ``AdaptiveDropout`` decides how many passes a point gets; ``NoDropout`` is its null object.
The masks of all passes are drawn once per fit and shared by all points: each pass is one network
drawn from the dropout posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuropareto.space import Array

Counts = npt.NDArray[np.int64]


class Dropout(Protocol):
    """How many stochastic passes a point gets, and how many units each of them drops."""

    @property
    def p(self) -> float:
        """The probability with which a hidden unit is dropped, in training and prediction."""
        ...

    @property
    def s0(self) -> int:
        """Passes that every point gets."""
        ...

    @property
    def s_max(self) -> int:
        """Passes that no point exceeds."""
        ...

    def passes(self, variance: Array) -> Counts:
        """Passes of points whose first ``s0`` passes had this variance, (n,) -> (n,).

        Each count is a multiple of ``s0``, or ``s_max``.
        """
        ...


@dataclass(frozen=True)
class AdaptiveDropout:
    """Monte Carlo dropout with more passes only where the first ones disagree.

    S(x) = S_0 if v(x) <= tau, else min(S_max, S_0 ceil(v(x) / tau)), with v(x) from
    :func:`disagreement`. Paper: Eqs. h2, adaptive_s_rule. Raises ValueError unless 0 < p < 1,
    tau > 0 and 2 <= s0 <= s_max.
    """

    p: float = 0.1
    s0: int = 8
    s_max: int = 32
    tau: float = 0.02

    def __post_init__(self) -> None:
        if not (0 < self.p < 1 and self.tau > 0 and 2 <= self.s0 <= self.s_max):
            raise ValueError(
                f"AdaptiveDropout needs 0 < p < 1, tau > 0 and 2 <= s0 <= s_max, got p={self.p}, "
                f"tau={self.tau}, s0={self.s0}, s_max={self.s_max}; for one pass use NoDropout()."
            )

    def passes(self, variance: Array) -> Counts:
        """S(x) for variances (n,)."""
        # Capped before the conversion: a large ratio would overflow an integer.
        ratio = np.minimum(np.ceil(variance / self.tau), self.s_max)
        more = np.minimum(self.s_max, self.s0 * ratio.astype(np.int64))
        return np.where(variance <= self.tau, self.s0, more)


@dataclass(frozen=True)
class NoDropout:
    """One deterministic pass: the information gain is 0 everywhere."""

    p: float = field(default=0.0, init=False)
    s0: int = field(default=1, init=False)
    s_max: int = field(default=1, init=False)

    def passes(self, variance: Array) -> Counts:
        """One pass for each point."""
        return np.ones(len(variance), dtype=np.int64)


def masks(dropout: Dropout, width: int, generator: torch.Generator) -> Tensor:
    """Multipliers of h1 in each pass, (s_max, H): 0 with probability p, else 1 / (1 - p)."""
    keep = 1.0 - dropout.p
    return (torch.rand((dropout.s_max, width), generator=generator) < keep) / keep


def disagreement(P: Array) -> Array:
    """The largest sample variance of any class probability over the passes, (n, S, K) -> (n,).

    The largest, so that the threshold of Eq. adaptive_s_rule holds for every class, as
    Eq. mc_var_bound asks; 0 for a single pass.
    """
    if P.shape[1] < 2:
        return np.zeros(len(P))
    return np.asarray(P.var(axis=1, ddof=1).max(axis=1))


def plogp(p: Array) -> Array:
    """sum_k p_k log p_k, the negative entropy in nats, (..., K) -> (...); 0 log 0 is 0."""
    return np.asarray((p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(axis=-1))


def gain(mean: Array, mean_plogp: Array) -> Array:
    """Entropy of the mean (n, K) minus mean entropy (n,); never below 0 by rounding."""
    return np.maximum(mean_plogp - plogp(mean), 0.0)


def information_gain(P: Array) -> Array:
    """Information gain in nats: H[mean_s p_s] - mean_s H[p_s] >= 0, (n, S, K) -> (n,).

    The entropy (Eq. pred_entropy) of the mean over passes (Eq. mc_avg) minus the mean entropy of a
    pass (Eq. exp_entropy). Paper: Eq. epistemic_clf_corrected with the sign of Eq. dropout_mi: as
    printed in the main text the expected entropy would be added (decision D-1).
    """
    return gain(P.mean(axis=1), plogp(P).mean(axis=1))
