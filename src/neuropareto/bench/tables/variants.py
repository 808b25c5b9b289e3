"""The tables with one algorithm a row: ablation, pool size, surrogate variants, LMC, static or learned.

Ours: median, mean, standard error and the change against the table's reference row, with a
rank-sum mark and, for the static rule, the paper's paired signed-rank test.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.grid import Grid, Task
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material, array, references
from neuropareto.bench.measures import HV_RATIO, MEASURES, Measure
from neuropareto.bench.statistics import Spread, mark, signed_rank

_REFERENCE = {"pool-size": "pool-200", "static-vs-learned": "static"}
"""The algorithm that a table's changes are relative to; the complete pipeline elsewhere."""


def table(material: Material, name: str) -> Table:
    """The table called ``name`` in paper/tables.toml."""
    grid = material.grid(name)
    material.expect(grid.cells)
    measure = MEASURES[printed.tables()[name]["measure"]]
    base = _REFERENCE.get(name, "neuropareto-paper")
    rows = [
        _row(material, task, row, measure, base)
        for row in printed.rows_of(name)
        for task in _tasks(grid, row)
    ]
    columns = (
        "configuration", "problem", "D", f"{measure.name} median", "mean", "standard error",
        "change", "seeds", "printed", "printed change",
    )  # fmt: skip
    notes = [
        f"change: of the median, relative to {printed.display(base)}, with the rank-sum mark "
        "against it (+ better, - worse, = no significant difference at 0.05).",
        *_paired(material, grid, name, measure, base),
    ]
    if not measure.smaller_is_better:
        notes += [references(grid.tasks), *_ratios(material, grid, name)]
        notes.append("The reference point of the printed HV is not given.")
    return Table(
        f"{grid.title}: {measure.name} after {grid.tasks[0].budget} evaluations"
        if grid.tasks else grid.title,
        columns, tuple(rows), tuple(notes),
    )  # fmt: skip


def _tasks(grid: Grid, row: dict[str, Any]) -> list[Task]:
    return [
        task
        for task in grid.tasks
        if row.get("problem", task.problem) == task.problem and row.get("d", task.d) == task.d
    ]


def _row(
    material: Material, task: Task, row: dict[str, Any], measure: Measure, base: str
) -> tuple[Item, ...]:
    values = array(material.values(task, row["algorithm"], measure))
    against = array(material.values(task, base, measure))
    spread = Spread.of(values)
    change = Item("-" if not len(values) else "")
    if len(values) and len(against) and row["algorithm"] != base:
        ratio = spread.median / float(np.median(against)) if np.median(against) else float("nan")
        text = "-" if ratio != ratio else f"{100 * (ratio - 1):+.1f}%"
        both = len(values) > 1 and len(against) > 1
        change = Item(text, mark(measure.order(values), measure.order(against)) if both else "")
    error = f" ±{row['error']}" if "error" in row else ""
    return (
        Item(str(row["name"])),
        Item(task.name),
        Item(str(task.d)),
        Item(number(spread.median)),
        Item(number(spread.mean)),
        Item(number(spread.error, 2)),
        change,
        Item(str(spread.n)),
        Item(f"{row.get('printed', '')}{error}"),
        Item(str(row.get("change", ""))),
    )


def _paired(material: Material, grid: Grid, name: str, measure: Measure, base: str) -> list[str]:
    if name != "static-vs-learned":
        return []
    lines = []
    for task in grid.tasks:
        a = material.values(task, "neuropareto-paper", measure)
        b = material.values(task, base, measure)
        common = sorted(set(a) & set(b))
        if common:
            p = signed_rank(np.array([a[s] for s in common]), np.array([b[s] for s in common]))
            lines.append(
                f"Paired signed-rank test, learned against static on {len(common)} seeds: "
                f"p = {p:.3g} (printed: p < 0.01)."
            )
    return lines


def _ratios(material: Material, grid: Grid, name: str) -> list[str]:
    parts = []
    for row in printed.rows_of(name):
        for task in _tasks(grid, row):
            values = array(material.values(task, row["algorithm"], HV_RATIO))
            if len(values):
                parts.append(f"{row['name']} {task.problem} {number(float(np.median(values)))}")
    return ["Median HV over the true front's: " + "; ".join(parts) + "."] if parts else []
