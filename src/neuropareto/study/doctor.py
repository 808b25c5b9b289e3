"""Doctor: is a study file intact, and what of a damaged one can be saved?

:func:`examine` reads everything and writes nothing. :func:`rescue` collects every event whose
checksum is right, through SQLite where it still reads and from the raw pages where it does not,
and writes a new study. The damaged file is never changed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuropareto.study import gate
from neuropareto.study.description import READING, Description
from neuropareto.study.errors import StudyDamaged, StudyError
from neuropareto.study.events import Asked, Created, Event, Failed, Note, Told, from_row
from neuropareto.study.pages import raw_rows
from neuropareto.study.replay import Books, Replay
from neuropareto.study.store import Store


@dataclass(frozen=True)
class Diagnosis:
    """What was found in a study file: ``problems`` are damage, ``remarks`` are not."""

    path: Path
    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    events: int = 0
    told: int = 0
    failed: int = 0
    pending: int = 0

    @property
    def healthy(self) -> bool:
        """Whether the study can be used as it is."""
        return not self.problems

    def __str__(self) -> str:
        """A few lines for a person."""
        head = f"{gate.shown(self.path)}: {'intact' if self.healthy else 'DAMAGED'}"
        counts = (
            f"{self.events} events, {self.told} results, {self.failed} failed, "
            f"{self.pending} pending"
        )
        return "\n".join([head, counts, *self.problems, *self.remarks])


def examine(path: str | os.PathLike[str]) -> Diagnosis:
    """Read the whole file and say what is wrong with it; nothing is written."""
    place = gate.existing(path)
    try:
        store = Store.view(place)
    except StudyError as error:
        return _damaged(place, [str(error)])
    try:
        problems, books, n_failed, owner = store.faults(), Books(), 0, None
        try:
            owner = store.owner
            description, _ = Description.first(store.events())
            optimizer = description.optimizer(READING)
            Replay(optimizer, books, None).feed(store.events())
            n_failed = len(optimizer.failures)
        except (StudyError, ValueError) as error:
            problems.append(str(error))
        if problems:
            return _damaged(place, problems)
        return Diagnosis(
            place,
            (),
            () if owner is None else (f"open for writing in {owner}, or not closed by it",),
            events=books.seq,
            told=books.finished + books.imported - n_failed,
            failed=n_failed,
            pending=len(books.open),
        )
    finally:
        store.close()


def _damaged(path: Path, problems: list[str]) -> Diagnosis:
    events = _readable(path)
    kinds = Counter(e.kind for e in events.values())
    told, failed = kinds["told"], kinds["failed"]
    pending = max(0, kinds["asked"] - told - failed)
    remark = f"{len(events)} events can be rescued, {told} results among them"
    return Diagnosis(path, tuple(problems), (remark,), len(events), told, failed, pending)


def rescue(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Diagnosis:
    """Save what is readable of ``path`` into a new study at ``target``, which must not exist.

    If every proposal is still there, the new study continues with the same numbers, and a point
    whose result is lost is pending again. If proposals are lost, the saved results become known
    evaluations of a study with a seed of its own. What could not be used is written into notes.
    Returns the diagnosis of the new file; raises StudyDamaged if both copies of the description
    are lost.
    """
    place = gate.existing(path)
    events = _readable(place)
    text = _description_text(place, events)
    description = Description.from_json(text)
    found: list[Event] = [e for _, e in sorted(events.items()) if not isinstance(e, Created)]
    remarks = [f"rescued from {gate.shown(place)}", *_gaps(events)]
    kept = _continuable(found, description)
    if kept is None:
        kept, orphans = _as_known(found)
        remarks += ["proposals are lost, so all results count as known evaluations", *orphans]
        # A seed of its own, or the first rounds would draw the points of the lost ones again.
        text = {
            **text,
            "seed": (6364136223846793005 * description.seed + 1442695040888963407) % 2**63,
        }
    store = Store.create(target, text)
    try:
        store.append([Note(remark) for remark in remarks])
        for start in range(0, len(kept), 1000):
            store.append(kept[start : start + 1000])
    finally:
        store.close()
    return replace(examine(target), remarks=tuple(remarks))


def _readable(path: Path) -> dict[int, Event]:
    """Every event whose checksum is right, by number."""
    events: dict[int, Event] = {}
    complete = False
    try:
        for row in gate.readable_rows(path):
            _keep(events, row)
        complete = len(events) == max(events, default=-1)
    except (StudyError, sqlite3.Error, UnicodeDecodeError):
        complete = False
    if not complete:
        if path in gate.living.values():
            # Closing a plain handle on the file would drop the locks that SQLite holds on it.
            raise StudyError(f"{gate.shown(path)} is open in this process; close it first.")
        for raw in raw_rows(path):
            if len(raw) == 11:
                rowid, _, kind, time, *rest = raw
                # SQLite stores a real number without fraction as an integer.
                _keep(events, (rowid, kind, float(time) if type(time) is int else time, *rest))
    return events


def _keep(events: dict[int, Event], row: tuple[Any, ...]) -> None:
    if row[0] in events:
        return
    try:
        events[row[0]] = from_row(row)
    except StudyDamaged:
        return  # counted as a gap by whoever looks at the numbers


def _description_text(path: Path, events: dict[int, Event]) -> dict[str, Any]:
    first = events.get(1)
    if isinstance(first, Created):
        return dict(first.description)
    for raw in raw_rows(path):
        if len(raw) == 4 and type(raw[2]) is str and raw[3] == gate.description_checksum(raw[2]):
            copy = json.loads(raw[2])
            if isinstance(copy, dict):
                return copy
    raise StudyDamaged(
        f"Both copies of the description of {gate.shown(path)} are lost, so its {len(events)} "
        "readable events cannot be put in order; restore a backup."
    )


def _gaps(events: dict[int, Event]) -> list[str]:
    """Runs of event numbers that are missing before the last readable one."""
    numbers = sorted(events)
    lines = [
        f"lost: events {a + 1} to {b - 1}"
        for a, b in zip([0, *numbers], numbers, strict=False)
        if b > a + 1
    ]
    return [*lines[:100], f"the last readable event is {max(numbers, default=0)}"]


def _continuable(found: list[Event], description: Description) -> list[Event] | None:
    """The events as a history that can go on with its own numbers; None if it cannot."""
    calls: dict[int, list[Asked]] = {}
    for event in found:
        if isinstance(event, Asked):
            calls.setdefault(event.ask, []).append(event)
    results = {e.trial for e in found if isinstance(e, (Told, Failed)) and e.trial is not None}
    last = max(calls, default=-1)
    tail = calls.get(last, [])
    if tail and tail[0].note is not None and tail[0].note.get("proposed", 0) > len(tail):
        # The end of the file is cut off within a call: asked again, it gives the same points.
        if results & {e.trial for e in tail}:
            return None
        found = [e for e in found if not (isinstance(e, Asked) and e.ask == last)]
    known = {e.trial for e in found if isinstance(e, Asked)}
    fitting = [e for e in found if getattr(e, "trial", None) in known | {None}]
    results_without_point = results - known
    try:
        Replay(description.optimizer(READING), Books(), None).feed(fitting)
    except StudyDamaged:
        return None
    return None if results_without_point else fitting


def _as_known(found: list[Event]) -> tuple[list[Event], list[str]]:
    """Results with their points as evaluations from outside, and lines about those without."""
    places = {e.trial: e.x for e in found if isinstance(e, Asked)}
    known: list[Event] = []
    orphans = []
    for event in found:
        if isinstance(event, Note):
            known.append(event)
        if not isinstance(event, (Told, Failed)):
            continue
        x = places.get(event.trial) if event.trial is not None else event.x
        if x is not None:
            known.append(replace(event, trial=None, x=x))
        else:
            values = "no values" if event.f is None else event.f.tolist()
            orphans.append(f"the point of trial {event.trial} is lost; it gave {values}")
    return known, orphans
