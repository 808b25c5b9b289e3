"""The store exam: what every place that keeps a study's events must do.

Bits that come back as they went in, numbers without gaps, all or nothing, one writer, readers
beside it, memory that is replaced as a whole, and nothing lost by closing and opening again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from neuropareto.study.errors import StudyError, StudyInUse
from neuropareto.study.events import (
    Asked,
    Closed,
    Created,
    Event,
    Failed,
    Heartbeat,
    Note,
    Retried,
    Started,
    Told,
)
from neuropareto.study.warm import Warm


class EventStore(Protocol):
    """What a study needs of its store."""

    def append(self, events: Sequence[Event], *, memory: Warm | None = None) -> int:
        """Add events durably, all or none; the number of the last one."""
        ...

    def events(self, since: int = 0) -> Iterator[Event]:
        """Events after number ``since``, in order."""
        ...

    def memory(self) -> Warm | None:
        """The memory stored last."""
        ...

    def close(self) -> None:
        """Give the store back."""
        ...


@dataclass(frozen=True)
class Opener:
    """How one study's store is made, opened for writing, and opened for reading."""

    create: Callable[[Mapping[str, Any]], EventStore]
    open: Callable[[], EventStore]
    view: Callable[[], EventStore]


HARD_TEXT = "tab\t null\0 line\n quote' \"; DROP TABLE events; -- \ud800 \U0001f600"


def example_events() -> list[Event]:
    """One event of each kind, with the values that storage likes to spoil."""
    hard = np.array([0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3])
    return [
        Asked(0, 0, hard, {"proposed": 2, "text": HARD_TEXT}),
        Asked(1, 0, hard[::-1].copy()),
        Started(0, HARD_TEXT),
        Heartbeat(0),
        Told(0, np.array([math.pi, -1e-300]), np.array([2.0])),
        Retried(1, HARD_TEXT, "timeout"),
        Failed(1, HARD_TEXT, "invalid", None, np.array([np.nan, np.inf]), np.array([-np.inf])),
        Told(None, np.array([1.0, 2.0]), np.empty(0), hard),
        Failed(None, "outside", "error", hard),
        Note(HARD_TEXT),
        Closed(),
    ]


def check_store(fresh: Callable[[], Opener]) -> None:
    """Run the whole exam; ``fresh`` gives the opener of a place without a study."""
    _check_round_trip(fresh())
    _check_all_or_nothing(fresh())
    _check_memory(fresh())
    _check_writers_and_readers(fresh())
    _check_threads(fresh())


def _check_round_trip(opener: Opener) -> None:
    description = {"name": HARD_TEXT, "numbers": [0.1, 1e308, -0.0], "none": None}
    store = opener.create(description)
    first = list(store.events())
    assert [e.seq for e in first] == [1], "a new store begins with event 1"
    assert isinstance(first[0], Created), "the first event must be `created`"
    assert first[0].description == description, "the description must come back as it was"
    given = example_events()
    assert store.append(given) == 1 + len(given), "append must return the last event's number"
    store.close()
    store = opener.open()
    found = [e for e in store.events(since=1) if e.seq <= 1 + len(given)]
    assert [e.seq for e in found] == [*range(2, 2 + len(given))], "numbers must have no gaps"
    for was, now in zip(given, found, strict=True):
        assert same_event(was, now), f"{was.kind} came back as {now!r}, was {was!r}"
        assert math.isfinite(now.time) and now.time > 0, "every event has a clock time"
    assert next(store.events(since=5)).seq == 6, "since=5 must begin with event 6"
    store.close()


def same_event(a: Event, b: Event) -> bool:
    """Whether two events are equal in everything but number and time, vectors bit for bit."""
    if type(a) is not type(b):
        return False
    for name in (f.name for f in fields(a) if f.name not in ("seq", "time")):
        left, right = getattr(a, name), getattr(b, name)
        if isinstance(left, np.ndarray) != isinstance(right, np.ndarray):
            return False
        if isinstance(left, np.ndarray):
            if left.shape != right.shape or left.tobytes() != right.tobytes():
                return False
        elif left != right:
            return False
    return True


def _check_all_or_nothing(opener: Opener) -> None:
    store = opener.create({"name": "all or nothing"})
    impossible = Asked(1, 0, np.zeros(2), {"proposed": object()})
    try:
        store.append([Note("first"), impossible])
    except (TypeError, ValueError):
        pass
    else:
        raise AssertionError("an event that cannot be stored must raise")
    assert len(list(store.events())) == 1, "after an error nothing of the call may be stored"
    assert store.append([Note("second")]) == 2, "after an error the store must go on"
    store.close()


def _check_memory(opener: Opener) -> None:
    store = opener.create({"name": "memory"})
    assert store.memory() is None, "a new store has no memory"
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "z/last-first": np.arange(6, dtype=np.int32).reshape(2, 3),
        "a": np.array([np.nan, -0.0, 1e-310]),
        "empty": np.empty((0, 4), dtype=np.float32),
        "scalar": np.array(True),
    }
    store.append([Note("with memory")], memory=Warm(7, arrays))
    store.append([Note("keeps it")])
    store.close()
    store = opener.open()
    found = store.memory()
    assert found is not None and found.ask == 7, "memory must survive closing"
    assert list(found.arrays) == list(arrays), "names must keep their order"
    for name, array in arrays.items():
        back = found.arrays[name]
        same = back.dtype == array.dtype and back.shape == array.shape
        assert same and back.tobytes() == array.tobytes(), f"memory {name!r} changed"
    store.append([Note("replaces it")], memory=Warm(8, {"b": np.ones(1)}))
    replaced = store.memory()
    assert replaced is not None and list(replaced.arrays) == ["b"], "only the latest is kept"
    store.append([Note("forgets it")], memory=Warm(9, {}))
    assert store.memory() is None, "an empty memory is no memory"
    store.close()


def _check_writers_and_readers(opener: Opener) -> None:
    writer = opener.create({"name": "writers"})
    _refuses(opener.open, StudyInUse, "a second writer must be refused while the first is open")
    _refuses(lambda: opener.create({}), StudyError, "an existing study must not be created again")
    reader = opener.view()
    writer.append([Note("seen at once")])
    assert len(list(reader.events())) == 2, "a reader must see what append has returned from"
    _refuses(lambda: reader.append([Note("no")]), StudyError, "a reader must not write")
    walking = reader.events()
    next(walking)
    writer.append([Note("while a reader is in the middle")])
    assert [e.seq for e in walking] == [2, 3], "a reader in the middle must neither block nor miss"
    writer.close()
    writer.close()
    _refuses(lambda: writer.append([Note("late")]), StudyError, "a closed store must refuse")
    again = opener.open()
    again.append([Note("second life")])
    again.close()
    reader.close()


def _check_threads(opener: Opener) -> None:
    store = opener.create({"name": "threads"})
    threads = [
        threading.Thread(target=lambda: [store.append([Note("x")] * 2) for _ in range(10)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.seq for e in store.events()] == [*range(1, 82)], "threads must not lose events"
    store.close()


def _refuses(call: Callable[[], object], error: type[Exception], sentence: str) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(sentence)
