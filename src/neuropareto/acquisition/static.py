"""Acquisitions that learn nothing (section "Static versus Learned Acquisition").

Notation: n candidates, m objectives. ``StaticEHVI`` is the paper's non-learned comparator;
``SurrogateEstimate`` hands on the surrogate's own hypervolume estimate and is what the learned
acquisition falls back on. Both ignore the history they are fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuropareto.acquisition.contract import Signals, Utility
from neuropareto.archive import Gains
from neuropareto.memory import Memory
from neuropareto.space import Array


@dataclass(frozen=True)
class StaticEHVI:
    """A fixed linear score of the signals; its diversity is 0.

    w1 s_HV + w2 |epistemic|_1 + w3 |aleatoric|_1 + w4 p_1 + w5 window mean + w6 window std, with
    s_HV the surrogate's estimate and p_1 the probability of being non-dominated. Paper:
    Eq. static_score. The paper does not print its weights; the defaults suit objectives of order
    one. w5 and w6 shift all candidates alike.
    """

    weights: tuple[float, float, float, float, float, float] = (1.0, 0.05, -0.05, 0.05, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.weights) != 6 or not np.isfinite(self.weights).all():
            raise ValueError(f"StaticEHVI needs six finite weights, got {self.weights}.")

    def fit(
        self,
        features: Array,
        estimate: Array,
        gains: Gains,
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> StaticEHVI:
        """The score itself: there is nothing to learn."""
        return self

    def score(self, signals: Signals) -> Utility:
        """The linear score of each candidate."""
        w1, w2, w3, w4, w5, w6 = self.weights
        value = (
            w1 * signals.estimate
            + w2 * np.abs(signals.epistemic).sum(axis=1)
            + w3 * np.abs(signals.aleatoric).sum(axis=1)
            + w4 * signals.probability[:, 0]
            + w5 * signals.window_mean
            + w6 * signals.window_std
        )
        return Utility(value, np.zeros(len(signals)))

    @property
    def warm(self) -> Memory:
        """Nothing."""
        return {}

    @property
    def notes(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}


@dataclass(frozen=True)
class SurrogateEstimate:
    """The surrogate's own hypervolume estimate, and no opinion on diversity."""

    def fit(
        self,
        features: Array,
        estimate: Array,
        gains: Gains,
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> SurrogateEstimate:
        """The estimate itself: there is nothing to learn."""
        return self

    def score(self, signals: Signals) -> Utility:
        """The surrogate's estimate of each candidate."""
        return Utility(signals.estimate, np.zeros(len(signals)))

    @property
    def warm(self) -> Memory:
        """Nothing."""
        return {}

    @property
    def notes(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}
