"""An external program as objective: files in, program, files out, in a directory of its own.

For every evaluation: a private directory, input files written into it, the command (an argv list,
never a shell) run in it, results read from what it leaves. The environment tells the program its
``NEUROPARETO_TRIAL`` and ``NEUROPARETO_ATTEMPT``. A simulator is a frozen value that any engine
can send anywhere; where no warden guards it (threads, Dask, Ray), it keeps its limits itself.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from neuropareto.space import Space
from neuropareto.study.evaluation import Bounded, EvaluationError, Job, shortened
from neuropareto.study.limits import Limits
from neuropareto.study.readings import STDOUT, Constraint, Reading
from neuropareto.study.template import InputFile, filled

KEEP = ("failed", "all", "none")
RESULT_LIMIT = 64_000_000
_STREAM = 1_000_000


@dataclass(frozen=True)
class Simulator:
    """A program behind files; ``home`` is the directory its relative paths start from.

    In ``command``, ``{study}`` stands for ``home`` and ``{x.name}`` for a variable's value. ``files``
    are copied from ``home`` into each working directory under ``runs``; ``keep`` says which
    directories stay: those of "failed" evaluations, "all" or "none".
    """

    space: Space
    command: tuple[str, ...]
    home: Path
    runs: Path
    objectives: tuple[Reading, ...]
    constraints: tuple[Constraint, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    files: tuple[str, ...] = ()
    keep: str = "failed"
    memory: int | None = None
    alone: Limits | None = None

    def __post_init__(self) -> None:
        if not self.command or not self.objectives:
            raise ValueError("A simulator needs a command and at least one objective to read.")
        if self.keep not in KEEP:
            raise ValueError(f"keep must be one of {KEEP}, got {self.keep!r}.")

    def guarded(self, limits: Limits) -> Simulator:
        """The same simulator where no warden guards it: its program gets a session and limits."""
        return replace(self, alone=limits)

    def evaluate(self, job: Job) -> Any:
        """Run the program for a job; objectives, or (objectives, constraints)."""
        self.runs.mkdir(parents=True, exist_ok=True)
        place = Path(
            tempfile.mkdtemp(prefix=f"{job.trial:06d}-{job.attempt}-", dir=self.runs)
        ).resolve()
        succeeded = False
        try:
            values = self._evaluated(job, place)
            succeeded = True
        finally:
            if self.keep == "none" or (succeeded and self.keep == "failed"):
                shutil.rmtree(place, ignore_errors=True)
        return values

    def resolved(self, point: dict[str, Any]) -> list[str]:
        """The argv for a point {name: value}."""
        return [filled(argument, point) for argument in self.argv()]

    def argv(self) -> list[str]:
        """The command with its paths resolved and the placeholders of variables left in."""
        argv = [argument.replace("{study}", str(self.home)) for argument in self.command]
        # A relative path means a file beside the study, not one in the working directory.
        if "/" in argv[0] and not os.path.isabs(argv[0]):
            argv[0] = str(self.home / argv[0])
        return argv

    def _evaluated(self, job: Job, place: Path) -> Any:
        point = self.space.as_dict(job.x)
        for name in self.files:
            shutil.copy(self.home / name, place / Path(name).name)
        for file in self.inputs:
            target = inside(place, file.file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.written(point), encoding="utf-8")
        environment = {
            **os.environ,
            "NEUROPARETO_TRIAL": str(job.trial),
            "NEUROPARETO_ATTEMPT": str(job.attempt),
        }
        ended = run_program(self.resolved(point), place, environment, self._limits(), self.alone)
        said = _output(ended)
        if ended.failure is not None:
            kind, reason = ended.failure
            raise EvaluationError(kind, f"{reason}{said}")
        outputs: dict[str, str] = {STDOUT: ended.stdout.text()}

        def number(reading: Reading) -> float:
            if reading.file not in outputs:
                outputs[reading.file] = _text(place, reading.file)
            return reading.read(outputs[reading.file])

        try:
            F = [number(reading) for reading in self.objectives]
            G = [c.violation(number(c.reading)) for c in self.constraints]
        except ValueError as error:
            raise EvaluationError("invalid", f"{error}{said}") from None
        return (F, G) if self.constraints else F

    def _limits(self) -> Limits:
        return self.alone or Limits(memory=self.memory)


@dataclass(frozen=True, eq=False)
class Ended:
    """A program that ended: what it printed, and why it failed if it did."""

    stdout: Bounded
    stderr: Bounded
    failure: tuple[str, str] | None


def run_program(
    argv: list[str],
    place: Path,
    environment: dict[str, str],
    limits: Limits,
    alone: Limits | None,
) -> Ended:
    """Run ``argv`` in ``place``; with ``alone`` in a session of its own that is ended on time."""
    from neuropareto.study.guard import end_group, launcher, meaning, signal_group

    if shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise EvaluationError("error", f"there is no program {argv[0]!r} that can be executed")
    try:
        process = subprocess.Popen(
            [*launcher(limits), *argv],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=alone is not None,
        )
    except (OSError, ValueError) as error:
        raise EvaluationError("error", f"the program {argv[0]!r} did not start: {error}") from None
    with process:
        began = time.monotonic()
        until = None if limits.wall is None else began + limits.wall
        stdout, stderr = Bounded(_STREAM, _STREAM), Bounded()
        overdue = not _listened(process, stdout, stderr, until)
        if overdue:
            end_group(process.pid, limits.grace)
        code = process.wait()
        if alone is not None:
            signal_group(process.pid, 9)  # children it left behind
    if code == 0 and not overdue:
        return Ended(stdout, stderr, None)
    if code > 0 and not overdue:
        return Ended(stdout, stderr, ("error", f"the program returned status {code}"))
    used = limits.cpu or 0.0  # a program killed under a CPU limit is taken to have used it up
    return Ended(stdout, stderr, meaning(code, limits, used, overdue=overdue))


def _listened(
    process: subprocess.Popen[bytes], stdout: Bounded, stderr: Bounded, until: float | None
) -> bool:
    """Drain both streams until the program ends; False if it is not over by ``until``.

    The end of the program counts, not of its streams: a child it leaves behind may hold them open.
    """
    assert process.stdout is not None and process.stderr is not None
    streams: list[tuple[BinaryIO, Bounded]] = [
        (process.stdout, stdout),  # type: ignore[list-item]
        (process.stderr, stderr),  # type: ignore[list-item]
    ]
    with selectors.DefaultSelector() as selector:
        for stream, kept in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream.fileno(), selectors.EVENT_READ, kept)
        while True:
            over = process.poll() is not None
            if not selector.get_map() and not over:
                time.sleep(0.01)
            for key, _ in selector.select(0.0 if over else 0.05):
                if not _drained(int(key.fd), key.data):
                    selector.unregister(key.fd)
            if over:
                return True
            if until is not None and time.monotonic() >= until:
                return False


def _drained(fd: int, kept: Bounded) -> bool:
    """Read what a pipe holds now; False at its end."""
    for _ in range(64):
        try:
            data = os.read(fd, 65_536)
        except BlockingIOError:
            return True
        if not data:
            return False
        kept.add(data)
    return True


def inside(place: Path, name: str) -> Path:
    """``place / name``, if that is really a path below ``place``."""
    path = (place / name).resolve()
    if not path.is_relative_to(place.resolve()) or path == place.resolve():
        raise ValueError(f"the file {name!r} must lie inside {place}")
    return path


def _text(place: Path, name: str) -> str:
    """A result file's text."""
    path = inside(place, name)
    try:
        size = path.stat().st_size
        if not path.is_file() or size > RESULT_LIMIT:
            raise ValueError(f"{name} is no file of at most {RESULT_LIMIT} bytes (it has {size})")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise ValueError(f"the program left no file {name}") from None


def _output(ended: Ended) -> str:
    """The last of what a program said, for the record of a failure."""
    said = "".join(
        f"\n--- {name} ---\n{shortened(kept.text().rstrip(), 2000)}"
        for name, kept in (("stderr", ended.stderr), ("stdout", ended.stdout))
        if kept.total
    )
    return said or "\n(it printed nothing)"
