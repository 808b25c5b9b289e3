"""Pictures of objective space: found fronts beside the true ones, and the geothermal case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.figures.curves import curves_of, only_task, two_objective_tasks
from neuropareto.bench.figures.style import (
    BLACK,
    GREY,
    NotYet,
    band,
    clean,
    look,
    new_figure,
    panels,
    shared_legend,
)
from neuropareto.bench.grid import Task
from neuropareto.bench.material import Material
from neuropareto.bench.measures import HV, IGD, reference_point, true_front
from neuropareto.bench.records import Entry
from neuropareto.pareto import hypervolume
from neuropareto.problem import signs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fronts(material: Material) -> Figure:
    """The front of each algorithm's median run over the true front, one panel a problem."""
    tasks = two_objective_tasks(material)
    columns = min(4, len(tasks))
    figure = new_figure(3.0 * columns + 0.6, 2.7 * -(-len(tasks) // columns) + 0.9)
    axes = panels(figure, len(tasks), columns)
    for ax, task in zip(axes, tasks, strict=True):
        _panel(ax, material, task)
    shared_legend(figure, axes)
    return figure


def _panel(ax: Any, material: Material, task: Task) -> None:
    true = true_front(task.instance(0))
    largest = 0.0
    for place, algorithm in enumerate(material.whole_algorithms([task])):
        entry = median_run(material.runs(task, algorithm))
        record = entry.read()
        F = record.minimised[record.front_rows]
        how = look(algorithm, place)
        ours = algorithm == printed.OURS
        ax.scatter(
            F[:, 0], F[:, 1], s=22 if ours else 14, color=how["color"], label=how["label"],
            marker={"-": "o", "--": "s", ":": "^"}.get(str(how["ls"]), "D"), lw=0, alpha=0.85,
            zorder=3 if ours else 2,
        )  # fmt: skip
        largest = max(largest, float(F.max(initial=0.0)))
    if true is not None:
        order = np.argsort(true[:, 0])
        ax.plot(*true[order].T, ".", ms=0.9, color=BLACK, label="true front", zorder=4)
        if largest > 30 * float(true.max()):
            ax.set_xscale("symlog", linthresh=1.0)
            ax.set_yscale("symlog", linthresh=1.0)
    clean(ax, title=f"{task.name.upper()}, {task.d}D", x="f1", y="f2")


def median_run(runs: dict[int, Entry]) -> Entry:
    """The run whose IGD is the median of its runs (the better middle one of an even number)."""
    order = sorted(runs.values(), key=lambda entry: entry.value(IGD))
    return order[(len(order) - 1) // 2]


def geothermal(material: Material) -> Figure:
    """Fronts in M$ and hypervolume over evaluations, beside what any engineer would try first."""
    grid = material.grid("geothermal")
    material.expect(grid.cells)
    task = only_task(grid)
    algorithms = material.whole_algorithms([task])
    if not algorithms:
        raise NotYet("The case has not been run; run `neuropareto bench run geothermal`.")
    from neuropareto.problems.geothermal import coarse_reservoir, structured_front

    figure = new_figure(10.4, 4.4)
    left, right = panels(figure, 2, 2)
    _, yardstick = structured_front(7, coarse_reservoir())
    left.plot(*yardstick.T, "+", color=GREY, ms=7, label="structured schedules (49)")
    for place, algorithm in enumerate(algorithms):
        runs = material.runs(task, algorithm)
        entry = sorted(runs.values(), key=lambda e: e.value(HV))[(len(runs) - 1) // 2]
        record = entry.read()
        F = record.F[record.front_rows]
        order = np.argsort(F[:, 0])
        how = look(algorithm, place)
        left.plot(
            *F[order].T, marker="o", ms=4.5, color=how["color"], ls=how["ls"], lw=1.2,
            label=f"{how['label']} ({len(F)} points)",
        )  # fmt: skip
        curves = curves_of(material, task, algorithm, HV)
        band(right, np.arange(1, curves.shape[1] + 1), curves, how)
    left.plot([], [], " ", label=_printed_line())
    problem = task.instance(0)
    reference = reference_point(problem)
    if reference is not None:
        level = hypervolume(signs(problem.directions, 2) * yardstick, reference)
        right.axhline(level, color=GREY, ls="-.", lw=1.2, label="structured schedules (49)")
    clean(
        left,
        title="Fronts of the median runs",
        x="short-term value (M$)",
        y="long-term value (M$)",
    )
    left.legend(frameon=False, fontsize=7.5)
    right.axvline(task.n_initial, color=GREY, ls=":", lw=1.0)
    clean(right, title="Hypervolume, reference (20, 20) M$", x="evaluations", y="HV (M$²)")
    right.legend(frameon=False, fontsize=8)
    return figure


def _printed_line() -> str:
    ours = printed.printed_text("geothermal front")["printed"]
    other = printed.printed_text("geothermal front of MCEA/D")["printed"]
    gain = printed.printed_text("geothermal hypervolume gain")["printed"]
    return f"printed: {ours} points, MCEA/D {other}, HV +{gain}"
