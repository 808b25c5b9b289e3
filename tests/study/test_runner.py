"""The run loop on real studies: always busy, nothing lost, nothing counted twice, resumable."""

from __future__ import annotations

import io
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from neuropareto import NSGA2, Problem, RandomSearch, Space
from neuropareto.randomness import stream
from neuropareto.space import Array
from neuropareto.study import StorageError, Study
from neuropareto.study.errors import StartDesignOnly
from neuropareto.study.evaluation import Job, Report, Task
from neuropareto.study.events import Asked, Failed, Heartbeat, Told
from neuropareto.study.limits import FailureStop, Limits, Retries, TooManyFailuresError
from neuropareto.study.live import Live
from neuropareto.study.pulse import Pulse
from neuropareto.study.runner import run
from neuropareto.study.schema import JOURNAL, PREPARE

D = 3
NEVER = FailureStop(rate=1.0)


def two(x: Array) -> list[float]:
    """A small bi-objective function."""
    return [float(x[0]), float(1.0 - x[0] + np.sum(x[1:] ** 2))]


def made(path: Path, *, n_initial: int = 4, seed: int = 1, n_constraints: int = 0) -> Study:
    return Study.create(
        path / "study.db", [(0.0, 1.0)] * D, 2, NSGA2(population=8), seed=seed,
        n_initial=n_initial, n_constraints=n_constraints,
    )  # fmt: skip


@dataclass
class VirtualPool:
    """A pool without time: jobs end in an order that a test prescribes."""

    task: Task
    choose: Callable[[int], int]
    kinds: Callable[[Job], str] = lambda job: "ok"
    flying: list[Job] = field(default_factory=list)
    most: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)

    def open(self, task: Task, workers: int, limits: Limits) -> VirtualPool:
        self.task = task
        return self

    def start(self, job: Job) -> None:
        self.flying.append(job)
        self.seen.append((job.trial, job.attempt))
        self.most = max(self.most, len(self.flying))

    def wait(self, timeout: float) -> list[Report]:
        job = self.flying.pop(self.choose(len(self.flying)) % len(self.flying))
        kind = self.kinds(job)
        if kind == "ok":
            return [self.task(job)]
        return [Report(job.trial, job.attempt, kind, reason=f"a {kind}")]

    def close(self) -> list[Report]:
        return []


def virtual(
    choose: Callable[[int], int] = lambda n: 0, kinds: Callable[[Job], str] = lambda job: "ok"
) -> VirtualPool:
    return VirtualPool(None, choose, kinds)  # type: ignore[arg-type]


def check(study: Study, budget: int) -> None:
    """What holds after any run: every finished trial was asked once and ended once."""
    asked = [e.trial for e in study.events() if isinstance(e, Asked)]
    ended = Counter(e.trial for e in study.events() if isinstance(e, (Told, Failed)))
    assert len(asked) == len(set(asked))
    assert set(ended) <= set(asked)
    assert set(ended.values()) <= {1}
    assert study.finished == len(ended) == budget
    assert set(study.pending.ids) == set(asked) - set(ended)


# -- the loop itself --


def test_workers_are_always_busy_and_the_design_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pool = virtual(lambda n: int(rng.integers(n)))
    study = made(tmp_path)
    pending = []
    inner = pool.wait

    def wait(timeout: float) -> list[Report]:
        pending.append(len(pool.flying))
        return inner(timeout)

    pool.wait = wait  # type: ignore[method-assign]
    result = run(study, two, 30, workers=4, engine=pool, progress=False)
    assert len(result.F) == 30
    assert pending == [4] * 27 + [3, 2, 1]
    check(study, 30)


