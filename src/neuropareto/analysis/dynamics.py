"""How uncertainty moves during a run: epistemic and aleatoric averages over the rounds.

Figure uncertainty: "Epistemic uncertainty decreases as the model learns, while aleatoric uncertainty
reflects intrinsic problem variability". From the notes of any run: variances that the surrogate
predicted for the q points it chose, as shares of the variance of the start design's objectives, and the
classifier's information gain. Notation: s runs, r rounds (of the shortest run).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from neuropareto.analysis.runs import Run, noted, runs_of
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES = {
    "epistemic": "predicted_epistemic",
    "aleatoric": "predicted_aleatoric",
    "information": "information_gain",
}


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Averages over chosen points and objectives: ``evaluations`` (r,), the others (s, r).

    ``epistemic`` and ``aleatoric`` are in units of the start design's variance, ``information`` is
    in nats. A round without predictions is NaN.
    """

    evaluations: Array
    epistemic: Array
    aleatoric: Array
    information: Array


@dataclass(frozen=True)
class Trend:
    """A quantity's median over runs in the first and last third of the rounds, and its direction.

    ``correlation`` is Spearman's between round and median: -1 falls throughout, +1 rises.
    """

    first: float
    last: float
    correlation: float


def dynamics(runs: Sequence[Run]) -> Dynamics:
    """The dynamics of runs that noted predictions; ValueError if one noted none."""
    curves = {name: _equal([_curve(run, key) for run in runs]) for name, key in QUANTITIES.items()}
    x = np.array([note["evaluations"] for note in runs[0].notes], dtype=np.float64)
    r = min(len(x), *(c.shape[1] for c in curves.values()))
    return Dynamics(x[:r], *(curves[name][:, :r] for name in QUANTITIES))


def trend(curves: Array) -> Trend:
    """The trend of curves (s, r); NaN where there are fewer than three rounds."""
    middle = _median(curves)
    middle = middle[np.isfinite(middle)]
    if len(middle) < 3:
        nan = float("nan")
        return Trend(nan, nan, nan)
    third = len(middle) // 3
    flat = np.ptp(middle) == 0
    r = 0.0 if flat else float(spearmanr(np.arange(len(middle)), middle).statistic)
    return Trend(float(np.median(middle[:third])), float(np.median(middle[-third:])), r)


def table(runs: Sequence[Run]) -> Table:
    """First and last third of the rounds, and the direction, one row a quantity."""
    rows = []
    for (task, algorithm), group in noted(list(runs), "predicted_epistemic").items():
        found = dynamics(group)
        for name in QUANTITIES:
            seen = trend(getattr(found, name))
            factor = seen.last / seen.first if seen.first > 0 else float("nan")
            rows.append(
                items(
                    task, algorithm, name, len(group), number(seen.first, 3), number(seen.last, 3),
                    number(factor, 3), number(seen.correlation, 2),
                )
            )  # fmt: skip
    return Table(
        "Uncertainty over the rounds",
        (
            "task", "algorithm", "quantity", "runs", "first third", "last third", "last / first",
            "rank correlation\nwith the round",
        ),
        tuple(rows),
        (
            "Medians over runs of averages over the chosen points. Epistemic and aleatoric variance "
            "in units of the start design's variance, information in nats.",
        ),
    )  # fmt: skip


def figure(runs: Sequence[Run]) -> Figure:
    """Both variances over evaluations, and the information gain beside them."""
    from neuropareto.bench.figures.curves import uncertainty_figure

    (task, _), group = next(iter(noted(list(runs), "predicted_epistemic").items()))
    return uncertainty_figure(dynamics(group), task)


def command(argv: Sequence[str]) -> int:
    """neuropareto analyse dynamics: how uncertainty moved during runs."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse dynamics", description=__doc__)
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="record, folder of records, or study"
    )
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw the first group")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    runs = [run for path in options.runs for run in runs_of(path)]
    print(render(table(runs), options.format), end="")
    if options.figure is not None:
        figure(runs).savefig(options.figure, dpi=100)
        print(options.figure)
    return 0


def _curve(run: Run, key: str) -> list[float]:
    start = run.F[: run.n_initial]
    scaled = key != QUANTITIES["information"]
    unit = np.maximum(start.var(axis=0), 1e-300) if scaled and len(start) else np.ones(1)
    return [
        float(np.mean(np.asarray(note[key]) / unit)) if key in note else float("nan")
        for note in run.notes
    ]


def _equal(rows: Sequence[Sequence[float]]) -> Array:
    n = min(map(len, rows))
    return np.array([row[:n] for row in rows], dtype=np.float64)


def _median(curves: Array) -> Array:
    have = np.isfinite(curves).any(axis=0)
    return np.asarray(np.nanmedian(curves[:, have], axis=0))
