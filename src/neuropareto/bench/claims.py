"""Claims: who runs which cell, so that several runners can share a folder.

A claim is a small file beside the record with the process that holds it. A claim whose process is
gone (killed, machine restarted) is taken over. On another host only the age of the last sign of
life tells; :meth:`Claim.renew` gives one after every round. Should two runners ever get the same
cell in spite of this, both write the same record: nothing is lost but time.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from neuropareto.study.errors import StudyDamaged
from neuropareto.study.owner import Owner, verdict

QUIET_SECONDS = 3 * 3600.0
"""A claim from elsewhere without a sign of life for this long is taken to be abandoned."""


@dataclass(frozen=True)
class Claim:
    """A held claim; release it when the cell is finished or given up."""

    path: Path

    def renew(self) -> None:
        """Give a sign of life."""
        self.path.touch(exist_ok=True)

    def release(self) -> None:
        """Let others have the cell."""
        self.path.unlink(missing_ok=True)


def claim(path: Path) -> Claim | None:
    """Claim by creating ``path``; None if a living process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        if _created(path):
            return Claim(path)
        if not _abandoned(path):
            return None
        # Only one of several who saw the same dead claim can move it away.
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.replace(aside)
        except FileNotFoundError:
            continue
        aside.unlink()
    return None


def clear(path: Path, pid: int) -> None:
    """Remove the claim of a process of ours that is known to be dead."""
    try:
        other = Owner.from_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, StudyDamaged):
        return
    if other.pid == pid and other.host == Owner.here().host:
        path.unlink(missing_ok=True)


def _created(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(Owner.here().to_json())
    return True


def _abandoned(path: Path) -> bool:
    try:
        text, age = path.read_text(encoding="utf-8"), time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return True
    try:
        other = Owner.from_json(text)
    except StudyDamaged:
        # Its writer may be between creating and writing; a torn claim that stays is nobody's.
        return age > 60.0
    lives = verdict(other, Owner.here(), shared_disk=False)
    return lives == "dead" or (lives == "elsewhere" and age > QUIET_SECONDS)
