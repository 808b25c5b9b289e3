from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuropareto import pareto
from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Grid, Scale, grid_of
from neuropareto.bench.record import (
    Record,
    RecordDamaged,
    compacted,
    read,
    read_summary,
    read_with_extra,
    write,
)


@pytest.fixture(scope="module")
def record(small: Grid, tmp_path_factory: pytest.TempPathFactory) -> Record:
    return run_cell(small.cells[0], tmp_path_factory.mktemp("record"))


def test_a_record_survives_its_file_bit_for_bit(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path / "a.npz")
    back = read(tmp_path / "a.npz")
    assert back.cell == record.cell and back.notes == record.notes
    for name in ("X", "F", "G", "rows", "succeeded", "failed_X"):
        assert np.array_equal(getattr(back, name), getattr(record, name)), name
    assert back.seconds == record.seconds and dict(back.measures) == dict(record.measures)
    assert back.X.dtype == back.F.dtype == np.float64


def test_no_temporary_file_is_left(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path / "a.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_nothing_in_the_file_is_pickled(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fiub" for name in file.files)


def test_numbers_that_json_does_not_have_become_null(record: Record, tmp_path: Path) -> None:
    odd = replace(record, notes=({"seconds": 1.0, "a": float("nan"), "b": [float("inf")]},))
    write(odd, tmp_path / "a.npz")
    assert read(tmp_path / "a.npz").notes[0] == {"seconds": 1.0, "a": None, "b": [None]}


def test_the_summary_says_where_it_comes_from(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path / "a.npz")
    summary = read_summary(tmp_path / "a.npz")
    assert {"commit", "date", "version", "python", "libraries", "platform"} <= summary[
        "made"
    ].keys()
    assert summary["evaluations"] == 40 and summary["failures"] == 0 and summary["rounds"] == 2
    assert summary["seconds"] > 0


def test_further_arrays_ride_along(record: Record, tmp_path: Path) -> None:
    write(record, tmp_path / "a.npz", extra={"memory/W": np.arange(3)})
    back, extra = read_with_extra(tmp_path / "a.npz")
    assert back.cell == record.cell and np.array_equal(extra["memory/W"], np.arange(3))


@pytest.mark.parametrize("how", ["empty", "cut", "text", "other", "flipped"])
def test_a_damaged_file_is_named_as_such(how: str, record: Record, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(record, path)
    whole = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "text":
        path.write_text("hello")
    elif how == "other":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme", "no arrays")
    else:
        start = whole.index(b"F.npy") + 120
        flipped = bytes(255 - b for b in whole[start : start + 40])
        path.write_bytes(whole[:start] + flipped + whole[start + 40 :])
    with pytest.raises(RecordDamaged, match=r"a\.npz"):
        read(path)


def test_compact_records_keep_front_and_objectives(record: Record, tmp_path: Path) -> None:
    small = compacted(record)
    assert np.array_equal(small.F, record.F)
    front = np.flatnonzero(pareto.nondominated(record.F))
    assert np.array_equal(small.rows, front)
    np.testing.assert_allclose(small.X, record.X[front], rtol=1e-7)
    assert not small.whole and record.whole
    write(record, tmp_path / "whole.npz")
    write(small, tmp_path / "small.npz")
    assert (tmp_path / "small.npz").stat().st_size < (tmp_path / "whole.npz").stat().st_size
    assert np.array_equal(read(tmp_path / "small.npz").X, small.X)
    assert np.array_equal(compacted(read(tmp_path / "small.npz")).X, small.X)
    with pytest.raises(ValueError, match="only the points of its front"):
        small.archive()


def test_the_archive_is_what_the_algorithm_saw(record: Record) -> None:
    archive = record.archive(25)
    assert len(archive) == 25 and np.array_equal(archive.F, record.F[:25])
    assert archive.U.min() >= 0 and archive.U.max() <= 1


def test_objectives_to_maximise_are_turned_round() -> None:
    document = {"problems": ["geothermal-coarse"], "algorithms": ["random"], "seeds": 1}
    cell = grid_of("g", document, Scale()).cells[0]
    F = np.array([[1.0, 2.0], [2.0, 1.0], [0.5, 0.5]])
    record = Record(
        cell, np.zeros((3, 160)), np.arange(3), F, np.empty((3, 0)), np.ones(3, dtype=np.bool_),
        np.empty((0, 160)), (), (), 0.0, {}, {},
    )  # fmt: skip
    assert np.array_equal(record.minimised, -F)
    assert record.front_rows.tolist() == [0, 1]