def test_on_a_simulated_clock_asynchronous_wastes_no_time(tmp_path: Path) -> None:
    """Durations vary tenfold; the same 60 evaluations are over much earlier without batches."""

    @dataclass
    class Clocked(VirtualPool):
        now: float = 0.0
        ends: dict[int, float] = field(default_factory=dict)

        def start(self, job: Job) -> None:
            super().start(job)
            self.ends[job.trial] = self.now + 10 ** float(stream(0, job.trial, "time").random())

        def wait(self, timeout: float) -> list[Report]:
            self.flying.sort(key=lambda job: self.ends[job.trial])
            self.now = self.ends[self.flying[0].trial]
            return super().wait(timeout)

    spent = {}
    for name, batch in (("asynchronous", None), ("batches", 8)):
        (tmp_path / name).mkdir()
        pool = Clocked(None, lambda n: 0)  # type: ignore[arg-type]
        with made(tmp_path / name) as study:
            run(study, two, 60, workers=8, engine=pool, batch=batch, progress=False)
        spent[name] = pool.now
    assert spent["asynchronous"] < 0.75 * spent["batches"]


def test_batches_wait_for_each_other(tmp_path: Path) -> None:
    pool = virtual()
    study = made(tmp_path, n_initial=6)
    run(study, two, 16, workers=3, engine=pool, batch=5, progress=False)
    asks = Counter(e.ask for e in study.events() if isinstance(e, Asked))
    assert list(asks.values()) == [6, 5, 5]
    order = [(type(e).__name__, e.trial) for e in study.events() if isinstance(e, (Asked, Told))]
    first = next(i for i, (_, trial) in enumerate(order) if trial == 6)
    assert {t for name, t in order[:first] if name == "Told"} == set(range(6))
    check(study, 16)


@settings(max_examples=8, deadline=None)
@given(
    order=st.lists(st.integers(0, 7), min_size=1, max_size=60),
    fates=st.lists(st.sampled_from(["ok", "ok", "error", "crash", "lost"]), min_size=1),
    workers=st.integers(1, 5),
)
def test_any_order_of_ends_and_accidents(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], fates: list[str], workers: int
) -> None:
    turns, luck = iter(order * 50), iter(fates * 200)
    pool = virtual(lambda n: next(turns), lambda job: next(luck))
    study = made(tmp_path_factory.mktemp("any"))
    run(study, two, 12, workers=workers, engine=pool, failure_stop=NEVER, progress=False)
    assert pool.most <= workers
    assert len(pool.seen) == len(set(pool.seen)), "an attempt ran twice"
    check(study, 12)


def test_retries_follow_the_class_of_failure(tmp_path: Path) -> None:
    fate = {0: "crash", 1: "timeout", 2: "lost", 3: "error", 4: "invalid", 5: "memory"}
    pool = virtual(kinds=lambda job: fate.get(job.trial, "ok"))
    study = made(tmp_path, n_initial=12)
    retries = Retries(crash=1, timeout=0, lost=3, error=2, invalid=0, memory=0)
    run(study, two, 12, engine=pool, retries=retries, failure_stop=NEVER, progress=False)
    attempts = Counter(trial for trial, _ in pool.seen)
    assert [attempts[t] for t in range(7)] == [2, 1, 4, 3, 1, 1, 1]
    assert [study.attempts(t) for t in range(6)] == [2, 1, 4, 3, 1, 1]
    failed = {e.trial: e.failure for e in study.events() if isinstance(e, Failed)}
    assert failed == fate
    check(study, 12)


def test_a_report_that_comes_twice_counts_once(tmp_path: Path) -> None:
    pool = virtual()
    inner = pool.wait
    pool.wait = lambda timeout: inner(timeout) * 2  # type: ignore[method-assign]
    study = made(tmp_path)
    run(study, two, 8, engine=pool, progress=False)
    check(study, 8)
    assert any("duplicate report" in str(e) for e in study.events())


def test_too_many_failures_stop_with_a_clear_message(tmp_path: Path) -> None:
    pool = virtual(kinds=lambda job: "error" if job.trial != 1 else "ok")
    study = made(tmp_path)
    with pytest.raises(
        TooManyFailuresError, match=r"4 of the 5 evaluations .*4 error.*50%"
    ) as error:
        run(study, two, 40, engine=pool, progress=False)
    assert "a error" in str(error.value)
    assert study.finished == 5
    # After the cause is corrected the earlier failures do not count against the new run.
    run(study, two, 20, engine=virtual(), progress=False)
    check(study, 20)


