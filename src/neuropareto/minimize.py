"""minimize: the whole job in one call, in this process.

Start design, then batches proposed by the algorithm, until the budget is spent. An evaluation
that raises or returns NaN is recorded as failed and the run goes on. Ctrl-C returns what is known.
For simulators behind a command line, parallel workers and runs that survive a crash see
``neuropareto.study``.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuropareto.algorithm import Algorithm
from neuropareto.optimizer import Batch, Optimizer, Trial, start_design_size, whole
from neuropareto.problem import Problem
from neuropareto.progress import Bar, Reporter, Silent
from neuropareto.result import Result, present_hypervolume, result_of
from neuropareto.space import Array, Space, SpaceLike, numbers


def minimize(  # noqa: PLR0913 - the front door: every option of a run, keyword-only
    objective: Problem | Callable[[Array], Any],
    space: SpaceLike | None = None,
    *,
    n_objectives: int | None = None,
    budget: int,
    batch: int = 10,
    algorithm: Algorithm | None = None,
    seed: int | None = None,
    n_initial: int | None = None,
    directions: Sequence[str] | None = None,
    n_constraints: int = 0,
    reference_point: npt.ArrayLike | None = None,
    vectorized: bool = False,
    progress: bool = True,
) -> Result:
    """Find the Pareto front of an expensive function in ``budget`` evaluations.

    ``objective`` takes one point (d,) and returns m numbers, or with ``vectorized=True`` takes
    (n, d) and returns (n, m); with constraints it returns a pair (objectives, constraints), where
    <= 0 is feasible. A :class:`Problem` may stand in its place and brings space, objective count,
    directions and reference point. ``algorithm`` is :class:`NeuroPareto` unless another is given;
    ``seed=None`` draws one, which ``result.seed`` tells. ``n_initial`` defaults to the paper's
    start design, but at most a third of the budget.
    """
    problem = _as_problem(objective, space, n_objectives, directions, n_constraints, vectorized)
    budget, batch = whole(budget, "budget", least=1), whole(batch, "batch", least=1)
    if reference_point is not None:
        problem = replace(problem, reference_point=numbers(reference_point, "The reference point"))
    if n_initial is None:
        n_initial = start_design_size(problem.d, budget)
    elif whole(n_initial, "n_initial", least=0) > budget:
        raise ValueError(
            f"The budget must cover the start design, got budget={budget} and "
            f"n_initial={n_initial}; raise the budget or lower n_initial."
        )
    optimizer = Optimizer(
        problem.space,
        problem.n_objectives,
        algorithm if algorithm is not None else _default_algorithm(),
        seed=secrets.randbelow(2**32) if seed is None else seed,
        n_initial=n_initial,
        directions=problem.directions,
        n_constraints=problem.n_constraints,
    )
    reference = problem.reference_point
    reporter: Reporter = Bar(budget, problem.name) if progress else Silent()
    began, interrupted = time.perf_counter(), False
    with reporter:
        try:
            while (done := len(optimizer.succeeded)) < budget:
                # The start design is one batch: no model is waiting for a part of it.
                n = n_initial - done if done < n_initial else min(batch, budget - done)
                _evaluate(problem, optimizer.ask(n), optimizer, reporter, reference)
        except KeyboardInterrupt:
            interrupted = True
    return result_of(
        optimizer,
        reference_point=reference,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
        name=problem.name,
    )


def _default_algorithm() -> Algorithm:
    from neuropareto.neuropareto import NeuroPareto  # torch is imported only when it is needed

    return NeuroPareto()


def _evaluate(
    problem: Problem, asked: Batch, optimizer: Optimizer, reporter: Reporter, reference: Any
) -> None:
    """Evaluate a batch and tell each result; only a vectorized function sees several rows at once."""
    at_once = isinstance(problem.objective, _Vectorized)
    for trials in [list(asked)] if at_once else [[t] for t in asked]:
        try:
            outcome = problem.objective(np.array([t.x for t in trials]))
        except KeyboardInterrupt:
            raise
        except BaseException:  # any error of the user's function, also SystemExit, is a failure
            optimizer.fail(trials, traceback.format_exc())
        else:
            _tell(optimizer, trials, outcome)
        reporter.update(
            len(optimizer.succeeded),
            hypervolume=present_hypervolume(optimizer, reference),
            front=len(optimizer.archive.front_indices),
            failed=len(optimizer.failures),
        )


def _tell(optimizer: Optimizer, trials: list[Trial], outcome: Any) -> None:
    try:
        F, G = _parted(outcome) if optimizer.n_constraints else (outcome, None)
        optimizer.tell(trials, F, G)
    except ValueError as error:
        # Before the first success a wrong shape is a mistake in the function, so it is said at
        # once; after it, one odd answer must not end a run that has cost hours.
        if not len(optimizer.archive):
            raise ValueError(f"The objective's return value does not fit. {error}") from None
        optimizer.fail(trials, str(error))


def _parted(outcome: Any) -> tuple[Any, Any]:
    """Objectives and constraints; without the latter it is the optimizer who complains."""
    if not isinstance(outcome, tuple):
        return outcome, None
    if len(outcome) != 2:
        raise ValueError(
            "With constraints the function must return a pair (objectives, constraints), got "
            f"{len(outcome)} values; write return (f1, f2), (g1, g2)."
        )
    return outcome


@dataclass(frozen=True)
class _Vectorized:
    """A user's function of many points, (n, d) -> (n, m)."""

    function: Callable[[Array], Any]

    def __call__(self, X: Array) -> Any:
        return self.function(X)


@dataclass(frozen=True)
class _Pointwise:
    """A user's function of one point, (d,) -> m numbers, called with the only row of X."""

    function: Callable[[Array], Any]

    def __call__(self, X: Array) -> Any:
        return self.function(X[0])


def _as_problem(
    objective: Any,
    space: SpaceLike | None,
    n_objectives: int | None,
    directions: Sequence[str] | None,
    n_constraints: int,
    vectorized: bool,
) -> Problem:
    if isinstance(objective, Problem):
        own = (objective.n_objectives, objective.n_constraints, objective.directions)
        given = (n_objectives or own[0], n_constraints or own[1], _words(directions) or own[2])
        if space is not None or given != own:
            raise ValueError(
                f"The problem {objective.name!r} brings its own space, objectives, directions and "
                "constraints; leave out space, n_objectives, directions and n_constraints."
            )
        return objective
    if not callable(objective):
        raise ValueError(
            f"The objective must be a function or a Problem, got {type(objective).__name__}."
        )
    if space is None or n_objectives is None:
        raise ValueError(
            "A function needs its space and n_objectives: "
            "minimize(f, [(0, 1)] * 5, n_objectives=2, budget=100)."
        )
    return Problem(
        getattr(objective, "__name__", "objective"),
        Space.of(space),
        whole(n_objectives, "n_objectives", least=1),
        _Vectorized(objective) if vectorized else _Pointwise(objective),
        n_constraints=whole(n_constraints, "n_constraints", least=0),
        directions=_words(directions),
    )


def _words(directions: Sequence[str] | None) -> tuple[str, ...] | None:
    """A lone word counts as one direction, so that an error shows what was given."""
    if directions is None:
        return None
    return (directions,) if isinstance(directions, str) else tuple(directions)
