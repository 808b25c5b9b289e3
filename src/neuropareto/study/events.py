"""Events: what can happen in a study, as frozen values, and their form as rows of the file.

Notation: ``x`` (d,) a point in the user's units, ``f`` (m,) its objectives in the user's
directions, ``g`` (c,) its constraints. ``seq`` numbers events 1, 2, 3, ... without gaps and is the
only order that counts; ``time`` (seconds since 1970) is for people, because clocks jump. A vector
is a blob of little-endian float64. Every row carries a BLAKE2b checksum over all its fields.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from neuropareto.space import Array
from neuropareto.study.errors import StudyDamaged

LONGEST_TEXT = 64_000
"""Characters kept of a reason, a worker's name or a note; longer ones lose their middle."""

Row: TypeAlias = tuple[
    int, str, float, int | None, int | None, str | None, bytes | None, bytes | None, bytes | None,
    bytes,
]  # fmt: skip
"""(seq, kind, time, trial, ask, text, x, f, g, checksum), the columns of table ``events``."""


@dataclass(frozen=True)
class Created:
    """The study began; ``description`` is the JSON of its space, objectives and algorithm."""

    kind: ClassVar[str] = "created"
    description: Mapping[str, Any]
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True, eq=False)
class Asked:
    """Trial ``trial`` was proposed at ``x`` by call number ``ask``.

    ``note`` is the algorithm's diagnosis, on the first trial of a call that used the algorithm.
    """

    kind: ClassVar[str] = "asked"
    trial: int
    ask: int
    x: Array
    note: Mapping[str, Any] | None = None
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Started:
    """An attempt to evaluate the trial began on ``worker``."""

    kind: ClassVar[str] = "started"
    trial: int
    worker: str
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Heartbeat:
    """The evaluation of the trial gave a sign of life."""

    kind: ClassVar[str] = "heartbeat"
    trial: int
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True, eq=False)
class Told:
    """A result: of a proposed trial, or (``trial`` None) of a point ``x`` from outside."""

    kind: ClassVar[str] = "told"
    trial: int | None
    f: Array
    g: Array
    x: Array | None = None
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True, eq=False)
class Failed:
    """An evaluation failed for good; ``f`` and ``g`` keep what it returned, if it returned numbers."""

    kind: ClassVar[str] = "failed"
    trial: int | None
    reason: str
    failure: str = "error"
    x: Array | None = None
    f: Array | None = None
    g: Array | None = None
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Retried:
    """An attempt failed and the trial will be evaluated again."""

    kind: ClassVar[str] = "retried"
    trial: int
    reason: str
    failure: str
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Note:
    """A remark, by a person or by the study itself."""

    kind: ClassVar[str] = "note"
    text: str
    seq: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Closed:
    """A writer closed the study in good order; it may be opened again."""

    kind: ClassVar[str] = "closed"
    seq: int = 0
    time: float = 0.0


Event: TypeAlias = Created | Asked | Started | Heartbeat | Told | Failed | Retried | Note | Closed