def test_few_failures_do_not_stop(tmp_path: Path) -> None:
    pool = virtual(kinds=lambda job: "error" if job.trial % 2 else "ok")
    study = made(tmp_path)
    result = run(study, two, 30, engine=pool, progress=False)
    assert len(result.failures) == 15


def test_a_point_that_always_takes_the_run_down_is_given_up(tmp_path: Path) -> None:
    study = made(tmp_path)
    trial = next(iter(study.ask(1)))
    for life in range(12):
        study.started(trial.id, f"life {life}")
    run(study, two, 8, engine=virtual(), progress=False)
    failed = [e for e in study.events() if isinstance(e, Failed)]
    assert [e.trial for e in failed] == [trial.id]
    assert "12 times" in failed[0].reason
    check(study, 8)


def test_clean_interruptions_do_not_count_as_deaths(tmp_path: Path) -> None:
    study = made(tmp_path)
    trial = next(iter(study.ask(1)))
    for life in range(30):
        study.started(trial.id, f"life {life}")
        study.retried(trial.id, "the run was stopped", "interrupted")
    run(study, two, 8, engine=virtual(), progress=False)
    assert not [e for e in study.events() if isinstance(e, Failed)]


def test_pending_points_of_an_earlier_life_go_first(tmp_path: Path) -> None:
    study = made(tmp_path)
    left = study.ask(3)
    study.close()
    study = Study.open(tmp_path / "study.db")
    pool = virtual()
    run(study, two, 10, engine=pool, workers=2, progress=False)
    assert [trial for trial, _ in pool.seen[:3]] == list(left.ids)
    check(study, 10)


def test_a_lower_budget_leaves_pending_points_alone(tmp_path: Path) -> None:
    study = made(tmp_path)
    study.ask(5)
    run(study, two, 2, engine=virtual(), workers=4, progress=False)
    check(study, 2)
    run(study, two, 2, engine=virtual(), progress=False)
    check(study, 2)


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made(tmp_path)
    inner, refusals = study.tell, iter([True, True, False, True, False])

    def tell(*args: Any) -> None:
        if next(refusals, False):
            raise StorageError("no space left on device")
        inner(*args)

    monkeypatch.setattr(study, "tell", tell)
    pool = virtual()
    run(study, two, 8, engine=pool, progress=False)
    assert len(pool.seen) == 8, "a point was evaluated again although its result was known"
    check(study, 8)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_lock_of_another_program_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """In WAL mode only writing is locked out; without it, reading too."""
    impatient = tuple(s.replace("busy_timeout = 10000", "busy_timeout = 20") for s in PREPARE)
    assert impatient != PREPARE
    monkeypatch.setattr("neuropareto.study.schema.PREPARE", impatient)
    monkeypatch.setitem(JOURNAL, "wal", f"PRAGMA journal_mode = {mode}")
    study, pool = made(tmp_path), virtual()
    other = sqlite3.connect(
        tmp_path / "study.db", check_same_thread=False, isolation_level=None, timeout=5.0
    )
    inner = pool.wait

    def wait(timeout: float) -> list[Report]:
        reports = inner(timeout)
        if reports[0].trial == 2:
            other.execute("BEGIN EXCLUSIVE")
            threading.Timer(0.3, lambda: other.execute("ROLLBACK")).start()
        return reports

    pool.wait = wait  # type: ignore[method-assign]
    run(study, two, 5, engine=pool, progress=False)
    assert len(pool.seen) == 5, "a point was evaluated again although its result was known"
    check(study, 5)
    other.close()
    study.close()


def test_a_result_that_cannot_be_saved_is_said_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = made(tmp_path)

    def tell(*args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        raise StorageError("no space left on device")

    monkeypatch.setattr(study, "tell", tell)
    with pytest.raises(
        StorageError, match=r'no space left.*Not saved: \{"id": 0, "objectives": \['
    ):
        run(study, two, 8, engine=virtual(), progress=False)


def test_progress_on_a_terminal_and_in_a_log() -> None:
    for terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=160)
        with Live(10, 2, "[/red] evil [bold]", console) as live:
            live.update(2, running=3, failed=1, hypervolume=lambda: 0.5)
            live.say("[/] a remark")
            live.update(10, running=0, failed=1, hypervolume=lambda: 0.75)
        text = out.getvalue()
        for word in (
            "[/red] evil [bold]",
            "10/10",
            "running 0",
            "failed 1",
            "0.75",
            "[/] a remark",
        ):
            assert word in text


