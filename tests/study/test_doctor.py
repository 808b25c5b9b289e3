"""The doctor: damage is found, what is readable is saved, and nothing is ever made up."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from neuropareto import NSGA2, RandomSearch
from neuropareto.space import Array
from neuropareto.study import Study, StudyDamaged, StudyError
from neuropareto.study.doctor import Diagnosis, examine, rescue
from neuropareto.study.events import Asked, Failed, Note, Told
from neuropareto.study.pages import raw_rows
from neuropareto.study.schema import PAGE_SIZE

D = 60


def objectives(X: Array) -> Array:
    return np.stack([((X - 0.2) ** 2).sum(axis=1), ((X - 0.7) ** 2).sum(axis=1)], axis=1)


def evaluated(path: Path, n: int = 60, algorithm: NSGA2 | RandomSearch | None = None) -> Path:
    """A closed study with n results, two failures and one pending point, on several pages."""
    chosen = RandomSearch() if algorithm is None else algorithm
    with Study.create(path, [(0.0, 1.0)] * D, 2, chosen, seed=4, n_initial=10) as study:
        for _ in range(n // 5):
            batch = study.ask(5)
            study.started(batch.ids[0], "w")
            study.tell(batch, objectives(batch.X))
        last = list(study.ask(3))
        study.tell(last[0], [np.nan, 1.0])
        study.fail(last[1], "broke")
    return path


def results(path: Path) -> list[tuple[bytes, bytes]]:
    """Point and result of every evaluation, in order."""
    reader = Study.view(path)
    try:
        optimizer = reader.optimizer
        return [(x.tobytes(), f.tobytes()) for x, f in zip(optimizer.X, optimizer.F, strict=True)]
    finally:
        reader.close()


def damaged(path: Path, data: bytes) -> Path:
    for old in path.parent.glob(path.name + "*"):
        old.unlink()
    path.write_bytes(data)
    return path


def test_a_healthy_study(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a")
    before = path.read_bytes()
    diagnosis = examine(path)
    assert diagnosis.healthy and "intact" in str(diagnosis)
    assert (diagnosis.told, diagnosis.failed, diagnosis.pending) == (60, 2, 1)
    reader = Study.view(path)
    assert diagnosis.events == len(list(reader.events()))
    reader.close()
    assert path.read_bytes() == before


def test_an_open_study_is_healthy_and_its_writer_named(memory_disk: Path) -> None:
    with Study.create(memory_disk / "a", [(0.0, 1.0)], 2, RandomSearch(), seed=1):
        diagnosis = examine(memory_disk / "a")
    assert diagnosis.healthy and f"process {os.getpid()}" in str(diagnosis)


def test_a_damaged_study_is_closed_before_it_is_examined(memory_disk: Path) -> None:
    with Study.create(memory_disk / "a", [(0.0, 1.0)], 2, RandomSearch(), seed=1) as study:
        connection = sqlite3.connect(memory_disk / "a")
        connection.execute("UPDATE events SET time = 5.0")
        connection.commit()
        connection.close()
        with pytest.raises(StudyError, match="close it first"):
            examine(memory_disk / "a")
        assert study.finished == 0
    assert not examine(memory_disk / "a").healthy


def test_the_raw_pages_hold_every_event(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a")
    reader = Study.view(path)
    numbers = {e.seq for e in reader.events()}
    reader.close()
    assert {row[0] for row in raw_rows(path) if len(row) == 11} == numbers


def test_long_records_are_followed_over_many_pages(memory_disk: Path) -> None:
    path = memory_disk / "a"
    with Study.create(path, [(0.0, 1.0)] * 5000, 2, RandomSearch(), seed=1, n_initial=3) as study:
        batch = study.ask(3)
        study.tell(batch, objectives(batch.X))
    whole = results(path)
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    rescue(damaged(path, bytes(data)), memory_disk / "new")
    assert results(memory_disk / "new") == whole


# -- damage is found, and nothing is made up --


def check_saved(path: Path, target: Path, whole: list[tuple[bytes, bytes]]) -> Diagnosis | None:
    """Whatever can be read or rescued is exactly what was told."""
    before = path.read_bytes()
    diagnosis = examine(path)
    if diagnosis.healthy:
        assert results(path) == whole, "damage went unnoticed"
        return None
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    try:
        Study.open(copy).close()
    except StudyError:
        pass
    else:
        assert results(copy) == whole, "damage went unnoticed"
    target.unlink(missing_ok=True)
    try:
        saved = rescue(path, target)
    except StudyDamaged as error:
        assert "description" in str(error)
        return None
    finally:
        assert path.read_bytes() == before, "the damaged file was changed"
    assert saved.healthy
    assert set(results(target)) <= set(whole), "something was made up"
    with Study.open(target) as study:
        assert len(study.ask(2)) == 2
    return saved


def test_flipped_bits(memory_disk: Path) -> None:
    data = evaluated(memory_disk / "a").read_bytes()
    whole = results(memory_disk / "a")
    rng, found = random.Random(1), 0
    for _ in range(80):
        at = rng.randrange(8 * len(data))
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << (at % 8)
        path = damaged(memory_disk / "flipped", bytes(flipped))
        saved = check_saved(path, memory_disk / "new", whole)
        if saved is not None:
            found += 1
            assert saved.told >= len(whole) - 1, "one bit may cost one result, not more"
    assert found > 20


def test_truncated_files(memory_disk: Path) -> None:
    data = evaluated(memory_disk / "a").read_bytes()
    whole = results(memory_disk / "a")
    rng, saved_somewhere = random.Random(2), 0
    lengths = [0, 1, 99, 100, 511, PAGE_SIZE, len(data) - 1, len(data) - PAGE_SIZE]
    for length in (*lengths, *(rng.randrange(len(data)) for _ in range(20))):
        path = damaged(memory_disk / "short", data[:length])
        saved = check_saved(path, memory_disk / "new", whole)
        saved_somewhere += saved is not None and saved.told > 0
    assert saved_somewhere > 10


def test_overwritten_pages(memory_disk: Path) -> None:
    data = evaluated(memory_disk / "a").read_bytes()
    whole = results(memory_disk / "a")
    for page in range(len(data) // PAGE_SIZE):
        for filling in (bytes(PAGE_SIZE), random.Random(page).randbytes(PAGE_SIZE)):
            start = page * PAGE_SIZE
            broken = data[:start] + filling + data[start + PAGE_SIZE :]
            path = damaged(memory_disk / "hole", broken)
            check_saved(path, memory_disk / "new", whole)


# -- how a rescued study goes on --


def next_points(path: Path) -> bytes:
    with Study.open(path) as study:
        return study.ask(4).X.tobytes()


def test_without_loss_it_goes_on_bit_for_bit(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a")
    data, whole = bytearray(path.read_bytes()), results(path)
    expected = next_points(path)
    data[:100] = bytes(100)  # the header: SQLite cannot read a thing
    broken = damaged(memory_disk / "broken", bytes(data))
    with pytest.raises(StudyDamaged, match="doctor"):
        Study.open(broken)
    saved = rescue(broken, memory_disk / "new")
    assert (saved.told, saved.failed, saved.pending) == (60, 2, 1)
    assert results(memory_disk / "new") == whole
    assert next_points(memory_disk / "new") == expected


def test_a_lost_end_is_proposed_again(memory_disk: Path) -> None:
    """The file ends within a call of ask: the saved study repeats that call exactly."""
    path = memory_disk / "a"
    with Study.create(path, [(0.0, 1.0)] * D, 2, RandomSearch(), seed=4, n_initial=5) as study:
        first = study.ask(5)
        study.tell(first, objectives(first.X))
        second = study.ask(100)
    data = path.read_bytes()
    cut = data.index(second.X[60].tobytes())
    rescue(damaged(memory_disk / "short", data[:cut]), memory_disk / "new")
    with Study.open(memory_disk / "new") as saved:
        assert saved.finished == 5 and len(saved.pending) == 0
        assert saved.ask(100).X.tobytes() == second.X.tobytes()


def test_lost_results_are_pending_again_and_lost_points_are_named(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a")
    data = bytearray(path.read_bytes())
    reader = Study.view(path)
    asked = [e for e in reader.events() if isinstance(e, Asked)]
    told = [e for e in reader.events() if isinstance(e, Told)]
    reader.close()
    at = data.index(told[30].f.tobytes())
    data[at] ^= 1
    saved = rescue(damaged(memory_disk / "b", bytes(data)), memory_disk / "new-b")
    assert (saved.told, saved.pending) == (59, 2)
    assert any(f"lost: events {told[30].seq} to {told[30].seq}" in r for r in saved.remarks)
    with Study.open(memory_disk / "new-b") as study:
        assert told[30].trial in study.pending.ids
    at = data.index(asked[20].x.tobytes())
    data[at] ^= 1
    saved = rescue(damaged(memory_disk / "c", bytes(data)), memory_disk / "new-c")
    assert (saved.told, saved.failed, saved.pending) == (58, 2, 0)
    assert any("point of trial 20 is lost; it gave [" in remark for remark in saved.remarks)
    with Study.open(memory_disk / "new-c") as study:
        assert study.imported == 60 and study.description.seed != 4
        notes = [e.text for e in study.events() if isinstance(e, Note)]
        assert set(saved.remarks) <= set(notes)
        assert sum(isinstance(e, Failed) for e in study.events()) == 2


def test_both_copies_of_the_description(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a")
    whole = results(path)
    data = bytearray(path.read_bytes())
    name = b'"variables"'
    first, last = data.index(name), data.rindex(name)
    assert first != last
    for at in (first, last):
        one = bytearray(data)
        one[at] ^= 1
        assert not examine(damaged(memory_disk / "one", bytes(one))).healthy
        (memory_disk / "new").unlink(missing_ok=True)
        rescue(memory_disk / "one", memory_disk / "new")
        assert results(memory_disk / "new") == whole
    for at in (first, last):
        data[at] ^= 1
    (memory_disk / "new").unlink()
    with pytest.raises(StudyDamaged, match="Both copies of the description"):
        rescue(damaged(memory_disk / "both", bytes(data)), memory_disk / "new")


def test_what_is_only_in_the_journal_is_saved_too(memory_disk: Path) -> None:
    path = memory_disk / "a"
    with Study.create(path, [(0.0, 1.0)] * D, 2, NSGA2(), seed=4, n_initial=5) as study:
        batch = study.ask(5)
        study.tell(batch, objectives(batch.X))
        journal = path.with_name("a-wal")
        assert journal.stat().st_size > 0
        shutil.copy(journal, memory_disk / "b-wal")
        data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    (memory_disk / "b").write_bytes(data)
    saved = rescue(memory_disk / "b", memory_disk / "new")
    assert saved.told == 5


def test_a_rescue_never_overwrites(memory_disk: Path) -> None:
    path = evaluated(memory_disk / "a", 5)
    (memory_disk / "precious").write_text("mine")
    with pytest.raises(StudyError, match="exists already"):
        rescue(path, memory_disk / "precious")
    with pytest.raises(StudyError, match="exists already"):
        rescue(path, path)
    assert (memory_disk / "precious").read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        examine(memory_disk / "none")


@pytest.mark.parametrize("place", [b"CREATE TABLE events", b"CREATE TABLE owner"])
def test_one_byte_that_is_no_text_among_the_tables(memory_disk: Path, place: bytes) -> None:
    path = evaluated(memory_disk / "a", 20)
    before, events = results(path), sum(1 for _ in Study.view(path).events())
    data = bytearray(path.read_bytes())
    data[data.index(place) + 20] = 0xFC
    damaged(path, bytes(data))
    for opened in (Study.view, Study.open):
        with pytest.raises(StudyDamaged, match="neuropareto doctor"):
            opened(path)
    assert examine(path).events == events and not examine(path).healthy
    assert rescue(path, memory_disk / "b").healthy
    assert results(memory_disk / "b") == before


def test_not_a_study_at_all(memory_disk: Path) -> None:
    path = memory_disk / "thesis.txt"
    path.write_text("Chapter one. " * 5000)
    diagnosis = examine(path)
    assert not diagnosis.healthy and diagnosis.events == 0
    with pytest.raises(StudyDamaged):
        rescue(path, memory_disk / "new")
    assert not (memory_disk / "new").exists()
