"""Our own yardstick: the paper's 83 cells (28 + 28 + 20 + 7), ours beside printed and beside the best.

For each cell the median IGD of ours, the printed figure, their ratio, the best other algorithm on
the same seeds and the rank-sum verdict on it; then the geometric mean of the ratios and wins, ties
and losses against each other algorithm; the same for the variants of the problems and for the
problems that the paper has not, where nothing is printed; and whether the surrogate's intervals
held, over all records. Works with whatever cells are there and says how many those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.grid import PLAIN, Task
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material, count
from neuropareto.bench.measures import IGD
from neuropareto.bench.statistics import a12, geometric_mean, holm, rank_sum, verdict
from neuropareto.bench.tables import coverage
from neuropareto.space import Array

OTHER = "other"
"""The plain problems of the grid ``confirmation`` that the paper has not."""
VARIANTS = (PLAIN, "shifted", "translated", "rotated", OTHER)
_WORDS = {"-": "win", "=": "tie", "+": "loss"}


@dataclass(frozen=True)
class Duel:
    """Ours against one other algorithm on one task, on the seeds that both have run."""

    task: Task
    other: str
    ours_values: Array
    other_values: Array

    @property
    def p(self) -> float:
        """The rank-sum p-value; 1 if a side has a single run."""
        if len(self.ours_values) < 2:
            return 1.0
        return rank_sum(self.ours_values, self.other_values)

    @property
    def ratio(self) -> float:
        """Median of ours over median of the other: below 1 is good."""
        return float(np.median(self.ours_values) / np.median(self.other_values))

    def word(self, p: float | None = None) -> str:
        """win, tie or loss of ours at 0.05; ``p`` may be a corrected p-value."""
        return _WORDS[verdict(self.p if p is None else p, self.other_values, self.ours_values)]


@dataclass(frozen=True)
class CellScore:
    """One of the 83 cells: our runs, the printed figure, and the duels with the others."""

    task: Task
    ours: Array
    printed: float | None
    duels: tuple[Duel, ...]

    @property
    def median(self) -> float:
        """Our median IGD."""
        return float(np.median(self.ours))

    @property
    def ratio(self) -> float | None:
        """Ours over printed; None where nothing is printed."""
        return None if self.printed is None else self.median / self.printed

    def against(self, word: str) -> tuple[str, ...]:
        """The names of the others with which the duel ends in ``word``: win, tie or loss."""
        return tuple(printed.display(d.other) for d in self.duels if d.word() == word)

    @property
    def best(self) -> Duel | None:
        """The duel with the other algorithm of the smallest median."""
        return min(self.duels, key=lambda d: float(np.median(d.other_values)), default=None)


def cells(material: Material, variant: str, algorithm: str = printed.OURS) -> list[CellScore]:
    """The scores of all cells of one of ``VARIANTS`` that ``algorithm`` has run."""
    found = []
    for task in _tasks(material, variant):
        ours = material.values(task, algorithm, IGD)
        if not ours:
            continue
        duels = []
        for other in material.records.algorithms([task]):
            rival = other != algorithm and not printed.own(other)
            theirs = material.values(task, other, IGD) if rival else {}
            common = sorted(set(ours) & set(theirs))
            if common:
                a, b = (np.array([v[s] for s in common]) for v in (ours, theirs))
                duels.append(Duel(task, other, a, b))
        known = printed.printed_igd(task.problem, task.d, task.m, printed.OURS)
        value = float(known) if known is not None and variant == PLAIN else None
        values = np.array([ours[s] for s in sorted(ours)])
        found.append(CellScore(task, values, value, tuple(duels)))
    return found


def score(
    material: Material, *, corrected: bool = False, algorithm: str = printed.OURS
) -> list[Table]:
    """The tables of ``neuropareto bench score``: the cells of each variant, then the summary."""
    by_variant = {v: cells(material, v, algorithm) for v in VARIANTS if _wanted(material, v)}
    made = [
        _cell_table(material, variant, found)
        for variant, found in by_variant.items()
        if found or variant == PLAIN
    ]
    held = coverage.table(material, algorithm)
    made += _summaries(material, by_variant, corrected, algorithm)
    return made if held is None else [*made, held]


def _wanted(material: Material, variant: str) -> bool:
    meant = PLAIN if variant == OTHER else variant
    return material.scale.variants is None or meant in material.scale.variants


def _tasks(material: Material, variant: str) -> list[Task]:
    printed_ones = [task for name in printed.LARGE for task in material.tasks(name)]
    if variant != OTHER:
        return list(dict.fromkeys(replace(task, variant=variant) for task in printed_ones))
    known = {task.problem for task in printed_ones}
    every = material.tasks("confirmation")
    return [task for task in every if task.variant == PLAIN and task.problem not in known]


def _cell_table(material: Material, variant: str, found: Sequence[CellScore]) -> Table:
    rows = []
    for cell in found:
        best = cell.best
        known = printed.printed_igd(cell.task.problem, cell.task.d, cell.task.m, printed.OURS)
        rows.append(
            (
                Item(cell.task.name), Item(str(cell.task.d)), Item(str(cell.task.m)),
                Item(number(cell.median)), Item(str(len(cell.ours))),
                Item(known or "" if variant == PLAIN else ""),
                Item("" if cell.ratio is None else number(cell.ratio, 3)),
                Item(printed.display(best.other) if best else "-"),
                Item(number(float(np.median(best.other_values))) if best else "-"),
                Item(number(best.ratio, 3) if best else "-"),
                Item(f"{best.word()} (p {best.p:.2g})" if best else "-"),
            )
        )  # fmt: skip
    total = len(_tasks(material, variant))
    absent = total - len(found)
    notes = [f"{len(found)} of the {total} {variant} cells have been run."]
    ratios = np.array([cell.ratio for cell in found if cell.ratio is not None])
    if len(ratios):
        notes.append(
            f"Geometric mean of ours over printed: {geometric_mean(ratios):.3g} over "
            f"{count(len(ratios), 'cell')}; at or below printed in {int(np.sum(ratios <= 1))}."
        )
    notes += _against_all(found)
    return Table(
        f"Score on {variant} problems: median IGD of ours, printed, and the best other",
        (
            "problem", "D", "M", "ours", "seeds", "printed", "ours/printed", "best other",
            "its median", "ours/best", "verdict",
        ),
        tuple(rows), tuple(notes),
        (f"{absent} {variant} cells: {_names(material, variant, found)}",) if absent else (),
    )  # fmt: skip


def _against_all(found: Sequence[CellScore]) -> list[str]:
    """How many cells are won against every other algorithm that was run there, and which are not."""
    met = [cell for cell in found if cell.duels]
    if not met:
        return []
    won = sum(len(cell.against("win")) == len(cell.duels) for cell in met)
    notes = [f"Won against every other algorithm that was run there: {won} of {len(met)} cells."]
    for word, said in (("tie", "Ties"), ("loss", "Losses")):
        named = [
            f"{cell.task.name} {cell.task.d}D ({', '.join(cell.against(word))})"
            for cell in met
            if cell.against(word)
        ]
        if 0 < len(named) <= 20:  # three runs a side tie everywhere
            notes.append(f"{said}: {'; '.join(named)}.")
    return notes


def _names(material: Material, variant: str, found: Sequence[CellScore]) -> str:
    there = {cell.task for cell in found}
    gone: dict[tuple[str, int], list[int]] = {}
    for task in _tasks(material, variant):
        if task not in there:
            gone.setdefault((task.problem, task.m), []).append(task.d)
    return "; ".join(
        f"{problem} m={m} d={','.join(map(str, ds))}" for (problem, m), ds in gone.items()
    )


def _summaries(
    material: Material,
    by_variant: dict[str, list[CellScore]],
    corrected: bool,
    algorithm: str,
) -> list[Table]:
    rows = []
    for variant, found in by_variant.items():
        others = sorted({duel.other for cell in found for duel in cell.duels})
        for other in others:
            duels = [d for cell in found for d in cell.duels if d.other == other]
            rows.append(_summary_row(variant, other, duels, corrected))
    if not rows:
        return []
    test = "rank-sum at 0.05" + (", Holm-corrected over the cells" if corrected else "")
    shortest = min(len(d.ours_values) for f in by_variant.values() for c in f for d in c.duels)
    notes = [
        f"win/tie/loss of {printed.display(algorithm)}: {test}; A12: chance that its run is "
        "better, averaged over cells.",
    ]
    if shortest < 4:
        notes.append(
            f"Some duels have {count(shortest, 'run')} a side: below four no win can be significant."
        )
    return [
        Table(
            "Against each other algorithm, on the same seeds",
            (
                "variant", "other", "cells", "win", "tie", "loss", "lower median in",
                "geometric mean of ours/other", "A12",
            ),
            tuple(rows), (*notes, *material.account()),
        )
    ]  # fmt: skip


def _summary_row(
    variant: str, other: str, duels: Sequence[Duel], corrected: bool
) -> tuple[Item, ...]:
    p = np.array([duel.p for duel in duels])
    p = holm(p) if corrected else p
    words = [duel.word(float(q)) for duel, q in zip(duels, p, strict=True)]
    ratios = np.array([duel.ratio for duel in duels])
    effect = np.mean([a12(duel.ours_values, duel.other_values) for duel in duels])
    return (
        Item(variant), Item(printed.display(other)), Item(str(len(duels))),
        *(Item(str(words.count(word))) for word in ("win", "tie", "loss")),
        Item(f"{int(np.sum(ratios < 1))}/{len(ratios)}"),
        Item(number(geometric_mean(ratios), 3)), Item(f"{effect:.2f}"),
    )  # fmt: skip
