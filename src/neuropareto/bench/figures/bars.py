"""Figures with one mark an algorithm or setting: ablation, sensitivities, timing, mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuropareto.analysis.timing import stage_curves, stage_seconds
from neuropareto.bench import printed
from neuropareto.bench.figures.curves import noted_records, only_task
from neuropareto.bench.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    NotYet,
    clean,
    logarithmic,
    new_figure,
    panels,
)
from neuropareto.bench.material import Material, array, count
from neuropareto.bench.measures import IGD, MEASURES
from neuropareto.bench.statistics import Friedman, Spread, friedman
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGES = {
    "classifier": PURPLE, "surrogate": BLUE, "acquisition": GREEN, "candidates": ORANGE,
    "screening": YELLOW, "posterior": SKY, "selection": VERMILION, "exploration": GREY,
}  # fmt: skip


def ablation(material: Material) -> Figure:
    """Median IGD of the pipeline with parts left out, beside the printed values."""
    grid = material.grid("ablation")
    material.expect(grid.cells)
    rows = printed.rows_of("ablation")[::-1]
    task = only_task(grid)
    found = {r["algorithm"]: array(material.values(task, r["algorithm"], IGD)) for r in rows}
    if not any(len(v) for v in found.values()):
        raise NotYet("No ablation has been run; run `neuropareto bench run ablation`.")
    figure = new_figure(8.2, 4.2)
    ax = figure.add_subplot()
    for y, row in enumerate(rows):
        spread = Spread.of(found[row["algorithm"]])
        whole = row["algorithm"] == "neuropareto-paper"
        color = BLUE if whole else SKY
        if spread.n:
            ax.plot([spread.lower, spread.upper], [y, y], color=color, lw=5, alpha=0.4)
            ax.plot(spread.median, y, "o", ms=9, color=color)
            ax.annotate(
                f"{spread.median:.3g}", (spread.median, y), (0, 7), textcoords="offset points",
                ha="center", fontsize=7.5,
            )  # fmt: skip
        if row["printed"]:
            ax.plot(float(row["printed"]), y, "D", ms=6, mfc="white", mec=VERMILION, mew=1.4)
    ax.plot([], [], "o", ms=8, color=SKY, label="ours: median, quartiles")
    ax.plot([], [], "D", ms=6, mfc="white", mec=VERMILION, mew=1.4, label="printed")
    ax.set_ylim(-0.6, len(rows) - 0.4)
    names = [r["name"] + ("" if len(found[r["algorithm"]]) else " (not run)") for r in rows]
    ax.set_yticks(range(len(rows)), names, fontsize=8)
    logarithmic(ax, "x")
    clean(ax, title=f"Parts left out, {task.name.upper()} {task.d}D", x="IGD", y="")
    figure.legend(frameon=False, fontsize=8, ncols=2, loc="outside upper right")
    return figure


def sensitivity(material: Material, name: str, title: str, x: str) -> Figure:
    """Final hypervolume against one setting, with standard errors; IGD where all of it is 0."""
    grid = material.grid(name)
    material.expect(grid.cells)
    measure = MEASURES[printed.tables()[name]["measure"]]
    task = only_task(grid)
    rows = printed.rows_of(name)
    spreads = [Spread.of(array(material.values(task, row["algorithm"], measure))) for row in rows]
    if all(spread.mean == 0 for spread in spreads if spread.n):
        measure = IGD  # no run has reached the reference point: hypervolume tells nothing
        spreads = [Spread.of(array(material.values(task, r["algorithm"], IGD))) for r in rows]
    if not any(spread.n for spread in spreads):
        raise NotYet(f"None of its settings has been run; run `neuropareto bench run {name}`.")
    figure = new_figure(6.2, 4.0)
    ax = figure.add_subplot()
    places = np.arange(len(rows))
    have = np.array([spread.n > 0 for spread in spreads])
    medians = np.array([spread.median for spread in spreads])
    errors = np.array(
        [0.0 if spread.error != spread.error else spread.error for spread in spreads]
    )
    ax.errorbar(
        places[have], medians[have], yerr=errors[have], fmt="o-", color=BLUE, ms=7, lw=1.8, capsize=4,
        label="ours: median and standard error",
    )  # fmt: skip
    known = [(i, float(r["printed"])) for i, r in enumerate(rows) if r.get("printed")]
    if known:
        ax.plot(
            *zip(*known, strict=True), "D", mfc="white", mec=VERMILION, mew=1.4, label="printed"
        )
    ax.set_xticks(places, [row["name"] for row in rows])
    seeds = sorted({spread.n for spread in spreads if spread.n})
    runs = " or ".join(map(str, seeds))
    clean(
        ax, title=f"{title}, {task.name.upper()} {task.d}D ({runs} runs each)", x=x, y=measure.name
    )
    ax.legend(frameon=False, fontsize=8)
    return figure


def inducing(material: Material) -> Figure:
    """Hypervolume against the number of inducing points."""
    return sensitivity(material, "inducing-sensitivity", "Inducing points", "inducing points")


def rank_classes(material: Material) -> Figure:
    """Hypervolume against the number of rank classes."""
    return sensitivity(material, "k-sensitivity", "Rank classes", "rank classes K")


def timing(material: Material) -> Figure:
    """Seconds of each stage in each round, and the distribution of a round's seconds."""
    records = noted_records(material, "stage_seconds")
    figure = new_figure(9.8, 4.0)
    left, right = panels(figure, 2, 2)
    x = np.array([note["evaluations"] for note in records[0].notes], dtype=np.float64)
    curves = stage_curves([record.notes for record in records], STAGES)
    n = curves.shape[1]
    bottom: Array = np.zeros(n)
    step = float(np.min(np.diff(x[:n]))) if n > 1 else 10.0
    for (stage, color), seconds in zip(STAGES.items(), curves, strict=True):
        left.bar(x[:n], seconds, width=0.85 * step, bottom=bottom, color=color, label=stage)
        bottom = bottom + seconds
    task = records[0].cell.task
    title = f"Seconds a round, {task.name} {task.d}D ({count(len(records), 'run')})"
    clean(left, title=title, x="evaluations", y="seconds")
    figure.legend(frameon=False, fontsize=8, ncols=7, loc="outside upper center")
    _boxes(right, records)
    return figure


