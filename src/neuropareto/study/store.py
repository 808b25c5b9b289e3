"""Store: one SQLite file that holds a study's events, durably, with one writer at a time.

Every append is one transaction, on disk when the call returns (WAL journal, synchronous=FULL; on
a network file system a rollback journal, because shared memory does not work there). Readers use
their own connection in short reads, so they never hold up the writer. A writer's token is checked
inside each transaction: once a study was taken over, the former writer can write no more.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuropareto.study import gate, schema, warm
from neuropareto.study.errors import (
    NetworkFileSystem,
    StorageError,
    StudyDamaged,
    StudyError,
    StudyInUse,
)
from neuropareto.study.events import Event, Note, from_row, to_row
from neuropareto.study.filesystem import (
    check_folder,
    free_bytes,
    network_file_system,
    sync_directory,
)
from neuropareto.study.gate import shown, transaction, translated
from neuropareto.study.owner import Owner

PAGE = 200
"""Events fetched by one read; short reads keep the journal from growing under a slow reader."""


class Store:
    """An open study file; build it with :meth:`create`, :meth:`open` or :meth:`view`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = connection
        self._owner: Owner | None = None
        self._owner_text = ""
        self._claim: gate.Claim | None = None
        self._pid = os.getpid()
        self._lock = threading.RLock()

    # -- opening --

    @classmethod
    def create(cls, path: str | os.PathLike[str], description: Mapping[str, Any]) -> Store:
        """A new file with its ``created`` event, open for writing; refuses an existing file."""
        place = Path(path).absolute()
        if place.exists() and (not place.is_file() or place.stat().st_size):
            raise StudyError(f"{shown(place)} exists already; open it with Study.open.")
        check_folder(place)
        with translated(place):
            connection = gate.connect(place, "rwc")
            with contextlib.closing(connection):
                connection.execute(schema.SET_PAGE_SIZE)
                gate.make_tables(connection, place, description)
            sync_directory(place)
        return cls.open(place)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, take_over: bool = False) -> Store:
        """An existing file for writing: :meth:`approach`, then :meth:`claim`."""
        store = cls.approach(path, take_over=take_over)
        try:
            store.claim()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def approach(cls, path: str | os.PathLike[str], *, take_over: bool = False) -> Store:
        """An existing file that :meth:`claim` will open for writing; nothing is written yet.

        Raises StudyInUse if another writer is alive, or may be and ``take_over`` was not given;
        StudyDamaged if the file is not an intact study; StudyError if it is of a newer version. A
        file of an older version is claimed and brought up to date at once.
        """
        place = gate.existing(path)
        network = network_file_system(place)
        if network is not None:
            warnings.warn(
                f"{shown(place)} lies on a network file system ({network}), where file locks are "
                "unreliable: it is kept in rollback-journal mode, and only one process may use it.",
                NetworkFileSystem,
                stacklevel=4,
            )
        claim = gate.Claim(place, take_over, shared_disk=network is not None)
        with translated(place):
            connection = gate.connect(place, "rw")
            try:
                version = gate.identified(connection, place)
                claim.check_free(connection)
                gate.check_structure(connection, place)
                store = cls(place, connection)
                store._claim = claim
                if version < schema.VERSION:
                    store.claim()
                    gate.migrate(connection, place, version)
            except BaseException:
                connection.close()
                raise
        return store

    def claim(self) -> int | None:
        """Become the writer; returns the last event's number before, None if there is no claim."""
        with self._lock, translated(self.path):
            claim, self._claim = self._claim, None
            if claim is None:
                return None
            connection = self._open_connection()
            owner, former, last = claim.settled(connection)
            self._owner, self._owner_text = owner, owner.to_json()
            gate.living[owner.token] = self.path
            weakref.finalize(self, gate.living.pop, owner.token, None)
            connection.execute(schema.JOURNAL["delete" if claim.shared_disk else "wal"])
            connection.execute(schema.SHORT_JOURNAL)
            if former is not None:
                self.append([Note(f"taken over from {former}, which had not closed the study")])
            return last

    @classmethod
    def view(cls, path: str | os.PathLike[str]) -> Store:
        """An existing file for reading only; never waits for the writer, never adds anything.

        Where a crash interrupted a transaction, SQLite first restores what was there before it.
        """
        place = gate.existing(path)
        with translated(place):
            connection = gate.connect(place, "ro")
            try:
                connection.execute(schema.READ_ONLY)
                if gate.identified(connection, place) < schema.VERSION:
                    raise StudyError(
                        f"{shown(place)} has an older format; open it once for writing "
                        "(Study.open), which brings it up to date and keeps a copy."
                    )
            except BaseException:
                connection.close()
                raise
        return cls(place, connection)

    # -- writing --

    def append(self, events: Sequence[Event], *, memory: warm.Warm | None = None) -> int:
        """Add events in one durable transaction; all of them or, on an error, none.

        ``memory`` replaces the stored one. Returns the number of the last event.
        """
        with self._lock, self._translated():
            self.check_writable()
            connection = self._open_connection()
            rows_of_memory = None if memory is None else warm.to_rows(memory)
            with transaction(connection):
                self._check_ownership(connection)
                found = connection.execute(schema.LAST_EVENT).fetchone()
                last = int(found[0]) if found else 0
                now = time.time()
                connection.executemany(
                    schema.ADD_EVENT, [to_row(e, last + i, now) for i, e in enumerate(events, 1)]
                )
                if rows_of_memory is not None:
                    connection.execute(schema.CLEAR_MEMORY)
                    connection.executemany(schema.ADD_MEMORY, rows_of_memory)
            return last + len(events)

    def _check_ownership(self, connection: sqlite3.Connection) -> None:
        found = connection.execute(schema.READ_OWNER).fetchone()
        if found is None or found[0] != self._owner_text:
            present = Owner.from_json(found[0]) if found else None
            raise StudyInUse(
                f"{shown(self.path)} was taken over by {present or 'somebody'}; this process can "
                "write to it no more. Nothing of the call was stored."
            )

    @property
    def writable(self) -> bool:
        """Whether this store is open for writing."""
        return self._connection is not None and self._owner is not None

    def check_writable(self) -> None:
        """Raise StudyError, saying why, if this store cannot be written to."""
        self._open_connection()
        if self._owner is None:
            raise StudyError("This study was opened for reading; use Study.open to write.")

    def check_room(self, least: int) -> None:
        """Raise StorageError if fewer than ``least`` bytes are free where the file lies."""
        if (room := free_bytes(self.path)) < least:
            raise StorageError(
                f"Only {room} bytes are free on the disk of the study, {least} are needed to go on; "
                "free some space, then ask again. What was told is safe."
            )

    # -- reading --

    def events(self, since: int = 0) -> Iterator[Event]:
        """Events after number ``since``, in order; raises StudyDamaged where one is not intact."""
        while rows := self._page(since):
            for row in rows:
                if row[0] != since + 1:
                    raise StudyDamaged(f"Event {since + 1} is missing from {shown(self.path)}.")
                since += 1
                yield from_row(row)

    def _page(self, since: int) -> list[tuple[Any, ...]]:
        return self._read(schema.EVENTS_AFTER, (since, PAGE))

    def _read(self, statement: str, values: tuple[int, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._translated():
            connection = self._open_connection()
            try:
                return connection.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if not gate.needs_recovery(error):
                    raise
                gate.recover(self.path)
                return connection.execute(statement, values).fetchall()

    def memory(self) -> warm.Warm | None:
        """The stored memory; raises StudyDamaged if it is not intact."""
        return warm.from_rows(self._read(schema.READ_MEMORY))

    def faults(self) -> list[str]:
        """What is wrong with the file beside its events: structure, second copy, memory."""
        found = []
        with self._lock:
            for check in (self._check_structure, self._check_copy, self.memory):
                try:
                    check()
                except StudyError as error:
                    found.append(str(error))
        return found

    def _check_structure(self) -> None:
        with translated(self.path):
            gate.check_structure(self._open_connection(), self.path)

    def _check_copy(self) -> None:
        copies = self._read(schema.READ_DESCRIPTION)
        if len(copies) != 1 or gate.description_checksum(str(copies[0][0])) != copies[0][1]:
            raise StudyDamaged("The second copy of the description is damaged.")

    def last_time(self) -> float:
        """Clock time of the last event."""
        return float(self._read(schema.LAST_EVENT)[0][1])

    @property
    def owner(self) -> Owner | None:
        """Who has the study open for writing, as the file says."""
        found = self._read(schema.READ_OWNER)
        return Owner.from_json(found[0][0]) if found else None

    # -- closing --

    def close(self) -> None:
        """Give the file back; a writer leaves one single file if nobody reads it just now."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None or os.getpid() != self._pid:
                return
            try:
                if self._owner is not None:
                    with translated(self.path):
                        self._release(connection)
            finally:
                connection.close()
                if self._owner is not None:
                    gate.living.pop(self._owner.token, None)

    def _release(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            found = connection.execute(schema.READ_OWNER).fetchone()
            if found is not None and found[0] == self._owner_text:
                connection.execute(schema.CLEAR_OWNER)
        connection.execute(schema.WAIT_FOR_NOBODY)
        # A reader may keep the journal busy: then the file stays in WAL mode, which is as safe.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(schema.EMPTY_JOURNAL)
            connection.execute(schema.JOURNAL["delete"])

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        """SQLite's errors as ours; the writer may wait for a lock as for room on the disk."""
        return translated(self.path, StudyInUse if self._owner is None else StorageError)

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StudyError("This study is closed; open it again with Study.open.")
        if os.getpid() != self._pid:
            raise StudyError(
                "A study cannot be used in a forked child; evaluate there and tell here."
            )
        return self._connection
