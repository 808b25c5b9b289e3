"""One evaluation: what goes to a worker, what comes back, and how a return value is judged.

A worker gets a :class:`Job` and gives a :class:`Report`; between processes and machines a report
travels as plain JSON bytes, never as pickle. m objectives, c constraints (feasible where <= 0).
A value that is not m finite real numbers (plus c) is a failure of class ``invalid``.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from neuropareto.problem import Problem
from neuropareto.space import Array, numbers
from neuropareto.study.limits import FAILURES

TEXT_LIMIT = 8_000


@dataclass(frozen=True, eq=False)
class Job:
    """Evaluate the point ``x`` (d,) of a trial; ``attempt`` counts from 1."""

    trial: int
    attempt: int
    x: Array


@dataclass(frozen=True)
class Report:
    """How an evaluation ended: ``kind`` is "ok" or one of the failure classes."""

    trial: int
    attempt: int
    kind: str
    F: tuple[float, ...] = ()
    G: tuple[float, ...] = ()
    reason: str = ""
    output: str = ""
    seconds: float = 0.0

    def encoded(self) -> bytes:
        """As JSON bytes; floats keep every bit."""
        return json.dumps(asdict(self), allow_nan=False).encode("ascii")


def decoded(data: bytes) -> Report:
    """The report behind ``data``; ValueError if it is anything else."""
    try:
        raw = json.loads(data)
        report = Report(
            int(raw["trial"]),
            int(raw["attempt"]),
            str(raw["kind"]),
            tuple(float(v) for v in raw["F"]),
            tuple(float(v) for v in raw["G"]),
            str(raw["reason"]),
            str(raw["output"]),
            float(raw["seconds"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"A worker sent something that is not a report: {data[:80]!r}."
        ) from error
    if report.kind != "ok" and report.kind not in FAILURES:
        raise ValueError(f"A worker sent a report of unknown kind {report.kind!r}.")
    return report


class EvaluationError(Exception):
    """An evaluation that failed in a known way; ``kind`` is its failure class."""

    def __init__(self, kind: str, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.kind, self.output = kind, output


class Evaluator(Protocol):
    """Anything that turns a job into the objective's return value."""

    def evaluate(self, job: Job) -> Any:
        """m numbers, or a pair (m numbers, c numbers) with constraints."""
        ...


@dataclass(frozen=True)
class Pointwise:
    """A user's function of one point (d,)."""

    function: Callable[[Array], Any]

    def evaluate(self, job: Job) -> Any:
        """Call it."""
        return self.function(job.x.copy())


@dataclass(frozen=True)
class Rowwise:
    """A problem, which takes (n, d): here a single row."""

    problem: Problem

    def evaluate(self, job: Job) -> Any:
        """Call it with one row."""
        return self.problem.objective(job.x[None].copy())


@dataclass(frozen=True)
class Task:
    """An evaluator with the shape of its answer; calling it raises nothing but a user's Ctrl-C."""

    evaluator: Evaluator
    n_objectives: int
    n_constraints: int

    def __call__(self, job: Job) -> Report:
        """Evaluate a job and judge the value."""
        began = time.monotonic()
        kind, reason, output = "ok", "", ""
        F: tuple[float, ...] = ()
        G: tuple[float, ...] = ()
        try:
            F, G = judged(self.evaluator.evaluate(job), self.n_objectives, self.n_constraints)
        except EvaluationError as error:
            kind, reason, output = error.kind, str(error), error.output
        except MemoryError:
            kind, reason = "memory", f"out of memory\n{traceback.format_exc()}"
        except BaseException as error:  # asyncio and bindings to other languages raise such things
            if isinstance(error, KeyboardInterrupt) and _in_main_thread():
                raise  # a person's Ctrl-C, which never reaches another thread
            kind, reason = "error", traceback.format_exc()
        return Report(
            job.trial, job.attempt, kind, F, G, shortened(reason), shortened(output),
            time.monotonic() - began,
        )  # fmt: skip


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def judged(value: Any, m: int, c: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The m objectives and c constraints in a return value, or an EvaluationError "invalid"."""
    expected = f"{m} finite number{'s' if m > 1 else ''}" + (
        f" and {c} constraint value{'s' if c > 1 else ''} as a pair" if c else ""
    )
    given = value
    if c and not (isinstance(given, (tuple, list)) and len(given) == 2):
        raise EvaluationError("invalid", f"expected {expected}, got {_shown(value)}")
    parts = given if c else (given, ())
    found = []
    for part, width in zip(parts, (m, c), strict=True):
        try:
            row = numbers(part, "The returned values").ravel() if width else np.empty(0)
        except Exception as error:  # the value is foreign: its conversion may raise anything
            raise EvaluationError(
                "invalid", f"expected {expected}, got {_shown(value)}: {error}"
            ) from None
        if len(row) != width or not np.isfinite(row).all():
            raise EvaluationError("invalid", f"expected {expected}, got {_shown(value)}")
        found.append(tuple(float(v) for v in row))
    return found[0], found[1]


def _shown(value: Any) -> str:
    """A short picture of a foreign value, whatever its ``__repr__`` does."""
    try:
        text = repr(value)
    except Exception:  # a broken __repr__ must not hide what happened
        text = "a value that cannot be shown"
    return f"{type(value).__name__} {shortened(text, 300)}"


def shortened(text: str, limit: int = TEXT_LIMIT) -> str:
    """``text`` as valid UTF-8 of at most about ``limit`` characters: its head and its longer tail."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= limit:
        return clean
    head, tail = limit // 4, limit - limit // 4
    return f"{clean[:head]}\n[... {len(clean) - limit} characters left out ...]\n{clean[-tail:]}"


class Bounded:
    """A byte stream of which the first ``head`` and the last ``tail`` bytes are kept."""

    def __init__(self, head: int = 16_384, tail: int = 49_152) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take in more of the stream."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    @property
    def dropped(self) -> int:
        """How many bytes in the middle were not kept."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """What was kept, with a mark where bytes are missing."""
        tail = bytes(self._tail[-self._tail_limit :])
        gap = f"\n[... {self.dropped} bytes left out ...]\n" if self.dropped else ""
        if not gap:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")
