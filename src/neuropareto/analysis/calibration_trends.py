"""The terms of the paper's calibration bounds as measured trends.

Section "Theoretical Analysis of Temperature Scaling and MC-Dropout Calibration", Eqs. ece_decomp,
ece_bound, temp_rate: ECE <= C1 sqrt(log S_max / S_0) + C2 / sqrt(N_calib) + C3 eps_model. The
constants are unknown, so what can be tested is the shape: which term falls as its quantity grows,
and with what power. N_calib: held-out rows that fit the temperature. S_0, S_max: dropout passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import softmax

from neuropareto.analysis.calibration_errors import drawn
from neuropareto.analysis.runs import Run
from neuropareto.bench.layout import Table, items, number
from neuropareto.calibration import Calibration, Labels, Scaling, Temperature, ece
from neuropareto.classifier import (
    AdaptiveDropout,
    FittedRankClassifier,
    RankClassifier,
    bounded_k,
)
from neuropareto.randomness import stream
from neuropareto.space import Array

MANY = 512
"""Dropout passes that stand for infinitely many."""


@dataclass(frozen=True)
class Power:
    """y proportional to x^slope, fitted to logarithms, with the 95 % interval of the slope."""

    slope: float
    lower: float
    upper: float


def power(x: Array, y: Array) -> Power:
    """The power law through points (n,), n >= 3, by least squares on logarithms."""
    found = stats.linregress(np.log(x), np.log(y))
    reach = float(stats.t.ppf(0.975, len(x) - 2) * found.stderr)
    return Power(float(found.slope), float(found.slope - reach), float(found.slope + reach))


@dataclass(frozen=True)
class Trend:
    """One measured curve: ``y`` over ``x`` (both (n,)), and its power law where it has one."""

    name: str
    over: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    law: Power | None


def temperature_rate(
    sizes: Sequence[int] = (50, 100, 200, 400, 800, 1600, 3200),
    *,
    rng: np.random.Generator,
    true: float = 2.0,
    repeats: int = 60,
    k: int = 5,
) -> Trend:
    """Root mean squared error of a planted temperature, estimated from N_calib points.

    Paper: Eq. temp_rate, |T_hat - T*| <= C4 / sqrt(N_calib): the power should be -1/2. Labels are
    drawn from softmax(z / T*), so T* is the population minimiser. The prior is made flat: what is
    measured is the printed estimator.
    """
    flat = Temperature(prior_std=1e3)
    found = []
    for n in sizes:
        z = 3.0 * rng.normal(size=(repeats, n, k))
        labels = [drawn(softmax(one / true, axis=1), 1, rng=rng)[0] for one in z]
        estimates = [
            flat.temperature(one[:, None, :], y) for one, y in zip(z, labels, strict=True)
        ]
        found.append(float(np.sqrt(np.mean((np.array(estimates) - true) ** 2))))
    x = np.array(sizes, dtype=np.float64)
    return Trend(
        "error of the temperature", "N_calib", tuple(x), tuple(found), power(x, np.array(found))
    )


@dataclass(frozen=True)
class FirstRows:
    """A calibration that sees only ``n`` of the held-out rows, picked by ``seed``."""

    calibration: Calibration
    n: int
    seed: int

    def scaling(self, logits: Array, labels: Labels) -> Scaling:
        """The inner calibration's scaling for a random part of the rows."""
        rows = stream(self.seed, 0, "calibration-rows").permutation(len(labels))[: self.n]
        return self.calibration.scaling(logits[rows], labels[rows])


@dataclass(frozen=True, eq=False)
class Split:
    """One archive, half to fit and half to test, and a classifier with ``MANY`` masks."""

    model: FittedRankClassifier
    U: Array
    labels: Labels
    train_U: Array
    train_labels: Labels
    seed: int


def split(run: Run) -> Split:
    """Half of a run's archive, fitted with many dropout masks; the rest is the test set."""
    if run.archive is None:
        raise ValueError(f"The run on {run.task}, seed {run.seed}, does not hold its points.")
    archive = run.archive
    y = archive.labels(bounded_k(5, len(archive)))
    order = stream(run.seed, 0, "trend-split").permutation(len(archive))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    spec = RankClassifier(dropout=AdaptiveDropout(s_max=MANY))
    model = spec.fit(archive.U[train], y[train], warm=None, rng=stream(run.seed, 0, "trend-fit"))
    return Split(model, archive.U[test], y[test], archive.U[train], y[train], run.seed)


