"""Replay: an optimizer rebuilt from the events of a study, without computing anything again.

The order of proposals and the order of results each matter, but not how the two interleave: a
proposal that is only recorded does not look at results. So results are told in blocks, and a long
study comes back quickly. Points from outside are told at their very place.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from neuropareto.optimizer import Batch, Optimizer, Trial
from neuropareto.space import Array
from neuropareto.study.errors import StudyDamaged
from neuropareto.study.events import Asked, Event, Failed, Heartbeat, Retried, Started, Told
from neuropareto.study.warm import Warm

BLOCK = 1000


@dataclass
class Books:
    """What a study knows beside its optimizer: open trials, attempts, signs of life, counts."""

    seq: int = 0
    asks: int = 0
    trials: int = 0
    finished: int = 0
    imported: int = 0
    open: dict[int, Trial] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    heartbeats: dict[int, float] = field(default_factory=dict)
    _beats: dict[int, float] = field(default_factory=dict)
    _born: float = field(default_factory=time.monotonic)

    def asked(self, batch: Batch) -> None:
        """A call of ask proposed these."""
        self.asks += 1
        self.trials += len(batch)
        self.open.update((t.id, Trial(t.id, t.x.copy())) for t in batch)

    def closed(self, trials: Iterable[int | None]) -> None:
        """Results or final failures came for trials, or (None) for points from outside."""
        for trial in trials:
            if trial is None:
                self.imported += 1
                continue
            del self.open[trial]
            self.heartbeats.pop(trial, None)
            self._beats.pop(trial, None)
            self.finished += 1

    def sign_of_life(self, event: Started | Heartbeat | Retried, clock: float) -> None:
        """An attempt began, lives, or ended; ``clock`` is the time of day."""
        if isinstance(event, Started):
            self.attempts[event.trial] = self.attempts.get(event.trial, 0) + 1
        if event.trial in self.open:  # one that came while its result was written is late
            self.heartbeats[event.trial] = clock
            self._beats[event.trial] = time.monotonic()

    def silence(self, trial: int) -> float:
        """Seconds since a sign of life reached this process, or since it took the books up."""
        return time.monotonic() - self._beats.get(trial, self._born)


class Replay:
    """Feeds events to an optimizer; raises StudyDamaged where they contradict each other."""

    def __init__(self, optimizer: Optimizer, books: Books, warm: Warm | None) -> None:
        self._optimizer, self._books, self._warm = optimizer, books, warm
        self._call: list[Asked] = []
        self._told: list[tuple[Trial, Told]] = []
        self._outside: list[Told] = []

    def feed(self, events: Iterable[Event]) -> None:
        """Take all events in; afterwards optimizer and books are up to date."""
        event: Event | None = None
        try:
            for event in events:
                self._take(event)
                self._books.seq = event.seq
            self._finish_call()
            self._flush()
        except (ValueError, KeyError, TypeError) as error:
            where = "The study" if event is None else f"Event {event.seq} ({event.kind})"
            raise StudyDamaged(f"{where} does not fit what came before: {error}") from None

    def _take(self, event: Event) -> None:
        if isinstance(event, Asked):
            if self._call and event.ask != self._call[0].ask:
                self._finish_call()
            self._call.append(event)
            return
        self._finish_call()
        books = self._books
        match event:
            case Told(trial=None):
                self._check(event)
                self._flush_told()
                self._outside.append(event)
                books.closed([None])
            case Told():
                self._check(event)
                self._flush_outside()
                self._told.append((self._open(event.trial), event))
                books.closed([event.trial])
            case Failed():
                self._flush()
                self._fail(event)
                books.closed([event.trial])
            case Started() | Heartbeat() | Retried():
                self._live_sign(event)
        if len(self._told) + len(self._outside) >= BLOCK:
            self._flush()

    def _live_sign(self, event: Started | Heartbeat | Retried) -> None:
        if event.trial >= self._books.trials:
            raise ValueError(f"trial {event.trial} was never asked")
        self._books.sign_of_life(event, event.time)

    def _open(self, trial: int | None) -> Trial:
        found = None if trial is None else self._books.open.get(trial)
        if found is None:
            raise ValueError(f"trial {trial} is not open")
        return found

    def _finish_call(self) -> None:
        """Record one call of ask, all of whose rows are in."""
        if not self._call:
            return
        # Outside points count towards the start design by their place, so they go first.
        self._flush_outside()
        call, self._call = self._call, []
        space = self._optimizer.space
        X = space.check_points(np.array([self._sized(e.x, space.d, "a point") for e in call]))
        note = call[0].note
        if note is not None and not 0 <= note["proposed"] <= len(call):
            raise ValueError("the note of the proposal is wrong")
        fits = self._warm is not None and self._warm.ask == call[0].ask
        memory = self._warm.arrays if fits and self._warm is not None else None
        batch = self._optimizer.replay_ask(X, memory=memory, note=note)
        if batch.ids != tuple(e.trial for e in call) or call[0].ask != self._books.asks:
            raise ValueError("trials are not numbered in order")
        self._books.asked(batch)

    def _flush(self) -> None:
        self._flush_told()
        self._flush_outside()

    def _flush_told(self) -> None:
        if self._told:
            told, self._told = self._told, []
            self._tell([t for t, _ in told], [e for _, e in told])

    def _flush_outside(self) -> None:
        if self._outside:
            told, self._outside = self._outside, []
            d = self._optimizer.space.d
            self._tell(np.array([self._sized(e.x, d, "a point") for e in told]), told)

    def _check(self, event: Told) -> None:
        self._sized(event.f, self._optimizer.n_objectives, "a result")
        self._sized(event.g, self._optimizer.n_constraints, "a list of constraints")
        if not (np.isfinite(event.f).all() and np.isfinite(event.g).all()):
            raise ValueError("a result is not finite")

    def _tell(self, points: Array | list[Trial], told: list[Told]) -> None:
        F = np.array([e.f for e in told])
        G = np.array([e.g for e in told]).reshape(len(told), self._optimizer.n_constraints)
        self._optimizer.tell(points, F, G)

    def _fail(self, event: Failed) -> None:
        if event.trial is not None:
            self._optimizer.fail(self._open(event.trial), event.reason)
        else:
            x = self._sized(event.x, self._optimizer.space.d, "a point")
            self._optimizer.fail(x[None], event.reason)

    @staticmethod
    def _sized(vector: Array | None, size: int, what: str) -> Array:
        if vector is None or vector.shape != (size,):
            got = 0 if vector is None else len(vector)
            raise ValueError(f"{what} has {got} values where {size} belong")
        return vector
