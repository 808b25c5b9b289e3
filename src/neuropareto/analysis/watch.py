"""Watching a run without changing it: two stages of NeuroPareto wrapped by observers.

The observer of the screening sees pool, belief and shortlist, that of the selection sees the
surrogate's predictions and the choice. Both pass on what their stage returned, and draw nothing
from its stream, so the watched run is the same bit for bit. The truth is asked for afterwards,
from a problem that tells it for free.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from neuropareto import pareto
from neuropareto.acquisition.contract import Signals, Utility
from neuropareto.algorithms import algorithm as algorithm_called
from neuropareto.analysis.observation import ENDING, ObservedRound, ObservedRun
from neuropareto.archive import Archive, Indices
from neuropareto.bench.made import made_now
from neuropareto.bench.measures import reference_point, true_front
from neuropareto.candidates import Pool
from neuropareto.classifier import RankBelief
from neuropareto.neuropareto import NeuroPareto
from neuropareto.optimizer import Optimizer, start_design_size
from neuropareto.problem import Problem, signs
from neuropareto.problems import problem as problem_called
from neuropareto.screening import Screening
from neuropareto.selection import Selection
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted

MOST_FRONT_POINTS = 1000


@dataclass
class Diary:
    """What the observers have written down in the present round."""

    archive: Archive | None = None
    pool: Pool | None = None
    belief: RankBelief | None = None
    short: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    mean: Array = field(default_factory=lambda: np.empty((0, 0)))
    chosen: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class WatchedScreening:
    """A screening that writes down what it was shown and what it kept."""

    inner: Screening
    diary: Diary

    def shortlist(
        self,
        pool: Pool,
        belief: RankBelief,
        archive: Archive,
        model: Fitted,
        *,
        rng: np.random.Generator,
    ) -> Indices:
        """What the inner screening keeps."""
        short = self.inner.shortlist(pool, belief, archive, model, rng=rng)
        self.diary.archive, self.diary.pool, self.diary.belief = archive, pool, belief
        self.diary.short = short
        return short


@dataclass(frozen=True)
class WatchedSelection:
    """A selection that writes down the surrogate's mean and what it chose."""

    inner: Selection
    diary: Diary

    def choose(
        self,
        signals: Signals,
        utility: Utility,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        feasibility: Array,
    ) -> Indices:
        """What the inner selection chooses."""
        rows = self.inner.choose(
            signals, utility, archive, q, pending=pending, feasibility=feasibility
        )
        self.diary.mean, self.diary.chosen = signals.mean, rows
        return rows


def observe(
    problem: Problem,
    algorithm: NeuroPareto,
    *,
    seed: int,
    budget: int,
    batch: int = 10,
    n_initial: int | None = None,
    name: str = "neuropareto",
) -> ObservedRun:
    """Run ``algorithm`` on ``problem`` and see every round beside the truth.

    Needs a problem without constraints and noise, with a known front and a reference point. Raises
    ValueError otherwise, and if the budget leaves no round after the start design.
    """
    reference, front = _yardstick(problem)
    n_initial = start_design_size(problem.d) if n_initial is None else n_initial
    if budget <= n_initial:
        raise ValueError(
            f"The budget must leave evaluations after the start design of {n_initial}, got {budget}; "
            "raise it or lower n_initial."
        )
    diary = Diary()
    watched = replace(
        algorithm,
        screening=WatchedScreening(algorithm.screening, diary),
        selection=WatchedSelection(algorithm.selection, diary),
    )
    optimizer = Optimizer(
        problem.space, problem.n_objectives, watched,
        seed=seed, n_initial=n_initial, directions=problem.directions,
    )  # fmt: skip
    rounds, skipped = [], 0
    while (done := len(optimizer.archive)) < budget:
        n = n_initial - done if done < n_initial else min(batch, budget - done)
        asked = optimizer.ask(n)
        optimizer.tell(asked, _objectives(problem, asked.X))
        if done < n_initial:
            continue
        if "quasi_random" in optimizer.notes[-1]:
            skipped += 1
        else:
            rounds.append(_seen(diary, problem, optimizer.archive.F[done:]))
    if not rounds:
        raise ValueError(
            "No round had models, so there is nothing to see; use a larger n_initial."
        )
    thinned = front[:: -(-len(front) // MOST_FRONT_POINTS)]
    best = pareto.hypervolume(front, reference)
    return ObservedRun(
        problem.name, name, seed, problem.d, reference, thinned, best, tuple(rounds), skipped,
        made_now(),
    )  # fmt: skip


def _yardstick(problem: Problem) -> tuple[Array, Array]:
    reference, front = reference_point(problem), true_front(problem)
    if reference is None or front is None or problem.n_constraints:
        raise ValueError(
            f"The bound needs a problem without constraints whose front and reference point are "
            f"known, got {problem.name!r}; choose one that `python -m neuropareto.problems` lists "
            "with 'front known: yes'."
        )
    return reference, front


def _objectives(problem: Problem, X: Array) -> Array:
    outcome = problem.objective(X)
    return outcome[0] if isinstance(outcome, tuple) else outcome


def _seen(diary: Diary, problem: Problem, evaluated: Array) -> ObservedRound:
    archive, pool, belief = diary.archive, diary.pool, diary.belief
    assert archive is not None and pool is not None and belief is not None
    X = problem.space.from_unit(pool.U)
    return ObservedRound(
        known=archive.F,
        nearby=archive.reference_point,
        pool=np.asarray(signs(problem.directions, problem.n_objectives) * _objectives(problem, X)),
        probability=belief.probability,
        information=belief.epistemic,
        short=diary.short,
        mean=diary.mean,
        chosen=diary.chosen,
        evaluated=np.array(evaluated),
    )


def command(argv: Sequence[str]) -> int:
    """``neuropareto analyse observe``: run, watch, write what was seen."""
    parser = argparse.ArgumentParser(
        prog="neuropareto analyse observe",
        description="Run NeuroPareto on a test problem and keep what each round believed beside "
        "the truth; `analyse bound`, `rho` and `information` read these files.",
    )
    parser.add_argument("problem", help="a problem's name, as in dtlz2")
    parser.add_argument("-d", "--variables", type=int, metavar="D", help="its variables")
    parser.add_argument("-m", "--objectives", type=int, metavar="M", help="its objectives")
    parser.add_argument(
        "--algorithm", default="neuropareto", metavar="NAME", help="or an ablation"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0], metavar="S", help="default: 0"
    )
    parser.add_argument("--budget", type=int, default=300, help="evaluations (default: 300)")
    parser.add_argument("--batch", type=int, default=10, help="points a round (default: 10)")
    parser.add_argument("--initial", type=int, metavar="N", help="start design")
    parser.add_argument("-o", "--output", type=Path, default=Path("observed"), metavar="FOLDER")
    options = parser.parse_args(argv)
    spec = algorithm_called(options.algorithm)
    if not isinstance(spec, NeuroPareto):
        raise ValueError(
            f"Only NeuroPareto and its ablations can be watched, got {options.algorithm!r}."
        )
    for seed in options.seeds:
        made = problem_called(options.problem, options.variables, options.objectives, seed=seed)
        run = observe(
            made, spec, seed=seed, budget=options.budget, batch=options.batch,
            n_initial=options.initial, name=options.algorithm,
        )  # fmt: skip
        file = f"{made.name}-d{run.d}-m{run.m}-{options.algorithm}-s{seed}{ENDING}"
        run.save(options.output / file)
        print(f"{options.output / file}: {run}")
    return 0
