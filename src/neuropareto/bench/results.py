"""docs/results.md: what a campaign ran and what came out, written from its records by one command.

The page says exactly how much was run, where and when; every number in it is read from records, and
the command that wrote it stands on top. Figures are saved beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuropareto.bench import printed
from neuropareto.bench.figures import NotYet, save
from neuropareto.bench.grid import PLAIN, Task
from neuropareto.bench.layout import Item, Table, items, number, render
from neuropareto.bench.material import Material, account, array, count, missing_lines, ranges
from neuropareto.bench.measures import HV_RATIO, IGD
from neuropareto.bench.score import score
from neuropareto.bench.statistics import Spread
from neuropareto.bench.tables import comparison

_FIGURES = {
    "convergence-igd": "IGD over evaluations",
    "fronts": "Fronts of the median runs",
    "critical-difference": "Mean ranks over all tasks",
    "timing": "Seconds of each stage",
}


def write_results(material: Material, path: Path, *, figures: bool) -> list[Path]:
    """Write the page, and figures into a folder ``figures`` beside it; returns the files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures = _pictures(material, path.parent) if figures else {}
    path.write_text(page(material, pictures), encoding="utf-8")
    return [path, *(path.parent / name for name in pictures.values())]


def page(material: Material, pictures: dict[str, str]) -> str:
    """The page in Markdown; ``pictures`` maps a caption to a file name beside the page."""
    grid = material.grid("first-campaign")
    entries = list(material.records)
    gone = [cell for cell in grid.cells if cell not in material.records]
    told = [f"--records {folder}" for folder in material.records.folders]
    told += [f"--grid {material.own_grid}"] if material.own_grid else []
    parts = [
        "# Results",
        "Written by `neuropareto bench results "
        f"{' '.join(told)}` from the records in that folder; do not edit it by hand. What the columns "
        "and marks mean is said in `docs/benchmark.md`. The algorithms are those of the commits named "
        "here: a default that has changed since is not shown.",
        "## What was run",
        f"{grid.title}: {len(grid.cells) - len(gone)} of {count(len(grid.cells), 'cell')}.",
        "\n".join(f"- {line}" for line in (*account(entries), *_machines(material))),
    ]
    if gone:
        parts.append("Missing:")
        parts.append("\n".join(f"- {line}" for line in missing_lines(gone, grid.cells)))
    parts += [render(_amount(material), "markdown").strip()]
    parts += ["## Score", *(render(table, "markdown").strip() for table in score(material))]
    parts += ["## Median IGD and hypervolume, task by task"]
    parts += [render(table, "markdown").strip() for table in _by_variant(material)]
    if pictures:
        parts.append("## Pictures")
        parts += [f"![{caption}]({name})" for caption, name in pictures.items()]
    return "\n\n".join(parts) + "\n"


def _pictures(material: Material, folder: Path) -> dict[str, str]:
    made = {}
    sizes = {task.d for task in material.records.tasks}
    chosen = (100,) if 100 in sizes else (max(sizes, default=100),)
    for name, caption in _FIGURES.items():
        target = folder / "figures" / f"results-{name}.png"
        whole = name == "critical-difference"
        scale = material.scale if whole else replace(material.scale, dimensions=chosen)
        try:
            save(name, Material(material.records.folders, scale), target)
        except NotYet:
            continue  # the page shows what the records can show
        made[caption] = f"figures/{target.name}"
    return made


def _machines(material: Material) -> tuple[str, ...]:
    made = [entry.summary["made"] for entry in material.records]
    systems = [(m.get("processor", ""), m.get("platform", "").split("-")[0]) for m in made]
    machines = sorted({", ".join(parts) for parts in systems})
    versions = sorted({f"Python {m.get('python', '?')}, {_libraries(m)}" for m in made})
    return tuple([*(f"Machine: {text}." for text in machines), *(f"{text}." for text in versions)])


def _libraries(made: Mapping[str, Any]) -> str:
    found: Mapping[str, str] = made.get("libraries", {})
    return ", ".join(f"{k} {v}" for k, v in found.items() if k in ("numpy", "scipy", "torch"))


def _amount(material: Material) -> Table:
    """How many runs of each algorithm, with their seconds."""
    rows = []
    entries = list(material.records)
    for algorithm in sorted({e.cell.algorithm for e in entries}):
        own = [e for e in entries if e.cell.algorithm == algorithm]
        for d in sorted({e.cell.task.d for e in own}):
            some = [e for e in own if e.cell.task.d == d]
            seconds = Spread.of(
                array({i: float(e.summary["seconds"]) for i, e in enumerate(some)})
            )
            rows.append(
                items(
                    printed.display(algorithm), d, len(some), len({e.cell.task for e in some}),
                    ranges({e.cell.seed for e in some}), number(seconds.median, 3),
                    sum(int(e.summary["failures"]) for e in some),
                )
            )  # fmt: skip
    columns = (
        "algorithm",
        "D",
        "runs",
        "tasks",
        "seeds",
        "median seconds a run",
        "failed evaluations",
    )
    return Table("Runs", columns, tuple(rows))


def _by_variant(material: Material) -> list[Table]:
    tables = []
    tasks = material.records.tasks
    for variant in sorted({t.variant for t in tasks}, key=lambda v: (v != PLAIN, v)):
        some = [t for t in tasks if t.variant == variant]
        shown = comparison.ordered(material.whole_algorithms(some))
        columns = [comparison.Column(a, False) for a in shown]
        rows = comparison.comparison_rows(material, some, columns, IGD)
        wide = [
            (*row, *_ratios(material, task, shown)) for row, task in zip(rows, some, strict=True)
        ]
        heads = ["problem", "D", *(f"{printed.display(a)} IGD" for a in shown)]
        heads += [f"{printed.display(a)} HV ratio" for a in shown]
        tables.append(
            Table(
                f"{variant.capitalize()} problems", tuple(heads), tuple(wide), (comparison.MARKS,)
            )
        )
    return tables


def _ratios(material: Material, task: Task, shown: Sequence[str]) -> list[Item]:
    return [
        Item(number(Spread.of(array(material.values(task, a, HV_RATIO))).median, 3)) for a in shown
    ]
