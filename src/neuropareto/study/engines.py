"""Where evaluations run: the Engine contract, threads, any executor, Dask and Ray.

An engine is a spec whose ``open`` gives a pool of ``workers``; a pool starts jobs and hands out
reports as they end. Any object with ``submit(function, *args) -> handle`` whose handle has
``done()`` and ``result()`` is an engine too (``concurrent.futures``, loky, submitit, Parsl, ...).
Swappable: everything. Results travel as JSON bytes; the objective by the executor's own means.
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from neuropareto.study.evaluation import Job, Report, Task, decoded
from neuropareto.study.limits import Limits
from neuropareto.study.processes import Processes
from neuropareto.study.simulator import Simulator


class Pool(Protocol):
    """The open end of an engine."""

    def start(self, job: Job) -> None:
        """Begin an evaluation."""
        ...

    def wait(self, timeout: float) -> list[Report]:
        """Evaluations that ended, after at most ``timeout`` seconds."""
        ...

    def close(self) -> list[Report]:
        """End or abandon what runs; reports of evaluations that had ended."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A spec of where evaluations run."""

    def open(self, task: Task, workers: int, limits: Limits) -> Pool:
        """A pool for one run."""
        ...


class Handle(Protocol):
    """What an executor gives for a submitted call."""

    def done(self) -> bool:
        """True once ``result`` does not block."""
        ...

    def result(self) -> Any:
        """The call's value; raises if its worker was lost."""
        ...


@runtime_checkable
class ExecutorLike(Protocol):
    """Anything that runs calls elsewhere."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run ``function(*args)`` elsewhere and return a :class:`Handle`."""
        ...


EngineLike: TypeAlias = "str | Engine | ExecutorLike"


def evaluate_remotely(task: Task, trial: int, attempt: int, x: bytes) -> bytes:
    """What a worker of an executor calls: a report as JSON bytes; x as float64 bytes."""
    return task(Job(trial, attempt, np.frombuffer(x, dtype=np.float64).copy())).encoded()


class SubmittingPool:
    """Jobs submitted to an executor; ``leave`` is called once at the end.

    Futures of ``concurrent.futures`` announce themselves; other handles are polled.
    """

    def __init__(self, submit: Callable[..., Any], task: Any, leave: Callable[[], None]) -> None:
        self._submit, self._task, self._leave = submit, task, leave
        self._polled: dict[int, tuple[Job, Handle]] = {}
        self._ended: queue.SimpleQueue[tuple[Job, Handle]] = queue.SimpleQueue()

    def start(self, job: Job) -> None:
        """Submit it."""
        try:
            handle = self._submit(
                evaluate_remotely, self._task, job.trial, job.attempt, job.x.tobytes()
            )
        except Exception as error:  # every executor has its own way to refuse
            raise RuntimeError(
                f"The executor takes no more evaluations ({type(error).__name__}: {error}); the "
                "study is safe: run it again with a working executor."
            ) from error
        if isinstance(handle, Future):
            handle.add_done_callback(lambda done: self._ended.put((job, done)))
        else:
            self._polled[job.trial] = (job, handle)

    def wait(self, timeout: float) -> list[Report]:
        """Reports of handles that are done."""
        until = time.monotonic() + timeout
        while True:
            ready = self._collected()
            left = until - time.monotonic()
            if not ready and left > 0:
                # A polled handle may sit behind a network: look often enough, not all the time.
                try:
                    ready = [self._ended.get(timeout=min(left, 0.05) if self._polled else left)]
                except queue.Empty:
                    continue
            return [_report(job, handle) for job, handle in ready]

    def _collected(self) -> list[tuple[Job, Handle]]:
        ready = [pair for pair in self._polled.values() if pair[1].done()]
        for job, _ in ready:
            del self._polled[job.trial]
        while not self._ended.empty():
            ready.append(self._ended.get())
        return ready

    def close(self) -> list[Report]:
        """Take what is done, then leave the executor."""
        reports = self.wait(0.0)
        self._leave()
        return reports


def _report(job: Job, handle: Handle) -> Report:
    """A handle's report. The call itself never raises, so an error means that its worker is lost."""
    try:
        # Asked for, an error of the worker cannot be taken for a Ctrl-C of this moment.
        lost = handle.exception() if isinstance(handle, Future) else None
        if lost is None:
            return decoded(handle.result())
    except (Exception, asyncio.CancelledError, GeneratorExit, SystemExit) as error:
        lost = error  # every executor has its own way to say that a worker died
    reason = f"the worker was lost: {type(lost).__name__}: {lost}"
    return Report(job.trial, job.attempt, "lost", reason=reason[:2000])


