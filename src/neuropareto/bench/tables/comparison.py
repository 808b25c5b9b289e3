"""The tables that compare algorithms: IGD on DTLZ and ZDT, IGD and HV against MORBO and others.

Each entry is the median over seeds with the distance between quartiles in brackets, and a mark for
the rank-sum test against ours on the seeds that both have run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.grid import PLAIN, Grid, Task
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material, array, references
from neuropareto.bench.measures import HV, IGD, Measure
from neuropareto.bench.statistics import Spread, friedman, least_p, mark

MARKS = (
    "Measured: median (distance between quartiles). Marks: rank-sum test at 0.05 against "
    "NeuroPareto on the same seeds; + better, - worse, = no significant difference."
)
_VARIANTS = ("shifted", "translated", "rotated")


@dataclass(frozen=True)
class Column:
    """What a column shows: an algorithm's measured values, or those printed for it."""

    algorithm: str
    printed: bool

    @property
    def title(self) -> str:
        """The head of the column."""
        return printed.display(self.algorithm) + ("\nprinted" if self.printed else "")


def igd(material: Material, name: str) -> Table:
    """One of the paper's four large tables."""
    grid = material.grid(name)
    material.expect(grid.cells)
    shown = ordered(
        [a for a in material.algorithms(grid) if _has_printed(a) or _ran(material, grid, a)]
    )
    ran = [a for a in shown if _ran(material, grid, a)]
    rows = comparison_rows(material, grid.tasks, _columns(shown, ran), IGD)
    return Table(
        f"{grid.title}: IGD after {_budgets(grid.tasks)} evaluations",
        ("problem", "D", *(column.title for column in _columns(shown, ran))),
        (*rows, *summary_rows(rows, _columns(shown, ran), material, grid.tasks, IGD)),
        (MARKS, *_few_seeds(material, grid.tasks, ran)),
    )


def by_variant(material: Material) -> Table:
    """Our own table: the same problems with their optima moved or their variables mixed."""
    grid = material.grid("first-campaign")
    material.expect(cell for cell in grid.cells if cell.task.variant in _VARIANTS)
    found = (*grid.tasks, *(t for t in material.records.tasks if material.scale.wants(t)))
    moved = [task for task in dict.fromkeys(found) if task.variant in _VARIANTS]
    tasks = [task for task in moved if material.records.algorithms([task])]
    shown = [Column(a, False) for a in ordered(material.whole_algorithms(tasks))]
    rows = comparison_rows(material, tasks, shown, IGD)
    return Table(
        f"Moved and mixed optima: IGD after {_budgets(tasks)} evaluations",
        ("problem", "D", *(column.title for column in shown)),
        (*rows, *summary_rows(rows, shown, material, tasks, IGD)),
        (MARKS, *_few_seeds(material, tasks, [column.algorithm for column in shown])),
    )


def by_hypervolume(material: Material, name: str) -> Table:
    """Our own tables: hypervolume on the problems of a grid, of those algorithms that have run."""
    grid = material.grid(name)
    material.expect(grid.cells)
    tasks = [task for task in grid.tasks if material.records.algorithms([task])]
    shown = [
        Column(a, False) for a in ordered(material.algorithms(grid)) if _ran(material, grid, a)
    ]
    rows = comparison_rows(material, tasks, shown, HV)
    return Table(
        f"{grid.title}: HV after {_budgets(tasks)} evaluations",
        ("problem", "D", *(column.title for column in shown)),
        (*rows, *summary_rows(rows, shown, material, tasks, HV)),
        (MARKS, *([references(tasks)] if tasks else [])),
    )


def mobo(material: Material) -> Table:
    """IGD and hypervolume against MORBO, EGBO and CDM-PSL."""
    grid = material.grid("mobo")
    material.expect(grid.cells)
    known = {(row["problem"], row["d"], row["algorithm"]): row for row in printed.rows_of("mobo")}
    rows = []
    for task in grid.tasks:
        ours = {m: material.values(task, printed.OURS, m) for m in (IGD, HV)}
        nobody: dict[int, float] = {}
        for algorithm in dict.fromkeys((*grid.algorithms, *material.algorithms(grid))):
            row = known.get((task.problem, task.d, algorithm), {})
            cells = [Item(task.name), Item(str(task.d)), Item(printed.display(algorithm))]
            for measure, key in ((IGD, "igd"), (HV, "hv")):
                cells.append(
                    measured(
                        material.values(task, algorithm, measure),
                        ours[measure] if algorithm != printed.OURS else nobody,
                        measure,
                    )
                )
                cells.append(Item(f"{row[key]} ±{row[f'{key}_error']}" if row else ""))
            rows.append(tuple(cells))
    names = ("problem", "D", "method", "IGD", "IGD printed", "HV", "HV printed")
    note = (
        "The reference point of the printed HV is not given; on DTLZ2 no set exceeds 0.4246 at "
        "(1.1, 1.1)."
    )
    return Table(
        f"{grid.title}: after {_budgets(grid.tasks)} evaluations", names, tuple(rows),
        (MARKS, references(grid.tasks), note),
    )  # fmt: skip


