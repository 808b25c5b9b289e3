"""Engines: threads, foreign executors, and real local Dask and Ray clusters with killed workers."""

from __future__ import annotations

import asyncio
import builtins
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto import NSGA2
from neuropareto.space import Array
from neuropareto.study import Study
from neuropareto.study.engines import Dask, Engine, Ray, Submitting, Threads, engine_of
from neuropareto.study.evaluation import Job, Pointwise, Task
from neuropareto.study.events import Asked, Failed, Told
from neuropareto.study.limits import FailureStop, Limits
from neuropareto.study.processes import Processes
from neuropareto.study.runner import run


def two(x: Array) -> list[float]:
    return [float(x[0]), float(1.0 - x[0] + x[1])]


def made(path: Path) -> Study:
    return Study.create(
        path / "study.db", [(0.0, 1.0)] * 2, 2, NSGA2(population=6), seed=1, n_initial=4
    )


def check(study: Study, budget: int) -> None:
    asked = [e.trial for e in study.events() if isinstance(e, Asked)]
    ended = [e.trial for e in study.events() if isinstance(e, (Told, Failed))]
    assert len(ended) == len(set(ended)) and set(ended) <= set(asked)
    assert study.finished == len(ended) == budget


# -- names and shapes --


@pytest.mark.parametrize(
    ("given", "engine"),
    [
        ("processes", Processes()),
        ("threads", Threads()),
        ("dask", Dask()),
        ("dask:tcp://10.0.0.1:8786", Dask("tcp://10.0.0.1:8786")),
        ("ray", Ray()),
        ("ray:auto", Ray("auto")),
        (Threads(), Threads()),
    ],
)
def test_engines_have_names(given: Any, engine: Engine) -> None:
    assert engine_of(given) == engine


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="'ray:ADDRESS'"):
        engine_of("slurm")
    with pytest.raises(ValueError, match=r"submit\(function, \*args\), got int"):
        engine_of(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "module"), [(Dask(), "distributed"), (Ray(), "ray")])
def test_a_missing_extra_is_one_sentence_with_the_command(
    engine: Engine, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    extra = "dask" if module == "distributed" else "ray"
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'neuropareto\[{extra}\]'"):
        engine.open(Task(Pointwise(two), 2, 0), 1, Limits())


# -- executors --


class Later:
    """A handle without callbacks, as submitit's: done at the third look."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._looks = call, 0

    def done(self) -> bool:
        self._looks += 1
        return self._looks > 2

    def result(self) -> Any:
        return self._call()


class Polled:
    """An executor whose handles must be polled."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Later:
        return Later(lambda: function(*args))


def test_any_object_with_submit_will_do(tmp_path: Path) -> None:
    with made(tmp_path) as study:
        run(study, two, 10, workers=3, engine=Polled(), progress=False)
        check(study, 10)


def test_standard_executors_will_do_and_stay_open(tmp_path: Path) -> None:
    with made(tmp_path) as study, ThreadPoolExecutor(2) as threads:
        run(study, lambda x: two(x), 10, workers=2, engine=threads, progress=False)
        check(study, 10)
        assert threads.submit(lambda: 5).result() == 5


def raising(x: Array) -> Any:
    raise builtins.ValueError("mesh is inside out")


def test_errors_come_back_with_their_traceback(tmp_path: Path) -> None:
    pool = Threads().open(Task(Pointwise(raising), 2, 0), 1, Limits())
    pool.start(Job(7, 1, np.zeros(2)))
    (report,) = pool.wait(30.0)
    pool.close()
    assert (report.trial, report.kind) == (7, "error")
    assert "raising" in report.reason and "mesh is inside out" in report.reason


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit, BaseException]
)
def test_whatever_an_objective_raises_is_a_failed_evaluation(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def objective(x: Array) -> Any:
        if x[0] > 0.5:
            raise error("out")
        return two(x)

    with made(tmp_path) as study:
        never = FailureStop(rate=1.0)
        result = study.run(objective, 8, engine="threads", failure_stop=never, progress=False)
        assert not result.interrupted and (result.X[:, 0] <= 0.5).all()
        assert 0 < len(result.failures) < 8 and error.__name__ in result.failures[0].reason
        check(study, 8)


def test_ctrl_c_in_the_main_thread_is_no_failure_of_the_objective() -> None:
    def objective(x: Array) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Task(Pointwise(objective), 2, 0)(Job(0, 1, np.zeros(2)))


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt])
def test_a_worker_that_answers_with_an_interruption_is_lost(error: type[BaseException]) -> None:
    class Foreign:
        def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
            done: Future[Any] = Future()
            done.set_exception(error("there"))
            return done

    pool = Submitting(Foreign()).open(Task(Pointwise(two), 2, 0), 1, Limits())
    pool.start(Job(1, 1, np.zeros(2)))
    (report,) = pool.wait(10.0)
    assert report.kind == "lost" and error.__name__ in report.reason


