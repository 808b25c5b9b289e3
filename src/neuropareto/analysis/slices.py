"""1-D slices of the split uncertainty on any problem: one variable moves, the others stand still.

Appendix on the decomposition, Figure decomp_qual_revised. A surrogate is fitted to an archive; along
a line of the unit cube through one of its points the mean, epistemic and aleatoric variance are read
off, beside the truth where the problem tells it for free. Notation: g steps, m objectives.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuropareto.analysis.runs import Run, runs_of
from neuropareto.archive import Archive
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.minimize import minimize
from neuropareto.optimizer import start_design_size
from neuropareto.problem import Problem, signs
from neuropareto.problems import problem as problem_called
from neuropareto.randomness import stream
from neuropareto.space import Array
from neuropareto.surrogate import DeepGP, ExactGP
from neuropareto.surrogate.contract import Posterior, Surrogate
from neuropareto.surrogate.structured import StructuredGP

SURROGATES: dict[str, Surrogate] = {
    "deep": DeepGP(), "structured": StructuredGP(), "exact": ExactGP(),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Slice:
    """A line through ``point`` (d,) of the unit cube along ``variable``: ``t`` (g,) in [0, 1].

    ``posterior`` and ``true`` are (g, m); ``value`` (m,) are the point's evaluated objectives,
    ``seen`` (n,) the variable's values in all evaluations.
    """

    variable: int
    point: Array
    value: Array
    seen: Array
    t: Array
    posterior: Posterior
    true: Array | None

    def distance(self) -> Array:
        """Distance of each step from the point, (g,)."""
        return np.asarray(np.abs(self.t - self.point[self.variable]))

    def coverage(self, width: float = 2.0) -> float | None:
        """Share of the steps at which the truth lies within ``width`` standard deviations."""
        if self.true is None:
            return None
        away = np.abs(self.true - self.posterior.mean)
        return float(np.mean(away <= width * np.sqrt(self.posterior.variance)))


def slice_through(
    archive: Archive,
    surrogate: Surrogate,
    *,
    rng: np.random.Generator,
    problem: Problem | None = None,
    variable: int | None = None,
    row: int | None = None,
    steps: int = 161,
) -> Slice:
    """Fit ``surrogate`` to an archive and slice it.

    ``variable`` is the last one and ``row`` the middle of the front unless given. ``problem``, if
    it can be evaluated for free, tells the truth. Raises ValueError for a variable or row that is
    not there.
    """
    front = archive.front_indices
    variable = archive.d - 1 if variable is None else variable
    row = int(front[len(front) // 2]) if row is None and len(front) else row or 0
    if not 0 <= variable < archive.d or not 0 <= row < len(archive):
        raise ValueError(
            f"A slice needs a variable in 0..{archive.d - 1} and a row in 0..{len(archive) - 1}, "
            f"got {variable} and {row}."
        )
    model = surrogate.fit(archive.U, archive.F, warm=None, rng=rng)
    t = np.linspace(0.0, 1.0, steps)
    U = np.repeat(archive.U[row][None], steps, axis=0)
    U[:, variable] = t
    return Slice(
        variable, np.array(archive.U[row]), np.array(archive.F[row]),
        np.array(archive.U[:, variable]), t, model.posterior(U),
        None if problem is None else truth(problem, U),
    )  # fmt: skip


def truth(problem: Problem, U: Array) -> Array:
    """The problem's objectives at points (g, d) of the unit cube, minimised, (g, m)."""
    outcome = problem.objective(problem.space.from_unit(U))
    F = outcome[0] if isinstance(outcome, tuple) else outcome
    return np.asarray(signs(problem.directions, problem.n_objectives) * F)


def table(found: Slice) -> Table:
    """Standard deviations near the point, half way and far from it, one row an objective."""
    distance = found.distance()
    parts = {"near": distance <= 0.1, "far": distance > 0.4}
    rows = []
    for j in range(len(found.value)):
        for name, where in parts.items():
            if not where.any():
                continue
            sds = [
                float(np.sqrt(v[where, j].mean()))
                for v in (found.posterior.epistemic, found.posterior.aleatoric)
            ]
            error = (
                float("nan")
                if found.true is None
                else float(np.sqrt(np.mean((found.true - found.posterior.mean)[where, j] ** 2)))
            )
            rows.append(items(f"f{j + 1}", name, *(number(s, 3) for s in (*sds, error))))
    covered = found.coverage()
    said = "" if covered is None else f" 2 sd cover the truth at {100 * covered:.0f} % of steps."
    return Table(
        f"Slice along variable {found.variable + 1}",
        ("objective", "distance", "epistemic sd", "aleatoric sd", "error of the mean"),
        tuple(rows),
        (f"near: within 0.1 of the evaluated point; far: beyond 0.4.{said}",),
    )


def command(argv: Sequence[str]) -> int:
    """neuropareto analyse slice: mean and split uncertainty along one variable."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse slice", description=__doc__)
    parser.add_argument("subject", metavar="RUN|PROBLEM", help="record, study, or problem's name")
    parser.add_argument("-d", type=int, metavar="D", help="variables of the problem")
    parser.add_argument("--variable", type=int, metavar="I", help="counted from 1; default: last")
    parser.add_argument("--surrogate", choices=SURROGATES, default="deep", help="default: deep")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw it")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    title, archive, problem = _subject(options.subject, options.d, options.seed)
    found = slice_through(
        archive, SURROGATES[options.surrogate], rng=stream(options.seed, 0, "slice"),
        problem=problem, variable=None if options.variable is None else options.variable - 1,
    )  # fmt: skip
    print(render(table(found), options.format), end="")
    if options.figure is not None:
        from neuropareto.bench.figures.models import slice_figure

        slice_figure(found, f"{options.surrogate} surrogate, {title}").savefig(
            options.figure, dpi=100
        )
        print(options.figure)
    return 0


def _subject(text: str, d: int | None, seed: int) -> tuple[str, Archive, Problem | None]:
    if Path(text).exists():
        run: Run = next((r for r in runs_of(text) if r.archive is not None), runs_of(text)[0])
        if run.archive is None:
            raise ValueError(f"{text} keeps only the points of its front; a slice needs all.")
        return f"{run.task}, {len(run.archive)} evaluations", run.archive, run.problem
    problem = problem_called(text, d, seed=seed)
    n = start_design_size(problem.d)
    result = minimize(problem, budget=n, n_initial=n, seed=seed, progress=False)
    F = signs(problem.directions, problem.n_objectives) * result.F
    archive = Archive.of(problem.space.to_unit(result.X), F)
    return f"{problem.name} {problem.d}D, {n} evaluations", archive, problem
