"""The store: conformance, what it refuses, versions, journal modes, owners."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import stat
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuropareto.study import filesystem, gate, owner, schema, store
from neuropareto.study.errors import NetworkFileSystem, StudyDamaged, StudyError, StudyInUse
from neuropareto.study.events import Asked, Event, Note, Told
from neuropareto.study.store import Store
from neuropareto.study.warm import Warm
from neuropareto.testing.store import Opener, check_store


def test_sqlite_store_passes_the_exam(tmp_path: Path) -> None:
    numbers = itertools.count()

    def fresh() -> Opener:
        path = tmp_path / f"{next(numbers)}.study"
        return Opener(
            lambda d: Store.create(path, d), lambda: Store.open(path), lambda: Store.view(path)
        )

    check_store(fresh)


class Rounding:
    """A store that keeps results in single precision."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.events, self.memory, self.close = store.events, store.memory, store.close

    def append(self, events: Sequence[Event], *, memory: Warm | None = None) -> int:
        rounded = [
            replace(e, f=e.f.astype(np.float32).astype(np.float64)) if isinstance(e, Told) else e
            for e in events
        ]
        return self._store.append(rounded, memory=memory)


def test_the_exam_finds_a_store_that_rounds(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    opener = Opener(
        lambda d: Rounding(Store.create(path, d)),
        lambda: Rounding(Store.open(path)),
        lambda: Rounding(Store.view(path)),
    )
    with pytest.raises(AssertionError, match="told came back"):
        check_store(lambda: opener)


def test_file_is_readable_with_plain_sqlite3(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    writer = Store.create(path, {"name": "plain"})
    writer.append([Asked(0, 0, np.array([1.5, -2.5])), Told(0, np.array([3.0]), np.empty(0))])
    writer.close()
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT a.trial, a.x, t.f FROM events a JOIN events t USING (trial) "
            "WHERE a.kind = 'asked' AND t.kind = 'told'"
        ).fetchall()
        text = connection.execute("SELECT text FROM events WHERE kind = 'created'").fetchone()[0]
    connection.close()
    assert json.loads(text) == {"name": "plain"}
    assert rows[0][0] == 0
    assert np.frombuffer(rows[0][1], "<f8").tolist() == [1.5, -2.5]
    assert np.frombuffer(rows[0][2], "<f8").tolist() == [3.0]


def test_append_is_synchronous_and_in_wal_mode(tmp_path: Path) -> None:
    writer = Store.create(tmp_path / "a.study", {})
    connection = writer._open_connection()
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    writer.close()


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    writer = Store.create(tmp_path / "a.study", {})
    writer.append([Note("x")])
    writer.close()
    assert [p.name for p in tmp_path.iterdir()] == ["a.study"]


def test_view_works_on_read_only_media(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    Store.create(path, {}).close()
    before = path.read_bytes()
    path.chmod(stat.S_IRUSR)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        reader = Store.view(path)
        assert len(list(reader.events())) == 1
        reader.close()
    finally:
        tmp_path.chmod(stat.S_IRWXU)
    assert path.read_bytes() == before


def test_view_of_a_crashed_study_writes_nothing(tmp_path: Path) -> None:
    writer = Store.create(tmp_path / "a", {})
    writer.append([Note("only in the journal")])
    for name in ("a", "a-wal"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("a", "b", 1))
    writer.close()
    before = [(tmp_path / name).read_bytes() for name in ("b", "b-wal")]
    reader = Store.view(tmp_path / "b")
    assert len(list(reader.events())) == 2
    reader.close()
    assert [(tmp_path / name).read_bytes() for name in ("b", "b-wal")] == before


def test_view_of_a_study_whose_writer_died_within_a_transaction(tmp_path: Path) -> None:
    """A hot rollback journal, as a crash leaves it where the write-ahead log is not used."""
    writer = Store.create(tmp_path / "a", {})
    writer.append([Note("n" * 5000) for _ in range(50)])
    writer.close()
    sound = (tmp_path / "a").read_bytes()
    connection = sqlite3.connect(tmp_path / "a", isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE events SET time = 5.0")
    for name in ("a", "a-journal"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("a", "b", 1))
    connection.execute("ROLLBACK")
    connection.close()
    assert (tmp_path / "b").read_bytes() != sound
    reader = Store.view(tmp_path / "b")
    assert len(list(reader.events())) == 51
    reader.close()
    assert (tmp_path / "b").read_bytes()[100:] == sound[100:]


@pytest.mark.parametrize("name", ["spaces and ?#%41.study", "ünïcode.study", "a'b\";--.study"])
def test_odd_paths(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    writer = Store.create(path, {})
    writer.append([Note("x")])
    writer.close()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    reader = Store.view(path)
    assert len(list(reader.events())) == 2
    reader.close()


# -- what is refused --


def test_missing_file(tmp_path: Path) -> None:
    for opener in (Store.open, Store.view):
        with pytest.raises(FileNotFoundError, match=r"Study\.create"):
            opener(tmp_path / "none.study")
    assert not list(tmp_path.iterdir())


def test_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("precious")
    with pytest.raises(StudyError, match="exists already"):
        Store.create(path, {})
    assert path.read_text() == "precious"


def test_an_interrupted_create_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    path.touch()
    with pytest.raises(StudyDamaged, match="empty"):
        Store.open(path)
    Store.create(path, {"name": "second try"}).close()
    reader = Store.view(path)
    assert len(list(reader.events())) == 1
    reader.close()


def test_newer_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    Store.create(path, {}).close()
    _execute(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    before = path.read_bytes()
    for opener in (Store.open, Store.view):
        with pytest.raises(StudyError, match=f"version {schema.VERSION + 1}.*install a newer"):
            opener(path)
    assert path.read_bytes() == before


def test_older_version_is_migrated_and_a_copy_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.study"
    writer = Store.create(path, {"name": "old"})
    writer.append([Note("kept")])
    writer.close()
    new = {**schema.TABLES, "extra": "CREATE TABLE extra (a INTEGER)"}
    monkeypatch.setattr(
        schema, "HISTORY", {schema.VERSION: schema.TABLES, schema.VERSION + 1: new}
    )
    monkeypatch.setattr(schema, "MIGRATIONS", {schema.VERSION: (new["extra"],)})
    monkeypatch.setattr(schema, "SET_VERSION", f"PRAGMA user_version = {schema.VERSION + 1}")
    old = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", old + 1)
    with pytest.raises(StudyError, match="open it once for writing"):
        Store.view(path)
    migrated = Store.open(path)
    assert [e.kind for e in migrated.events()] == ["created", "note"]
    migrated.append([Note("after")])
    migrated.close()
    Store.view(path).close()
    copy = Path(f"{path}.version-{old}")
    assert _execute(copy, "PRAGMA user_version") == [(old,)]
    assert _execute(copy, "SELECT count(*) FROM events") == [(2,)]


# -- where it lies --

MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
//nas/share /mnt/my\040share cifs rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
tank /lustre lustre rw 0 0
/dev/sdc1 /lustre/fast xfs rw 0 0
odd
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/a.study", None),
        ("/home/me/a.study", "nfs4"),
        ("/homely/a.study", None),
        ("/home/local/a.study", None),
        ("/mnt/my share/deep/a.study", "cifs"),
        ("/lustre/a.study", "lustre"),
        ("/lustre/fast/a.study", None),
    ],
)
def test_network_file_systems_are_recognised(path: str, kind: str | None) -> None:
    assert filesystem.network_file_system(Path(path), MOUNTS) == kind


def test_this_machine_can_be_asked(tmp_path: Path) -> None:
    filesystem.network_file_system(tmp_path)
    assert filesystem.free_bytes(tmp_path / "a") > 0


def test_network_file_system_is_named_and_not_written_in_wal_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.study"
    Store.create(path, {}).close()
    monkeypatch.setattr(store, "network_file_system", lambda place: "nfs4")
    with pytest.warns(NetworkFileSystem, match="nfs4"):
        writer = Store.open(path)
    writer.append([Note("x")])
    assert writer._open_connection().execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    reader = Store.view(path)
    assert len(list(reader.events())) == 2
    reader.close()
    writer.close()


# -- owners --


def _foreign(path: Path, **changes: object) -> None:
    """Make the present owner somebody else."""
    text = _execute(path, schema.READ_OWNER)[0][0]
    changed = json.dumps({**json.loads(str(text)), **changes})
    _execute(path, schema.SET_OWNER, (changed,))


@pytest.fixture
def left_open(tmp_path: Path) -> Callable[[], Path]:
    """A study whose writer is (after `_foreign`) somebody else who has not closed it."""

    def make() -> Path:
        path = tmp_path / "a.study"
        writer = Store.create(path, {})
        assert writer._owner is not None
        del gate.living[writer._owner.token]
        writer._open_connection().close()
        return path

    return make


def taken_over(path: Path) -> None:
    """Open a store whose writer is gone: it can be written, and says what happened."""
    writer = Store.open(path)
    writer.append([Note("mine")])
    notes = [e.text for e in writer.events() if isinstance(e, Note)]
    assert len(notes) == 2 and "taken over" in notes[0] and notes[1] == "mine"
    writer.close()


def test_a_dead_writer_on_this_host_is_replaced_silently(left_open: Callable[[], Path]) -> None:
    path = left_open()
    _foreign(path, pid=2**22 + 5)
    taken_over(path)


def test_a_reused_process_number_is_not_taken_for_the_writer(
    left_open: Callable[[], Path],
) -> None:
    path = left_open()
    _foreign(path, pid=os.getppid(), started="1")
    taken_over(path)


def test_a_live_writer_is_respected_even_with_take_over(left_open: Callable[[], Path]) -> None:
    path = left_open()
    parent = os.getppid()
    _foreign(path, pid=parent, started=owner.start_time(parent))
    for take_over in (False, True):
        with pytest.raises(StudyInUse, match=f"process {parent}"):
            Store.open(path, take_over=take_over)


def test_after_a_restart_of_the_machine_the_writer_is_dead(left_open: Callable[[], Path]) -> None:
    path = left_open()
    _foreign(path, boot="another-boot")
    taken_over(path)


@pytest.mark.parametrize("changes", [{"host": "elsewhere", "boot": "b"}, {"namespace": "pid:[1]"}])
def test_a_writer_elsewhere_needs_take_over_after_silence(
    left_open: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]
) -> None:
    path = left_open()
    _foreign(path, **changes)
    with pytest.raises(StudyInUse, match="last heard of 0 s ago"):
        Store.open(path, take_over=True)
    now = time.time()
    for jump in (+3600.0, -3600.0):  # an hour later, or after the clock was set back an hour
        monkeypatch.setattr(time, "time", lambda jump=jump: now + jump)
        with pytest.raises(StudyInUse, match="take_over=True"):
            Store.open(path)
    Store.open(path, take_over=True).close()


def test_a_writer_that_was_replaced_can_write_no_more(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    first = Store.create(path, {})
    _foreign(path, token="somebody else", pid=os.getppid())
    with pytest.raises(StudyInUse, match="taken over"):
        first.append([Note("too late")])
    assert len(list(first.events())) == 1
    first.close()
    assert "somebody else" in str(_execute(path, schema.READ_OWNER))


def test_a_forgotten_store_does_not_lock_its_own_process_out(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        Store.create(path, {})
    again = Store.open(path)
    again.append([Note("mine")])
    assert [e.text for e in again.events() if isinstance(e, Note)][-1] == "mine"
    again.close()


def test_opening_twice_in_one_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    first = Store.create(path, {})
    with pytest.raises(StudyInUse, match="this process"):
        Store.open(path)
    first.append([Note("unharmed")])
    first.close()


def _execute(
    path: Path, statement: str, values: tuple[object, ...] = ()
) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()
