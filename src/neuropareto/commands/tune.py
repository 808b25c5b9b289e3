"""neuropareto tune: find settings of the algorithm, with evidence and at a known cost.

grid PROBLEM...        whole runs of configurations of the paper's grid on test problems
two-stage PROBLEM      the paper's re-tuning protocol on one problem: at most 24 evaluations
cost [BUDGET...]       what the protocol may cost of a budget
figure FOLDER          a picture of the evidence of a finished search

PROBLEM is a test problem's name, your own package.module:Name (a Problem, or a function that
makes one), or for two-stage a study file. Kill it and run it again: it goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuropareto.analysis.cost import TUNED, allowed
from neuropareto.bench.layout import Table, items, render
from neuropareto.problem import Problem
from neuropareto.study.file import read
from neuropareto.study.simulator import Simulator
from neuropareto.study.trust import fingerprint, is_trusted

if TYPE_CHECKING:
    from neuropareto.analysis.knobs import Configuration
    from neuropareto.analysis.tuned import Tuned
    from neuropareto.neuropareto import NeuroPareto
    from neuropareto.space import Array


def main(argv: Sequence[str]) -> int:
    """Run a sub-command; returns its exit code."""
    options = _parser().parse_args(argv)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neuropareto tune", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    grid = commands.add_parser("grid", help="whole runs on test problems")
    grid.set_defaults(run=_grid)
    grid.add_argument("problems", nargs="+", metavar="PROBLEM")
    grid.add_argument(
        "--dimension", type=_count, metavar="D", help="variables (default: as usual)"
    )
    grid.add_argument("--objectives", type=_count, metavar="M")
    grid.add_argument("--initial", type=int, metavar="N", help="size of the start design")
    grid.add_argument("--batch", type=_count, default=10, metavar="Q")
    grid.add_argument("--seeds", type=_count, default=1, metavar="N")
    grid.add_argument(
        "--configurations", default="one-at-a-time", metavar="WHICH",
        help="one-at-a-time (default), all, or a number of random ones",
    )  # fmt: skip
    two = commands.add_parser("two-stage", help="the re-tuning protocol on one problem")
    two.set_defaults(run=_two_stage)
    two.add_argument("problem", metavar="PROBLEM")
    two.add_argument("--dimension", type=_count, metavar="D")
    two.add_argument("--objectives", type=_count, metavar="M")
    two.add_argument("--initial", type=int, metavar="N", help="size of the start design")
    two.add_argument("--seed", type=int, default=0)
    two.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER",
        help="a finished grid search whose best configurations are transferred",
    )  # fmt: skip
    two.add_argument("--refine", choices=("auto", "always", "never"), default="auto")
    two.add_argument("--threshold", type=float, default=0.5, help="of the validation signal")
    two.add_argument("--trust", action="store_true", help="run a study's program without asking")
    for each in (grid, two):
        each.add_argument("--budget", type=_count, metavar="N", help="evaluations (default: 300)")
        each.add_argument("--pipeline", choices=("paper", "default"), default="paper")
        each.add_argument("-o", "--output", type=Path, default=Path("tuning"), metavar="FOLDER")
        each.add_argument("--quiet", action="store_true")
    cost = commands.add_parser("cost", help="what the protocol may cost of a budget")
    cost.set_defaults(run=_cost)
    cost.add_argument("budgets", nargs="*", type=_count, default=[300, 500], metavar="BUDGET")
    figure = commands.add_parser("figure", help="a picture of the evidence")
    figure.set_defaults(run=_figure)
    figure.add_argument("folder", type=Path)
    figure.add_argument("-o", "--output", type=Path, default=Path("tuned.png"), metavar="FILE")
    return parser


def _count(text: str) -> int:
    """A number of things on the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)


def _figure(options: argparse.Namespace) -> int:
    from neuropareto.analysis.evidence_figure import evidence_figure

    evidence_figure(options.folder).savefig(options.output, dpi=100)
    print(options.output)
    return 0


def _grid(options: argparse.Namespace) -> int:
    from neuropareto.analysis.knobs import PIPELINES
    from neuropareto.analysis.tuning import Search, search, tasks_of

    pipeline = PIPELINES[options.pipeline]
    settings: dict[str, Any] = {"budget": options.budget or 300, "batch": options.batch}
    given = {
        "dimensions": [options.dimension] if options.dimension else None,
        "objectives": [options.objectives] if options.objectives else None,
        "n_initial": options.initial,
    }
    settings |= {key: value for key, value in given.items() if value is not None}
    plan = Search(
        pipeline, _configurations(options.configurations, pipeline),
        tasks_of(options.problems, settings), tuple(range(options.seeds)),
    )  # fmt: skip
    return _told(search(plan, options.output, told=_teller(options)), options.output)


