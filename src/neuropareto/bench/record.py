"""A record: all that one cell leaves behind, in one compact file without pickle.

Notation: n successful evaluations, d variables, m objectives, c constraints. The file is a zip of
arrays (.npz): ``X`` (k, d) and the ``rows`` (k,) of the run it holds (all of them, or only the final
front after :func:`compacted`), ``F`` (n, m), ``G`` (n, c), ``succeeded`` (n + failures,),
``failed_X``, and two texts in JSON: ``summary`` (cell, measures, seconds, environment), which an
index reads alone, and ``notes`` (what the algorithm told in each round, why evaluations failed).
"""

from __future__ import annotations

import json
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.bench.grid import Cell
from neuropareto.problem import signs
from neuropareto.space import Array

FORMAT = 1
ENDING = ".npz"
Arrays = Mapping[str, npt.NDArray[Any]]


class RecordDamaged(ValueError):
    """A file that should hold a record does not, or not a whole one."""


@dataclass(frozen=True, eq=False)
class Record:
    """One finished (or, while it runs, unfinished) cell; see the module for the arrays.

    ``seconds`` is the wall time of all lives of the run, ``made`` the commit, date, versions and
    machine, ``measures`` the final values of :func:`neuropareto.bench.measures.final`.
    """

    cell: Cell
    X: Array
    rows: npt.NDArray[np.int64]
    F: Array
    G: Array
    succeeded: npt.NDArray[np.bool_]
    failed_X: Array
    reasons: tuple[str, ...]
    notes: tuple[Mapping[str, Any], ...]
    seconds: float
    made: Mapping[str, Any]
    measures: Mapping[str, Any]

    @property
    def whole(self) -> bool:
        """Whether ``X`` holds every evaluation."""
        return len(self.rows) == len(self.F)

    @property
    def minimised(self) -> Array:
        """Objectives with the sense of minimisation, (n, m)."""
        problem = self.cell.task.instance(self.cell.seed)
        return np.asarray(signs(problem.directions, problem.n_objectives) * self.F)

    @property
    def feasible(self) -> npt.NDArray[np.bool_]:
        """Which evaluations meet all constraints, (n,)."""
        return np.asarray((self.G <= 0).all(axis=1))

    @property
    def front_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the feasible evaluations that no other one dominates, (k,)."""
        rows = np.flatnonzero(self.feasible)
        return np.asarray(rows[pareto.nondominated(self.minimised[rows])] if len(rows) else rows)

    def archive(self, n: int | None = None) -> Archive:
        """The first n successful evaluations as the algorithm saw them, in the unit cube."""
        if not self.whole:
            raise ValueError(
                f"The record {self.cell.key} keeps only the points of its front; run the cell again "
                "to get all of them."
            )
        space = self.cell.task.instance(self.cell.seed).space
        G = self.G[:n] if self.G.shape[1] else None
        return Archive.of(space.to_unit(self.X[:n]), self.minimised[:n], G)

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Seconds of each stage over all rounds, as the algorithm noted them."""
        total: dict[str, float] = {}
        for note in self.notes:
            for stage, seconds in note.get("stage_seconds", {}).items():
                total[stage] = total.get(stage, 0.0) + float(seconds)
        return total

    @property
    def proposal_seconds(self) -> float:
        """Seconds spent inside the algorithm over all rounds."""
        return float(sum(note["seconds"] for note in self.notes))

    def summary(self) -> dict[str, Any]:
        """What an index keeps: everything but arrays and notes."""
        return {
            "format": FORMAT,
            "cell": self.cell.as_dict(),
            "evaluations": len(self.succeeded),
            "failures": len(self.failed_X),
            "rounds": len(self.notes),
            "whole": self.whole,
            "seconds": self.seconds,
            "proposal_seconds": self.proposal_seconds,
            "stage_seconds": self.stage_seconds,
            "measures": dict(self.measures),
            "made": dict(self.made),
        }


def write(record: Record, path: Path, extra: Arrays | None = None) -> None:
    """Write a record in one step: a reader sees the old file or the whole new one, never a part."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "summary": _text(record.summary()),
        "notes": _text({"notes": list(record.notes), "reasons": list(record.reasons)}),
        "X": record.X if record.whole else record.X.astype(np.float32),
        "rows": record.rows.astype(np.int32),
        "F": record.F,
        "G": record.G,
        "succeeded": record.succeeded,
        "failed_X": record.failed_X,
        **{f"extra/{name}": array for name, array in (extra or {}).items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> Record:
    """The record in a file; raises RecordDamaged if it holds none."""
    with _opened(path) as file:
        return _record(file, path)


def read_with_extra(path: Path) -> tuple[Record, dict[str, npt.NDArray[Any]]]:
    """A record and the further arrays that were written with it."""
    with _opened(path) as file:
        names = [name for name in file.files if name.startswith("extra/")]
        return _record(file, path), {name[6:]: _member(file, name, path) for name in names}


def read_summary(path: Path) -> dict[str, Any]:
    """Only the summary of a record; its arrays stay unread."""
    with _opened(path) as file:
        return _json(_member(file, "summary", path), path)


def compacted(record: Record) -> Record:
    """The record with X only of the final front, in single precision, and notes of five digits.

    A tenth of the size or less; objectives, measures and provenance stay as they are.
    """
    front = record.front_rows
    held = np.isin(record.rows, front)
    return replace(
        record,
        X=record.X[held].astype(np.float32).astype(np.float64),
        rows=record.rows[held],
        notes=tuple(_rounded(note) for note in record.notes),
    )


def _record(file: Any, path: Path) -> Record:
    summary = _json(_member(file, "summary", path), path)
    told = _json(_member(file, "notes", path), path)
    try:
        cell = Cell.of(summary["cell"])
        return Record(
            cell=cell,
            X=_member(file, "X", path).astype(np.float64),
            rows=_member(file, "rows", path).astype(np.int64),
            F=_member(file, "F", path),
            G=_member(file, "G", path),
            succeeded=_member(file, "succeeded", path),
            failed_X=_member(file, "failed_X", path),
            reasons=tuple(told["reasons"]),
            notes=tuple(told["notes"]),
            seconds=float(summary["seconds"]),
            made=summary["made"],
            measures=summary["measures"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordDamaged(f"{path} is not a record: {error!r}.") from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        try:
            arrays = np.load(file, allow_pickle=False)
            names = arrays.files
        except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            raise RecordDamaged(f"{path} is not a record: {error}.") from error
        with arrays:
            if not names:
                raise RecordDamaged(f"{path} is not a record: it holds nothing.")
            yield arrays


def _member(file: Any, name: str, path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(file[name])
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordDamaged(f"{path} lacks a readable {name!r}: {error}.") from error


def _text(value: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(
        json.dumps(_finite(value), separators=(",", ":")).encode(), dtype=np.uint8
    )


def _json(array: npt.NDArray[Any], path: Path) -> dict[str, Any]:
    try:
        value = json.loads(array.tobytes())
    except ValueError as error:
        raise RecordDamaged(f"{path} holds unreadable JSON: {error}.") from error
    if not isinstance(value, dict):
        raise RecordDamaged(f"{path} holds JSON that is not an object.")
    return value


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value