def shortened(text: str) -> str:
    """``text`` with its middle left out if it is longer than ``LONGEST_TEXT``."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: numpy as numbers and lists, NaN and inf as None, else its text."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value)


# -- rows --

_HEAD = struct.Struct("<qdqq5q")
_FLOAT64 = np.dtype("<f8")


def row_checksum(row: tuple[Any, ...]) -> bytes:
    """BLAKE2b (16 bytes) over a row without its checksum.

    First ``<qdqq5q`` of seq, time, trial, ask and the byte lengths of kind, text, x, f, g, with -1
    for NULL; then the bytes of kind, text, x, f, g themselves.
    """
    seq, kind, time, trial, ask, text, x, f, g = row[:9]
    name, said = kind.encode(), None if text is None else text.encode()
    head = _HEAD.pack(
        seq,
        time,
        -1 if trial is None else trial,
        -1 if ask is None else ask,
        len(name),
        -1 if said is None else len(said),
        -1 if x is None else len(x),
        -1 if f is None else len(f),
        -1 if g is None else len(g),
    )
    whole = b"".join((head, name, said or b"", x or b"", f or b"", g or b""))
    return hashlib.blake2b(whole, digest_size=16).digest()


def to_row(event: Event, seq: int, time: float) -> Row:
    """The row of ``event`` at place ``seq``."""
    trial = ask = text = x = f = g = None
    match event:
        case Created():
            text = json.dumps(event.description, allow_nan=False)
        case Asked():
            trial, ask, x = event.trial, event.ask, event.x
            text = None if event.note is None else json.dumps(event.note, allow_nan=False)
        case Started():
            trial, text = event.trial, json.dumps({"worker": event.worker})
        case Heartbeat():
            trial = event.trial
        case Told():
            trial, x, f, g = event.trial, event.x, event.f, event.g
        case Failed():
            trial, x, f, g = event.trial, event.x, event.f, event.g
            text = json.dumps({"reason": event.reason, "kind": event.failure})
        case Retried():
            trial = event.trial
            text = json.dumps({"reason": event.reason, "kind": event.failure})
        case Note():
            text = json.dumps({"text": event.text})
        case Closed():
            pass
    body = (seq, event.kind, time, trial, ask, text, _blob(x), _blob(f), _blob(g))
    return (*body, row_checksum(body))


def from_row(row: tuple[Any, ...]) -> Event:
    """The event of a row whose values may come from a damaged or hostile file.

    Raises StudyDamaged, naming the event, if a value has the wrong type or the checksum differs.
    """
    if not _well_typed(row):
        raise StudyDamaged(f"Event {row[0]!r} has values of the wrong type.")
    if row_checksum(row) != row[9]:
        raise StudyDamaged(f"Event {row[0]} does not match its checksum.")
    try:
        return _event(row)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StudyDamaged(f"Event {row[0]} cannot be read as {row[1][:20]!r}.") from None


def _event(row: tuple[Any, ...]) -> Event:
    seq, kind, time, trial, ask, text, x_blob, f_blob, g_blob, _ = row
    x, f, g = _vector(x_blob), _vector(f_blob), _vector(g_blob)
    match kind:
        case "asked":
            note = None if text is None else _object(text)
            return Asked(_number(trial), _number(ask), _given(x), note, seq, time)
        case "told":
            if (trial is None) == (x is None):
                raise ValueError("a result belongs to a trial or to a point, not both")
            return Told(trial, _given(f), _given(g), x, seq, time)
        case "failed":
            if (trial is None) == (x is None):
                raise ValueError("a failure belongs to a trial or to a point, not both")
            said = _object(text)
            return Failed(trial, _word(said["reason"]), _word(said["kind"]), x, f, g, seq, time)
        case "heartbeat":
            return Heartbeat(_number(trial), seq, time)
        case "started":
            return Started(_number(trial), _word(_object(text)["worker"]), seq, time)
        case "retried":
            said = _object(text)
            return Retried(_number(trial), _word(said["reason"]), _word(said["kind"]), seq, time)
        case "note":
            return Note(_word(_object(text)["text"]), seq, time)
        case "closed":
            return Closed(seq, time)
        case "created":
            return Created(_object(text), seq, time)
    raise ValueError(kind)


def _well_typed(row: tuple[Any, ...]) -> bool:
    seq, kind, time, trial, ask, text, x, f, g, checksum = row
    return (
        type(seq) is int
        and type(kind) is str
        and type(time) is float
        and (trial is None or type(trial) is int)
        and (ask is None or type(ask) is int)
        and (text is None or type(text) is str)
        and (x is None or (type(x) is bytes and len(x) % 8 == 0))
        and (f is None or (type(f) is bytes and len(f) % 8 == 0))
        and (g is None or (type(g) is bytes and len(g) % 8 == 0))
        and type(checksum) is bytes
    )


def _blob(vector: Array | None) -> bytes | None:
    return None if vector is None else vector.astype(_FLOAT64, copy=False).tobytes()


def _vector(blob: bytes | None) -> Array | None:
    if blob is None:
        return None
    return np.frombuffer(blob, dtype=_FLOAT64).astype(np.float64, copy=False)


def _given(vector: Array | None) -> Array:
    if vector is None:
        raise ValueError("a vector is missing")
    return vector


def _number(value: int | None) -> int:
    if value is None or value < 0:
        raise ValueError("a number is missing")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text or "")
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value
