"""Pictures of calibration: reliability beside the floor, coverage of intervals, trends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuropareto.analysis.calibration_trends import Trend
from neuropareto.analysis.classifier_calibration import VARIANTS, ClassifierCalibration
from neuropareto.analysis.surrogate_calibration import LEVELS, SurrogateCalibration
from neuropareto.bench.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8
"""More tasks than this are shown as a distribution."""

_LOOKS = dict(
    zip(
        VARIANTS,
        (
            (style.GREY, "D:"), (style.GREEN, "^-."), (style.ORANGE, "s--"), (style.SKY, "o-"),
            (style.BLUE, "o-"),
        ),
        strict=True,
    )
)  # fmt: skip


def classifier_figure(found: ClassifierCalibration) -> Figure:
    """Confidence against accuracy over all runs; the ECE of each task beside its floor."""
    picture = style.new_figure(10.4, 4.8)
    left, right = style.panels(picture, 2, 2)
    left.plot([0, 1], [0, 1], color=style.BLACK, lw=0.9)
    for row in found.whole:
        color, line = _LOOKS[row.variant]
        diagram = found.diagrams[row.variant]
        big = diagram.count >= 20  # a bin of a few points says nothing
        left.plot(
            diagram.confidence[big], diagram.accuracy[big], line, color=color, ms=4.5,
            label=f"{row.variant}: ECE {row.errors.ece:.3f}",
        )  # fmt: skip
    style.clean(left, title="Reliability, all runs", x="confidence", y="accuracy, held out")
    left.legend(frameon=False, fontsize=7.5, loc="upper left")
    if len({row.task for row in found.tasks}) <= MOST:
        _bars(right, found)
    else:
        _spread(right, found)
    return picture


def _bars(ax: Axes, found: ClassifierCalibration) -> None:
    """The ECE of each task and variant beside its floor."""
    tasks = list(dict.fromkeys(row.task for row in found.tasks))
    for i, name in enumerate(VARIANTS):
        rows = [row for row in found.tasks if row.variant == name]
        x = np.arange(len(rows)) + 0.16 * (i - 2)
        ax.bar(x, [r.errors.ece for r in rows], 0.15, color=_LOOKS[name][0], label=name)
        for at, row in zip(x, rows, strict=True):
            ax.plot([at - 0.075, at + 0.075], [row.errors.ece_floor] * 2, color=style.BLACK)
    ax.plot([], [], color=style.BLACK, label="floor: perfect classifier")
    ax.set_xticks(range(len(tasks)), [task.replace(" ", "\n") for task in tasks], fontsize=7.5)
    style.clean(ax, title="ECE by problem, all seeds together", x="", y="ECE")
    ax.legend(frameon=False, fontsize=7.5, loc="upper right")
    ax.set_ylim(0, 1.55 * max(row.errors.ece for row in found.tasks))


def _spread(ax: Axes, found: ClassifierCalibration) -> None:
    """The distribution of the ECE over tasks, a box and all points for each variant."""
    rng = np.random.default_rng(0)
    for i, name in enumerate(VARIANTS):
        values = np.array([row.errors.ece for row in found.tasks if row.variant == name])
        color = _LOOKS[name][0]
        ax.plot(
            i + rng.uniform(-0.24, 0.24, len(values)), values, ".", color=color, ms=4, alpha=0.6
        )
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        ax.fill_between([i - 0.3, i + 0.3], low, high, color=color, alpha=0.25, lw=0)
        ax.plot([i - 0.3, i + 0.3], [middle] * 2, color=color, lw=2.2)
    floor = np.median([row.errors.ece_floor for row in found.tasks])
    ax.axhline(float(floor), color=style.BLACK, lw=1.0, ls="--", label="floor: perfect classifier")
    names = [name.replace(" and ", "\nand ") for name in VARIANTS]
    ax.set_xticks(range(len(VARIANTS)), names, fontsize=8)
    count = len({row.task for row in found.tasks})
    style.clean(ax, title=f"ECE of each of {count} problems: quartiles", x="", y="ECE")
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    ax.set_ylim(bottom=0)


def surrogate_figure(found: SurrogateCalibration, algorithm: str) -> Figure:
    """Observed against nominal coverage; coverage of 90 % intervals round by round."""
    picture = style.new_figure(10.4, 4.4)
    left, right = style.panels(picture, 2, 2)
    left.plot([0, 1], [0, 1], color=style.BLACK, lw=0.9)
    colors = (style.BLUE, style.GREEN, style.ORANGE, style.VERMILION, style.PURPLE, style.SKY)
    keys = [key for key in found.raw if key[1] == algorithm and key[0] != "all"]
    if len(keys) > MOST:  # lines of single tasks would hide each other
        _bands(left, right, found, keys)
        keys = [("all", algorithm)]
    for key, color in zip(keys, colors, strict=False):
        left.plot(
            LEVELS, found.raw[key].coverage, "o-", ms=3.5, color=color,
            label=f"{key[0]}: {100 * found.raw[key].within_90:.0f} % in 90 %",
        )  # fmt: skip
        left.plot(LEVELS, found.corrected[key].coverage, ":", lw=1.2, color=color)
        right.plot(
            1 + np.arange(len(found.rounds[key])), found.rounds[key], "-", color=color, lw=1
        )
    left.plot([], [], ":", color=style.GREY, label="dotted: recalibrated")
    style.clean(left, title="Central intervals", x="nominal coverage", y="observed coverage")
    left.legend(frameon=False, fontsize=7.5, loc="lower right")
    pooled = found.rounds.get(("all", algorithm))
    if pooled is not None:
        x = 1 + np.arange(len(pooled))
        right.plot(x, pooled, color=style.BLACK, lw=2.4, label="all")
        right.legend(frameon=False, fontsize=8, loc="lower right")
    right.axhspan(0.85, 0.95, color=style.GREY, alpha=0.25, lw=0)
    style.clean(right, title="In the 90 % interval, round by round", x="round", y="share")
    right.set_ylim(0, 1.03)
    right.xaxis.get_major_locator().set_params(integer=True)
    return picture


def _bands(
    left: Axes, right: Axes, found: SurrogateCalibration, keys: Sequence[tuple[str, str]]
) -> None:
    """Where the middle half and the middle nine tenths of the tasks lie."""
    rounds = max(len(found.rounds[key]) for key in keys)
    by_round = np.full((len(keys), rounds), np.nan)
    for row, key in zip(by_round, keys, strict=True):
        row[: len(found.rounds[key])] = found.rounds[key]
    by_level = np.array([found.raw[key].coverage for key in keys])
    for ax, x, values in ((left, LEVELS, by_level), (right, 1 + np.arange(rounds), by_round)):
        for outer, alpha in ((0.05, 0.12), (0.25, 0.22)):
            low, high = np.nanquantile(values, (outer, 1 - outer), axis=0)
            ax.fill_between(x, low, high, color=style.BLUE, alpha=alpha, lw=0)
    left.fill_between(
        [], [], color=style.BLUE, alpha=0.3, label=f"half and 90 % of {len(keys)} problems"
    )


def trends_figure(trends: Sequence[Trend]) -> Figure:
    """The error of the temperature and the distance from many passes with their power laws."""
    fitted = [trend for trend in trends if trend.law is not None]
    others = [trend for trend in trends if trend.name == "ECE"]
    picture = style.new_figure(10.4, 3.6)
    axes = style.panels(picture, len(fitted) + 1, len(fitted) + 1)
    for ax, trend in zip(axes, fitted, strict=False):
        assert trend.law is not None
        x, y = np.array(trend.x), np.array(trend.y)
        label = f"measured: power {trend.law.slope:.2f}"
        ax.plot(x, y, "o", color=style.BLUE, label=label)
        half = np.exp(np.mean(np.log(y) + 0.5 * np.log(x)))
        ax.plot(x, half / np.sqrt(x), color=style.BLACK, lw=0.9, label="power -1/2")
        style.clean(ax, title=trend.name.capitalize(), x=trend.over, y="")
        style.logarithmic(ax, "xy")
        ax.legend(frameon=False, fontsize=8)
    for trend, color, line in zip(
        others, (style.BLUE, style.ORANGE, style.GREEN), ("o-", "s--", "^:"), strict=False
    ):
        axes[-1].plot(trend.x, trend.y, line, color=color, ms=4, label=f"over {trend.over}")
    style.clean(axes[-1], title="ECE", x="S_0, S_max or N_calib", y="")
    style.logarithmic(axes[-1], "x")
    axes[-1].set_ylim(bottom=0)
    axes[-1].legend(frameon=False, fontsize=8)
    return picture
