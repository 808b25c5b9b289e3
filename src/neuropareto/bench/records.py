"""Folders of records, with an index that keeps ten thousand of them manageable.

The index (``index.json`` in the folder) holds each record's summary with the size, time and digest
of its file. Looking again costs one listing of the folder: only files that are new or changed are
opened. It is a cache: deleting it loses nothing, and records that other runners add are found.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuropareto.bench import measures
from neuropareto.bench.grid import Cell, Task
from neuropareto.bench.record import ENDING, FORMAT, Record, RecordDamaged, read, read_summary
from neuropareto.space import Array, numbers

INDEX = "index.json"


@dataclass(frozen=True)
class Entry:
    """What the index knows about one record without opening it."""

    cell: Cell
    folder: Path
    name: str
    summary: Mapping[str, Any] = field(repr=False)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name

    def value(self, measure: measures.Measure) -> float:
        """The final value of a measure, NaN where it has none."""
        found = self.summary["measures"].get(measure.key)
        return float("nan") if found is None else float(found)

    def read(self) -> Record:
        """The whole record."""
        return read(self.path)


class Records:
    """All records in some folders; the first of equal cells counts.

    ``broken`` names the files that should be records and are not, with the reason.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)
        self.broken: dict[Path, str] = {}
        self._entries: dict[Cell, Entry] = {}
        self._runs: dict[tuple[Task, str], dict[int, Entry]] = {}
        for folder in self.folders:
            for entry in self._listed(folder):
                self._entries.setdefault(entry.cell, entry)
        for entry in self:
            cell = entry.cell
            self._runs.setdefault((cell.task, cell.algorithm), {})[cell.seed] = entry

    def __len__(self) -> int:
        """The number of different cells."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, sorted by cell."""
        return iter(sorted(self._entries.values(), key=lambda entry: entry.cell))

    def __contains__(self, cell: Cell) -> bool:
        """Whether a finished record of the cell is there."""
        return cell in self._entries

    def get(self, cell: Cell) -> Entry | None:
        """The entry of a cell, if it was run."""
        return self._entries.get(cell)

    def of(self, task: Task, algorithm: str) -> dict[int, Entry]:
        """All runs of an algorithm on a task: seed -> entry, in order of the seed."""
        return self._runs.get((task, algorithm), {})

    def values(self, task: Task, algorithm: str, measure: measures.Measure) -> dict[int, float]:
        """The final values of a measure: seed -> value; runs without a value are left out."""
        found = {seed: e.value(measure) for seed, e in self.of(task, algorithm).items()}
        return {seed: value for seed, value in found.items() if value == value}

    def algorithms(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """The algorithms that ran any of the tasks, sorted."""
        wanted = set(tasks)
        return tuple(sorted({algorithm for task, algorithm in self._runs if task in wanted}))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, sorted."""
        return tuple(sorted({task for task, _ in self._runs}))

    def _listed(self, folder: Path) -> list[Entry]:
        known = _index(folder)
        fresh: dict[str, dict[str, Any]] = {}
        for name, size, time in _files(folder):
            entry = _recalled(folder, name, known.get(name), size, time)
            try:
                fresh[name] = entry or _opened(folder / name, size, time)
            except RecordDamaged as error:
                self.broken[folder / name] = str(error)
        if fresh != known and folder.is_dir():
            _save(folder, fresh)
        return [
            Entry(Cell.of(entry["summary"]["cell"]), folder, name, entry["summary"])
            for name, entry in fresh.items()
        ]


def values_of(entries: Mapping[int, Entry], measure: measures.Measure) -> Array:
    """The values of some runs as an array, in order of the seed."""
    return numbers([entry.value(measure) for entry in entries.values()], "values")


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Relative name, size and time of every record file, one level of folders deep."""
    found = []
    inside = [item.name + "/" for item in _scan(folder) if item.is_dir()]
    for place in ("", *inside):
        for item in _scan(folder / place):
            if item.name.endswith(ENDING) and not item.name.startswith("."):
                state = item.stat()
                # Plain text, not Path: ten thousand Paths cost more than reading the index.
                found.append((place + item.name, state.st_size, state.st_mtime_ns))
    return sorted(found)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as items:
        return list(items)


def _recalled(
    folder: Path, name: str, known: dict[str, Any] | None, size: int, time: int
) -> dict[str, Any] | None:
    """The index's entry if the file is still the one it describes."""
    if known is None or known.get("size") != size or not measures.current(known["summary"]):
        return None
    if known.get("time") == time:
        return known
    # A checkout or copy changes times but not contents; the digest spares measuring again.
    return {**known, "time": time} if _digest(folder / name) == known.get("digest") else None


def _opened(path: Path, size: int, time: int) -> dict[str, Any]:
    summary = read_summary(path)
    if summary.get("format") != FORMAT:
        raise RecordDamaged(
            f"{path} has format {summary.get('format')}, this version reads {FORMAT}."
        )
    if not measures.current(summary):
        record = read(path)
        summary = {**record.summary(), "measures": measures.final(record)}
    return {"size": size, "time": time, "digest": _digest(path), "summary": summary}


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()


def _index(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        document = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        entries = document["entries"] if document["format"] == FORMAT else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}  # no index, or not one of ours: it is built again from the records
    return entries if isinstance(entries, dict) else {}


def _save(folder: Path, entries: Mapping[str, Any]) -> None:
    text = json.dumps({"format": FORMAT, "entries": entries}, separators=(",", ":"))
    temporary = folder / f".{INDEX}.{secrets.token_hex(4)}"
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / INDEX)
    except OSError:
        # A folder that cannot be written is read without an index; it only costs time.
        temporary.unlink(missing_ok=True)
