"""The demo: the main job on the embedded default, from start design to report.

The geothermal reservoir (160 variables, two objectives), 300 simulations; then pictures and a
report in one folder whose files it prints. ``--problem dtlz2 --variables 100`` runs a benchmark
problem instead. ``make demo`` and ``neuropareto demo`` call it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from neuropareto import pareto
from neuropareto.algorithms import algorithm
from neuropareto.minimize import minimize
from neuropareto.problem import Problem
from neuropareto.problems import problem
from neuropareto.problems.geothermal import Reservoir, coarse_reservoir
from neuropareto.problems.geothermal.album import draw
from neuropareto.report import write_report
from neuropareto.result import Result

RESERVOIRS = {"geothermal": Reservoir, "geothermal-coarse": coarse_reservoir}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="neuropareto demo", description=__doc__)
    parser.add_argument("--problem", default="geothermal", help="a name that problems() lists")
    parser.add_argument("--variables", type=int, default=None, metavar="D")
    parser.add_argument("--algorithm", default="neuropareto", help="a name of algorithms()")
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
        algorithm=algorithm(options.algorithm),
    )
    options.output.mkdir(parents=True, exist_ok=True)
    made = {"picture": options.output / "front.png"}
    result.plot(made["picture"])
    made["every evaluation"] = result.to_csv(options.output / "evaluations.csv")
    table = summary(task, result)
    if options.problem in RESERVOIRS:
        reservoir = RESERVOIRS[options.problem]()
        album = draw(reservoir, result.X, result.F, result.notes, options.output)
        made |= {f"{name} picture": path for name, path in album.pictures.items()}
        table.add_row("structured front (49 simulations)", f"{album.yardstick:.5g}")
    made["report"] = options.output / "report.html"
    write_report(result, made["report"])
    console.print(table)
    for what, path in made.items():
        console.print(f"{what:>20}: {path}", highlight=False, soft_wrap=True)
    return 0


def summary(task: Problem, result: Result) -> Table:
    """Hypervolume (and IGD, where the true front is known) of the start design and of everything."""
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
