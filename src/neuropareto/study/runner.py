"""run: evaluate a study until its budget is spent, on any engine, through any accident.

Asynchronous by default: with w workers w points are in flight, and each one that ends triggers the
next proposal, which knows the points still pending. ``batch=n`` waits for n points before it
proposes the next n. Execution is at least once, recording exactly once: a point whose worker dies
runs again, and a result counts for its trial a single time. The budget counts finished evaluations
of the study, failures included, over all its lives; points left over from an earlier life go first.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from neuropareto.optimizer import Trial, whole
from neuropareto.problem import Problem
from neuropareto.result import Result, present_hypervolume
from neuropareto.space import Array
from neuropareto.study.engines import EngineLike, Pool, engine_of
from neuropareto.study.errors import StorageError, StudyError
from neuropareto.study.evaluation import Evaluator, Job, Pointwise, Report, Rowwise, Task
from neuropareto.study.events import Retried
from neuropareto.study.interruption import Interruption
from neuropareto.study.limits import FailureStop, Limits, Retries, TooManyFailuresError
from neuropareto.study.live import Live, Quiet, Watcher
from neuropareto.study.pulse import Pulse
from neuropareto.study.simulator import Simulator
from neuropareto.study.study import Study

_NO_LIMITS, _USUAL_RETRIES, _USUAL_STOP = Limits(), Retries(), FailureStop()


def run(  # noqa: PLR0913 - the front door: every option of a run, keyword-only
    study: Study,
    objective: Simulator | Problem | Callable[[Array], Any],
    budget: int,
    *,
    workers: int = 1,
    engine: EngineLike = "processes",
    batch: int | None = None,
    limits: Limits = _NO_LIMITS,
    retries: Retries = _USUAL_RETRIES,
    failure_stop: FailureStop = _USUAL_STOP,
    progress: bool = True,
) -> Result:
    """Evaluate ``objective`` until the study has ``budget`` finished evaluations.

    ``objective`` takes one point (d,) and returns m numbers, or with constraints a pair (m numbers,
    c numbers); a :class:`Problem` or a :class:`Simulator` may stand in its place. Ctrl-C ends the run
    in good order and returns what is known, ``result.interrupted`` being true; SIGTERM likewise,
    and is then passed on. Raises TooManyFailuresError when ``failure_stop`` says so. In every case
    the study can be run again.
    """
    budget, workers = whole(budget, "budget", least=1), whole(workers, "workers", least=1)
    batch = None if batch is None else whole(batch, "batch", least=1)
    task = _task(study, objective)
    chosen = engine_of(engine)
    title = study.description.name or "study"
    watcher: Watcher = Live(budget, study.finished, title) if progress else Quiet()
    plan = _Plan(budget, workers, batch, retries, failure_stop, type(chosen).__name__.lower())
    began = time.monotonic()
    if study.finished < budget:
        pool = chosen.open(task, workers, limits)
        with watcher, Interruption() as stop:
            loop = _Loop(study, pool, plan, watcher, stop)
            try:
                with Pulse(study, loop.running):
                    loop.run()
            finally:
                loop.close()
            interrupted = stop.requested
    else:
        interrupted = False
    return replace(study.result(), seconds=time.monotonic() - began, interrupted=interrupted)


@dataclass(frozen=True)
class _Plan:
    budget: int
    workers: int
    batch: int | None
    retries: Retries
    failure_stop: FailureStop
    label: str


class _Loop:
    """The state of one run: what waits, what is in flight, what failed how often."""

    def __init__(
        self, study: Study, pool: Pool, plan: _Plan, watcher: Watcher, stop: Interruption
    ) -> None:
        self._study, self._pool, self._plan = study, pool, plan
        self._watcher, self._stop = watcher, stop
        self._waiting: deque[Trial] = deque(study.pending)
        self._flying: dict[int, tuple[Trial, int, int]] = {}
        self._tries: Counter[tuple[int, str]] = Counter()
        self._kinds: Counter[str] = Counter()
        self._finished_before = study.finished
        self._last_reason = ""

    def run(self) -> None:
        """Until the budget is spent or somebody wants an end."""
        self._bury()
        while not self._stop.requested:
            self._launch()
            if not self._flying:
                break
            for report in self._pool.wait(0.5):
                self._take(report)
            self._show()
            self._judge()
        self._show()

    def running(self) -> tuple[int, ...]:
        """The trials that are in flight now."""
        return tuple(self._flying)

    def close(self) -> None:
        """End what runs; results that were ready are kept, the other points stay pending."""
        for report in self._pool.close():
            if report.kind == "ok":
                self._take(report)
        try:
            for trial, _, _ in self._flying.values():
                self._study.retried(trial.id, "the run was stopped", "interrupted")
        except StudyError as error:
            # Only a remark is lost, and what went wrong before is the news.
            self._watcher.say(f"The end of the run could not be recorded: {error}")
        self._flying.clear()

    # -- starting --

    def _launch(self) -> None:
        left = self._plan.budget - self._study.finished - len(self._flying)
        free = min(self._plan.workers - len(self._flying), left)
        if free > 0 and not self._waiting:
            self._propose(free, left)
        while free > 0 and self._waiting and not self._stop.requested:
            self._start(self._waiting.popleft())
            free -= 1

    def _propose(self, free: int, left: int) -> None:
        n = free
        if self._plan.batch is not None:
            if self._flying:
                return
            # The start design is one batch: no model is waiting for a part of it.
            known = self._study.finished + self._study.imported
            design = self._study.optimizer.n_initial - known
            n = min(max(self._plan.batch, design), left)
        # A study forgets a proposal that was broken off, and makes the same one the next time.
        with self._stop.breaking_off():
            self._saved(lambda: self._waiting.extend(self._study.ask(n)))

    def _start(self, trial: Trial) -> None:
        taken = {slot for _, _, slot in self._flying.values()}
        slot = next(s for s in range(1, self._plan.workers + 1) if s not in taken)
        attempt = self._study.attempts(trial.id) + 1
        self._saved(lambda: self._study.started(trial.id, f"{self._plan.label}-{slot}"))
        self._flying[trial.id] = (trial, attempt, slot)
        self._pool.start(Job(trial.id, attempt, trial.x))

    # -- ending --

    def _take(self, report: Report) -> None:
        trial, attempt, _ = self._flying.get(report.trial, (None, 0, 0))
        if trial is None or attempt != report.attempt:
            # A worker thought dead came back: its point was run again, this result is the second.
            text = f"duplicate report of trial {report.trial}, attempt {report.attempt}"
            self._saved(lambda: self._study.note(text))
            return
        if report.kind == "ok":
            G = [report.G] if report.G else None
            self._saved(lambda: self._study.tell(trial, [report.F], G), report)
        elif self._tries[report.trial, report.kind] < self._plan.retries.after(report.kind):
            self._tries[report.trial, report.kind] += 1
            self._saved(lambda: self._study.retried(trial.id, _reason(report), report.kind))
            self._waiting.appendleft(trial)
        else:
            self._kinds[report.kind] += 1
            self._last_reason = f"{report.kind}: {report.reason.strip()}"
            self._saved(lambda: self._study.fail(trial, _reason(report), report.kind))
        del self._flying[report.trial]

    def _bury(self) -> None:
        """Give up points that were under way each of the many times the whole run died."""
        for trial in tuple(self._waiting):
            if self._study.attempts(trial.id) <= self._plan.retries.lives:
                continue
            recorded = sum(
                isinstance(e, Retried) and e.trial == trial.id for e in self._study.events()
            )
            deaths = self._study.attempts(trial.id) - recorded
            if deaths > self._plan.retries.lives:
                self._waiting.remove(trial)
                reason = f"the whole run died {deaths} times while this point was evaluated"
                self._saved(lambda t=trial, r=reason: self._study.fail(t, r, "crash"))  # type: ignore[misc]

    def _judge(self) -> None:
        failed, finished = self._kinds.total(), self._study.finished - self._finished_before
        if self._plan.failure_stop.exceeded(failed, finished):
            classes = ", ".join(f"{n} {kind}" for kind, n in self._kinds.most_common())
            raise TooManyFailuresError(
                f"{failed} of the {finished} evaluations of this run failed ({classes}), more than "
                f"the allowed {self._plan.failure_stop.rate:.0%}. The last one: "
                f"{self._last_reason[-1500:]}\nThe study is safe; correct the cause and run it "
                "again, or allow more with FailureStop(rate=...)."
            )

    # -- around --

    def _saved(self, write: Callable[[], None], report: Report | None = None) -> None:
        """Write to the study; while disk or a lock refuse it, keep the result and try again."""
        pause = 0.5
        while True:
            try:
                write()
                return
            except StorageError as error:
                if self._stop.requested:
                    kept = "" if report is None else f" Not saved: {_told(report)}"
                    raise StorageError(f"{error}{kept}") from error
                self._watcher.say(f"The study file could not be written, trying again: {error}")
            until = time.monotonic() + pause
            while time.monotonic() < until and not self._stop.requested:
                time.sleep(0.05)
            pause = min(30.0, 2 * pause)

    def _show(self) -> None:
        optimizer = self._study.optimizer
        self._watcher.update(
            self._study.finished,
            running=len(self._flying),
            failed=len(optimizer.failures),
            hypervolume=lambda: present_hypervolume(optimizer, self._study.reference_point),
        )


def _reason(report: Report) -> str:
    printed = f"\n--- printed ---\n{report.output.rstrip()}" if report.output.strip() else ""
    return f"{report.reason.strip()}{printed}"


def _told(report: Report) -> str:
    """A result in the form that ``neuropareto tell`` reads."""
    return json.dumps({"id": report.trial, "objectives": report.F, "constraints": report.G})


def _task(study: Study, objective: Any) -> Task:
    optimizer = study.optimizer
    m, c = optimizer.n_objectives, optimizer.n_constraints
    evaluator: Evaluator
    if isinstance(objective, Simulator):
        evaluator, given = objective, (len(objective.objectives), len(objective.constraints))
    elif isinstance(objective, Problem):
        evaluator, given = Rowwise(objective), (objective.n_objectives, objective.n_constraints)
    elif callable(objective):
        evaluator, given = Pointwise(objective), (m, c)
    else:
        raise ValueError(
            f"The objective must be a function, a Problem or a Simulator, got "
            f"{type(objective).__name__}."
        )
    if given != (m, c):
        raise ValueError(
            f"The study has {m} objectives and {c} constraints, but the objective gives {given[0]} "
            f"and {given[1]}."
        )
    return Task(evaluator, m, c)
