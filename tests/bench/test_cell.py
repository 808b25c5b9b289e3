from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.algorithm import RandomSearch
from neuropareto.bench.cell import Places, run_cell
from neuropareto.bench.grid import Cell, Grid, Task
from neuropareto.bench.record import Record, read, read_with_extra
from neuropareto.problem import Problem
from neuropareto.space import Array


class Killed(BaseException):
    """Ends a run as a kill would: nothing catches it."""


def interrupted(cell: Cell, folder: Path, after: int) -> None:
    """Run a cell until ``after`` evaluations and stop dead, with a checkpoint every round."""

    def told(evaluations: int) -> None:
        if evaluations >= after:
            raise Killed

    with pytest.raises(Killed):
        run_cell(cell, folder, checkpoint=0.0, told=told)


def same(a: Record, b: Record) -> bool:
    arrays = all(
        np.array_equal(getattr(a, k), getattr(b, k))
        for k in ("X", "F", "G", "succeeded", "failed_X")
    )
    ends = [{k: v for k, v in n.items() if k != "seconds"} for r in (a, b) for n in r.notes]
    half = len(ends) // 2
    return arrays and a.reasons == b.reasons and ends[:half] == ends[half:]


def test_all_algorithms_of_a_seed_share_their_start_design(small: Grid, tmp_path: Path) -> None:
    task = small.tasks[0]
    a, b = (run_cell(Cell(task, name, 1), tmp_path) for name in ("nsga2", "random"))
    other = run_cell(Cell(task, "random", 2), tmp_path)
    assert np.array_equal(a.X[:20], b.X[:20]) and np.array_equal(a.F[:20], b.F[:20])
    assert not np.array_equal(a.X[20:], b.X[20:]) and not np.array_equal(b.X[:20], other.X[:20])


def test_exactly_the_budget_is_spent(tmp_path: Path) -> None:
    task = Task("zdt1", 6, 2, "plain", 37, 10, 15)
    record = run_cell(Cell(task, "nsga2", 0), tmp_path)
    assert len(record.F) == 37
    assert [note["proposed"] for note in record.notes] == [10, 10, 2]


def test_an_algorithm_with_a_round_of_its_own_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class ByFours(RandomSearch):
        batch: int = 4

    monkeypatch.setattr("neuropareto.bench.cell.algorithm", lambda name: ByFours())
    record = run_cell(Cell(Task("zdt1", 6, 2, "plain", 25, 10, 15), "fours", 0), tmp_path)
    assert [note["proposed"] for note in record.notes] == [4, 4, 2]


def test_the_record_is_what_was_returned(small: Grid, tmp_path: Path) -> None:
    record = run_cell(small.cells[0], tmp_path)
    assert same(record, read(Places(tmp_path, small.cells[0]).record))
    assert not Places(tmp_path, small.cells[0]).part.exists()


@pytest.mark.parametrize("after", [20, 30])
@pytest.mark.parametrize("algorithm", ["nsga2", "random"])
def test_a_resumed_run_equals_an_uninterrupted_one(
    algorithm: str, after: int, small: Grid, tmp_path: Path
) -> None:
    cell = Cell(small.tasks[0], algorithm, 3)
    whole = run_cell(cell, tmp_path / "whole")
    folder = tmp_path / "cut"
    interrupted(cell, folder, after)
    interrupted(cell, folder, after + 10)  # twice: a checkpoint of a resumed run is one, too
    assert Places(folder, cell).part.exists() and not Places(folder, cell).record.exists()
    calls: list[int] = []
    resumed = run_cell(cell, folder, told=calls.append)
    assert same(resumed, whole)
    assert calls == list(range(after + 10, 41, 10)), "what was evaluated is not evaluated again"
    assert not Places(folder, cell).part.exists()


def test_a_torn_checkpoint_means_a_fresh_start(small: Grid, tmp_path: Path) -> None:
    cell = small.cells[0]
    whole = run_cell(cell, tmp_path / "whole")
    interrupted(cell, tmp_path / "cut", 30)
    Places(tmp_path / "cut", cell).part.write_bytes(b"torn")
    assert same(run_cell(cell, tmp_path / "cut"), whole)


def test_a_checkpoint_of_another_cell_is_not_taken(small: Grid, tmp_path: Path) -> None:
    cell, other = small.cells[0], replace(small.cells[0], seed=9)
    interrupted(other, tmp_path, 30)
    Places(tmp_path, other).part.rename(Places(tmp_path, cell).part)
    assert same(run_cell(cell, tmp_path), run_cell(cell, tmp_path / "whole"))


def faulty(problem: Problem) -> Problem:
    """The problem with an error wherever the first variable is large."""

    def objective(X: Array) -> Any:
        if (X[:, 0] > 0.8).any():
            raise RuntimeError("the mesh did not close")
        return problem.objective(X)

    return replace(problem, objective=objective)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Task.instance
    monkeypatch.setattr(Task, "instance", lambda self, seed: faulty(real(self, seed)))


@pytest.mark.usefixtures("faults")
def test_a_point_that_fails_fails_alone(small: Grid, tmp_path: Path) -> None:
    cell = Cell(small.tasks[0], "random", 0)
    record = run_cell(cell, tmp_path)
    assert len(record.succeeded) == 40 and 0 < len(record.failed_X) < 40
    assert (record.failed_X[:, 0] > 0.8).all() and (record.X[:, 0] <= 0.8).all()
    assert len(record.reasons) == len(record.failed_X)
    assert all("the mesh did not close" in reason for reason in record.reasons)
    assert record.measures["igd"] > 0


@pytest.mark.usefixtures("faults")
def test_failures_are_resumed_too(small: Grid, tmp_path: Path) -> None:
    cell = Cell(small.tasks[0], "nsga2", 0)
    whole = run_cell(cell, tmp_path / "whole")
    interrupted(cell, tmp_path / "cut", 30)
    resumed = run_cell(cell, tmp_path / "cut")
    assert len(whole.failed_X) > 0 and same(resumed, whole)


def test_constraints_are_kept(tmp_path: Path) -> None:
    cell = Cell(Task("cre21", 3, 2, "plain", 40, 10, 20), "nsga2", 0)
    whole = run_cell(cell, tmp_path / "whole")
    assert whole.G.shape == (40, 3)
    interrupted(cell, tmp_path / "cut", 30)
    assert same(run_cell(cell, tmp_path / "cut"), whole)


def test_seconds_of_all_lives_count(small: Grid, tmp_path: Path) -> None:
    cell = small.cells[0]
    interrupted(cell, tmp_path, 30)
    part, _ = read_with_extra(Places(tmp_path, cell).part)
    assert run_cell(cell, tmp_path).seconds > part.seconds > 0


def test_an_error_of_the_algorithm_is_raised(small: Grid, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no algorithm called 'nobody'"):
        run_cell(Cell(small.tasks[0], "nobody", 0), tmp_path)
