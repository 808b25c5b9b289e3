"""What tables and figures are made of: records, the grid they should fill, and the account of it.

A builder takes from :class:`Material` what it needs; every record it takes is remembered, so that
the table or figure can say what it is made of (cells, seeds, commit, date) and what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuropareto.bench.grid import Cell, Grid, Scale, Task, load
from neuropareto.bench.measures import Measure, reference_point
from neuropareto.bench.printed import NAMES, OURS, own
from neuropareto.bench.records import Entry, Records
from neuropareto.space import Array


class Material:
    """Records in some folders, seen through a scale and perhaps a grid of the user's."""

    def __init__(
        self, folders: Sequence[Path], scale: Scale | None = None, grid: str | None = None
    ) -> None:
        self.records = Records(folders)
        self.scale = scale or Scale()
        self.own_grid = grid
        self._grids: dict[str, Grid] = {}
        self._used: dict[Cell, Entry] = {}
        self._wanted: dict[Cell, None] = {}

    def grid(self, name: str) -> Grid:
        """The shipped grid of that name, or the user's in its place, at the user's scale."""
        wanted = self.own_grid or name
        if wanted not in self._grids:
            self._grids[wanted] = load(wanted, self.scale)
        return self._grids[wanted]

    def tasks(self, name: str) -> tuple[Task, ...]:
        """The tasks of that grid in all its variants, whichever of them the user's scale wants."""
        return load(self.own_grid or name, replace(self.scale, variants=None)).tasks

    def expect(self, cells: Iterable[Cell]) -> None:
        """Note the cells that a complete table would have."""
        self._wanted.update(dict.fromkeys(cells))

    def algorithms(self, grid: Grid) -> tuple[str, ...]:
        """The algorithms to show: ours, then the grid's, then others that ran its tasks."""
        found = self.whole_algorithms(grid.tasks)
        first = [OURS] if OURS in (*grid.algorithms, *found) else []
        return tuple(dict.fromkeys([*first, *grid.algorithms, *found]))

    def whole_algorithms(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """Those that ran any of the tasks: ours and its rivals, without ablations of ours."""
        wanted = self.scale.algorithms
        return tuple(
            name
            for name in self.records.algorithms(tasks)
            if (name in wanted if wanted is not None else name in NAMES or not own(name))
        )

    def runs(self, task: Task, algorithm: str) -> dict[int, Entry]:
        """All runs of an algorithm on a task (only the scale's seeds, if it names some)."""
        wanted = self.scale.seeds
        found = {
            seed: entry
            for seed, entry in self.records.of(task, algorithm).items()
            if wanted is None or seed in wanted
        }
        self.use(found.values())
        return found

    def use(self, entries: Iterable[Entry]) -> None:
        """Remember records that were taken."""
        self._used.update({entry.cell: entry for entry in entries})

    def values(self, task: Task, algorithm: str, measure: Measure) -> dict[int, float]:
        """Final values of a measure, seed -> value, without the runs that have none."""
        runs = {s: e.value(measure) for s, e in self.runs(task, algorithm).items()}
        return {seed: value for seed, value in runs.items() if value == value}

    @property
    def used(self) -> tuple[Entry, ...]:
        """Every entry that was taken so far."""
        return tuple(self._used.values())

    @property
    def missing(self) -> tuple[Cell, ...]:
        """Expected cells without a record."""
        return tuple(cell for cell in self._wanted if cell not in self.records)

    def account(self) -> tuple[str, ...]:
        """What was used, in sentences."""
        if not self._wanted and not self._used:
            return ("Made without records of runs.",)
        return account(self.used)

    def missing_lines(self) -> tuple[str, ...]:
        """The missing cells, grouped so that a person can read them."""
        return missing_lines(self.missing, list(self._wanted))


def array(values: dict[int, float]) -> Array:
    """Values by seed as an array, in order of the seed."""
    return np.array([values[seed] for seed in sorted(values)], dtype=np.float64)


def account(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Cells, seeds, commits and dates of some records."""
    if not entries:
        return ("Made of no records: none of the cells has been run.",)
    tasks = {e.cell.task for e in entries}
    names = sorted({e.cell.algorithm for e in entries})
    commits = sorted({str(e.summary["made"].get("commit") or "unknown") for e in entries})
    dates = sorted({str(e.summary["made"].get("date", ""))[:10] for e in entries})
    seeds = ranges({e.cell.seed for e in entries})
    hours = sum(float(e.summary["seconds"]) for e in entries) / 3600
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return (
        f"Made of {count(len(entries), 'record')}: {count(len(tasks), 'task')}, "
        f"{count(len(names), 'algorithm')} ({', '.join(names)}), seeds {seeds}.",
        f"Run at {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}, {when}, "
        f"{hours:.2f} hours of runs ('+': with uncommitted changes).",
    )


def missing_lines(missing: Sequence[Cell], wanted: Sequence[Cell]) -> tuple[str, ...]:
    """Missing cells by algorithm and seeds: "clmea: all 560 cells"."""
    lines = []
    for algorithm in dict.fromkeys(cell.algorithm for cell in missing):
        gone = [cell for cell in missing if cell.algorithm == algorithm]
        all_ = [cell for cell in wanted if cell.algorithm == algorithm]
        if len(gone) == len(all_):
            lines.append(f"{algorithm}: all {len(gone)} cells")
            continue
        by_task: dict[Task, set[int]] = {}
        for cell in gone:
            by_task.setdefault(cell.task, set()).add(cell.seed)
        groups: dict[str, list[Task]] = {}
        for task, seeds in by_task.items():
            groups.setdefault(ranges(seeds), []).append(task)
        n_tasks = len({cell.task for cell in all_})
        for seeds_text, tasks in groups.items():
            where = f"all {n_tasks} tasks" if len(tasks) == n_tasks else _named(tasks)
            lines.append(f"{algorithm}: seeds {seeds_text} of {where}")
    return tuple(lines)


def _named(tasks: Sequence[Task]) -> str:
    sizes: dict[tuple[str, int], list[str]] = {}
    for task in tasks:
        sizes.setdefault((task.name, task.m), []).append(str(task.d))
    return "; ".join(f"{name} m={m} d={','.join(d)}" for (name, m), d in sizes.items())


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers in short: "0-2, 5"."""
    parts: list[list[int]] = []
    for n in sorted(numbers):
        if parts and n == parts[-1][-1] + 1:
            parts[-1][1:] = [n]
        else:
            parts.append([n])
    return ", ".join("-".join(str(n) for n in part) for part in parts)


def count(n: int, word: str) -> str:
    """A number with its noun: "1 record", "2 records"."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def references(tasks: Iterable[Task]) -> str:
    """The hypervolume reference point of each problem, in one line."""
    found: dict[str, str] = {}
    for task in tasks:
        point = reference_point(task.instance(0))
        text = "none" if point is None else "(" + ", ".join(f"{v:.5g}" for v in point) + ")"
        found[f"{task.problem} m={task.m}"] = text
    return "HV reference points: " + "; ".join(f"{k} {v}" for k, v in found.items()) + "."