def comparison_rows(
    material: Material, tasks: Sequence[Task], shown: Sequence[Column], measure: Measure
) -> list[tuple[Item, ...]]:
    """One row a task: problem, D, and each column's entry."""
    rows = []
    for task in tasks:
        found = {
            c.algorithm: material.values(task, c.algorithm, measure)
            for c in shown
            if not c.printed
        }
        ours, best = found.get(printed.OURS, {}), _best(found, measure)
        row = [Item(task.name), Item(str(task.d))]
        for column in shown:
            a = column.algorithm
            if column.printed:
                plain = task.variant == PLAIN
                row.append(
                    Item(
                        printed.printed_igd(task.problem, task.d, task.m, a) or "" if plain else ""
                    )
                )
            else:
                entry = measured(found[a], ours if a != printed.OURS else {}, measure)
                row.append(Item(entry.text, entry.mark, best=a == best))
        rows.append(tuple(row))
    return rows


def _columns(shown: Sequence[str], ran: Sequence[str]) -> list[Column]:
    """Measured and printed column of each algorithm; only the printed one if it was not run."""
    columns = []
    for a in shown:
        columns += [Column(a, False)] if a in ran or a == printed.OURS else []
        columns += [Column(a, True)] if _has_printed(a) else []
    return columns


def measured(values: Mapping[int, float], ours: Mapping[int, float], measure: Measure) -> Item:
    """Median and quartile distance, with the mark against ours on common seeds."""
    if not values:
        return Item("-")
    spread = Spread.of(array(dict(values)))
    text = number(spread.median) + (f" ({number(spread.iqr, 2)})" if spread.n > 1 else "")
    common = sorted(set(values) & set(ours))
    if len(common) < 2:
        return Item(text)
    a, b = (measure.order(np.array([v[s] for s in common])) for v in (values, ours))
    return Item(text, mark(a, b))


def summary_rows(
    rows: Sequence[tuple[Item, ...]],
    shown: Sequence[Column],
    material: Material,
    tasks: Sequence[Task],
    measure: Measure,
) -> list[tuple[Item, ...]]:
    """Rows below the table: counts of +/=/- and, over tasks that all have run, mean ranks."""
    places = {c.algorithm: 2 + i for i, c in enumerate(shown) if not c.printed}
    found = []
    if any(item.mark for row in rows for item in row):
        counts = [Item("+/=/-"), *[Item()] * (1 + len(shown))]
        for c in places.values():
            marks = [row[c].mark for row in rows]
            if any(marks):
                counts[c] = Item("/".join(str(marks.count(m)) for m in "+=-"))
        found.append(tuple(counts))
    ran = [a for a in places if any(material.values(t, a, measure) for t in tasks)]
    medians = np.array(
        [
            [Spread.of(measure.order(array(material.values(t, a, measure)))).median for a in ran]
            for t in tasks
        ]
    ).reshape(len(tasks), len(ran))
    complete = np.isfinite(medians).all(axis=1)
    if len(ran) > 1 and complete.sum() > 1:
        test = friedman(medians[complete], tuple(ran))
        ranks = [Item(f"mean rank ({test.tasks} tasks)"), *[Item()] * (1 + len(shown))]
        for a, rank in zip(ran, test.ranks, strict=True):
            ranks[places[a]] = Item(f"{rank:.2f}", best=rank == test.ranks.min())
        found.append(tuple(ranks))
    return found


def _best(found: Mapping[str, Mapping[int, float]], measure: Measure) -> str | None:
    medians = {a: float(np.median(measure.order(array(dict(v))))) for a, v in found.items() if v}
    return min(medians, key=lambda a: medians[a]) if len(medians) > 1 else None


def _has_printed(algorithm: str) -> bool:
    return algorithm in next(iter(printed.igd_table("dtlz-bi").values()))


def _ran(material: Material, grid: Grid, algorithm: str) -> bool:
    return any(material.runs(task, algorithm) for task in grid.tasks)


def ordered(algorithms: Sequence[str]) -> list[str]:
    """Ours first, then in the paper's order, then the rest."""
    order = list(printed.NAMES)
    return sorted(
        algorithms,
        key=lambda a: (a != printed.OURS, order.index(a) if a in order else len(order), a),
    )


def _budgets(tasks: Sequence[Task]) -> str:
    return " or ".join(str(b) for b in sorted({task.budget for task in tasks}))


def _few_seeds(material: Material, tasks: Sequence[Task], shown: Sequence[str]) -> list[str]:
    most = max((len(material.runs(t, a)) for t in tasks for a in shown), default=0)
    if most >= 2 and least_p(most, most) >= 0.05:
        return [
            f"With {most} seeds the smallest possible p-value is {least_p(most, most):.2g}: "
            "no difference can be significant, every mark is =."
        ]
    return []
