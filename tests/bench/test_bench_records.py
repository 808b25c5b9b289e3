from __future__ import annotations

import io
import json
import os
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.bench import measures, records
from neuropareto.bench.grid import Cell, Grid, Task
from neuropareto.bench.measures import HV, IGD
from neuropareto.bench.record import FORMAT, Record, read, read_summary, write
from neuropareto.bench.records import Records


@pytest.fixture
def folder(campaign: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(campaign, tmp_path / "records"))


def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """From now on, the files that the index opens."""
    seen: list[Path] = []
    real = read_summary

    def spy(path: Path) -> dict[str, Any]:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(records, "read_summary", spy)
    return seen


def test_records_are_found_by_cell(folder: Path, small: Grid) -> None:
    found = Records([folder])
    assert len(found) == len(small.cells) + 8
    for cell in small.cells:
        entry = found.get(cell)
        assert cell in found and entry is not None and entry.read().cell == cell
    task = small.tasks[0]
    assert list(found.of(task, "random")) == [0, 1, 2, 3]
    assert found.algorithms(small.tasks) == ("neuropareto", "nsga2", "random")
    assert set(found.tasks) == set(small.tasks)
    assert found.values(task, "random", IGD)[0] == pytest.approx(
        measures.final(found.of(task, "random")[0].read())["igd"]
    )
    assert found.of(task, "nobody") == {}


def test_looking_again_opens_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(Records([folder]))
    seen = opened(monkeypatch)
    assert len(Records([folder])) == before
    assert seen == []


def test_only_new_and_changed_files_are_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = list(Records([folder]))
    changed = entries[0].path
    record = read(changed)
    write(replace(record, seconds=record.seconds + 1), changed)
    new = folder / "extra.npz"
    write(replace(record, cell=replace(record.cell, seed=99)), new)
    seen = opened(monkeypatch)
    found = Records([folder])
    assert set(seen) == {changed, new}
    assert len(found) == len(entries) + 1


def test_a_checkout_changes_times_but_not_contents(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = list(Records([folder]))
    for entry in entries:
        os.utime(entry.path, (time.time() + 5, time.time() + 5))
    seen = opened(monkeypatch)
    assert len(Records([folder])) == len(entries) and seen == []


def test_removed_records_are_forgotten(folder: Path) -> None:
    entries = list(Records([folder]))
    entries[0].path.unlink()
    assert entries[0].cell not in Records([folder])


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99, "entries": {}}', '{"format": 1}'])
def test_a_bad_index_is_built_again(folder: Path, text: str) -> None:
    before = len(Records([folder]))
    (folder / records.INDEX).write_text(text, encoding="utf-8")
    assert len(Records([folder])) == before


def test_broken_files_are_reported_not_read(folder: Path) -> None:
    entries = list(Records([folder]))
    entries[0].path.write_bytes(b"torn")
    found = Records([folder])
    assert list(found.broken) == [entries[0].path] and entries[0].cell not in found


def test_records_of_another_format_are_broken(folder: Path) -> None:
    entry = next(iter(Records([folder])))
    entry.path.write_bytes(fake(entry.cell, format=FORMAT + 1))
    assert "format" in Records([folder]).broken[entry.path]


def test_older_measures_are_made_anew(folder: Path) -> None:
    entry = next(iter(Records([folder])))
    record = entry.read()
    write(replace(record, measures={"version": 0, "igd": 123.0}), entry.path)
    again = Records([folder]).get(entry.cell)
    assert again is not None and again.value(IGD) == pytest.approx(entry.value(IGD))


def test_of_several_folders_the_first_counts(folder: Path, campaign: Path) -> None:
    first = Records([folder, campaign])
    assert len(first) == len(Records([campaign]))
    assert all(entry.folder == folder for entry in first)


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert len(Records([tmp_path / "nowhere"])) == 0
    assert not (tmp_path / "nowhere").exists()


def test_missing_values_are_nan(folder: Path) -> None:
    entry = next(iter(Records([folder])))
    write(replace(entry.read(), measures={"version": measures.VERSION, "hv": None}), entry.path)
    again = Records([folder]).get(entry.cell)
    assert again is not None and np.isnan(again.value(HV))


def fake(cell: Cell, format: int = FORMAT) -> bytes:
    """The smallest file that an index takes for a record."""
    summary = {
        "format": format, "cell": cell.as_dict(), "evaluations": 4, "failures": 0, "rounds": 1,
        "whole": True, "seconds": 1.0, "proposal_seconds": 0.5, "stage_seconds": {},
        "measures": {"version": measures.VERSION, "igd": float(cell.seed)}, "made": {"commit": "x"},
    }  # fmt: skip
    array = io.BytesIO()
    np.save(array, np.frombuffer(json.dumps(summary).encode(), dtype=np.uint8))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("summary.npy", array.getvalue())
    return out.getvalue()


def many(folder: Path, n: int) -> list[Cell]:
    cells = []
    for i in range(n):
        task = Task(f"p{i % 50}", 30, 2, "plain", 300, 10, 100)
        cell = Cell(task, f"a{i // 50 % 10}", i // 500)
        path = folder / f"{cell.key}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(fake(cell))
        cells.append(cell)
    return cells


@pytest.mark.parametrize("n", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_records_stay_manageable(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = many(tmp_path, n)
    assert len(Records([tmp_path])) == n
    seen = opened(monkeypatch)
    found = Records([tmp_path])
    assert seen == [] and len(found) == n and found.broken == {}
    assert all(cell in found for cell in cells)
    assert (tmp_path / records.INDEX).stat().st_size < 700 * n
    task = cells[0].task
    assert found.values(task, "a0", IGD) == {s: float(s) for s in range(-(-n // 500))}


def test_a_record_value_is_plain_data(campaign: Path) -> None:
    assert isinstance(next(iter(Records([campaign]))).read(), Record)
