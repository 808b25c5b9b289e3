"""Real crashes: the coordinator is killed with SIGKILL at random moments, again and again."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from neuropareto import NSGA2
from neuropareto.space import Array
from neuropareto.study import Study, StudyInUse
from neuropareto.study.doctor import examine
from neuropareto.study.events import Note, Told

D, BATCH = 6, 3


@pytest.fixture(scope="module")
def processes() -> Iterator[ForkServerContext]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["neuropareto.study"])
    yield context


def objectives(X: Array) -> Array:
    return np.stack([((X - 0.2) ** 2).sum(axis=1), ((X - 0.7) ** 2).sum(axis=1)], axis=1)


def create(path: Path, seed: int) -> Study:
    algorithm = NSGA2(population=8)
    return Study.create(path, [(0.0, 1.0)] * D, 2, algorithm, seed=seed, n_initial=7)


def coordinate(path: Path, until: int, told: Connection | None = None) -> None:
    """Evaluate what is pending, ask for more, and say after each tell that it returned."""
    study = Study.open(path)
    if told is not None:
        told.send(-1)
    while study.finished < until:
        waiting = list(study.pending) or list(study.ask(BATCH))
        for trial in waiting:
            study.started(trial.id, "here")
            study.tell(trial, objectives(trial.x[None]))
            if told is not None:
                told.send(trial.id)
    study.close()


def killed_after(
    processes: ForkServerContext, path: Path, until: int, delay: float, *, once_open: bool
) -> tuple[set[int], bool]:
    """Run a coordinator and kill it; which tells returned, and whether it was still running.

    The delay counts from when the study is open, or from the start, so that opening is hit too.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process: BaseProcess = processes.Process(target=coordinate, args=(path, until, theirs))
    process.start()
    theirs.close()
    heard: set[int] = set()
    if once_open:
        assert ours.poll(60)
    time.sleep(delay)
    process.kill()
    try:
        while True:
            heard.add(ours.recv())
    except EOFError:
        pass
    process.join()
    ours.close()
    heard.discard(-1)
    return heard, process.exitcode == -signal.SIGKILL


def history(path: Path) -> tuple[bytes, bytes, bytes]:
    """Results in order of arrival, and the next proposal."""
    with Study.open(path) as study:
        optimizer = study.optimizer
        return optimizer.X.tobytes(), optimizer.F.tobytes(), study.ask(5).X.tobytes()


def survive(processes: ForkServerContext, directory: Path, kills: int) -> None:
    rng, n, seed, until = random.Random(5), 0, 0, 150
    while n < kills:
        seed += 1
        crashed, calm = directory / f"crashed-{seed}", directory / f"calm-{seed}"
        create(crashed, seed).close()
        create(calm, seed).close()
        promised: set[int] = set()
        while n < kills:
            once_open = rng.random() < 0.7
            delay = rng.uniform(0.0, 0.06 if once_open else 0.2)
            heard, was_killed = killed_after(processes, crashed, until, delay, once_open=once_open)
            promised |= heard
            reader = Study.view(crashed)
            stored = {e.trial for e in reader.events() if isinstance(e, Told)}
            finished = reader.finished
            reader.close()
            assert promised <= stored, "a result was lost although its tell had returned"
            assert finished == len(stored), "a point was evaluated twice"
            n += was_killed
            if not was_killed:
                break
        coordinate(crashed, until)
        coordinate(calm, until)
        assert examine(crashed).healthy
        assert history(crashed) == history(calm)


def test_ten_kills_lose_nothing_and_change_nothing(
    processes: ForkServerContext, tmp_path: Path
) -> None:
    survive(processes, tmp_path, 10)


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing_and_change_nothing(
    processes: ForkServerContext, tmp_path: Path
) -> None:
    survive(processes, tmp_path, 200)


# -- two coordinators --


def hold(path: Path, ready: Connection) -> None:
    study = Study.open(path)
    ready.send(os.getpid())
    study.tell(next(iter(study.ask())), [1.0, 2.0])
    time.sleep(600)


def test_a_second_coordinator_is_refused_until_the_first_dies(
    processes: ForkServerContext, tmp_path: Path
) -> None:
    path = tmp_path / "a.study"
    create(path, 1).close()
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process: BaseProcess = processes.Process(target=hold, args=(path, theirs))
    process.start()
    assert ours.poll(60)
    pid = ours.recv()
    for take_over in (False, True):
        with pytest.raises(StudyInUse, match=f"process {pid}"):
            Study.open(path, take_over=take_over)
    reader = Study.view(path)
    reader.close()
    os.kill(pid, signal.SIGKILL)
    process.join()
    with Study.open(path) as study:
        notes = [e.text for e in study.events() if isinstance(e, Note)]
        assert any(f"taken over from process {pid}" in text for text in notes)
        study.ask()


def contend(path: Path, n: int, results: Connection) -> None:
    done = 0
    for _ in range(n):
        try:
            with Study.open(path) as study:
                trial = next(iter(study.ask()))
                study.tell(trial, objectives(trial.x[None]))
                done += 1
        except StudyInUse:
            time.sleep(0.002)
    results.send(done)


def test_racing_coordinators_never_mix(processes: ForkServerContext, tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    create(path, 1).close()
    ours, theirs = multiprocessing.Pipe(duplex=False)
    racers: list[BaseProcess] = [
        processes.Process(target=contend, args=(path, 15, theirs)) for _ in range(3)
    ]
    for racer in racers:
        racer.start()
    done = 0
    for _ in racers:
        assert ours.poll(120)
        done += ours.recv()
    for racer in racers:
        racer.join()
    assert done > 0
    with Study.open(path) as study:
        assert study.finished == done and len(study.pending) == 0
    assert examine(path).healthy


def use_after_fork(study: Study, answer: Connection) -> None:
    try:
        study.note("from a child")
    except Exception as error:
        answer.send(str(error))
    else:
        answer.send("written")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_cannot_write(tmp_path: Path) -> None:
    with create(tmp_path / "a.study", 1) as study:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(
            target=use_after_fork, args=(study, theirs)
        )
        child.start()
        assert ours.poll(60)
        assert "forked child" in ours.recv()
        child.join()
        study.note("the parent still can")
    assert examine(tmp_path / "a.study").healthy
