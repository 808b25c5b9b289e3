"""One cell: start design, rounds, record; resumed from its last checkpoint if there is one.

The loop is that of :func:`neuropareto.minimize` with a durable middle: after a round, at most every
``checkpoint`` seconds, the evaluations so far and the algorithm's memory are written beside the
record. A resumed cell replays them into a fresh optimizer, so it ends with the same bits as an
uninterrupted one.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto.algorithm import Batched
from neuropareto.algorithms import algorithm
from neuropareto.bench import measures
from neuropareto.bench.grid import Cell
from neuropareto.bench.made import made_now
from neuropareto.bench.record import ENDING, Record, RecordDamaged, read_with_extra, write
from neuropareto.memory import Memory
from neuropareto.optimizer import Batch, Optimizer, Trial
from neuropareto.problem import Problem
from neuropareto.space import Array

PART = ".part"


@dataclass(frozen=True)
class Places:
    """The files of a cell: record, checkpoint, claim, and the account of a failure."""

    folder: Path
    cell: Cell

    @property
    def record(self) -> Path:
        """The finished record."""
        return self.folder / f"{self.cell.key}{ENDING}"

    @property
    def part(self) -> Path:
        """The checkpoint of an unfinished run."""
        return self.folder / f"{self.cell.key}{PART}"

    @property
    def claim(self) -> Path:
        """The claim of whoever runs the cell."""
        return self.folder / f"{self.cell.key}.claim"

    @property
    def failure(self) -> Path:
        """Why the last attempt failed."""
        return self.folder / f"{self.cell.key}.failed"


def run_cell(
    cell: Cell,
    folder: Path,
    *,
    checkpoint: float = 30.0,
    told: Callable[[int], None] = lambda evaluations: None,
) -> Record:
    """Run a cell to its end, write its record and return it.

    ``told`` hears the number of evaluations after each round. Errors of the algorithm are raised;
    an evaluation that fails is recorded and the run goes on.
    """
    places = Places(folder, cell)
    problem = cell.task.instance(cell.seed)
    optimizer, before = _resumed(places, problem)
    a = optimizer.algorithm
    batch = a.batch if isinstance(a, Batched) else cell.task.batch
    began = saved = time.perf_counter()
    while (done := len(optimizer.succeeded)) < cell.task.budget:
        # The start design is one batch: no model is waiting for a part of it.
        start = cell.task.n_initial
        n = start - done if done < start else min(batch, cell.task.budget - done)
        evaluate(problem, optimizer.ask(n), optimizer)
        told(len(optimizer.succeeded))
        now = time.perf_counter()
        if now - saved >= checkpoint and len(optimizer.succeeded) < cell.task.budget:
            part = _record(cell, optimizer, before + now - began)
            write(part, places.part, extra=optimizer.memory or {})
            saved = now
    record = _record(cell, optimizer, before + time.perf_counter() - began)
    record = replace(record, measures=measures.final(record), made=made_now())
    write(record, places.record)
    places.part.unlink(missing_ok=True)
    places.failure.unlink(missing_ok=True)
    return record


def evaluate(problem: Problem, asked: Batch, optimizer: Optimizer) -> None:
    """Evaluate a batch at once; if that fails, point by point, so that one point fails alone."""
    try:
        outcome = problem.objective(asked.X)
    except Exception:  # the cause is found, and recorded, point by point
        for trial in asked:
            _evaluate_one(problem, trial, optimizer)
    else:
        optimizer.tell(asked, *_parts(outcome))


def _evaluate_one(problem: Problem, trial: Trial, optimizer: Optimizer) -> None:
    try:
        outcome = problem.objective(trial.x[None])
    except Exception:  # any error of the function is a failed evaluation
        optimizer.fail(trial, traceback.format_exc(limit=-2))
    else:
        optimizer.tell(trial, *_parts(outcome))


def _parts(outcome: Any) -> tuple[Array, Array | None]:
    return outcome if isinstance(outcome, tuple) else (outcome, None)


def _optimizer(cell: Cell, problem: Problem) -> Optimizer:
    return Optimizer(
        problem.space,
        problem.n_objectives,
        algorithm(cell.algorithm),
        seed=cell.seed,
        n_initial=cell.task.n_initial,
        directions=problem.directions,
        n_constraints=problem.n_constraints,
    )


def _resumed(places: Places, problem: Problem) -> tuple[Optimizer, float]:
    """The optimizer as the checkpoint left it, and the seconds of earlier lives; else a fresh one."""
    optimizer = _optimizer(places.cell, problem)
    if not places.part.exists():
        return optimizer, 0.0
    try:
        part, memory = read_with_extra(places.part)
    except RecordDamaged:
        places.part.unlink()  # a torn checkpoint is worth nothing: the cell starts afresh
        return optimizer, 0.0
    if part.cell != places.cell:
        return optimizer, 0.0
    _replay(part, memory or None, optimizer)
    return optimizer, part.seconds


def _replay(part: Record, memory: Memory | None, optimizer: Optimizer) -> None:
    X = np.empty((len(part.succeeded), part.X.shape[1]))
    X[part.succeeded], X[~part.succeeded] = part.X, part.failed_X
    sizes = [part.cell.task.n_initial, *(int(note["proposed"]) for note in part.notes)]
    good = bad = start = 0
    for i, size in enumerate(sizes):
        note = part.notes[i - 1] if i else None
        last = i == len(sizes) - 1
        batch = optimizer.replay_ask(
            X[start : start + size], memory=memory if last else None, note=note
        )
        for trial, succeeded in zip(batch, part.succeeded[start : start + size], strict=True):
            if succeeded:
                G = part.G[good][None] if part.G.shape[1] else None
                optimizer.tell(trial, part.F[good][None], G)
                good += 1
            else:
                optimizer.fail(trial, part.reasons[bad])
                bad += 1
        start += size


def _record(cell: Cell, optimizer: Optimizer, seconds: float) -> Record:
    failed = np.array([failure.x for failure in optimizer.failures])
    return Record(
        cell=cell,
        X=optimizer.X,
        rows=np.arange(len(optimizer.archive), dtype=np.int64),
        F=optimizer.F,
        G=np.array(optimizer.archive.G),
        succeeded=optimizer.succeeded,
        failed_X=failed.reshape(-1, optimizer.space.d),
        reasons=tuple(failure.reason for failure in optimizer.failures),
        notes=tuple(optimizer.notes),
        seconds=seconds,
        made={},
        measures={},
    )
