"""Curves over evaluations: convergence, static against learned, scaling, uncertainty, NLPD.

Lines are medians over seeds, bands reach from quartile to quartile. A dotted line marks the end of
the start design, which all algorithms share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    NotYet,
    band,
    clean,
    logarithmic,
    look,
    new_figure,
    panels,
    shared_legend,
)
from neuropareto.bench.grid import PLAIN, Grid, Task
from neuropareto.bench.material import Material, count
from neuropareto.bench.measures import HV, HV_RATIO, IGD, Measure, curve
from neuropareto.bench.record import Record
from neuropareto.space import Array
from neuropareto.stages import came_true

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuropareto.analysis.dynamics import Dynamics


_NOTHING = Task("", 0, 0, PLAIN, 0, 0, 0)


def curves_of(material: Material, task: Task, algorithm: str, measure: Measure) -> Array:
    """The curves of all runs of an algorithm on a task, (runs, budget)."""
    runs = material.runs(task, algorithm).values()
    rows = [curve(entry.read(), measure) for entry in runs]
    return np.array(rows).reshape(len(rows), task.budget)


def two_objective_tasks(material: Material) -> list[Task]:
    """The paper's two-objective tasks that were run, with 100 variables unless the scale says more.

    Raises NotYet if there is none.
    """
    d = material.scale.dimensions or (100,)
    cells = [
        cell
        for name in ("dtlz-bi", "zdt")
        for cell in material.grid(name).cells
        if cell.task.d in d
    ]
    material.expect(cells)
    tasks = [t for t in dict.fromkeys(c.task for c in cells) if material.whole_algorithms([t])]
    if not tasks:
        raise NotYet(
            f"No run of a two-objective problem with {' or '.join(map(str, d))} variables is there; "
            "run `neuropareto bench run dtlz-bi`, or choose others with --dimensions."
        )
    return tasks


def convergence(material: Material, measure: Measure) -> Figure:
    """One panel a problem, 100 variables and two objectives unless the scale says otherwise."""
    tasks = two_objective_tasks(material)
    columns = min(4, len(tasks))
    rows = -(-len(tasks) // columns)
    figure = new_figure(3.0 * columns + 0.6, 2.45 * rows + 0.9)
    axes = panels(figure, len(tasks), columns)
    for ax, task in zip(axes, tasks, strict=True):
        _panel(ax, material, task, measure)
    shared_legend(figure, axes)
    return figure


def _panel(ax: Any, material: Material, task: Task, measure: Measure) -> None:
    for place, algorithm in enumerate(material.whole_algorithms([task])):
        curves = curves_of(material, task, algorithm, measure)
        band(ax, np.arange(1, curves.shape[1] + 1), curves, look(algorithm, place))
    if measure is IGD:
        known = printed.printed_igd(task.problem, task.d, task.m, printed.OURS)
        if known is not None and task.variant == PLAIN:
            ax.axhline(
                float(known), color=BLACK, lw=0.9, ls=(0, (1, 3)), label="NeuroPareto, printed"
            )
        logarithmic(ax, "y")
    else:
        ax.set_ylim(-0.02, 1.02)
        if not any(np.nanmax(line.get_ydata(), initial=0.0) > 0 for line in ax.lines):
            ax.text(
                0.5, 0.5, "no set reaches\nthe reference point", transform=ax.transAxes,
                ha="center", va="center", fontsize=8, color="#707070",
            )  # fmt: skip
    ax.axvline(task.n_initial, color=GREY, ls=":", lw=1.0)
    clean(ax, title=f"{task.name.upper()}, {task.d}D", x="evaluations", y=measure.name)


def static_vs_learned(material: Material) -> Figure:
    """Hypervolume of the static rule and of the learned network."""
    grid = material.grid("static-vs-learned")
    material.expect(grid.cells)
    task = _first(material, grid.tasks, grid.algorithms)
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    final = {row["algorithm"]: row for row in printed.rows_of("static-vs-learned")}
    names = {"static": "static rule", "neuropareto-paper": "learned network"}
    for algorithm, color, line in (("static", ORANGE, "--"), ("neuropareto-paper", BLUE, "-")):
        curves = curves_of(material, task, algorithm, HV)
        if len(curves):
            how = {
                "color": color,
                "ls": line,
                "lw": 2,
                "label": f"{names[algorithm]} ({count(len(curves), 'run')})",
            }
            band(ax, np.arange(1, curves.shape[1] + 1), curves, how)
        ax.plot(
            task.budget, float(final[algorithm]["printed"]), "D", ms=6, mfc="none", color=color,
            label=f"{names[algorithm]}, printed", clip_on=False,
        )  # fmt: skip
    ax.axvline(task.n_initial, color=GREY, ls=":", lw=1.0)
    clean(
        ax, title=f"Static and learned acquisition, {task.name} {task.d}D", x="evaluations", y="HV"
    )
    ax.legend(frameon=False, fontsize=8)
    return figure


def scaling(material: Material) -> Figure:
    """IGD against evaluations spent, one colour a dimension; the longest runs there are."""
    grid = material.grid("scaling")
    material.expect(grid.cells)
    longest: dict[int, Task] = {}
    for task in (*grid.tasks, *material.records.tasks):
        same = (task.problem, task.m, task.variant) == ("dtlz2", 2, PLAIN)
        there = material.scale.wants(task) and material.whole_algorithms([task])
        before = longest.get(task.d, _NOTHING)
        size, known = ((t.budget, t.n_initial) for t in (task, before))
        if same and there and size > known:
            longest[task.d] = task
    if not longest:
        raise NotYet("No run on bi-objective DTLZ2 is there; run `neuropareto bench run scaling`.")
    figure = new_figure(6.8, 4.4)
    ax = figure.add_subplot()
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.05, 0.85, len(longest)))
    for shade, d in zip(shades, sorted(longest), strict=True):
        task = longest[d]
        for algorithm in material.whole_algorithms([task]):
            curves = curves_of(material, task, algorithm, IGD)
            x = np.arange(1, curves.shape[1] + 1)
            kept = x >= task.n_initial
            how = {**look(algorithm), "color": shade, "label": f"{d}D {look(algorithm)['label']}"}
            band(ax, x[kept], curves[:, kept], how)
    logarithmic(ax, "xy")
    clean(ax, title="IGD on DTLZ2 against the budget", x="evaluations", y="IGD")
    ax.legend(frameon=False, fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def uncertainty(material: Material) -> Figure:
    """Epistemic and aleatoric variance of the chosen points, and the classifier's information gain."""
    from neuropareto.analysis.dynamics import dynamics
    from neuropareto.analysis.runs import Run

    records = noted_records(material, "predicted_epistemic")
    task = records[0].cell.task
    return uncertainty_figure(dynamics([Run.of(r) for r in records]), f"{task.name} {task.d}D")