def _boxes(ax: Any, records: Any) -> None:
    names = [s for s in STAGES if any(s in r.notes[0]["stage_seconds"] for r in records)]
    values = [stage_seconds((note for r in records for note in r.notes), s) for s in names]
    total = [float(note["seconds"]) for r in records for note in r.notes]
    drawn = ax.boxplot([*values, total], orientation="horizontal", widths=0.6, patch_artist=True)
    for box, color in zip(drawn["boxes"], [*(STAGES[s] for s in names), GREY], strict=True):
        box.set(facecolor=color, alpha=0.75)
    for line in drawn["medians"]:
        line.set(color=BLACK)
    ax.set_yticks(range(1, len(names) + 2), [*names, "whole round"])
    known = float(printed.printed_text("seconds per iteration")["printed"])
    ax.axvline(known, color=VERMILION, ls="--", lw=1.2)
    ax.text(
        known, 0.02, f" printed:\n {known} s", color=VERMILION, fontsize=7.5, va="bottom",
        transform=ax.get_xaxis_transform(),
    )  # fmt: skip
    logarithmic(ax, "x")
    clean(ax, title="All rounds", x="seconds", y="")


def critical_difference(material: Material) -> Figure:
    """Mean ranks over all tasks that every algorithm has run; bars join what does not differ."""
    tasks = [t for t in material.records.tasks if material.scale.wants(t)]
    names = list(material.whole_algorithms(tasks))
    run = {a: [t for t in tasks if material.records.of(t, a)] for a in names}
    # An algorithm that has run only a few of the tasks would leave only those few to compare on.
    most = max(map(len, run.values()), default=0)
    names = [a for a in names if 2 * len(run[a]) >= most]
    common = [t for t in tasks if all(t in run[a] for a in names)]
    medians = [
        [float(np.median(array(material.values(t, a, IGD)))) for a in names]
        for t in common
        if all(material.values(t, a, IGD) for a in names)
    ]
    if len(names) < 2 or len(medians) < 2:
        raise NotYet("Mean ranks need at least two algorithms that have run two tasks in common.")
    return rank_figure(friedman(np.array(medians), tuple(names)))


def rank_figure(test: Friedman) -> Figure:
    """Demsar's diagram: ranks on a line, best on the left."""
    k = len(test.names)
    order = np.argsort(test.ranks, kind="stable")
    half = -(-k // 2)
    figure = new_figure(7.6, 1.5 + 0.32 * half)
    ax = figure.add_subplot()
    arm, room = 0.03 * (k + 1), 0.3 * (k - 1) + 0.25
    ax.set_xlim(1 - room, k + room)
    groups = test.groups()
    depth = 0.45 + 0.22 * len(groups)
    ax.set_ylim(-(depth + 0.5 * half + 0.2), 1.1)
    ax.axis("off")
    ax.plot([1, k], [0, 0], color=BLACK, lw=1.2)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.12], color=BLACK, lw=1.2)
        ax.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=8)
    ax.plot([1, min(k, 1 + test.critical)], [0.8, 0.8], color=BLACK, lw=2)
    ax.text(1, 0.88, f"critical difference {test.critical:.2f}", fontsize=8, va="bottom")
    for place, i in enumerate(order):
        rank, name = float(test.ranks[i]), printed.display(test.names[i])
        on_left = place < half
        level = -(depth + 0.5 * (place if on_left else k - 1 - place))
        end = 1 - arm if on_left else k + arm
        color = BLUE if test.names[i] == printed.OURS else BLACK
        ax.plot([rank, rank, end], [0, level, level], color=color, lw=1.2)
        ax.text(
            end, level, f"{name} {rank:.2f} " if on_left else f" {rank:.2f} {name}",
            ha="right" if on_left else "left", va="center", fontsize=9, color=color,
            fontweight="bold" if color == BLUE else "normal",
        )  # fmt: skip
    sorted_ranks = test.ranks[order]
    for row, (first, last) in enumerate(groups):
        y, ends = -(0.22 + 0.22 * row), sorted_ranks[[first, last]] + [-0.01 * k, 0.01 * k]
        ax.plot(ends, [y, y], color=VERMILION, lw=4, solid_capstyle="butt")
    ax.set_title(
        f"Mean ranks of median IGD over {test.tasks} tasks (Friedman p = {test.p:.2g})",
        loc="left", fontsize=11, fontweight="bold",
    )  # fmt: skip
    return figure
