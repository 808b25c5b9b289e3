"""The warden: a small process beside the run that forks, watches and ends evaluations.

It has loaded the objective once and does nothing else, so forking from it is quick and drags no
models, threads or database handles of the run into an evaluation. Each evaluation is a process in
a session of its own: the warden drains what it prints, keeps time, ends the whole group, and
passes on the report. When the run dies, however suddenly, the warden reads the end of its control
pipe, ends every evaluation and leaves. Messages both ways are JSON; nothing is unpickled here.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NoReturn

import numpy as np

from neuropareto.study.evaluation import Bounded, Job, Report, Task, decoded, shortened
from neuropareto.study.guard import impose, meaning, signal_group
from neuropareto.study.limits import Limits

RESULT_LIMIT = 4_000_000


def serve(control: Connection, task: Task, limits: Limits) -> None:
    """Be the warden until the run says stop or is gone."""
    os.setsid()  # Ctrl-C in the run's terminal is the run's business
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Warden(control, task, limits).serve()


@dataclass(eq=False)
class _Evaluation:
    """A running evaluation: its process and the pipes from it."""

    job: Job
    pid: int
    output: int
    open: set[int]
    deadline: float
    began: float
    kept: Bounded = field(default_factory=Bounded)
    answer: bytearray = field(default_factory=bytearray)
    overdue: bool = False


class Warden:
    """The event loop: control messages, output, results, deadlines, ends."""

    def __init__(self, control: Connection, task: Task, limits: Limits) -> None:
        self._control, self._task, self._limits = control, task, limits
        self._running: dict[int, _Evaluation] = {}
        self._stopping = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(control.fileno(), selectors.EVENT_READ)
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Run until told to stop and every evaluation is gone."""
        self._say({"is": "ready"})
        while self._running or not self._stopping:
            ready = {int(key.fd) for key, _ in self._selector.select(self._patience())}
            if self._control.fileno() in ready and not self._stopping:
                self._listen()
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            for evaluation in self._running.values():
                self._drain(evaluation, ready)
            self._reap()
            self._keep_time()

    def _patience(self) -> float:
        """Seconds until the next deadline; a second at most, should a signal get lost."""
        now = time.monotonic()
        nearest = min((e.deadline for e in self._running.values()), default=now + 1.0)
        return min(1.0, max(0.0, nearest - now))

    def _say(self, message: dict[str, object]) -> None:
        try:
            self._control.send_bytes(json.dumps(message).encode("ascii"))
        except OSError:  # the run is gone
            self._stop()

    def _listen(self) -> None:
        try:
            message = json.loads(self._control.recv_bytes())
        except (EOFError, OSError):
            self._stop()
            return
        if message["do"] == "start":
            self._start(Job(message["trial"], message["attempt"], np.array(message["x"], float)))
        else:
            self._stop()

    def _stop(self) -> None:
        """End everything: politely now, by force after the grace."""
        if self._stopping:
            return
        self._stopping = True
        self._selector.unregister(self._control.fileno())
        for evaluation in self._running.values():
            self._end(evaluation)

    # -- one evaluation --

    def _start(self, job: Job) -> None:
        output, output_end = os.pipe()
        result, result_end = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:  # no more processes allowed: the point is not to blame
            for fd in (output, output_end, result, result_end):
                os.close(fd)
            report = Report(job.trial, job.attempt, "lost", reason=f"no process started: {error}")
            self._say({"is": "ended", "report": report.encoded().decode("ascii")})
            return
        if pid == 0:
            self._become(job, output_end, result_end)
        os.close(output_end)
        os.close(result_end)
        now = time.monotonic()
        until = now + self._limits.wall if self._limits.wall is not None else float("inf")
        self._running[pid] = _Evaluation(job, pid, output, {output, result}, until, now)
        for fd in (output, result):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ)
        self._say({"is": "started", "trial": job.trial, "pid": pid})

    def _become(self, job: Job, output: int, result: int) -> NoReturn:
        """In the forked child: shed the warden, evaluate, report, end."""
        status = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._control.close()
            self._selector.close()
            inherited = [fd for e in self._running.values() for fd in e.open]
            for fd in (self._wake_read, self._wake_write, *inherited):
                os.close(fd)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(source, target)
            for fd in (nothing, output):
                if fd > 2:
                    os.close(fd)
            os.environ["NEUROPARETO_TRIAL"] = str(job.trial)
            os.environ["NEUROPARETO_ATTEMPT"] = str(job.attempt)
            _fresh_randomness()
            impose(self._limits)
            answer = self._task(job).encoded()
            sys.stdout.flush()
            sys.stderr.flush()
            while answer:
                answer = answer[os.write(result, answer) :]
            status = 0
        finally:
            os._exit(status)

    def _end(self, evaluation: _Evaluation) -> None:
        signal_group(evaluation.pid, signal.SIGTERM)
        evaluation.deadline = time.monotonic() + self._limits.grace
        evaluation.overdue = evaluation.overdue or not self._stopping

    def _keep_time(self) -> None:
        now = time.monotonic()
        for evaluation in self._running.values():
            if now < evaluation.deadline:
                continue
            if evaluation.overdue or self._stopping:
                signal_group(evaluation.pid, signal.SIGKILL)
                evaluation.deadline = now + 1.0
            else:
                self._end(evaluation)

    def _reap(self) -> None:
        for evaluation in list(self._running.values()):
            pid, status, used = os.wait4(evaluation.pid, os.WNOHANG)
            if not pid:
                continue
            signal_group(evaluation.pid, signal.SIGKILL)  # children it left behind
            self._drain(evaluation, evaluation.open)
            for fd in tuple(evaluation.open):
                self._shut(evaluation, fd)
            del self._running[pid]
            code = os.waitstatus_to_exitcode(status)
            report = self._report(evaluation, code, used.ru_utime + used.ru_stime)
            self._say({"is": "ended", "report": report.encoded().decode("ascii")})

    def _drain(self, evaluation: _Evaluation, ready: set[int]) -> None:
        """Take in what an evaluation has written, a bounded amount at a time."""
        for fd in evaluation.open & ready:
            for _ in range(64):
                try:
                    data = os.read(fd, 65_536)
                except BlockingIOError:
                    break
                if not data:
                    self._shut(evaluation, fd)
                    break
                if fd == evaluation.output:
                    evaluation.kept.add(data)
                elif len(evaluation.answer) < RESULT_LIMIT:
                    evaluation.answer += data

    def _shut(self, evaluation: _Evaluation, fd: int) -> None:
        evaluation.open.discard(fd)
        self._selector.unregister(fd)
        os.close(fd)

    def _report(self, evaluation: _Evaluation, code: int, cpu: float) -> Report:
        job, printed = evaluation.job, evaluation.kept.text()
        seconds = time.monotonic() - evaluation.began
        try:
            report = decoded(bytes(evaluation.answer))
        except ValueError:
            kind, reason = meaning(code, self._limits, cpu, overdue=evaluation.overdue)
            report = Report(job.trial, job.attempt, kind, reason=reason)
        return Report(
            job.trial, job.attempt, report.kind, report.F, report.G, report.reason,
            report.output or shortened(printed), seconds,
        )  # fmt: skip


def _fresh_randomness() -> None:
    """Seed the global generators anew, as in a process of its own.

    Forked siblings share the state they were forked with: without this a noisy objective that
    uses them would draw the very same noise at every point.
    """
    entropy = int.from_bytes(os.urandom(4), "little")
    np.random.seed(entropy)  # noqa: NPY002 - the user's function may use the global generator
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(entropy)
