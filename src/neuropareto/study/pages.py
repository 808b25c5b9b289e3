"""Rows of a study found in the raw pages of its file, when SQLite itself cannot read it any more.

Follows the published SQLite file format: table leaf pages, records, overflow chains, and the
frames of the write-ahead log. What is found is only a candidate: the caller keeps a row if its
checksum is right, so a wrong guess here can never become data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropareto.study.schema import PAGE_SIZE

_LEAF = 0x0D
_MAGIC = b"SQLite format 3\x00"
_LARGEST_ROW = 64 * 2**20
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


@dataclass(frozen=True, eq=False)
class Pages:
    """The pages of a file by number, the newer version of a page first."""

    size: int
    usable: int
    versions: dict[int, list[memoryview]]

    def newest(self, number: int) -> memoryview | None:
        """The latest version of a page, None if it is gone."""
        found = self.versions.get(number)
        return found[0] if found else None


def raw_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """Every record of every table leaf page, as (rowid, *columns); text is str where it decodes."""
    pages = _pages(path)
    for number, versions in pages.versions.items():
        # Older versions last: the caller may prefer what it saw first.
        for page in versions:
            yield from _leaf_rows(page, number, pages)


def _pages(path: Path) -> Pages:
    data = memoryview(path.read_bytes())
    size, reserved = PAGE_SIZE, 0
    if bytes(data[:16]) == _MAGIC and len(data) >= 100:
        given = int.from_bytes(data[16:18], "big")
        given = 65536 if given == 1 else given
        if 512 <= given <= 65536 and given & (given - 1) == 0:
            size, reserved = given, min(data[20], 32)
    versions: dict[int, list[memoryview]] = {}
    log = path.with_name(path.name + "-wal")
    if log.is_file():
        for number, page in _log_frames(memoryview(log.read_bytes()), size):
            versions.setdefault(number, []).insert(0, page)
    for number in range(1, -(-len(data) // size) + 1):
        page = data[(number - 1) * size : number * size]
        versions.setdefault(number, []).append(page)
    return Pages(size, size - reserved, versions)


def _log_frames(log: memoryview, size: int) -> list[tuple[int, memoryview]]:
    """(page number, page) of the frames up to the last commit in a write-ahead log."""
    if len(log) < 32 or bytes(log[:3]) != b"\x37\x7f\x06":
        return []
    salts, frames, committed = bytes(log[16:24]), [], 0
    for start in range(32, len(log) - size - 23, 24 + size):
        number, pages_after_commit = struct.unpack_from(">II", log, start)
        if bytes(log[start + 8 : start + 16]) != salts:
            break  # left over from before the log was last reset
        frames.append((number, log[start + 24 : start + 24 + size]))
        if pages_after_commit:
            committed = len(frames)
    return frames[:committed]


def _leaf_rows(page: memoryview, number: int, pages: Pages) -> Iterator[tuple[Any, ...]]:
    start = 100 if number == 1 else 0
    # One flipped bit in the page's type must not cost all its rows: their checksums decide.
    if len(page) < start + 8 or (page[start] ^ _LEAF).bit_count() > 1:
        return
    # The number of cells may be damaged too, so pointers are read until the cells begin.
    at, cells_begin = start + 8, len(page)
    while at + 2 <= cells_begin:
        place = int.from_bytes(page[at : at + 2], "big")
        at += 2
        if place < at:
            continue
        try:
            row = _row(page, place, pages)
        except (IndexError, ValueError, struct.error):
            continue  # this cell is damaged; its neighbours may not be
        cells_begin = min(cells_begin, place)
        yield row


def _row(page: memoryview, place: int, pages: Pages) -> tuple[Any, ...]:
    length, place = _varint(page, place)
    rowid, place = _varint(page, place)
    if not 0 < length < _LARGEST_ROW:
        raise ValueError(length)
    return (
        rowid - 2**64 if rowid >= 2**63 else rowid,
        *_columns(_payload(page, place, length, pages)),
    )


def _payload(page: memoryview, place: int, length: int, pages: Pages) -> bytes:
    """A record's bytes: the part in its cell, then the chain of overflow pages."""
    most = pages.usable - 35
    if length <= most:
        local = length
    else:
        least = (pages.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (pages.usable - 4)
        local = local if local <= most else least
    parts, missing = [bytes(page[place : place + local])], length - local
    pointer = page[place + local : place + local + 4]
    while missing > 0:
        following = pages.newest(int.from_bytes(pointer, "big"))
        if following is None or len(following) < 4:
            raise ValueError("the chain of a long record is broken")
        pointer, part = following[:4], following[4 : min(pages.usable, 4 + missing)]
        if not len(part):
            raise ValueError("the chain of a long record is broken")
        parts.append(bytes(part))
        missing -= len(part)
    return b"".join(parts)


def _columns(record: bytes) -> list[Any]:
    view = memoryview(record)
    end, place = _varint(view, 0)
    kinds = []
    while place < end:
        kind, place = _varint(view, place)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, place = _value(record, place, kind)
        values.append(value)
    return values


def _value(record: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, place
    if kind in (8, 9):
        return kind - 8, place
    if kind in _INTEGERS or kind == 7:
        size = _INTEGERS.get(kind, 8)
    elif kind >= 12:
        size = (kind - 12) // 2
    else:
        raise ValueError(kind)
    part = record[place : place + size]
    if len(part) < size:
        raise ValueError("a record is cut short")
    if kind == 7:
        return struct.unpack(">d", part)[0], place + size
    if kind in _INTEGERS:
        return int.from_bytes(part, "big", signed=True), place + size
    return (part.decode() if kind % 2 else part), place + size


def _varint(page: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for k in range(9):
        byte = page[place + k]
        if k == 8:
            return (value << 8) | byte, place + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + k + 1
    raise ValueError("unreachable: a varint has at most nine bytes")
