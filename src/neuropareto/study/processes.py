"""The ``processes`` engine: every evaluation in a process of this machine that can be killed.

The objective travels to the warden once, by multiprocessing's ``spawn`` (so it must be importable:
a function of a module or script, or a Simulator); results come back as JSON. A script that calls
``run`` needs the usual ``if __name__ == "__main__":``. POSIX only.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from neuropareto.study.evaluation import Job, Report, Task, decoded
from neuropareto.study.limits import Limits

GONE = b""
"""What stands in the inbox after the warden's last word; the warden itself never says nothing."""


@dataclass(frozen=True)
class Processes:
    """Evaluate in local processes, each in a session of its own, under the run's limits."""

    def open(self, task: Task, workers: int, limits: Limits) -> ProcessPool:
        """Start the warden."""
        if os.name != "posix":
            raise ValueError(
                "The engine 'processes' needs Linux, macOS or another POSIX system; use "
                "engine='threads' here."
            )
        return ProcessPool(task, limits)


class ProcessPool:
    """Evaluations of one run, forked and guarded by a warden, which is replaced if it dies."""

    def __init__(self, task: Task, limits: Limits) -> None:
        self._task, self._limits = task, limits
        self._jobs: dict[int, Job] = {}
        self._groups: dict[int, int] = {}
        self._closing = False
        self._hire()

    def start(self, job: Job) -> None:
        """Begin an evaluation."""
        self._jobs[job.trial] = job
        self._order(
            {"do": "start", "trial": job.trial, "attempt": job.attempt, "x": job.x.tolist()}
        )

    def wait(self, timeout: float) -> list[Report]:
        """Evaluations that ended, after at most ``timeout`` seconds."""
        reports: list[Report] = []
        until = time.monotonic() + timeout
        while not reports and (left := until - time.monotonic()) > 0:
            reports += self._heard(left)
        while not self._inbox.empty():
            reports += self._heard(0.0)
        return reports

    def close(self) -> list[Report]:
        """End all evaluations; the reports of those that ended meanwhile."""
        self._order({"do": "stop"})
        self._closing = True
        reports: list[Report] = []
        until = time.monotonic() + self._limits.grace + 5.0
        while self._reader.is_alive() and time.monotonic() < until:
            reports += self._heard(0.1)
        while not self._inbox.empty():
            reports += self._heard(0.0)
        self._dismiss()
        return reports

    # -- the warden --

    def _hire(self) -> None:
        from neuropareto.study.warden import serve  # POSIX only, like the guard below

        context = multiprocessing.get_context("spawn")
        self._control, theirs = context.Pipe()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._warden: SpawnProcess = context.Process(
            target=serve, args=(theirs, self._task, self._limits), name="neuropareto-warden"
        )
        try:
            self._warden.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self._control.close()
            raise ValueError(
                f"The objective cannot be sent to another process ({error}); define it at the top "
                "level of a module, or use engine='threads'."
            ) from None
        finally:
            theirs.close()
        # A thread reads all the time, so that the warden never waits while a proposal is computed.
        self._reader = threading.Thread(
            target=_listen, args=(self._control, self._inbox), daemon=True
        )
        self._reader.start()
        # At exit multiprocessing waits for its children: a forgotten warden has to leave by then.
        atexit.register(self._order, {"do": "stop"})
        try:
            first = self._inbox.get()
        except BaseException:  # Ctrl-C while the objective loads must not leave the warden behind
            self._dismiss()
            raise
        if first == GONE:
            self._dismiss()
            raise RuntimeError(
                "The process that evaluates the objective ended before it was ready; its message "
                'stands above. A script needs `if __name__ == "__main__":` around its run, and a '
                "function typed into a notebook must move to a module (or use engine='threads')."
            )

    def _order(self, message: dict[str, Any]) -> None:
        try:
            self._control.send_bytes(json.dumps(message).encode("ascii"))
        except OSError:
            return  # the warden is gone; whoever waits for its answers finds out

    def _heard(self, patience: float) -> list[Report]:
        try:
            data = self._inbox.get(timeout=patience) if patience else self._inbox.get_nowait()
        except queue.Empty:
            return []
        if data == GONE:
            return [] if self._closing else self._bereaved()
        message = json.loads(data)
        if message["is"] == "started":
            self._groups[message["trial"]] = message["pid"]
        if message["is"] != "ended":
            return []
        report = decoded(message["report"].encode("ascii"))
        self._jobs.pop(report.trial, None)
        self._groups.pop(report.trial, None)
        return [report]

    def _bereaved(self) -> list[Report]:
        """The warden was killed: end what it had started, hire another, report the jobs lost."""
        self._dismiss()
        reason = "the process that guards the evaluations was killed"
        lost = [Report(j.trial, j.attempt, "lost", reason=reason) for j in self._jobs.values()]
        self._jobs.clear()
        self._hire()
        return lost

    def _dismiss(self) -> None:
        from neuropareto.study.guard import signal_group

        atexit.unregister(self._order)
        for leader in self._groups.values():
            signal_group(leader, signal.SIGKILL)
        self._groups.clear()
        self._warden.join(0.0 if self._reader.is_alive() else 1.0)
        if self._warden.is_alive():
            self._warden.kill()
            self._warden.join()
        self._warden.close()
        self._reader.join()
        self._control.close()


def _listen(control: Connection, inbox: queue.SimpleQueue[bytes]) -> None:
    """Pass on everything that the warden says, and in the end that it has gone."""
    try:
        while True:
            inbox.put(control.recv_bytes())
    except (EOFError, OSError):
        inbox.put(GONE)
