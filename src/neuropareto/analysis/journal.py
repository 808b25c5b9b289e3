"""A journal of finished steps: one JSON object a line, on disk before the next step begins.

A process that is killed leaves at most a torn last line, which the next one cuts off; everything
before it is found again and not repeated. The first line says what the journal is about, so that
two different jobs never mix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Journal:
    """The steps of one job in one file; opening it reads what an earlier process finished."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open or begin the journal at ``path``; ValueError if it is about something else."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _whole_lines(path)
        wanted = json.loads(json.dumps(about))
        if not lines:
            self.entries: list[Entry] = []
            self._write(wanted)
            return
        if lines[0] != wanted:
            differs = [k for k in {**lines[0], **wanted} if lines[0].get(k) != wanted.get(k)]
            raise ValueError(
                f"{path} belongs to another job (it differs in {', '.join(sorted(differs))}); give "
                "the same settings to go on with it, or another folder to begin anew."
            )
        self.entries = lines[1:]

    def append(self, entry: Entry) -> None:
        """Record a finished step; it is on disk when this returns."""
        self._write(entry)
        self.entries.append(json.loads(json.dumps(entry)))

    def found(self, **wanted: object) -> Entry | None:
        """The first entry that has all of these values, or None."""
        for entry in self.entries:
            if all(entry.get(key) == value for key, value in wanted.items()):
                return entry
        return None

    def _write(self, entry: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _whole_lines(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):  # the step that was being written when the process died
        with path.open("r+b") as file:
            file.truncate(end)
    try:
        found = [json.loads(line) for line in data[:end].splitlines()]
    except ValueError:
        raise ValueError(
            f"{path} is not a journal of this package; choose another folder."
        ) from None
    if not all(isinstance(entry, dict) for entry in found):
        raise ValueError(f"{path} is not a journal of this package; choose another folder.")
    return found
