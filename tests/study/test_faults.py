"""Faults that are really injected: full disks, file-size limits, jumping clocks, hostile files."""

from __future__ import annotations

import json
import multiprocessing
import resource
import shutil
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto import NSGA2, RandomSearch
from neuropareto.space import Array
from neuropareto.study import StorageError, Study, StudyDamaged, StudyError, schema
from neuropareto.study import study as study_module
from neuropareto.study.doctor import examine
from neuropareto.study.events import Asked, Event, Failed, Note, Told, row_checksum, to_row
from neuropareto.study.gate import description_checksum

D = 40


def objectives(X: Array) -> Array:
    return np.stack([((X - 0.2) ** 2).sum(axis=1), ((X - 0.7) ** 2).sum(axis=1)], axis=1)


def create(path: Path, seed: int = 1) -> Study:
    return Study.create(path, [(0.0, 1.0)] * D, 2, NSGA2(population=8), seed=seed, n_initial=5)


def same_as_undisturbed(study: Study, path: Path) -> None:
    """The study so far, and its next proposal, equal those of one that met no fault."""
    with create(path) as calm:
        while calm.finished < study.finished:
            trial = next(iter(calm.ask()))
            calm.tell(trial, objectives(trial.x[None]))
        assert calm.optimizer.X.tobytes() == study.optimizer.X.tobytes()
        if not len(study.pending):
            assert calm.ask(3).X.tobytes() == study.ask(3).X.tobytes()


# -- disk full --


