"""Where the time of a run goes: T_total = T_class + T_gp + T_acq + T_eval + T_overhead.

Section "Wall-Clock Time Breakdown", Eq. time_breakdown, Tables wall_clock_comparison_full and
component_time_full. All five are seconds inside the algorithm, summed over rounds; T_eval is the
work on candidates with the surrogate (breeding, screening, posterior, choice), as in the paper's
table. Evaluations of the user's own function are not in it and are told apart where known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuropareto.analysis.runs import Run, noted, runs_of
from neuropareto.bench import printed
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.bench.statistics import Spread
from neuropareto.space import Array

COMPONENTS: Mapping[str, tuple[str, ...]] = {
    row["name"]: tuple(row["stages"])
    for row in printed.rows_of("component-time")
    if (row["problem"], row["d"]) == ("dtlz2", 100)
}
"""The paper's components and the stages of ours that each covers; overhead is the rest."""
SYMBOLS = ("T_class", "T_gp", "T_acq", "T_eval", "T_overhead")


@dataclass(frozen=True)
class Breakdown:
    """Seconds of a run by component, in the order of ``COMPONENTS``; their sum is T_total.

    ``outside`` are seconds of the run outside the algorithm: the user's function, files, waiting.
    """

    seconds: tuple[float, ...]
    rounds: int
    evaluations: int
    outside: float = 0.0

    @property
    def total(self) -> float:
        """T_total: all seconds inside the algorithm."""
        return float(sum(self.seconds))

    @property
    def shares(self) -> dict[str, float]:
        """Component -> its share of T_total."""
        return {
            name: s / self.total if self.total > 0 else 0.0
            for name, s in zip(COMPONENTS, self.seconds, strict=True)
        }


def breakdown(
    stages: Mapping[str, float], total: float, *, rounds: int, evaluations: int, whole: float = 0.0
) -> Breakdown | None:
    """The breakdown of summed stage seconds and the algorithm's whole time; None without stages.

    ``whole`` is the wall time of the run, if known.
    """
    if not stages or total <= 0:
        return None
    known = [sum(float(stages.get(s, 0.0)) for s in names) for names in COMPONENTS.values()]
    known[-1] = max(0.0, total - sum(known))
    return Breakdown(tuple(known), rounds, evaluations, max(0.0, whole - total))


def of_run(run: Run) -> Breakdown | None:
    """The breakdown of a run from its notes; None if its algorithm notes no stages."""
    stages: dict[str, float] = {}
    for note in run.notes:
        for stage, seconds in note.get("stage_seconds", {}).items():
            stages[stage] = stages.get(stage, 0.0) + float(seconds)
    total = float(sum(note.get("seconds", 0.0) for note in run.notes))
    return breakdown(
        stages, total, rounds=len(run.notes), evaluations=len(run.F), whole=run.seconds
    )


def stage_curves(notes: Sequence[Sequence[Mapping[str, Any]]], stages: Iterable[str]) -> Array:
    """Median seconds over runs of each stage in each round, (stages, rounds of the shortest run)."""
    n = min(map(len, notes))
    return np.array(
        [
            np.median([[_stage(note, s) for note in run[:n]] for run in notes], axis=0)
            for s in stages
        ]
    )


def stage_seconds(notes: Iterable[Mapping[str, Any]], stage: str) -> list[float]:
    """Seconds of a stage in every round that has noted any stage."""
    return [_stage(note, stage) for note in notes if "stage_seconds" in note]


def table(runs: Sequence[Run]) -> Table:
    """Seconds and shares of each component, one row a task, algorithm and component.

    Mean over runs ± standard error, as the paper prints shares.
    """
    rows = []
    for (task, algorithm), group in noted(list(runs), "stage_seconds").items():
        found = [b for b in map(of_run, group) if b is not None]
        for i, (name, symbol) in enumerate(zip(COMPONENTS, SYMBOLS, strict=True)):
            seconds = np.array([b.seconds[i] for b in found])
            shares = np.array([100 * b.shares[name] for b in found])
            rows.append(items(task, algorithm, name, symbol, _said(seconds), _said(shares, "%")))
        totals = np.array([b.total for b in found])
        rounds = np.array([b.total / b.rounds for b in found])
        each = np.array([b.total / b.evaluations for b in found])
        rows.append(items(task, algorithm, "Total", "T_total", _said(totals), "100%"))
        rows.append(items(task, algorithm, "per round", "", _said(rounds), ""))
        rows.append(items(task, algorithm, "per evaluation", "", _said(each), ""))
        outside = np.array([b.outside for b in found])
        rows.append(items(task, algorithm, "outside the algorithm", "", _said(outside), ""))
    return Table(
        "Where the time goes",
        ("task", "algorithm", "component", "symbol", "seconds a run", "share"),
        tuple(rows),
        (
            "Mean over runs ± standard error; seconds inside the algorithm, summed over rounds. "
            "Evaluating the objectives is not part of T_total.",
        ),
    )


def command(argv: Sequence[str]) -> int:
    """neuropareto analyse timing: where the time of runs goes."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse timing", description=__doc__)
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="record, folder of records, or study"
    )
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    runs = [run for path in options.runs for run in runs_of(path)]
    print(render(table(runs), options.format), end="")
    return 0


def _stage(note: Mapping[str, Any], stage: str) -> float:
    # A round that fell back to quasi-random points has no stages.
    return float(note.get("stage_seconds", {}).get(stage, 0.0))


def _said(values: Array, unit: str = "") -> str:
    spread = Spread.of(values)
    error = f" ±{number(spread.error, 2)}{unit}" if spread.n > 1 else ""
    return f"{number(spread.mean, 3)}{unit}{error}"
