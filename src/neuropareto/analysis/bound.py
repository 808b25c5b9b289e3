"""The finite-budget lower bound on the hypervolume, as arithmetic.

Appendix "Full derivation of the finite-budget HV bound". Notation: T rounds, HV* the hypervolume of
the true front, D_X the diameter of the unit cube, M objectives, sigma the noise, rho the fidelity.
The bound is useful only above what the start design has already; :attr:`Bound.vacuous` says so.
Paper: Eqs. B_explicit_app, hv_bound_refined_app, sum_expectation, high_prob_bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt


@dataclass(frozen=True)
class Bound:
    """E[HV(P_T)] >= HV* - sum_t eps_total(t) - B sqrt(2 log(2T) / T). Paper: Eq. hv_bound_refined_app.

    ``errors`` is the sum over rounds, ``prefactor`` B, ``start`` the hypervolume before round 1.
    """

    best: float
    start: float
    errors: float
    prefactor: float
    rounds: int

    def __post_init__(self) -> None:
        if self.rounds < 1 or min(self.errors, self.prefactor) < 0:
            raise ValueError(
                f"The bound needs at least one round, errors >= 0 and a prefactor >= 0, got "
                f"{self.rounds}, {self.errors} and {self.prefactor}."
            )

    @property
    def root(self) -> float:
        """B sqrt(2 log(2T) / T)."""
        return self.prefactor * sqrt(2 * log(2 * self.rounds) / self.rounds)

    @property
    def value(self) -> float:
        """The right side of the inequality."""
        return self.best - self.errors - self.root

    @property
    def vacuous(self) -> bool:
        """Whether it promises no more than the start design has: hypervolume never falls."""
        return self.value <= self.start

    @property
    def verdict(self) -> str:
        """In one sentence, whether the bound says anything and, if not, which term is to blame."""
        if not self.vacuous:
            return (
                f"The bound says something: at least {self.value:.4g} of {self.best:.4g}, more than "
                f"the start design's {self.start:.4g}."
            )
        room = self.best - self.start
        blame = [
            name
            for name, size in (("the sum of errors", self.errors), ("the root term", self.root))
            if size >= room
        ]
        cause = {
            0: "errors and root term together use up",
            1: f"{blame[0] if blame else ''} alone uses up",
            2: "the sum of errors and the root term each use up",
        }[len(blame)]
        return (
            f"The bound is vacuous: {self.value:.4g} is no more than the {self.start:.4g} that the "
            f"start design has already; {cause} HV* - HV_0 = {room:.4g}."
        )


def prefactor(
    *,
    sensitivity: float,
    diameter: float,
    m: int,
    rho: float,
    noise_std: float = 0.0,
    tail: float = 0.05,
) -> float:
    """B = L_H D_X sqrt(M) / rho + sigma sqrt(log(1 / delta_0)) / rho. Paper: Eq. B_explicit_app.

    Raises ValueError unless 0 < rho <= 1 and 0 < tail < 1.
    """
    if not (0 < rho <= 1 and 0 < tail < 1):
        raise ValueError(f"Expected 0 < rho <= 1 and 0 < tail < 1, got {rho} and {tail}.")
    return (sensitivity * diameter * sqrt(m) + noise_std * sqrt(log(1 / tail))) / rho


def concentration(envelope: float, rounds: int, delta: float = 0.05) -> float:
    """c sqrt(2 T log(2 / delta)), what chance may add to a sum of T increments of at most c.

    Paper: Eq. high_prob_bound with c = H_max, Eq. azuma_conclusion_app with the envelope c.
    """
    if not 0 < delta < 1 or rounds < 1:
        raise ValueError(
            f"Expected 0 < delta < 1 and at least one round, got {delta} and {rounds}."
        )
    return envelope * sqrt(2 * rounds * log(2 / delta))