def suicidal(x: Array) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_broken_process_pool_ends_the_run_and_not_the_study(tmp_path: Path) -> None:
    with made(tmp_path) as study, ProcessPoolExecutor(1) as processes:
        with pytest.raises(RuntimeError, match=r"takes no more evaluations.*study is safe"):
            run(study, suicidal, 10, engine=processes, progress=False)
        assert study.finished == 0
        run(study, two, 6, engine="threads", progress=False)
        check(study, 6)


def test_a_lost_worker_is_a_lost_evaluation() -> None:
    class Dying:
        def submit(self, function: Callable[..., Any], /, *args: Any) -> Later:
            def call() -> Any:
                raise ConnectionError("node 7 is gone")

            return Later(call)

    pool = Submitting(Dying()).open(Task(Pointwise(two), 2, 0), 1, Limits())
    pool.start(Job(1, 1, np.zeros(2)))
    (report,) = pool.wait(10.0)
    assert report.kind == "lost" and "node 7 is gone" in report.reason


# -- clusters --

# Clusters warn about their own loose ends (sockets, deprecated calls), which are not ours to judge.
foreign = pytest.mark.filterwarnings("ignore")


def murderous(x: Array) -> list[float]:
    """Kill the worker process in mid-evaluation, the first time each of two points comes along."""
    place = Path(os.environ["NEUROPARETO_TEST_PLACE"])
    with (place / "calls").open("a") as calls:
        calls.write(x.tobytes().hex() + "\n")
    for victim in ("first", "second"):
        try:
            (place / victim).touch(exist_ok=False)
        except FileExistsError:
            continue
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    return two(x)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEUROPARETO_TEST_PLACE", str(tmp_path))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", here + os.pathsep + os.environ.get("PYTHONPATH", ""))
    return tmp_path


def survived(place: Path, engine: Engine) -> None:
    """Run with two murders: every point finished once, the victims' points were run again."""
    with made(place) as study:
        result = run(study, murderous, 12, workers=2, engine=engine, progress=False)
        check(study, 12)
    assert len(result.F) == 12 and not result.failures
    np.testing.assert_array_equal(result.F[:, 0], result.X[:, 0])
    calls = (place / "calls").read_text().split()
    assert len(set(calls)) == 12
    assert len(calls) >= 14


@foreign
@pytest.mark.slow
def test_dask_survives_killed_workers(place: Path) -> None:
    survived(place, Dask())


@foreign
def test_dask_evaluates_a_repeated_point_anew(place: Path) -> None:
    pool = Dask().open(Task(Pointwise(lambda x: [time.time(), 0.0]), 2, 0), 1, Limits())
    values = []
    for trial in (1, 2):
        pool.start(Job(trial, 1, np.zeros(2)))
        reports: list[Any] = []
        while not reports:
            reports = pool.wait(30.0)
        values.append(reports[0].F[0])
    pool.close()
    assert values[0] < values[1]


@foreign
@pytest.mark.slow
def test_ray_survives_killed_workers(place: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    survived(place, Ray())
    assert signal.getsignal(signal.SIGTERM) is before, "Ray claims this signal for itself"