def uncertainty_figure(found: Dynamics, subject: str) -> Figure:
    """The dynamics of some runs, drawn."""
    figure = new_figure(9.4, 3.9)
    left, right = panels(figure, 2, 2)
    for curves, color, line, name in (
        (found.epistemic, BLUE, "-", "epistemic"),
        (found.aleatoric, ORANGE, "--", "aleatoric"),
    ):
        how = {"color": color, "ls": line, "lw": 2, "label": name}
        band(left, found.evaluations, curves, how)
    left.set_yscale("log")
    left.legend(frameon=False)
    title = f"Chosen points, {subject}"
    clean(left, title=title, x="evaluations", y="variance / variance of the start design")
    how = {"color": SKY, "ls": "-", "lw": 2, "label": "information gain"}
    band(right, found.evaluations, found.information, how)
    clean(right, title="Information gain of the classifier", x="evaluations", y="nats")
    right.set_ylim(bottom=0)
    return figure


def nlpd(material: Material) -> Figure:
    """How well each round's surrogate predicted the points that were then evaluated."""
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    shown = 0
    for algorithm, color, line, name in (
        (printed.OURS, BLUE, "-", "NeuroPareto"),
        ("neuropareto-paper", SKY, "-", "literal pipeline, with screening"),
        ("no-complexity-reduction", ORANGE, "--", "full deep GP on every candidate"),
    ):
        try:
            records = noted_records(material, "predicted_mean", algorithm)
        except NotYet:
            continue
        x = np.array([note["evaluations"] for note in records[0].notes])
        curves = _equal_length([[_nlpd(r, i) for i in range(len(r.notes))] for r in records])
        how = {
            "color": color,
            "ls": line,
            "lw": 2,
            "label": f"{name} ({count(len(records), 'run')})",
        }
        band(ax, x[: curves.shape[1]], curves, how)
        shown += 1
    if not shown:
        raise NotYet(
            "No run with predictions in its notes is there; run `neuropareto bench run ablation`."
        )
    clean(
        ax, title="Predictions of fresh evaluations", x="evaluations",
        y="negative log predictive density\n(standardised objectives)",
    )  # fmt: skip
    ax.set_yscale("symlog", linthresh=10)  # a confident mistake costs thousands of nats
    ax.legend(frameon=False, fontsize=8)
    return figure


