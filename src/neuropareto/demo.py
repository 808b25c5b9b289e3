"""The demo: the main job on the embedded default, from start design to report.

Runs 300 evaluations, draws a picture, and writes a report, all into one folder whose files it
prints. ``make demo`` and ``neuropareto demo`` call it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from neuropareto import pareto
from neuropareto.minimize import minimize
from neuropareto.neuropareto import NeuroPareto
from neuropareto.problem import Problem
from neuropareto.problems import problem
from neuropareto.report import write_report
from neuropareto.result import Result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="neuropareto demo", description=__doc__)
    parser.add_argument("--problem", default="dtlz2", help="a name that problems() lists")
    parser.add_argument("--variables", type=int, default=100, metavar="D")
    parser.add_argument("--budget", type=int, default=300, metavar="N")
    parser.add_argument("--batch", type=int, default=10, metavar="Q")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    options = parser.parse_args(argv)

    console = Console()
    task = problem(options.problem, d=options.variables)
    console.print(
        f"[bold]{task.name}[/bold]: {task.d} variables, {task.n_objectives} objectives, "
        f"{options.budget} evaluations in batches of {options.batch}"
    )
    result = minimize(
        task,
        budget=options.budget,
        batch=options.batch,
        seed=options.seed,
        algorithm=NeuroPareto(),
    )
    options.output.mkdir(parents=True, exist_ok=True)
    result.plot(options.output / "front.png")
    result.to_csv(options.output / "evaluations.csv")
    write_report(result, options.output / "report.html")
    console.print(_summary(task, result))
    for name, what in (
        ("front.png", "picture"),
        ("report.html", "report"),
        ("evaluations.csv", "every evaluation"),
    ):
        console.print(f"{what:>17}: {options.output / name}", highlight=False, soft_wrap=True)
    return 0


def _summary(task: Problem, result: Result) -> Table:
    table = Table(title=f"{len(result.front)} points on the front, {result.seconds:.0f} s in all")
    start = int(result.notes[0]["evaluations"]) if result.notes else len(result.F)
    table.add_column("after")
    table.add_column("hypervolume", justify="right")
    if task.front is not None:
        table.add_column("IGD", justify="right")
    for label, n in (("start design", start), ("all evaluations", len(result.F))):
        row = [f"{label} ({n})", f"{result.history.hypervolume[n - 1]:.5g}"]
        if task.front is not None:
            row.append(f"{pareto.igd(result.F[:n], np.asarray(task.front())):.4g}")
        table.add_row(*row)
    return table
