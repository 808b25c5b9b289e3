"""The constants L_H and H_max of the hypervolume bound, by the paper's protocols.

Appendix "Estimating L_H, H_max and rho in practice". Notation: y (m,) true objectives of a
candidate, Delta HV(y) the hypervolume it adds to the front of its round, z the reference point. The
"representative decisions" are the shortlists of a watched run, each with the front of its round:
uniform points of a 100-variable problem lie outside the reference point and gain nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuropareto import pareto
from neuropareto.analysis.observation import ObservedRound, ObservedRun
from neuropareto.space import Array


@dataclass(frozen=True)
class Sensitivity:
    """L_H: the quantile of the ratios, the largest of them, and how many samples it rests on.

    ``silent`` is the share of samples whose gain did not change at all, ``violated`` the share of
    shortlisted candidates whose real prediction error breaks Eq. Lip_H_app with this L_H, and
    ``needed`` the smallest constant that would have held for all of them.
    """

    value: float
    largest: float
    samples: int
    silent: float
    violated: float
    needed: float


@dataclass(frozen=True)
class ReplacementLoss:
    """H_max: the largest loss over the trials, with their mean."""

    value: float
    mean: float
    trials: int


def sensitivity(
    runs: Sequence[ObservedRun],
    *,
    rng: np.random.Generator,
    samples: int = 500,
    perturbation: float = 0.01,
    quantile: float = 0.95,
) -> Sensitivity:
    """L_H, the 95 % quantile of |Delta HV(y) - Delta HV(y')| / ||y - y'||_1 with y' = 1.01 y.

    500 candidates are drawn from the shortlists of the runs. Then the promise of Eq. Lip_H_app,
    |Delta HV(f) - Delta HV(f^)| <= L_H ||f - f^||_1, is held against the surrogate's real errors
    on every shortlisted candidate. Paper: section "Estimating L_H", Eq. Lip_H_app.
    """
    pairs = [(run, observed) for run in runs for observed in run.rounds]
    sizes = np.array([len(observed.short) for _, observed in pairs])
    drawn = np.sort(rng.permutation(sizes.sum())[:samples])
    owner = np.searchsorted(np.cumsum(sizes), drawn, side="right")
    ratios = []
    for place in np.unique(owner):
        run, observed = pairs[place]
        rows = drawn[owner == place] - sizes[:place].sum()
        Y = observed.shortlist[rows]
        ratios.append(change_ratios(Y, Y * (1 + perturbation), observed.front, run.reference))
    found = np.concatenate(ratios)
    value = float(np.quantile(found, quantile))
    real = np.concatenate(
        [change_ratios(o.shortlist, o.mean, o.front, run.reference) for run, o in pairs]
    )
    return Sensitivity(
        value=value,
        largest=float(found.max()),
        samples=len(found),
        silent=float(np.mean(found == 0)),
        violated=float(np.mean(real > value * (1 + 1e-9))),
        needed=float(real.max()),
    )


def change_ratios(Y: Array, Z: Array, front: Array, reference: Array) -> Array:
    """|Delta HV(y) - Delta HV(z)| / ||y - z||_1 row by row; 0 where y = z; (n,)."""
    gains = pareto.improvement(np.vstack([Y, Z]), front, reference)
    change = np.abs(gains[: len(Y)] - gains[len(Y) :])
    distance = np.abs(Y - Z).sum(axis=1)
    return np.asarray(np.where(distance > 0, change / np.where(distance > 0, distance, 1.0), 0.0))


def replacement_loss(
    runs: Sequence[ObservedRun], *, rng: np.random.Generator, trials: int = 200
) -> ReplacementLoss:
    """H_max, the largest hypervolume lost when a member of the front gives way to a bad candidate.

    Each of 200 trials draws a round and a member of its front inside the reference point, and
    replaces it by the candidate of the pool that adds least. A round whose front lies outside the
    reference point loses nothing. Paper: section "Estimating H_max".
    """
    pairs = [(run, observed) for run in runs for observed in run.rounds]
    losses = np.zeros(trials)
    for i, place in enumerate(rng.integers(len(pairs), size=trials)):
        run, observed = pairs[place]
        losses[i] = _loss(observed, run.reference, rng)
    return ReplacementLoss(float(losses.max()), float(losses.mean()), trials)


def _loss(observed: ObservedRound, reference: Array, rng: np.random.Generator) -> float:
    front = observed.front[(observed.front < reference).all(axis=1)]
    if not len(front):
        return 0.0
    member = int(rng.integers(len(front)))
    rest = np.delete(front, member, axis=0)
    lost = float(pareto.improvement(front[member : member + 1], rest, reference)[0])
    least = float(pareto.improvement(observed.pool, rest, reference).min())
    return max(lost - least, 0.0)