def noted_records(material: Material, key: str, algorithm: str | None = None) -> list[Record]:
    """Runs of one of ours on DTLZ2-100D (or as the scale says) whose notes have ``key``."""
    wanted = [algorithm] if algorithm else [printed.OURS, "neuropareto-paper"]
    for name in wanted:
        for task in subjects(material):
            runs = [entry.read() for entry in material.runs(task, name).values()]
            noted = [record for record in runs if record.notes and key in record.notes[0]]
            if noted:
                return noted
    raise NotYet(
        f"No run of {' or '.join(wanted)} on DTLZ2 with 100 variables is there; run `neuropareto "
        "bench run wall-clock`, or choose others with --problems and --dimensions."
    )


def subjects(material: Material) -> list[Task]:
    """Two-objective tasks to look into: DTLZ2 with 100 variables, or what the scale picks."""
    scale = material.scale
    problems, sizes = scale.problems or ("dtlz2",), scale.dimensions or (100,)
    variants = scale.variants or (PLAIN,)
    return [
        task
        for task in material.records.tasks
        if task.problem in problems
        and task.d in sizes
        and task.variant in variants
        and task.m == 2
    ]


def only_task(grid: Grid) -> Task:
    """The first task of a grid, if the scale has left any."""
    if not grid.tasks:
        raise NotYet(f"The scale leaves nothing of the grid {grid.name!r}; widen it.")
    return grid.tasks[0]


def _first(material: Material, tasks: Sequence[Task], algorithms: Sequence[str]) -> Task:
    for task in tasks:
        if any(material.runs(task, a) for a in algorithms):
            return task
    raise NotYet(f"None of {', '.join(algorithms)} has been run on the grid's tasks.")


def _equal_length(rows: Sequence[Sequence[float]]) -> Array:
    n = min(map(len, rows))
    return np.array([row[:n] for row in rows], dtype=np.float64)


def _nlpd(record: Record, i: int) -> float:
    """Mean -log N(F; mean, epistemic + aleatoric) of a round's points, objectives standardised."""
    F = record.minimised
    found = came_true(record.notes[i], F)
    if found is None or len(record.failed_X):
        return float("nan")  # a failed evaluation breaks the pairing of predictions and results
    mean, variance, outcome = found
    scale = np.maximum(F[: record.cell.task.n_initial].std(axis=0), 1e-300)
    z, v = (outcome - mean) / scale, np.maximum(variance / scale**2, 1e-12)
    return float(np.mean(0.5 * (np.log(2 * np.pi * v) + z**2 / v)))


def igd_convergence(material: Material) -> Figure:
    """IGD over evaluations."""
    return convergence(material, IGD)


def hv_convergence(material: Material) -> Figure:
    """Hypervolume over evaluations, as a share of the true front's."""
    return convergence(material, HV_RATIO)
