"""Online recalibration: how far off were the predictions of the points that were then evaluated?

Proposals are chosen where the model is optimistic, so its raw uncertainty is too small there. The
last round's model is rebuilt from its stored hyper-parameters, asked about the rows that arrived
since, and the standard deviation is multiplied by a quantile of the latest |z|-scores, counted by
evaluations: batches may have any size (decisions D-61, D-89).
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

    def factor(self, z: Array) -> float:
        """The factor from the |z|-scores (n,) of earlier proposals, the latest last."""
        ...


def conformal_factor(z: Array, level: float = 0.9) -> float:
    """The factor on standard deviations that makes held-out |z| cover ``level``.

    The ceil((n + 1) level)-th smallest |z| over its normal value: with exchangeable residuals the
    next interval covers at least ``level`` (split conformal). Needs n >= level / (1 - level), else
    the largest |z| has to do; 1 without residuals.
    """
    n = len(z)
    if not n:
        return 1.0
    place = min(n, int(np.ceil((n + 1) * level)))
    return float(np.sort(np.abs(z))[place - 1] / ndtri(0.5 + 0.5 * level))


@dataclass(frozen=True)
class Online:
    """The conformal factor of the last ``recent`` scores, within [low, high]; ``first`` before any.

    The first proposals are the points that look best to a model which has never been corrected:
    less than half of their 90 % intervals hold, hence ``first``.
    """

    level: float = 0.9
    recent: int = 40
    first: float = 3.0
    low: float = 0.1
    high: float = 30.0

    def factor(self, z: Array) -> float:
        """The factor for the next proposals."""
        if not len(z):
            return self.first
        factor = conformal_factor(z[-self.recent :], self.level)
        return float(np.clip(factor, self.low, self.high))


@dataclass(frozen=True)
class Uncalibrated:
    """The model's own uncertainty."""

    def factor(self, z: Array) -> float:
        """1."""
        return 1.0
