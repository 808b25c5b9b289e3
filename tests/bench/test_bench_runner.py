"""Campaigns in real worker processes: done, failed, crashed, shared, killed and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from neuropareto.bench.cell import Places, run_cell
from neuropareto.bench.grid import Grid, Scale, grid_of
from neuropareto.bench.live import Quiet
from neuropareto.bench.record import read
from neuropareto.bench.records import Records
from neuropareto.bench.runner import Outcome, available, failures, run
from neuropareto.bench.worker import attempt

ALGORITHMS = '''
import os, time
from dataclasses import dataclass
from neuropareto.algorithm import RandomSearch

@dataclass(frozen=True)
class Slow:
    """Random search that takes its time."""
    seconds: float = 0.25
    def propose(self, archive, q, *, pending, memory, rng):
        time.sleep(self.seconds)
        return RandomSearch().propose(archive, q, pending=pending, memory=memory, rng=rng)

@dataclass(frozen=True)
class Broken:
    """An algorithm with a defect, and with much to say."""
    def propose(self, archive, q, *, pending, memory, rng):
        print("this must not disturb the protocol")
        raise ZeroDivisionError("a defect of the algorithm")

@dataclass(frozen=True)
class Deadly:
    """An algorithm that takes its process along."""
    def propose(self, archive, q, *, pending, memory, rng):
        os._exit(7)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with algorithms of a user's own, as the current one."""
    (tmp_path / "my_algorithms.py").write_text(ALGORITHMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def grid(*algorithms: str, seeds: int = 2) -> Grid:
    document = {
        "problems": ["zdt1"], "dimensions": [6], "algorithms": list(algorithms), "seeds": seeds,
        "budget": 30, "n_initial": 10,
    }  # fmt: skip
    return grid_of("grid", document, Scale())


def campaign(wanted: Grid, folder: Path, workers: int = 1) -> Outcome:
    return run(wanted, folder, workers=workers, checkpoint=0.0, screen=Quiet())


def test_a_campaign_runs_everything_once_and_survives_bad_cells(own: Path) -> None:
    folder = own / "records"
    wanted = grid("my_algorithms:Broken", "random", "my_algorithms:Deadly", "nsga2", seeds=1)
    outcome = campaign(wanted, folder)
    assert {c.algorithm for c in outcome.done} == {"random", "nsga2"} and not outcome.left
    errors = {cell.algorithm: error for cell, error in outcome.failed.items()}
    assert "a defect of the algorithm" in errors["my_algorithms:Broken"]
    assert "exit code 7" in errors["my_algorithms:Deadly"]
    assert failures(folder, wanted.cells) == outcome.failed
    account = json.loads(Places(folder, wanted.cells[0]).failure.read_text())
    assert "ZeroDivisionError" in account["traceback"]
    # The cell in another process is the cell in this one, with one thread or with more.
    good = next(cell for cell in wanted.cells if cell.algorithm == "nsga2")
    here = run_cell(good, own / "here")
    assert np.array_equal(read(Places(folder, good).record).F, here.F)
    again = campaign(wanted, folder)
    assert len(again.skipped) == 2 and not again.done and len(again.failed) == 2
    assert not list(folder.rglob("*.claim"))


def test_torn_records_are_run_again(own: Path) -> None:
    wanted = grid("random", seeds=1)
    campaign(wanted, own / "records")
    places = Places(own / "records", wanted.cells[0])
    places.record.write_bytes(b"torn")
    outcome = campaign(wanted, own / "records")
    assert outcome.done == wanted.cells
    assert read(places.record).cell == wanted.cells[0]
    assert places.record.with_suffix(".broken").read_bytes() == b"torn"


@pytest.mark.slow
def test_two_runners_share_a_folder(own: Path) -> None:
    wanted = grid("my_algorithms:Slow", seeds=4)
    (own / "grid.toml").write_text(
        'problems = ["zdt1"]\ndimensions = [6]\nalgorithms = ["my_algorithms:Slow"]\nseeds = 4\n'
        "budget = 30\nn_initial = 10\n"
    )
    command = [
        sys.executable, "-m", "neuropareto.bench.commands", "run", "grid.toml", "--records",
        "records", "--workers", "1",
    ]  # fmt: skip
    other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    outcome = campaign(wanted, own / "records")
    text, _ = other.communicate(timeout=60)
    assert other.returncode == 0
    assert len(outcome.done) + len(outcome.skipped) == 4 and not outcome.failed
    assert int(text.split(" run")[0]) + len(outcome.done) == 4, "no cell was run twice"
    assert len(Records([own / "records"])) == 4


def test_a_killed_campaign_continues_where_it_was(own: Path) -> None:
    wanted = grid("my_algorithms:Slow", seeds=3)
    folder = own / "records"
    (own / "grid.toml").write_text(
        'problems = ["zdt1"]\ndimensions = [6]\nalgorithms = ["my_algorithms:Slow"]\nseeds = 3\n'
        "budget = 30\nn_initial = 10\n"
    )
    command = [
        sys.executable, "-m", "neuropareto.bench.commands", "run", "grid.toml", "--records",
        "records", "--workers", "1", "--checkpoint", "0",
    ]  # fmt: skip
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (list(folder.rglob("*.npz")) and list(folder.rglob("*.part"))):
        assert runner.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    done = len(list(folder.rglob("*.npz")))
    assert done < 3
    outcome = campaign(wanted, folder)
    assert len(outcome.skipped) >= done and len(outcome.done) + len(outcome.skipped) == 3
    for cell in wanted.cells:
        whole = run_cell(cell, own / "whole")
        record = read(Places(folder, cell).record)
        assert np.array_equal(record.X, whole.X) and np.array_equal(record.F, whole.F)
    left = {p.suffix for p in folder.rglob("*") if p.is_file()}
    assert left == {".npz", ".json"}


def test_an_attempt_skips_what_another_has_finished(own: Path) -> None:
    cell = grid("random").cells[0]
    heard: list[object] = []
    assert attempt(cell, own, 30.0, heard.append)["event"] == "done"
    assert heard[-1] == {"event": "round", "evaluations": 30}
    assert attempt(cell, own, 30.0, heard.append) == {"event": "skipped"}


def test_names_of_the_paper_may_be_missing_and_others_may_not(own: Path) -> None:
    cells, missing = available(grid("random", "morbo", seeds=1))
    known = {cell.algorithm for cell in cells}
    assert "random" in known and (("morbo" in known) != (missing == ("morbo",)))
    with pytest.raises(ValueError, match="did you mean random"):
        available(grid("ramdom"))
    with pytest.raises(ValueError, match="cannot be imported"):
        available(grid("nowhere:Thing"))
