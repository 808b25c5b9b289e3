"""Runs that are killed, interrupted and resumed, with real signals and real processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from neuropareto import NSGA2
from neuropareto.space import Array
from neuropareto.study import Study
from neuropareto.study.events import Asked, Failed, Retried, Told
from neuropareto.study.interruption import Interruption
from neuropareto.study.runner import run

D = 3


def two(x: Array) -> list[float]:
    """A small bi-objective function."""
    return [float(x[0]), float(1.0 - x[0] + np.sum(x[1:] ** 2))]


def made(path: Path) -> Study:
    return Study.create(
        path / "study.db", [(0.0, 1.0)] * D, 2, NSGA2(population=8), seed=1, n_initial=4
    )


def check(study: Study, budget: int) -> None:
    """What holds after any run: every finished trial was asked once and ended once."""
    asked = [e.trial for e in study.events() if isinstance(e, Asked)]
    ended = Counter(e.trial for e in study.events() if isinstance(e, (Told, Failed)))
    assert len(asked) == len(set(asked)) and set(ended.values()) <= {1}
    assert study.finished == len(ended) == budget
    assert set(study.pending.ids) == set(asked) - set(ended)


def slow(x: Array) -> list[float]:
    time.sleep(0.5)  # long enough that a busy machine signals in the middle
    return two(x)


def flaky(x: Array) -> list[float]:
    """Dies by SIGKILL at the first attempt of every third trial."""
    if int(os.environ["NEUROPARETO_TRIAL"]) % 3 == 0 and os.environ["NEUROPARETO_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return two(x)


def test_killed_workers_lose_nothing(tmp_path: Path) -> None:
    study = made(tmp_path)
    result = run(study, flaky, 12, workers=2, progress=False)
    assert len(result.F) == 12
    assert not result.failures
    retried = {e.trial: e.failure for e in study.events() if isinstance(e, Retried)}
    assert retried == dict.fromkeys(range(0, 12, 3), "lost")
    check(study, 12)


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from test_interruption import made, run, slow, Study
if __name__ == "__main__":
    path = Path({path!r})
    study = Study.open(path / "study.db") if (path / "study.db").exists() else made(path)
    result = run(study, slow, 10, workers={workers}, progress=False)
    study.close()
    print("interrupted" if result.interrupted else "done", flush=True)
"""


def begin(path: Path, workers: int) -> subprocess.Popen[str]:
    script = path / "script.py"
    script.write_text(
        SCRIPT.format(here=str(Path(__file__).parent), path=str(path), workers=workers)
    )
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)


def until_started(path: Path, n: int) -> None:
    """Wait until n attempts have begun; plain sqlite3 can read a study while it is written."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.02)
        try:
            with closing(sqlite3.connect(f"file:{path}/study.db?mode=ro", uri=True)) as file:
                count = file.execute(
                    "select count(*) from events where kind = 'started'"
                ).fetchone()
        except sqlite3.OperationalError:
            continue  # not made yet
        if count[0] >= n:
            return
    raise AssertionError("the run did not get going")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_goes_on_exactly(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "stopped"
    path.mkdir()
    with begin(path, workers=1) as process:
        until_started(path, 6)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    # Ctrl-C returns what is known; a SIGTERM ends the process as it would have without the run.
    assert (process.returncode, out.strip()) == {
        signal.SIGINT: (0, "interrupted"),
        signal.SIGTERM: (-signal.SIGTERM, ""),
        signal.SIGKILL: (-signal.SIGKILL, ""),
    }[number]
    study = Study.open(path / "study.db")
    assert 5 <= study.finished < 10
    stopped = run(study, two, 10, engine="threads", progress=False)
    check(study, 10)
    whole = run(made(tmp_path), two, 10, engine="threads", progress=False)
    np.testing.assert_array_equal(stopped.X, whole.X)
    np.testing.assert_array_equal(stopped.F, whole.F)


def test_many_workers_interrupted_lose_nothing(tmp_path: Path) -> None:
    with begin(tmp_path, workers=3) as process:
        until_started(tmp_path, 5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    with Study.open(tmp_path / "study.db") as study:
        stopped = [e.failure for e in study.events() if isinstance(e, Retried)]
        assert set(stopped) == {"interrupted"}
        assert len(stopped) <= len(study.pending)
        run(study, two, 10, workers=3, engine="threads", progress=False)
        check(study, 10)


def test_interruption_leaves_signals_as_they_were() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_long_proposal_is_broken_off_and_repeated_exactly(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Slow:
        """NSGA-II that is interrupted in the middle of its third proposal."""

        def propose(self, archive, q, *, pending, memory, rng):  # type: ignore[no-untyped-def]
            if rng.round == 3 and not stopped:
                stopped.append(True)
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("the proposal went on")
            return NSGA2(population=8).propose(archive, q, pending=pending, memory=memory, rng=rng)

    results, stopped = [], list[bool]()
    for name in ("broken", "whole"):
        with Study.create(
            tmp_path / f"{name}.db", [(0.0, 1.0)] * D, 2, Slow(), seed=1, n_initial=4
        ) as study:
            result = run(study, two, 12, engine="threads", progress=False)
            assert result.interrupted == (name == "broken")
            assert len(result.F) == (6 if name == "broken" else 12)
            results.append(run(study, two, 12, engine="threads", progress=False))
            check(study, 12)
    np.testing.assert_array_equal(results[0].X, results[1].X)


def test_a_run_in_a_thread_touches_no_signals(tmp_path: Path) -> None:
    study = made(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(run, study, two, 8, engine="threads", progress=False).result()
    assert len(result.F) == 8