def sampling(
    splits: Sequence[Split], s0: Sequence[int], s_max: int, *, tau: float = 0.02, draws: int = 8
) -> tuple[Trend, Trend]:
    """How far S passes are from ``MANY``, and the ECE, over S_0 at a fixed S_max.

    The first is the mean over points of the largest |p_S - p_many| of any class, the quantity that
    the first term of Eq. ece_decomp bounds. Each is averaged over disjoint sets of masks.
    """
    apart, error = [], []
    for count in s0:
        dropout = AdaptiveDropout(s0=count, s_max=max(count, s_max), tau=tau)
        far, wrong = _deviation(splits, dropout, draws)
        apart.append(far)
        error.append(wrong)
    x = np.array(s0, dtype=np.float64)
    return (
        Trend(
            "distance from many passes", "S_0", tuple(x), tuple(apart), power(x, np.array(apart))
        ),
        Trend("ECE", "S_0", tuple(x), tuple(error), None),
    )


def maximum(
    splits: Sequence[Split], s_max: Sequence[int], s0: int, *, tau: float = 0.002, draws: int = 4
) -> tuple[Trend, Trend]:
    """As :func:`sampling`, over S_max at a fixed S_0, with a threshold low enough to matter."""
    apart, error = [], []
    for most in s_max:
        far, wrong = _deviation(splits, AdaptiveDropout(s0=s0, s_max=most, tau=tau), draws)
        apart.append(far)
        error.append(wrong)
    x = tuple(float(s) for s in s_max)
    return (
        Trend("distance from many passes", "S_max", x, tuple(apart), None),
        Trend("ECE", "S_max", x, tuple(error), None),
    )


def calibration_size(
    splits: Sequence[Split], sizes: Sequence[int], repeats: int = 2
) -> tuple[Trend, Trend]:
    """ECE, and how far ln T is from its value with all held-out rows, over N_calib."""
    error, apart = [], []
    whole = [_all_rows(part) for part in splits]
    for n in sizes:
        errors, distances = [], []
        for part, settled in zip(splits, whole, strict=True):
            for repeat in range(repeats):
                limited = FirstRows(Temperature(), n, repeat)
                model = RankClassifier(calibration=limited).fit(
                    part.train_U, np.asarray(part.train_labels, dtype=np.int64), warm=None,
                    rng=stream(part.seed, 0, "trend-calibration"),
                )  # fmt: skip
                errors.append(ece(model.predict(part.U).probability, part.labels))
                distances.append(abs(np.log(model.temperature / settled)))
        error.append(float(np.mean(errors)))
        apart.append(float(np.mean(distances)))
    x = tuple(float(n) for n in sizes)
    return Trend("ECE", "N_calib", x, tuple(error), None), Trend(
        "|ln T - ln T(all rows)|", "N_calib", x, tuple(apart), None
    )


def table(trends: Sequence[Trend]) -> Table:
    """All trends, one row a point."""
    rows = []
    for trend in trends:
        law = "" if trend.law is None else _said(trend.law)
        for i, (x, y) in enumerate(zip(trend.x, trend.y, strict=True)):
            rows.append(
                items(trend.name, trend.over, f"{x:g}", number(y, 3), law if not i else "")
            )
    return Table(
        "Terms of the calibration bound as trends",
        ("quantity", "over", "value", "measured", "power law (95 % interval)"),
        tuple(rows),
        ("The bound predicts powers of -0.5 in N_calib and in S_0; its constants are unknown.",),
    )


def _said(law: Power) -> str:
    return f"{law.slope:.2f} ({law.lower:.2f} to {law.upper:.2f})"


def _deviation(
    splits: Sequence[Split], dropout: AdaptiveDropout, draws: int
) -> tuple[float, float]:
    far, wrong = [], []
    for part in splits:
        every = AdaptiveDropout(s0=MANY, s_max=MANY)
        reference = _with(part.model, every, 0).predict(part.U).probability
        for draw in range(min(draws, MANY // dropout.s_max)):
            p = _with(part.model, dropout, draw * dropout.s_max).predict(part.U).probability
            far.append(float(np.abs(p - reference).max(axis=1).mean()))
            wrong.append(ece(p, part.labels))
    return float(np.mean(far)), float(np.mean(wrong))


def _with(
    model: FittedRankClassifier, dropout: AdaptiveDropout, first: int
) -> FittedRankClassifier:
    """The same network with other pass counts and some of its masks."""
    masks = model.masks[first : first + dropout.s_max]
    return replace(model, dropout=dropout, masks=masks, _cache={})


def _all_rows(part: Split) -> float:
    return RankClassifier().fit(
        part.train_U, np.asarray(part.train_labels, dtype=np.int64), warm=None,
        rng=stream(part.seed, 0, "trend-calibration"),
    ).temperature  # fmt: skip