def fill_up(path: Path, limit: int, answer: Connection) -> None:
    """Ask and tell under a limit on file size until the first refusal; then lift it and repeat."""
    study = create(path)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + limit, hard))
    told, trial = [], None
    try:
        while True:
            trial = None
            trial = next(iter(study.ask()))
            study.tell(trial, objectives(trial.x[None]))
            told.append(trial.id)
    except StorageError as error:
        answer.send((told, str(error)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    if trial is not None:
        study.tell(trial, objectives(trial.x[None]))
        told.append(trial.id)
    while study.finished < len(told) + 3:
        again = next(iter(study.ask()))
        study.tell(again, objectives(again.x[None]))
    answer.send((told, "went on"))
    study.close()


@pytest.mark.parametrize("limit", [0, 30_000, 60_000, 61_000, 64_000, 200_000])
def test_a_file_size_limit_loses_nothing(tmp_path: Path, limit: int) -> None:
    lose_nothing(tmp_path, limit)


@pytest.mark.slow
@pytest.mark.parametrize("limit", range(1, 160_000, 3_001))
def test_a_limit_at_any_write_loses_nothing(tmp_path: Path, limit: int) -> None:
    lose_nothing(tmp_path, limit)


def lose_nothing(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "a.study"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["neuropareto.study"])
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = context.Process(target=fill_up, args=(path, limit, theirs))
    child.start()
    assert ours.poll(100)
    told, message = ours.recv()
    assert "free some space or lift the limit" in message
    assert ours.poll(60)
    told, message = ours.recv()
    child.join()
    assert message == "went on" and child.exitcode == 0
    assert examine(path).healthy
    with Study.open(path) as study:
        stored = {e.trial for e in study.events() if isinstance(e, Told)}
        assert set(told) <= stored and study.finished == len(told) + 3
        same_as_undisturbed(study, tmp_path / "calm")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("there is no mount command")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"mounting is not allowed here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        # Lazily, so that a test that failed with the study open leaves no mount behind.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    path, filler = small_disk / "a.study", small_disk / "filler"
    with create(path) as study:
        trials = list(study.ask(3))
        study.tell(trials[0], objectives(trials[0].x[None]))
        fill(filler)
        with pytest.raises(StorageError, match="bytes are free"):
            study.ask()
        with pytest.raises(StorageError, match=r"disk is full|disk I/O"):
            for _ in range(1000):
                study.note("x" * 1000)
        with pytest.raises(StorageError, match="repeat the call"):
            study.tell(trials[1], objectives(trials[1].x[None]))
        assert study.finished == 1
        reader = Study.view(path)
        assert reader.finished == 1
        reader.close()
        filler.unlink()
        for trial in trials[1:]:
            study.tell(trial, objectives(trial.x[None]))
        assert study.finished == 3
    assert examine(path).healthy
    with Study.open(path) as study:
        assert study.finished == 3


def test_a_disk_that_is_full_at_the_end_does_not_keep_the_study(small_disk: Path) -> None:
    path, filler = small_disk / "a.study", small_disk / "filler"
    study = create(path)
    study.ask(2)
    fill(filler)
    try:
        for _ in range(1000):
            study.note("x" * 1000)
    except StorageError:
        pass
    with pytest.raises(StorageError):
        study.close()
    filler.unlink()
    with Study.open(path) as again:
        assert again.pending.ids == (0, 1)


def test_little_room_stops_asking_but_not_telling(
    memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(memory_disk / "a") as study:
        trial = next(iter(study.ask()))
        monkeypatch.setattr(study_module, "LEAST_ROOM", 2**62)
        with pytest.raises(StorageError, match="free some space"):
            study.ask()
        study.tell(trial, objectives(trial.x[None]))
        assert study.finished == 1


# -- clocks --


def test_clock_jumps_neither_reorder_nor_expire_anything(
    memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    shift = [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    with create(memory_disk / "a") as study:
        for jump in (0.0, 3e8, -3e8, -1.6e9, 10.0):
            shift[0] = jump
            trial = next(iter(study.ask()))
            study.started(trial.id, "w")
            shift[0] = -jump
            study.heartbeat(trial.id)
            assert 0 <= study.silence(trial.id) < 60
            study.tell(trial, objectives(trial.x[None]))
        assert study.result().seconds >= 0
        assert [e.seq for e in study.events()] == [*range(1, 22)]
    shift[0] = -5e8
    with Study.open(memory_disk / "a") as study:
        assert study.finished == 5
        same_as_undisturbed(study, memory_disk / "calm")


# -- files by somebody else --


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(";".join(statements))
    connection.close()


def finished_study(path: Path) -> Path:
    with Study.create(path, [(0.0, 1.0)] * 3, 2, RandomSearch(), seed=1, n_initial=4) as study:
        batch = study.ask(6)
        study.tell(list(batch)[:5], objectives(batch.X[:5]))
    return path


def refused(path: Path) -> str:
    """Opening in every way gives one clear sentence, and changes nothing."""
    before = path.read_bytes()
    sentences = []
    for opener in (Study.open, Study.view):
        with pytest.raises(StudyError) as caught:
            opener(path)
        sentences.append(str(caught.value))
    assert not examine(path).healthy
    assert path.read_bytes() == before
    for sentence in sentences:
        assert len(sentence) < 1500 and sentence.isprintable()
    return sentences[0]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE TRIGGER t AFTER INSERT ON owner BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS SELECT load_extension('/tmp/evil.so')",
        'CREATE TABLE "x\x1b[2J\r\n\'; DROP TABLE events; --" (a)',
        f'CREATE TABLE "{"n" * 100_000}" (a)',
        "CREATE INDEX i ON events(kind)",
        "DROP TABLE memory",
        "DROP TABLE owner",
        "DROP TABLE events",
        "ALTER TABLE events RENAME TO incidents",
        "ALTER TABLE events ADD COLUMN y",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
    ],
)
def test_foreign_tables_views_and_triggers_are_refused(memory_disk: Path, statement: str) -> None:
    path = finished_study(memory_disk / "a")
    edit(path, statement)
    assert "tables of a study" in refused(path)


def test_a_view_in_place_of_the_events_is_refused(memory_disk: Path) -> None:
    path = finished_study(memory_disk / "a")
    edit(
        path,
        "ALTER TABLE events RENAME TO real_events",
        "CREATE VIEW events AS SELECT * FROM real_events",
    )
    refused(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\0" * 10_000, b"SQLite format 3\0" + b"\xff" * 5000, b"\x80\x04K."],
)
def test_files_that_are_no_databases(memory_disk: Path, content: bytes) -> None:
    path = memory_disk / "a"
    path.write_bytes(content)
    refused(path)


def test_a_database_of_another_program(memory_disk: Path) -> None:
    path = memory_disk / "a"
    edit(path, "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT)")
    assert "another program" in refused(path)


def rewritten(path: Path, seq: int, change: Callable[[list[Any]], None]) -> None:
    """Change an event and give it a right checksum, as an attacker could."""
    connection = sqlite3.connect(path)
    row = list(connection.execute("SELECT * FROM events WHERE seq = ?", (seq,)).fetchone())
    change(row)
    try:
        row[9] = row_checksum(tuple(row))
    except (AttributeError, TypeError, UnicodeError, struct.error):
        row[9] = b"?" * 16
    connection.execute("DELETE FROM events WHERE seq = ?", (seq,))
    marks = ", ".join("?" * 10)
    connection.execute(f"INSERT INTO events VALUES ({marks})", row)
    connection.commit()
    connection.close()


def put(column: int, value: Any) -> Callable[[list[Any]], None]:
    def change(row: list[Any]) -> None:
        row[column] = value

    return change


VECTOR = np.zeros(3).tobytes()


@pytest.mark.parametrize(
    ("seq", "change"),
    [
        (2, put(1, "exploded")),
        (2, put(1, "k" * 1_000_000)),
        (2, put(1, b"asked")),
        (2, put(2, "yesterday")),
        (2, put(3, -1)),
        (2, put(3, 5)),
        (2, put(3, "zero")),
        (2, put(3, None)),
        (2, put(4, 17)),
        (2, put(5, "{")),
        (2, put(5, "[" * 100_000)),
        (2, put(5, '{"proposed": "many"}')),
        (2, put(5, '{"proposed": 1e9}')),
        (2, put(5, "{}")),
        (2, put(5, "9" * 10_000)),
        (2, put(6, b"")),
        (2, put(6, b"123")),
        (2, put(6, VECTOR + VECTOR)),
        (2, put(6, np.full(3, np.nan).tobytes())),
        (2, put(6, np.full(3, 2.0).tobytes())),
        (2, put(6, "text")),
        (2, put(6, 3)),
        (9, put(3, 77)),
        (9, put(3, 0)),
        (9, put(6, VECTOR)),
        (9, put(7, b"")),
        (9, put(7, VECTOR)),
        (9, put(7, np.full(2, np.nan).tobytes())),
        (9, put(8, VECTOR)),
        (9, put(1, "created")),
        (9, put(1, "failed")),
        (1, put(1, "note")),
        (1, put(5, "{}")),
        (1, put(5, "null")),
        (1, put(5, "\ud800".encode("utf-8", "surrogatepass"))),
    ],
)
def test_hostile_events_with_right_checksums_are_refused(
    memory_disk: Path, seq: int, change: Callable[[list[Any]], None]
) -> None:
    path = finished_study(memory_disk / "a")
    rewritten(path, seq, change)
    refused(path)


def test_a_hostile_description_builds_nothing(memory_disk: Path) -> None:
    path = finished_study(memory_disk / "a")

    def evil(row: list[Any]) -> None:
        description = json.loads(row[5])
        description["algorithm"] = {
            "class": "os:system",
            "fields": {"command": "touch /tmp/owned"},
        }
        row[5] = json.dumps(description)

    rewritten(path, 1, evil)
    with pytest.raises(StudyError, match="not part of this package"):
        Study.open(path)
    reader = Study.view(path)  # looking at it builds no algorithm at all
    assert reader.finished == 5
    reader.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET text = CAST(x'ff80' AS TEXT) WHERE seq = 2",
        "UPDATE events SET x = zeroblob(10000000) WHERE seq = 3",
        "DELETE FROM events WHERE seq = 5",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 1",
        "UPDATE events SET seq = 1000 WHERE seq = 12",
        "INSERT OR REPLACE INTO owner VALUES (1, 'me')",
        "INSERT OR REPLACE INTO owner VALUES (1, '{\"pid\": 1}')",
        "INSERT OR REPLACE INTO owner VALUES (1, 12)",
    ],
)
def test_rows_that_were_changed_by_hand_are_refused(memory_disk: Path, statement: str) -> None:
    path = finished_study(memory_disk / "a")
    edit(path, statement)
    with pytest.raises(StudyError):
        Study.open(path)
    assert not examine(path).healthy


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory SET dtype = '|O8'",
        "UPDATE memory SET shape = '[-1]'",
        "UPDATE memory SET data = x'00'",
        "UPDATE memory SET name = 5",
        "UPDATE memory SET ask = 'a'",
    ],
)
def test_damaged_memory_is_dropped_with_a_note(memory_disk: Path, statement: str) -> None:
    path = memory_disk / "a"
    with create(path) as study:
        for _ in range(3):
            batch = study.ask(3)
            study.tell(batch, objectives(batch.X))
    edit(path, statement)
    assert not examine(path).healthy
    with Study.open(path) as study:
        assert study.optimizer.memory is None
        notes = [e.text for e in study.events() if isinstance(e, Note)]
        assert any("memory dropped" in text for text in notes)
        assert len(study.ask(2)) == 2
    assert examine(path).healthy


def test_a_log_made_by_hand_is_held_to_the_rules(memory_disk: Path) -> None:
    """A foreign file in the right form is a study: it opens if its story makes sense."""
    path = finished_study(memory_disk / "a")
    connection = sqlite3.connect(path)
    text = connection.execute("SELECT text FROM events WHERE seq = 1").fetchone()[0]
    connection.execute("DELETE FROM events WHERE seq > 1")
    story: list[Event] = [
        Asked(0, 0, np.array([0.1, 0.2, 0.3])),
        Failed(0, "broke"),
        Told(None, np.array([1.0, 2.0]), np.empty(0), np.array([0.5, 0.5, 0.5])),
    ]
    connection.executemany(
        schema.ADD_EVENT, [to_row(event, k, 1e9) for k, event in enumerate(story, 2)]
    )
    connection.execute("UPDATE description SET checksum = ?", (description_checksum(text),))
    connection.commit()
    connection.close()
    assert examine(path).healthy
    with Study.open(path) as study:
        assert (study.finished, study.imported) == (1, 1)
        assert study.ask(2).ids == (1, 2)


def test_errors_are_of_few_kinds() -> None:
    assert issubclass(StorageError, StudyError) and issubclass(StudyDamaged, StudyError)
