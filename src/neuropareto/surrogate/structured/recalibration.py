"""Online recalibration: how far off were the predictions of the points that were then evaluated?

Proposals are chosen where the model is optimistic, so its raw uncertainty is too small there. The
last round's model is rebuilt from its stored hyper-parameters, asked about the rows that arrived
since, and the standard deviation is multiplied by a quantile of the |z|-scores of recent batches.
Paper: section "Calibration" asks for calibrated uncertainty and leaves the surrogate's open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from neuropareto.space import Array


class Recalibration(Protocol):
    """A rule for the factor on the epistemic standard deviation."""

    def factor(self, batches: list[Array]) -> float:
        """The factor from |z|-scores, one array for each earlier batch, the latest last."""
        ...


@dataclass(frozen=True)
class Online:
    """quantile_level(|z| of the last ``batches``) / its normal value, clipped to [low, high]."""

    level: float = 0.9
    batches: int = 2
    low: float = 0.1
    high: float = 10.0

    def factor(self, batches: list[Array]) -> float:
        """1 as long as there is no evaluated proposal."""
        recent = [b for b in batches if len(b)][-self.batches :]
        if not recent:
            return 1.0
        seen = float(np.quantile(np.concatenate(recent), self.level))
        return float(np.clip(seen / ndtri(0.5 + 0.5 * self.level), self.low, self.high))


@dataclass(frozen=True)
class Uncalibrated:
    """The model's own uncertainty."""

    def factor(self, batches: list[Array]) -> float:
        """1."""
        return 1.0
