"""Are the surrogate's intervals as wide as they should be? Measured on what was evaluated next.

Section "Calibration" of the appendix asks it of the classifier; the surrogate's is ours. Every round
notes what it predicts for the points that it sends to evaluation, so a run is a test of forecasts
made before the outcome was known. Notation: n forecasts, each a normal with ``mean`` and ``std``
(epistemic and aleatoric together), z = (observed - mean) / std. CRPS and NLPD are closed forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from neuropareto.analysis.runs import Run
from neuropareto.bench.layout import Table, items, number
from neuropareto.space import Array
from neuropareto.stages import came_true
from neuropareto.surrogate.structured.recalibration import conformal_factor

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])

_COLUMNS = (
    "task", "algorithm", "intervals", "n", "in 50%", "in 90%", "in 95%", "sharpness", "RMSE", "CRPS",
    "NLPD",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Forecasts:
    """n normal forecasts and outcomes, each field (n,); ``batch`` counts the rounds."""

    mean: Array
    std: Array
    observed: Array
    batch: Array

    @property
    def z(self) -> Array:
        """Standardised errors, (n,)."""
        return np.asarray((self.observed - self.mean) / self.std)


@dataclass(frozen=True)
class Scores:
    """How good n forecasts are; all but ``coverage`` in units of the outcomes' own spread.

    ``coverage`` (l,) is the share of outcomes inside the central intervals of ``LEVELS``,
    ``within_90`` its value at 90 %. ``sharpness`` is the mean standard deviation: among calibrated
    forecasts the sharper is better. NLPD = 0.5 log(2 pi s^2) + z^2 / 2; CRPS = s (z (2 Phi(z) - 1)
    + 2 phi(z) - 1 / sqrt(pi)). ``rmse`` is the root mean squared error of the means.
    """

    n: int
    coverage: tuple[float, ...]
    within_90: float
    sharpness: float
    nlpd: float
    crps: float
    rmse: float


def crps(mean: Array, std: Array, observed: Array) -> Array:
    """Continuous ranked probability score of normal forecasts, (n,): smaller is better."""
    z = (observed - mean) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.asarray(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))


def nlpd(mean: Array, std: Array, observed: Array) -> Array:
    """Negative log predictive density of normal forecasts, (n,)."""
    z = (observed - mean) / std
    return np.asarray(0.5 * np.log(2 * np.pi * std**2) + 0.5 * z**2)


def covered(z: Array, levels: Array = LEVELS) -> Array:
    """Share of |z| inside the central normal interval of each level, (l,)."""
    return np.asarray((np.abs(z)[:, None] <= ndtri(0.5 + 0.5 * levels)).mean(axis=0))


def scores(forecasts: Forecasts) -> Scores:
    """The scores; raises ValueError without forecasts or with a std that is not positive."""
    if not len(forecasts.mean):
        raise ValueError("Scores need at least one forecast, got none.")
    if not (forecasts.std > 0).all():
        raise ValueError("Forecasts need standard deviations above 0.")
    mean, std, observed = forecasts.mean, forecasts.std, forecasts.observed
    return Scores(
        n=len(mean),
        coverage=tuple(covered(forecasts.z).tolist()),
        within_90=float(covered(forecasts.z, np.array([0.9]))[0]),
        sharpness=float(std.mean()),
        nlpd=float(nlpd(mean, std, observed).mean()),
        crps=float(crps(mean, std, observed).mean()),
        rmse=float(np.sqrt(np.mean((observed - mean) ** 2))),
    )


def recalibrated(forecasts: Forecasts, *, level: float = 0.9, least: int = 20) -> Forecasts:
    """Forecasts whose width in each round is corrected by the residuals of all earlier rounds.

    Nothing later than the forecast is used. Rounds with fewer than ``least`` earlier residuals
    stay as they are.
    """
    std = forecasts.std.copy()
    for batch in np.unique(forecasts.batch):
        earlier = forecasts.z[forecasts.batch < batch]
        if len(earlier) >= least:
            # A factor of 0 (all earlier outcomes met exactly) would leave no density at all.
            std[forecasts.batch == batch] *= max(conformal_factor(earlier, level), 1e-3)
    return replace(forecasts, std=std)


def forecasts_of(run: Run) -> tuple[Forecasts, ...]:
    """What the run's rounds predicted for the points they chose, one Forecasts an objective.

    In units of each objective's standard deviation over the run, so that objectives and problems
    can be averaged. Rounds that replaced repeated points are left out: their forecasts belong to
    other points. Empty for an algorithm that notes no predictions.
    """
    parts: list[tuple[Array, Array, Array, Array]] = []
    for t, note in enumerate(run.notes):
        found = came_true(note, run.F)
        if found is not None:
            mean, variance, F = found
            parts.append((mean, np.sqrt(variance), F, np.full(len(F), t)))
    if not parts:
        return ()
    mean, std, F, batch = (np.concatenate(column) for column in zip(*parts, strict=True))
    unit = np.std(run.F, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    # An interpolating model may be certain to the last digit.
    least = 1e-12
    return tuple(
        Forecasts(
            mean[:, j] / unit[j], np.maximum(std[:, j] / unit[j], least), F[:, j] / unit[j], batch
        )
        for j in range(F.shape[1])
    )


def joined(forecasts: Sequence[Forecasts]) -> Forecasts:
    """Several forecasts as one, for pooled scores."""
    return Forecasts(
        *(
            np.concatenate([getattr(f, name) for f in forecasts])
            for name in ("mean", "std", "observed", "batch")
        )
    )


@dataclass(frozen=True, eq=False)
class SurrogateCalibration:
    """Scores by (task, algorithm), as predicted and recalibrated, and for each round."""

    raw: Mapping[tuple[str, str], Scores]
    corrected: Mapping[tuple[str, str], Scores]
    rounds: Mapping[tuple[str, str], tuple[float, ...]]


def measured(runs: Sequence[Run]) -> SurrogateCalibration:
    """The calibration of all runs that noted predictions; ValueError if none did."""
    groups: dict[tuple[str, str], list[tuple[Forecasts, ...]]] = {}
    for run in runs:
        found = forecasts_of(run)
        if found:
            groups.setdefault((run.task, run.algorithm), []).append(found)
    if not groups:
        raise ValueError("No run noted predictions; choose runs of neuropareto.")
    if len(groups) > 1:
        for name in dict.fromkeys(algorithm for _, algorithm in groups):
            groups["all", name] = [
                f for key, fs in list(groups.items()) if key[1] == name for f in fs
            ]
    pooled = {key: [f for fs in group for f in fs] for key, group in groups.items()}
    return SurrogateCalibration(
        raw={key: scores(joined(fs)) for key, fs in pooled.items()},
        corrected={
            key: scores(joined([recalibrated(f) for f in fs])) for key, fs in pooled.items()
        },
        rounds={key: _by_round(joined(fs)) for key, fs in pooled.items()},
    )


def table(found: SurrogateCalibration) -> Table:
    """Coverage and scores by task, as predicted and after recalibration on earlier rounds."""
    rows = []
    for key, raw in found.raw.items():
        for how, s in (("as predicted", raw), ("recalibrated", found.corrected[key])):
            at = dict(zip(LEVELS.tolist(), s.coverage, strict=True))
            rows.append(
                items(
                    *key, how, s.n, f"{at[0.5]:.2f}", f"{s.within_90:.3f}", f"{at[0.95]:.2f}",
                    *(number(v, 3) for v in (s.sharpness, s.rmse, s.crps, s.nlpd)),
                )
            )  # fmt: skip
    return Table(
        "Calibration of the surrogate on the points evaluated next",
        _COLUMNS,
        tuple(rows),
        (
            "Forecasts noted before the evaluation, all objectives together, in units of each "
            "objective's standard deviation over its run. Recalibrated: widths multiplied by the "
            "conformal factor of all earlier rounds of the same run and objective.",
        ),
    )


def _by_round(forecasts: Forecasts) -> tuple[float, ...]:
    inside = np.abs(forecasts.z) <= ndtri(0.95)
    return tuple(float(inside[forecasts.batch == t].mean()) for t in np.unique(forecasts.batch))
