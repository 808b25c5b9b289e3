"""Do the rounds' gains behave like the bounded martingale of the paper's concentration argument?

Appendix, lemma "Martingale increment bound and Azuma application". Notation: R runs of T rounds,
Delta HV (R, T) their gains, c the envelope of a centred gain. The expectation E[Delta HV_t] is taken
over the runs, as printed (not conditional on the past), so successive increments need not be
uncorrelated: a run that gains early has less to gain later. Their correlation is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from neuropareto.analysis.bound import concentration
from neuropareto.space import Array


@dataclass(frozen=True)
class MartingaleCheck:
    """How the centred gains of several runs compare with the premise and with the conclusion.

    ``largest`` is the largest increment |Delta HV_t - E Delta HV_t| and ``envelope`` the c it must
    not exceed; ``final`` the largest |M_T| over runs, ``limit`` Azuma's; ``correlation`` that of
    successive increments (0 for a martingale; NaN with one round or without any spread).
    """

    runs: int
    rounds: int
    largest: float
    envelope: float
    final: float
    limit: float
    correlation: float

    @property
    def premise(self) -> bool:
        """Whether every increment stays within the envelope. Paper: Eq. increment_bound_app."""
        return self.largest <= self.envelope

    @property
    def conclusion(self) -> bool:
        """Whether every |M_T| stays within the limit. Paper: Eq. azuma_conclusion_app."""
        return self.final <= self.limit


def envelope(
    *,
    sensitivity: float,
    worst: float,
    loss: float,
    noise_std: float = 0.0,
    tail: float = 0.05,
) -> float:
    """c = L_H sup_t eps_t + H_max + eta, eta = sigma sqrt(2 log(2 / delta)).

    ``worst`` is sup_t of the largest ||f - f^||_1 over S_t. Paper: Eq. increment_bound_app.
    """
    return sensitivity * worst + loss + noise_std * sqrt(2 * log(2 / tail))


def martingale_check(gains: Array, bound: float, *, delta: float = 0.05) -> MartingaleCheck:
    """M_T = sum_t (Delta HV_t - E[Delta HV_t]) of each run, against c = ``bound``.

    ``gains`` (R, T). Paper: Eqs. martingale, Doob_app. Raises ValueError for fewer than two runs:
    the expectation of a single run is itself.
    """
    gains = np.asarray(gains, dtype=np.float64)
    if gains.ndim != 2 or len(gains) < 2 or not gains.shape[1]:
        raise ValueError(
            f"The martingale check needs gains (R, T) of at least two runs, got shape "
            f"{gains.shape}; observe more seeds."
        )
    runs, rounds = gains.shape
    # With R runs the mean holds a share 1/R of each run; undo that shrinkage.
    increments = (gains - gains.mean(axis=0)) * sqrt(runs / (runs - 1))
    before, after = increments[:, :-1].ravel(), increments[:, 1:].ravel()
    spread = float(np.sqrt((before**2).sum() * (after**2).sum()))
    return MartingaleCheck(
        runs=runs,
        rounds=rounds,
        largest=float(np.abs(increments).max()),
        envelope=bound,
        final=float(np.abs(increments.sum(axis=1)).max()),
        limit=concentration(bound, rounds, delta),
        correlation=float(before @ after) / spread if spread > 0 else float("nan"),
    )
