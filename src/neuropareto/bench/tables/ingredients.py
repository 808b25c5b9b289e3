"""Our ablation of the default: one row an ingredient, one column a task.

Each entry is the median IGD without the ingredient over the median with everything; the last columns
are the geometric mean over the tasks and a signed-rank test of the log ratios run by run.
"""

from __future__ import annotations

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.grid import Task
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material
from neuropareto.bench.measures import IGD
from neuropareto.bench.statistics import geometric_mean, mark, signed_rank
from neuropareto.space import Array

NAME = "ingredients"


def table(material: Material) -> Table:
    """The ratios of all ingredients that have been run beside the whole."""
    grid = material.grid(NAME)
    material.expect(grid.cells)
    whole = _row(material, grid.tasks, printed.OURS)
    rows = [whole]
    rows += [_row(material, grid.tasks, name) for name in grid.algorithms if name != printed.OURS]
    columns = ("algorithm", *(f"{task.name} {task.d}D" for task in grid.tasks), "mean", "p")
    notes = (
        "First row: median IGD of the default. Others: the median without the ingredient over it, "
        "with the rank-sum mark (+ better, - worse, = no significant difference at 0.05).",
        "mean: geometric mean over the tasks. p: signed-rank test of log(IGD / IGD of the default) "
        "over all runs with the same task and seed; not corrected for the number of rows.",
    )
    return Table(grid.title, columns, tuple(rows), notes)


def _row(material: Material, tasks: tuple[Task, ...], name: str) -> tuple[Item, ...]:
    items, ratios, logs = [], [], []
    for task in tasks:
        ours, theirs = (material.values(task, a, IGD) for a in (printed.OURS, name))
        common = sorted(set(ours) & set(theirs))
        if not common:
            items.append(Item("-"))
            continue
        a, b = (np.array([values[seed] for seed in common]) for values in (ours, theirs))
        if name == printed.OURS:
            items.append(Item(number(float(np.median(a)))))
            continue
        ratios.append(float(np.median(b) / np.median(a)))
        logs.append(np.log(b / a))
        items.append(Item(number(ratios[-1], 3), mark(b, a) if len(common) > 1 else ""))
    return (Item(name), *items, *_summary(ratios, logs))


def _summary(ratios: list[float], logs: list[Array]) -> tuple[Item, Item]:
    """The mean ratio, and whether the runs as a whole differ."""
    if not ratios:
        return Item(""), Item("")
    runs = np.concatenate(logs)
    p = signed_rank(runs, np.zeros_like(runs))
    return Item(number(geometric_mean(np.array(ratios)), 3)), Item(number(p, 2))
