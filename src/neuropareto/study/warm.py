"""Warm-start memory as rows of the file: named arrays with dtype, shape and checksum, no pickle.

Only the memory of the latest proposal is kept. It saves time and may be dropped whenever it is
damaged or too large; the study then goes on without it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuropareto.memory import Memory
from neuropareto.study.errors import StudyDamaged

LARGEST_MEMORY = 256 * 2**20
"""Bytes of memory that are stored; a larger memory is forgotten."""

_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}", re.A)


@dataclass(frozen=True, eq=False)
class Warm:
    """What the algorithm left after call number ``ask``."""

    ask: int
    arrays: Memory


def storable(memory: Memory | None) -> dict[str, npt.NDArray[Any]] | None:
    """``memory`` exactly as reading it back would give it; None if there is none or too much.

    Raises ValueError if it holds anything but arrays of numbers.
    """
    if not memory:
        return None
    for name, array in memory.items():
        if not isinstance(array, np.ndarray) or not _DTYPE.fullmatch(array.dtype.str):
            raise ValueError(
                f"An algorithm's memory must be arrays of numbers, got {type(array).__name__} for "
                f"{str(name)[:60]!r}; convert it in propose."
            )
    if sum(array.nbytes for array in memory.values()) > LARGEST_MEMORY:
        return None
    # Rows first, because the order in memory can change the last bits of a matrix product.
    return {str(name): np.array(array, order="C") for name, array in memory.items()}


def to_rows(warm: Warm) -> list[tuple[int, int, str, str, str, bytes, bytes]]:
    """(position, ask, name, dtype, shape, data, checksum) of every array."""
    rows = []
    for position, (name, array) in enumerate(warm.arrays.items()):
        dtype, shape, data = array.dtype.str, json.dumps(list(array.shape)), array.tobytes()
        rows.append(
            (position, warm.ask, name, dtype, shape, data, _checksum(name, dtype, shape, data))
        )
    return rows


def from_rows(rows: Sequence[tuple[Any, ...]]) -> Warm | None:
    """The memory of (ask, name, dtype, shape, data, checksum) rows, None if there are none.

    Raises StudyDamaged if a row is not what was written.
    """
    if not rows:
        return None
    arrays: dict[str, npt.NDArray[Any]] = {}
    for ask, name, dtype, shape, data, checksum in rows:
        typed = type(ask) is int and type(data) is bytes and type(checksum) is bytes
        if not typed or not all(type(v) is str for v in (name, dtype, shape)):
            raise StudyDamaged("The warm-start memory has values of the wrong type.")
        if ask != rows[0][0] or checksum != _checksum(name, dtype, shape, data):
            raise StudyDamaged("The warm-start memory does not match its checksum.")
        arrays[name] = _array(dtype, shape, data)
    return Warm(rows[0][0], arrays)


def _array(dtype: str, shape: str, data: bytes) -> npt.NDArray[Any]:
    try:
        sizes = json.loads(shape)
        if not _DTYPE.fullmatch(dtype) or not all(type(n) is int and n >= 0 for n in sizes):
            raise ValueError(dtype)
        return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(sizes).copy()
    except (ValueError, TypeError, RecursionError):
        raise StudyDamaged("An array of the warm-start memory is unreadable.") from None


def _checksum(name: str, dtype: str, shape: str, data: bytes) -> bytes:
    head = f"{name}\n{dtype}\n{shape}\n".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(head, digest_size=16)
    digest.update(data)
    return digest.digest()