def _two_stage(options: argparse.Namespace) -> int:
    from neuropareto.analysis.knobs import PIPELINES, one_at_a_time
    from neuropareto.analysis.retuning import Retuning, retune
    from neuropareto.analysis.tuning import transferable

    pipeline = PIPELINES[options.pipeline]
    plan = Retuning(
        pipeline,
        one_at_a_time(pipeline)
        if options.source is None
        else transferable(options.source / TUNED, pipeline),
        options.budget or 300, options.seed, options.initial, options.refine, options.threshold,
    )  # fmt: skip
    if Path(options.problem).suffix == ".toml":
        file = read(Path(options.problem))
        plan = replace(
            plan, budget=options.budget or file.budget, seed=file.seed,
            n_initial=file.initial if options.initial is None else options.initial,
        )  # fmt: skip
        problem = _of_study(options)
    else:
        problem = _problem(options)
    return _told(retune(plan, problem, options.output, told=_teller(options)), options.output)


def _cost(options: argparse.Namespace) -> int:
    rows = [items(budget, *allowed(budget).texts()) for budget in options.budgets]
    title = "What re-tuning may cost (evaluations, share of the budget)"
    print(render(Table(title, ("budget", "transfer", "refine", "total"), tuple(rows)), "text"))
    return 0


def _configurations(which: str, pipeline: NeuroPareto) -> tuple[Configuration, ...]:
    from neuropareto.analysis.knobs import one_at_a_time, sampled_grid, whole_grid
    from neuropareto.randomness import stream

    if which == "one-at-a-time":
        return one_at_a_time(pipeline)
    if which == "all":
        return tuple(whole_grid(pipeline))
    if not which.isdigit() or not int(which):
        raise ValueError(f"--configurations is one-at-a-time, all or a number, got {which!r}.")
    return sampled_grid(pipeline, int(which), rng=stream(0, 0, "tuning-grid"))


def _problem(options: argparse.Namespace) -> Problem:
    from neuropareto.problems import problem

    name, _, attribute = options.problem.partition(":")
    if not attribute or name in ("pymoo", "botorch"):
        return problem(options.problem, options.dimension, options.objectives)
    sys.path.insert(0, str(Path.cwd()))  # the user's module may lie here, as for `python -m`
    try:
        made: Any = vars(importlib.import_module(name))[attribute]
    except (ImportError, KeyError) as error:
        raise ValueError(f"{options.problem!r} cannot be imported: {error}.") from error
    try:
        found = made if isinstance(made, Problem) else made()
    except TypeError as error:
        raise ValueError(
            f"{options.problem!r} is no neuropareto.Problem and makes none: {error}."
        ) from error
    if not isinstance(found, Problem):
        raise ValueError(f"{options.problem!r} is no neuropareto.Problem and makes none.")
    return found


def _of_study(options: argparse.Namespace) -> Problem:
    file = read(Path(options.problem))
    if file.simulator is None:
        raise ValueError(f"{file.path.name} has no [evaluation] table; nothing can be evaluated.")
    if not (options.trust or is_trusted(fingerprint(file.simulator))):
        raise ValueError(
            f"{file.path.name} has not been run by you before; read it, then say so with --trust."
        )
    return Problem(
        file.name, file.space, len(file.objectives), _Program(file.simulator.guarded(file.limits)),
        len(file.constraints), tuple(file.objectives.values()), None,
    )  # fmt: skip


class _Program:
    """A study's program as a function of one point; each call is a trial of its own."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator, self._calls = simulator, 0

    def __call__(self, X: Array) -> Any:
        from neuropareto.study.evaluation import Job

        self._calls += 1
        return self._simulator.evaluate(Job(self._calls - 1, 1, X[0]))


def _teller(options: argparse.Namespace) -> Any:
    return (lambda text: None) if options.quiet else (lambda text: print(text, file=sys.stderr))


def _told(tuned: Tuned, folder: Path) -> int:
    print(tuned.markdown(), end="")
    print(f"\n{folder / TUNED}")
    return 0
