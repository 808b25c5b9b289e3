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
    from matplotlib.figure import Figure

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
    tasks = list(dict.fromkeys(row.task for row in found.tasks))
    for i, name in enumerate(VARIANTS):
        rows = [row for row in found.tasks if row.variant == name]
        x = np.arange(len(rows)) + 0.16 * (i - 2)
        right.bar(x, [r.errors.ece for r in rows], 0.15, color=_LOOKS[name][0], label=name)
        for at, row in zip(x, rows, strict=True):
            right.plot([at - 0.075, at + 0.075], [row.errors.ece_floor] * 2, color=style.BLACK)
    right.plot([], [], color=style.BLACK, label="floor: perfect classifier")
    right.set_xticks(range(len(tasks)), [task.replace(" ", "\n") for task in tasks], fontsize=7.5)
    style.clean(right, title="ECE by problem, all seeds together", x="", y="ECE")
    right.legend(frameon=False, fontsize=7.5, loc="upper right")
    right.set_ylim(0, 1.55 * max(row.errors.ece for row in found.tasks))
    return picture


def surrogate_figure(found: SurrogateCalibration, algorithm: str) -> Figure:
    """Observed against nominal coverage; coverage of 90 % intervals round by round."""
    picture = style.new_figure(10.4, 4.4)
    left, right = style.panels(picture, 2, 2)
    left.plot([0, 1], [0, 1], color=style.BLACK, lw=0.9)
    colors = (style.BLUE, style.GREEN, style.ORANGE, style.VERMILION, style.PURPLE, style.SKY)
    keys = [key for key in found.raw if key[1] == algorithm and key[0] != "all"]
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