def test_constraints_and_problems(tmp_path: Path) -> None:
    study = made(tmp_path, n_constraints=1)

    def evaluate(X: Array) -> tuple[Array, Array]:
        return np.stack([X[:, 0], 1 - X[:, 0]], axis=1), X[:, :1] - 0.5

    problem = Problem("p", Space.of([(0.0, 1.0)] * D), 2, evaluate, n_constraints=1)
    result = run(study, problem, 10, engine="threads", progress=False)
    np.testing.assert_array_equal(result.G[:, 0], result.X[:, 0] - 0.5)


def test_wrong_calls_are_refused_in_words(tmp_path: Path) -> None:
    study = made(tmp_path)
    with pytest.raises(ValueError, match="budget must be"):
        run(study, two, 0, progress=False)
    for batch in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="batch must be"):
            run(study, two, 5, batch=batch, progress=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers must be"):
        run(study, two, 5, workers=0, progress=False)
    with pytest.raises(ValueError, match="function, a Problem or a Simulator"):
        run(study, 3, 5, progress=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 objectives and 0 constraints"):
        three = Problem("t", Space.of([(0.0, 1.0)] * D), 3, lambda X: np.ones((len(X), 3)))
        run(study, three, 5, progress=False)
    with pytest.raises(ValueError, match="'processes', 'threads'"):
        run(study, two, 5, engine="slurm", progress=False)
    with pytest.raises(ValueError, match="cannot be ended"):
        run(study, two, 5, engine="threads", limits=Limits(wall=1.0), progress=False)
    assert study.finished == 0 and len(study.pending) == 0


def test_whole_numbers_of_numpy_will_do(tmp_path: Path) -> None:
    study, n = made(tmp_path), np.int64
    run(study, two, n(6), workers=n(2), batch=n(2), engine=virtual(), progress=False)  # type: ignore[arg-type]
    check(study, 6)


def test_one_worker_gives_the_same_run_as_plain_ask_and_tell(tmp_path: Path) -> None:
    study = made(tmp_path)
    result = run(study, two, 10, progress=False)
    other = Study.create(
        tmp_path / "other.db", [(0.0, 1.0)] * D, 2, NSGA2(population=8), seed=1, n_initial=4
    )
    for _ in range(10):
        (trial,) = other.ask(1)
        other.tell(trial, [two(trial.x)])
    np.testing.assert_array_equal(result.X, other.result().X)
    np.testing.assert_array_equal(result.F, other.result().F)


# -- around --


def test_the_pulse_beats_for_running_trials_and_survives_their_end(tmp_path: Path) -> None:
    study = made(tmp_path)
    trial = next(iter(study.ask(1)))
    with Pulse(study, lambda: (trial.id, 99), seconds=0.01):
        until = time.monotonic() + 10
        while study.last_heartbeat(trial.id) is None and time.monotonic() < until:
            time.sleep(0.01)
        study.tell(trial, [two(trial.x)])
        time.sleep(0.05)
    assert any(isinstance(e, Heartbeat) and e.trial == trial.id for e in study.events())
    assert threading.active_count() >= 1


def test_random_search_runs_too(tmp_path: Path) -> None:
    study = Study.create(
        tmp_path / "r.db", [(0.0, 1.0)] * D, 2, RandomSearch(), seed=3, n_initial=2
    )
    assert len(study.run(two, 6, engine="threads", workers=2, progress=False).F) == 6


def test_a_run_that_ends_inside_the_start_design_says_so(tmp_path: Path) -> None:
    with Study.create(tmp_path / "r.db", [(0.0, 1.0)] * D, 2, RandomSearch(), seed=3) as study:
        n = study.optimizer.n_initial
        with pytest.warns(
            StartDesignOnly, match=f"All 3 evaluations .* start design of {n} points"
        ):
            study.run(two, 3, engine="threads", progress=False)
        study.run(two, n, engine="threads", progress=False)
