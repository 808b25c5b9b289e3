"""The tables of time: seconds of a run and of an iteration, and where they go.

Paper: section "Wall-Clock Time Breakdown", T_total = T_class + T_gp + T_acq + T_eval + T_overhead
(Eq. time_breakdown). The paper's time per iteration is its total over 300 evaluations; ours is
shown both that way and per round. Time inside the benchmark function is not part of it.
"""

from __future__ import annotations

import numpy as np

from neuropareto.analysis.timing import COMPONENTS, breakdown
from neuropareto.bench import printed
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material
from neuropareto.bench.records import Entry
from neuropareto.bench.statistics import Spread
from neuropareto.space import Array


def wall_clock(material: Material) -> Table:
    """Seconds of a run, per evaluation and per round."""
    grid = material.grid("wall-clock")
    material.expect(grid.cells)
    known = {
        (row["problem"], row["d"], row["algorithm"]): row for row in printed.rows_of("wall-clock")
    }
    rows = []
    for task in grid.tasks:
        for algorithm in material.algorithms(grid):
            runs = list(material.runs(task, algorithm).values())
            row = known.get((task.problem, task.d, algorithm), {})
            total = _spread([float(e.summary["proposal_seconds"]) for e in runs])
            round_ = _spread(
                [
                    float(e.summary["proposal_seconds"]) / max(1, int(e.summary["rounds"]))
                    for e in runs
                ]
            )
            rows.append(
                (
                    Item(task.name), Item(str(task.d)), Item(printed.display(algorithm)),
                    _plus_minus(total), _plus_minus(_scaled(total, 1 / task.budget)),
                    _plus_minus(round_), Item(str(len(runs))),
                    Item(f"{row['total']} ±{row['total_error']}" if row else ""),
                    Item(f"{row['iteration']} ±{row['iteration_error']}" if row else ""),
                )
            )  # fmt: skip
    return Table(
        f"{grid.title}: seconds",
        (
            "problem", "D", "method", "total", "per evaluation", "per round", "seeds",
            "total printed", "per iteration printed",
        ),
        tuple(rows),
        (
            "Mean ± standard deviation of the time inside the algorithm, one thread a run. The "
            "printed time per iteration is the printed total over 300; the text says 8.3 s.",
            _machines(material),
        ),
    )  # fmt: skip


def component_time(material: Material) -> Table:
    """Shares of the time inside the algorithm, mean and standard error over runs."""
    grid = material.grid("wall-clock")
    ours = [a for a in material.algorithms(grid) if a.startswith(printed.OURS)]
    material.expect(cell for cell in grid.cells if cell.algorithm in ours)
    rows = []
    for task in grid.tasks:
        for row in printed.rows_of("component-time"):
            if (row["problem"], row["d"]) != (task.problem, task.d):
                continue
            cells = [Item(task.name), Item(str(task.d)), Item(row["name"])]
            for algorithm in ours:
                shares = [component_shares(e) for e in material.runs(task, algorithm).values()]
                spread = _spread([100 * s[row["name"]] for s in shares if s])
                text = "-" if not spread.n else f"{spread.mean:.1f}% ±{number(spread.error, 2)}%"
                cells.append(Item(text))
            rows.append((*cells, Item(f"{row['printed']}% ±{row['error']}%")))
    names = ("problem", "D", "component", *(printed.display(a) for a in ours), "printed")
    stages = "; ".join(f"{name}: {', '.join(s) or 'the rest'}" for name, s in COMPONENTS.items())
    return Table(
        "Where the time goes (share of the time inside the algorithm)", names, tuple(rows),
        (f"Mean ± standard error over runs. Stages of ours by component: {stages}.",),
    )  # fmt: skip


def component_shares(entry: Entry) -> dict[str, float]:
    """The paper's components as shares of the algorithm's time; empty without stage seconds."""
    summary = entry.summary
    found = breakdown(
        summary["stage_seconds"], float(summary["proposal_seconds"]),
        rounds=int(summary.get("rounds", 0)), evaluations=int(summary.get("evaluations", 0)),
    )  # fmt: skip
    return {} if found is None else found.shares


def _spread(values: list[float]) -> Spread:
    return Spread.of(_array(values))


def _array(values: list[float]) -> Array:
    return np.array(values, dtype=np.float64)


def _scaled(spread: Spread, factor: float) -> Spread:
    s = spread
    return Spread(
        s.n, s.median * factor, s.mean * factor, s.std * factor, s.lower * factor, s.upper * factor
    )


def _plus_minus(spread: Spread) -> Item:
    if not spread.n:
        return Item("-")
    return Item(number(spread.mean) + (f" ±{number(spread.std, 2)}" if spread.n > 1 else ""))


def _machines(material: Material) -> str:
    names = sorted({str(e.summary["made"].get("processor") or "unknown") for e in material.used})
    return "Our processor: " + (", ".join(names) if names else "-") + "; the paper's: RTX-4090."
