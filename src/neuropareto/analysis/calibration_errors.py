"""Calibration errors of predicted classes, beside those that a perfect classifier would show.

Section "Empirical calibration validation". Notation: n points, K classes, probability (n, K), labels
(n,) in 1..K. With few points a bin's accuracy differs from its confidence by chance alone, so ECE,
MCE and ACE of a perfectly calibrated classifier are far from 0. The *floor* is what it would show at
the same n with the same confidences: labels are drawn from the predicted probabilities themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.calibration import Labels, ace, ece, mce
from neuropareto.space import Array

MEASURES = ("ece", "mce", "ace")


@dataclass(frozen=True)
class Errors:
    """Calibration of n predictions: measured errors, their floor, and the odds of chance.

    ``ece``, ``mce``, ``ace`` in 15 bins as the paper has them; ``*_floor`` the mean of each for a
    perfectly calibrated classifier with these confidences; ``chance`` the share of perfectly
    calibrated samples with at least this ECE (a p-value); ``nll`` the mean of -log p(label).
    """

    n: int
    accuracy: float
    confidence: float
    nll: float
    ece: float
    mce: float
    ace: float
    ece_floor: float
    mce_floor: float
    ace_floor: float
    chance: float


def errors(
    probability: Array,
    labels: Labels,
    *,
    rng: np.random.Generator,
    bins: int = 15,
    draws: int = 100,
) -> Errors:
    """The errors of predictions (n, K) for labels (n,), and the floor from ``draws`` resamplings."""
    measured = _all(probability, labels, bins)
    floor = np.array([_all(probability, y, bins) for y in drawn(probability, draws, rng=rng)])
    means = floor.mean(axis=0)
    chosen = probability[np.arange(len(labels)), np.asarray(labels) - 1]
    return Errors(
        n=len(labels),
        accuracy=float(np.mean(probability.argmax(axis=1) + 1 == labels)),
        confidence=float(probability.max(axis=1).mean()),
        nll=float(-np.mean(np.log(np.maximum(chosen, np.finfo(np.float64).tiny)))),
        ece=measured[0],
        mce=measured[1],
        ace=measured[2],
        ece_floor=float(means[0]),
        mce_floor=float(means[1]),
        ace_floor=float(means[2]),
        chance=float((1 + np.sum(floor[:, 0] >= measured[0])) / (1 + draws)),
    )


def drawn(probability: Array, draws: int, *, rng: np.random.Generator) -> Labels:
    """Labels (draws, n) in 1..K of points whose true probabilities are ``probability`` (n, K)."""
    cumulative = probability.cumsum(axis=1)
    level = rng.random((draws, len(probability), 1))
    place = (level > cumulative).sum(axis=2)
    # The last cumulative probability may be 1 - 1e-16.
    return np.asarray(1 + np.minimum(place, probability.shape[1] - 1))


def _all(probability: Array, labels: Labels, bins: int) -> tuple[float, float, float]:
    return (
        ece(probability, labels, bins),
        mce(probability, labels, bins),
        ace(probability, labels, bins),
    )