def _guarded(task: Task, limits: Limits, where: str) -> Task:
    """The task with the limits it can keep by itself: a program can be ended, a function cannot."""
    if not limits.any:
        return task
    if not isinstance(task.evaluator, Simulator):
        raise ValueError(
            f"A function that runs in {where} cannot be ended, so it can have no limits; use "
            "engine='processes', or put the program behind a Simulator."
        )
    guarded = task.evaluator.guarded(limits)
    return Task(guarded, task.n_objectives, task.n_constraints)


@dataclass(frozen=True)
class Threads:
    """Evaluate in threads of this process: for cheap functions. Nothing can be killed."""

    def open(self, task: Task, workers: int, limits: Limits) -> SubmittingPool:
        """A pool of threads."""
        executor = ThreadPoolExecutor(workers, thread_name_prefix="neuropareto")
        return SubmittingPool(
            executor.submit,
            _guarded(task, limits, "a thread"),
            lambda: executor.shutdown(wait=False, cancel_futures=True),
        )


@dataclass(frozen=True)
class Submitting:
    """Evaluate in the user's own executor, which is left open at the end."""

    executor: ExecutorLike

    def open(self, task: Task, workers: int, limits: Limits) -> SubmittingPool:
        """A pool that submits to it."""
        guarded = _guarded(task, limits, "a foreign executor")
        return SubmittingPool(self.executor.submit, guarded, lambda: None)


@dataclass(frozen=True)
class Dask:
    """Evaluate on a Dask cluster: an address, a cluster object, or None for one on this machine."""

    cluster: Any = None

    def open(self, task: Task, workers: int, limits: Limits) -> SubmittingPool:
        """Connect; a local cluster gets ``workers`` processes of one thread."""
        distributed = _extra("distributed", "dask")
        guarded = _guarded(task, limits, "Dask")
        cluster, own = self.cluster, None
        if cluster is None:
            own = cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            )
        client = distributed.Client(cluster, set_as_default=False)
        # pure=False: to Dask a repeated point would be a known result, but noise needs repeats.
        executor = client.get_executor(pure=False, retries=0)

        def leave() -> None:
            executor.shutdown(wait=False)
            client.close()
            if own is not None:
                own.close()

        return SubmittingPool(executor.submit, guarded, leave)


@dataclass(frozen=True)
class Ray:
    """Evaluate on a Ray cluster: an address ("auto", "host:6379") or None for one on this machine."""

    address: str | None = None
    cpus: float = 1.0

    def open(self, task: Task, workers: int, limits: Limits) -> SubmittingPool:
        """Connect to the cluster, or to a connection this program already has."""
        ray = _extra("ray", "ray")
        guarded = _guarded(task, limits, "Ray")
        own = not ray.is_initialized()
        if own:
            self._connect(ray, workers)
        # Retries are the run's own: it numbers and records them.
        remote = ray.remote(max_retries=0, num_cpus=self.cpus)(evaluate_remotely)

        def submit(_: Callable[..., Any], *args: Any) -> Future[Any]:
            future: Future[Any] = remote.remote(*args).future()
            return future

        def leave() -> None:
            if own:
                ray.shutdown()

        return SubmittingPool(submit, ray.put(guarded), leave)

    def _connect(self, ray: Any, workers: int) -> None:
        before = signal.getsignal(signal.SIGTERM)
        if self.address:
            ray.init(address=self.address, log_to_driver=False, configure_logging=False)
        else:
            ray.init(
                address="local",
                num_cpus=max(1, round(workers * self.cpus)),
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
            )
        # Ray claims SIGTERM for itself and would end the process before the study is in order.
        if signal.getsignal(signal.SIGTERM) is not before:
            signal.signal(signal.SIGTERM, before)


def engine_of(given: EngineLike) -> Engine:
    """The engine behind a name ("processes", "threads", "dask:tcp://host:8786"), spec or executor."""
    if isinstance(given, str):
        name, _, address = given.partition(":")
        plain: dict[str, Engine] = {"processes": Processes(), "threads": Threads()}
        if given in plain:
            return plain[given]
        if name == "dask":
            return Dask(address or None)
        if name == "ray":
            return Ray(address or None)
        raise ValueError(
            f"The engine must be 'processes', 'threads', 'dask', 'dask:ADDRESS', 'ray', "
            f"'ray:ADDRESS', an engine or an executor, got {given!r}."
        )
    if isinstance(given, Engine):
        return given
    if isinstance(given, ExecutorLike):
        return Submitting(given)
    raise ValueError(
        f"An engine must be a name, an engine, or an object with submit(function, *args), got "
        f"{type(given).__name__}."
    )


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"The engine '{extra}' needs {module}; install it with: "
            f"pip install 'neuropareto[{extra}]'"
        ) from error
