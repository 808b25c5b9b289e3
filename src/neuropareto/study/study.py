"""Study: an optimizer whose every step is on disk before the call returns.

The event log is the truth. What is in memory is rebuilt from it: on opening, and whenever a call
was interrupted or could not be stored. The same log gives the same optimizer, so a reopened study
proposes what the uninterrupted one would have proposed, bit for bit on the same machine, and a
finished point is never evaluated again.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuropareto.algorithm import Algorithm
from neuropareto.optimizer import Batch, Optimizer, Points, whole
from neuropareto.problem import Problem
from neuropareto.result import Result, result_of
from neuropareto.space import Array, Space, SpaceLike
from neuropareto.study import events as log
from neuropareto.study.description import (
    READING,
    Bound,
    Description,
    Objectives,
    named_objectives,
)
from neuropareto.study.errors import StartDesignOnly, StudyDamaged, StudyError
from neuropareto.study.events import Event, plain, shortened
from neuropareto.study.limits import FailureStop, Limits, Retries
from neuropareto.study.matching import named, outcomes
from neuropareto.study.replay import Books, Replay
from neuropareto.study.store import Store
from neuropareto.study.warm import Warm, storable

if TYPE_CHECKING:
    from neuropareto.study.engines import EngineLike
    from neuropareto.study.simulator import Simulator

_NO_LIMITS, _USUAL_RETRIES, _USUAL_STOP = Limits(), Retries(), FailureStop()

LEAST_ROOM = 4 * 2**20
"""Free bytes below which no new points are proposed, so that running ones can still be told."""


class Study:
    """A durable optimisation in one file; build it with ``create``, ``open`` or ``view``.

    A context manager: leaving it closes the file. Safe to use from several threads.
    """

    def __init__(self, store: Store, algorithm: Algorithm | None) -> None:
        self.description, self._created = Description.first(store.events())
        self._store, self._algorithm = store, self.description.agreed(algorithm)
        self._lock, self._bookkeeping = threading.RLock(), threading.Lock()
        self._optimizer: Optimizer | None = None
        self._books = Books()
        self._dropped = ""

    # -- opening and closing --

    @classmethod
    def create(  # noqa: PLR0913 - the front door: all that defines a study
        cls,
        path: str | os.PathLike[str],
        space: SpaceLike,
        objectives: Objectives,
        algorithm: Algorithm,
        *,
        seed: int,
        n_initial: int | None = None,
        budget: int | None = None,
        n_constraints: int = 0,
        reference_point: npt.ArrayLike | None = None,
        name: str = "",
        bounds: Sequence[Bound] | None = None,
    ) -> Study:
        """A new study at ``path``, which must not exist.

        ``objectives`` is their number, a list of names, or {name: "minimize" or "maximize"}.
        ``n_initial`` points come before the algorithm's, by default 100, or 200 from 100 variables on;
        where the planned ``budget`` is told, at most a third of it. It is not a limit: see :meth:`run`.
        ``bounds`` keeps what the constraints mean, for whoever opens the study later.
        """
        names, directions = named_objectives(objectives)
        optimizer = Optimizer(
            Space.of(space), len(names), algorithm, seed=seed, n_initial=n_initial,
            budget=budget, directions=directions, n_constraints=n_constraints,
        )  # fmt: skip
        description = Description.of(
            optimizer, objectives, reference_point=reference_point, name=name, bounds=bounds
        )
        return cls._ready(Store.create(path, description.to_json()), algorithm)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        algorithm: Algorithm | None = None,
        take_over: bool = False,
    ) -> Study:
        """An existing study, for writing.

        ``algorithm`` is needed only where it is not part of this package, and must be the one that
        the study was created with. ``take_over`` allows writing after a writer on another host has
        gone silent. Raises StudyInUse, StudyDamaged or StudyError.
        """
        return cls._ready(Store.approach(path, take_over=take_over), algorithm)

    @classmethod
    def view(cls, path: str | os.PathLike[str]) -> Study:
        """An existing study, for reading while others write; :meth:`refresh` catches up."""
        return cls._ready(Store.view(path), READING)

    @classmethod
    def _ready(cls, store: Store, algorithm: Algorithm | None) -> Study:
        try:
            study = cls(store, algorithm)
            study.refresh()
            # Only now, so that a file that cannot be read to its end is not written to either.
            if store.claim() not in (None, study._books.seq):
                study._optimizer = None  # a writer has come and gone meanwhile
            study._drop_memory()
        except BaseException:
            store.close()
            raise
        return study

    def refresh(self) -> int:
        """Take in what was written since; returns how many events were read."""
        with self._lock, self._bookkeeping:
            optimizer, books, warm = self._optimizer, self._books, None
            if optimizer is not None and self._store.writable:
                return 0  # nobody else can have written
            if optimizer is None:
                optimizer, books = self.description.optimizer(self._algorithm), Books()
                try:
                    warm = self._store.memory()
                except StudyDamaged as error:
                    self._dropped = str(error)
            before = books.seq
            self._optimizer = None
            Replay(optimizer, books, warm).feed(self._store.events(since=before))
            self._optimizer, self._books = optimizer, books
            return books.seq - before

    def _drop_memory(self) -> None:
        if self._dropped and self._store.writable:
            note = log.Note(f"warm-start memory dropped: {self._dropped}")
            self._store.append([note], memory=Warm(0, {}))
            self._dropped = ""

    def close(self) -> None:
        """Record the end and give the file back; a study may be closed twice."""
        with self._lock:
            try:
                if self._store.writable:
                    self._store.append([log.Closed()])
            finally:
                self._store.close()

    def __enter__(self) -> Study:
        """The study itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an error, that error is the one to report."""
        if kind is None:
            self.close()
            return
        with suppress(StudyError):
            self.close()

    # -- asking and telling --

    def ask(self, n: int = 1) -> Batch:
        """The next n points, on disk before they are returned."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(
                f"The number of points to ask for must be a whole number >= 1, got {n!r}."
            )
        with self._lock:
            self._store.check_writable()
            self._store.check_room(LEAST_ROOM)
            optimizer, books = self._state()
            with self._forgetting():
                rounds = len(optimizer.notes)
                batch = optimizer.ask(int(n))
                note, memory = None, None
                if len(optimizer.notes) > rounds:
                    # Live and reopened study go on with the very same notes and memory.
                    note = optimizer.notes[-1] = plain(optimizer.notes[-1])
                    optimizer.memory = storable(optimizer.memory)
                    memory = Warm(books.asks, optimizer.memory or {})
                self._store.append(
                    [
                        log.Asked(trial.id, books.asks, trial.x, note if k == 0 else None)
                        for k, trial in enumerate(batch)
                    ],
                    memory=memory,
                )
                books.asked(batch)
            return batch

    def tell(self, points: Points, F: npt.ArrayLike, G: npt.ArrayLike | None = None) -> None:
        """Report results, as :meth:`Optimizer.tell`; they are on disk when this returns.

        Rows with NaN or inf are recorded as failed, with what came. After a ValueError nothing has
        changed; after a StorageError neither, and the same call can be repeated.
        """
        with self._lock:
            self._store.check_writable()
            optimizer, books = self._state()
            given = named(points, books.open, optimizer.space)
            with self._forgetting(ValueError):
                n_failed = len(optimizer.failures)
                optimizer.tell(given.points, F, G)
                reasons = [f.reason for f in optimizer.failures[n_failed:]]
                self._store.append(outcomes(given, F, G, iter(reasons)))
                books.closed(given.trials)

    def fail(self, points: Points, reason: str, kind: str = "error") -> None:
        """Report that these evaluations failed for good; ``kind`` is the class of failure."""
        reason = shortened(str(reason))
        with self._lock:
            self._store.check_writable()
            optimizer, books = self._state()
            given = named(points, books.open, optimizer.space)
            with self._forgetting(ValueError):
                optimizer.fail(given.points, reason)
                self._store.append(
                    [
                        log.Failed(t, reason, shortened(str(kind)), x if t is None else None)
                        for t, x in zip(given.trials, given.X, strict=True)
                    ]
                )
                books.closed(given.trials)

    @contextmanager
    def _forgetting(self, *harmless: type[BaseException]) -> Iterator[None]:
        """After an error the optimizer may be half changed: forget it, the log knows better."""
        try:
            yield
        except harmless:
            raise
        except BaseException:
            self._optimizer = None
            raise

    # -- evaluations under way --

    def started(self, trial_id: int, worker: str) -> None:
        """Record that an attempt to evaluate the trial began on ``worker``."""
        self._sign_of_life(log.Started(trial_id, shortened(str(worker))))

    def heartbeat(self, trial_id: int) -> None:
        """Record a sign of life of the trial's evaluation."""
        self._sign_of_life(log.Heartbeat(trial_id))

    def retried(self, trial_id: int, reason: str, kind: str) -> None:
        """Record that an attempt failed and that the trial will be evaluated again."""
        self._sign_of_life(log.Retried(trial_id, shortened(str(reason)), shortened(str(kind))))

    def _sign_of_life(self, event: log.Started | log.Heartbeat | log.Retried) -> None:
        # Not under the main lock: a sign of life must not wait while a proposal is computed.
        with self._bookkeeping:
            if event.trial not in self._books.open:
                raise ValueError(
                    f"Trial {event.trial!r} is not pending: it was never asked, or is told already."
                )
            self._store.append([event])
            self._books.sign_of_life(event, time.time())

    def note(self, text: str) -> None:
        """Record a remark."""
        self._store.append([log.Note(shortened(str(text)))])

    def attempts(self, trial_id: int) -> int:
        """How many attempts to evaluate the trial were started so far."""
        return self._books.attempts.get(trial_id, 0)

    def last_heartbeat(self, trial_id: int) -> float | None:
        """Clock time of a pending trial's last sign of life, for people; None if there was none."""
        return self._books.heartbeats.get(trial_id)

    def silence(self, trial_id: int) -> float:
        """Seconds since the trial's last sign of life to this process, or since it opened the study.

        By the monotonic clock, so a changed system time neither ends nor prolongs a lease.
        """
        return self._books.silence(trial_id)

    # -- looking --

    def _state(self) -> tuple[Optimizer, Books]:
        with self._lock:
            if self._optimizer is None:
                self.refresh()
                self._drop_memory()
            assert self._optimizer is not None
            return self._optimizer, self._books

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer in its present state; change it only through the study."""
        return self._state()[0]

    @property
    def pending(self) -> Batch:
        """Trials that were asked and neither told nor failed."""
        return self.optimizer.pending

    @property
    def finished(self) -> int:
        """Proposed trials that were told or failed; points from outside do not count."""
        return self._state()[1].finished

    @property
    def imported(self) -> int:
        """Evaluations that came from outside."""
        return self._state()[1].imported

    @property
    def reference_point(self) -> tuple[float, ...] | None:
        """The reference point of the hypervolume, if the study was given one."""
        return self.description.reference_point

    @property
    def path(self) -> Path:
        """The file of the study."""
        return self._store.path

    def events(self, since: int = 0) -> Iterator[Event]:
        """Everything that happened after event number ``since``, read from the file."""
        return self._store.events(since)

    def result(self) -> Result:
        """All results so far; ``seconds`` is the time from creation to the last event."""
        with self._lock:
            result = result_of(
                self.optimizer,
                reference_point=self.reference_point,
                seconds=max(0.0, self._store.last_time() - self._created),
                name=self.description.name,
            )
            return replace(result, algorithm=self.description.algorithm_name)

    def run(  # noqa: PLR0913 - the front door: every option of a run, keyword-only
        self,
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
        """Evaluate until ``budget`` trials are finished; see :func:`neuropareto.study.runner.run`.

        Warns with StartDesignOnly if the algorithm will not propose anything until then.
        """
        from neuropareto.study.runner import run  # it imports this module

        budget = whole(budget, "budget", least=1)
        if budget + self.imported < self.optimizer.n_initial:
            warnings.warn(
                f"All {budget} evaluations belong to the start design of {self.optimizer.n_initial} "
                "points, after which the algorithm begins; raise the budget, or create the study "
                "with budget= or a smaller n_initial=.",
                StartDesignOnly,
                stacklevel=2,
            )
        return run(
            self, objective, budget, workers=workers, engine=engine, batch=batch, limits=limits,
            retries=retries, failure_stop=failure_stop, progress=progress,
        )  # fmt: skip
