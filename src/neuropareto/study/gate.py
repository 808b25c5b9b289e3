"""The gate of a study file: connecting, telling what kind of file it is, and who may write.

Nothing of a file is used before its identity, its version and its tables were checked; SQLite's
errors become ours here, with what to do about them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropareto.study import schema
from neuropareto.study.errors import StorageError, StudyDamaged, StudyError, StudyInUse
from neuropareto.study.events import Created, to_row
from neuropareto.study.owner import QUIET_SECONDS, Owner, verdict

LARGEST_VALUE = 300 * 2**20
"""Bytes of the longest text or blob that is read from a file."""

living: dict[str, Path] = {}
"""Tokens and paths of the stores that this process has open for writing."""


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A hardened connection; ``mode`` is "ro", "rw" or "rwc" (create)."""
    try:
        return _prepared(path, mode)
    except sqlite3.OperationalError as error:
        if mode != "ro" or not needs_recovery(error):
            raise
    recover(path)
    return _prepared(path, mode)


def _prepared(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    try:
        for statement in schema.PREPARE:
            connection.execute(statement)
        connection.execute(schema.OBJECTS).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def needs_recovery(error: sqlite3.Error) -> bool:
    """Whether a reader failed because a writer died within a transaction, which it may not undo."""
    return "readonly" in str(error)


def recover(path: Path) -> None:
    """Let SQLite undo the transaction in which a writer died; nothing happens if it lives."""
    with contextlib.closing(connect(path, "rw")) as connection:
        connection.execute(schema.OBJECTS).fetchall()


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements or none; a KeyboardInterrupt counts as an error too."""
    connection.execute(schema.BEGIN)
    try:
        yield
        connection.execute(schema.COMMIT)
    except BaseException:
        if connection.in_transaction:
            # The first error is the one to report; SQLite undoes the rest on the next start.
            with contextlib.suppress(sqlite3.Error):
                connection.execute(schema.ROLLBACK)
        raise


@contextlib.contextmanager
def translated(path: Path, locked: type[StudyError] = StudyInUse) -> Iterator[None]:
    """SQLite's errors as ours, with what to do about them; a lock of others is a ``locked``."""
    try:
        yield
    except UnicodeDecodeError as error:  # from sqlite3, of a name or an error's text in the file
        raise StudyDamaged(
            f"{shown(path)} is damaged: it holds a name that is no text; `neuropareto doctor` checks "
            "it and rescues what is readable."
        ) from error
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise locked(
                f"{shown(path)} is locked by another program; close what else has it open."
            ) from error
        not_ours = ("malformed", "not a database", "decode", "too big", "no such", "schema")
        if any(word in text for word in not_ours) or not isinstance(
            error, sqlite3.OperationalError
        ):
            raise StudyDamaged(
                f"{shown(path)} is damaged or not a study ({text[:120]}); `neuropareto doctor` "
                "checks it and rescues what is readable."
            ) from error
        raise StorageError(
            f"{shown(path)} could not be read or written ({text[:120]}). What was stored before "
            "is safe; free some space or lift the limit, then repeat the call."
        ) from error


def shown(path: Path) -> str:
    """A path fit for an error message, whatever characters it has."""
    return ascii(str(path))


def existing(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a file that is there."""
    place = Path(path).absolute()
    if not place.is_file():
        raise FileNotFoundError(f"There is no study at {shown(place)}; make it with Study.create.")
    return place


def begun(path: Path) -> bool:
    """Whether a study was written to ``path``; a full disk may leave an empty file there."""
    return path.exists() and (not path.is_file() or path.stat().st_size > 0)


def is_study(path: Path) -> bool:
    """Whether a file has the identity of a study.

    Never read through a plain handle: closing one drops the locks that SQLite holds on the file.
    """
    return bool(_asked(path, schema.IDENTITY) == schema.APPLICATION_ID)


def has_table(path: Path, name: str) -> bool:
    """Whether a file is a database with a table of that name."""
    return bool(_asked(path, schema.HAS_TABLE, name))


def _asked(path: Path, question: str, *values: str) -> Any:
    """The answer of a file, which is only read, to one question; None if it is no database."""
    if not path.is_file():
        return None
    try:
        place = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
            return connection.execute(question, values).fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError):
        return None


# -- checks and claims --


def make_tables(
    connection: sqlite3.Connection, path: Path, description: Mapping[str, Any]
) -> None:
    """Tables, identity and the ``created`` event of a new study, in one transaction."""
    text = json.dumps(description, allow_nan=False)
    with transaction(connection):
        if connection.execute(schema.OBJECTS).fetchone() is not None:
            raise StudyError(f"{shown(path)} exists already; open it with Study.open.")
        for statement in schema.TABLES.values():
            connection.execute(statement)
        connection.execute(schema.SET_IDENTITY)
        connection.execute(schema.SET_VERSION)
        connection.execute(schema.ADD_EVENT, to_row(Created(description), 1, time.time()))
        connection.execute(schema.ADD_DESCRIPTION, (text, description_checksum(text)))


def description_checksum(text: str) -> bytes:
    """BLAKE2b-128 of the second copy of the description."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def identified(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a study file, with nothing in it but the tables of that version."""
    identity = connection.execute(schema.IDENTITY).fetchone()[0]
    version = int(connection.execute(schema.USER_VERSION).fetchone()[0])
    if identity != schema.APPLICATION_ID:
        if not path.stat().st_size:
            raise StudyDamaged(f"{shown(path)} is empty; make the study again with Study.create.")
        raise StudyDamaged(
            f"{shown(path)} is a database of another program; give the path of a study file."
        )
    if version > schema.VERSION:
        raise StudyError(
            f"{shown(path)} has format version {version}, this package reads up to "
            f"{schema.VERSION}; install a newer neuropareto."
        )
    found = {(kind, name, sql) for kind, name, sql in connection.execute(schema.OBJECTS)}
    expected = {("table", name, sql) for name, sql in schema.HISTORY.get(version, {}).items()}
    if found != expected:
        odd = ", ".join(sorted(f"{k} {n!a:.60}" for k, n, _ in found ^ expected)[:3])
        raise StudyDamaged(
            f"{shown(path)} does not have the tables of a study (see {odd}); remove what is "
            "foreign or use the original file."
        )
    return version


def check_structure(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StudyDamaged if the pages of the file do not hang together."""
    report = [str(line[0]) for line in connection.execute(schema.QUICK_CHECK)]
    if report != ["ok"]:
        raise StudyDamaged(
            f"{shown(path)} is damaged ({report[0][:120]}); `neuropareto doctor` rescues what is "
            "readable."
        )


def readable_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """Rows of events as far as SQLite reads them, from the first on and then from the last back."""
    with contextlib.closing(connect(path, "ro")) as connection:
        identified(connection, path)
        for statement, at in ((schema.EVENTS_AFTER, 0), (schema.EVENTS_BEFORE, 2**62)):
            try:
                yield from connection.execute(statement, (at, -1))
                return
            except (sqlite3.Error, UnicodeDecodeError):
                continue  # a damaged page: try from the other side


@dataclass(frozen=True)
class Claim:
    """The wish to be the writer of the study at ``path``.

    On a ``shared_disk`` a host's name does not tell its machine. ``take_over`` says that a writer
    which cannot be seen from here has ended.
    """

    path: Path
    take_over: bool
    shared_disk: bool

    def settled(self, connection: sqlite3.Connection) -> tuple[Owner, Owner | None, int]:
        """Enter this process as writer: it, a former one that did not close, the last event."""
        owner = Owner.here()
        with transaction(connection):
            former = self.check_free(connection)
            found = connection.execute(schema.LAST_EVENT).fetchone()
            connection.execute(schema.SET_OWNER, (owner.to_json(),))
        return owner, former, int(found[0]) if found else 0

    def check_free(self, connection: sqlite3.Connection) -> Owner | None:
        """The former writer if it left without closing; raises StudyInUse if it may still write."""
        found = connection.execute(schema.READ_OWNER).fetchone()
        if not found:
            return None
        other, here = Owner.from_json(found[0]), Owner.here()
        judged = verdict(other, here, shared_disk=self.shared_disk)
        if judged == "alive" and (other.pid != here.pid or other.token in living):
            where = "this process" if other.pid == here.pid else str(other)
            raise StudyInUse(
                f"{shown(self.path)} is open for writing in {where}; close it there first, or look "
                "at it with Study.view."
            )
        if judged == "elsewhere":
            self._check_quiet(connection, other)
        return other

    def _check_quiet(self, connection: sqlite3.Connection, other: Owner) -> None:
        last = connection.execute(schema.LAST_EVENT).fetchone()
        heard = last[1] if last and isinstance(last[1], float) else 0.0
        # The distance, not the difference: a clock that was set back must not lock people out.
        quiet = abs(time.time() - max(other.claimed, heard))
        if quiet < QUIET_SECONDS or not self.take_over:
            raise StudyInUse(
                f"{shown(self.path)} is open for writing in {other}, which cannot be seen from here "
                f"and was last heard of {quiet:.0f} s ago. If it has ended, pass take_over=True "
                "(--take-over on the command line), at the earliest "
                f"{QUIET_SECONDS:.0f} s after its last sign of life."
            )


def migrate(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Bring an older file up to date, step by step, after a copy of it was put aside."""
    if version == schema.VERSION:
        return
    connection.execute(schema.COPY_INTO, (f"{path}.version-{version}",))
    with transaction(connection):
        for step in range(version, schema.VERSION):
            for statement in schema.MIGRATIONS[step]:
                connection.execute(statement)
        connection.execute(schema.SET_VERSION)
