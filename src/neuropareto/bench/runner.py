"""The runner: a campaign of cells on all cores, one thread each, that can be killed at any time.

Each worker is a process of its own (:mod:`worker`), so a cell that crashes takes only itself along.
Finished cells are skipped, unfinished ones resume from their checkpoint, failed ones are tried
again by the next run. Several runners may share a folder: cells claimed by another one are waited
for. Everything needed to continue is in the folder; the runner itself remembers nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from neuropareto.algorithms import OWN, algorithm, algorithms
from neuropareto.bench.cell import Places
from neuropareto.bench.claims import clear
from neuropareto.bench.grid import Cell, Grid
from neuropareto.bench.live import Board, Screen
from neuropareto.bench.printed import named_algorithms
from neuropareto.bench.records import Records
from neuropareto.bench.worker import failure

ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS",
    )
}  # fmt: skip
WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended: cells run now, found finished, failed (with the error), left over."""

    done: tuple[Cell, ...]
    skipped: tuple[Cell, ...]
    failed: dict[Cell, str]
    left: tuple[Cell, ...]
    unavailable: tuple[str, ...]


@dataclass
class _Campaign:
    """What the threads of a campaign share; every change happens under ``lock``."""

    folder: Path
    checkpoint: float
    board: Board
    waiting: deque[Cell]
    elsewhere: deque[Cell] = field(default_factory=deque)
    done: list[Cell] = field(default_factory=list)
    skipped: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    workers: list[_Worker] = field(default_factory=list)
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Cell | None:
        """The next cell, or None if nothing can be started now."""
        with self.lock:
            if self.over or not self.waiting:
                return None
            return self.waiting.popleft()

    def finish(self, cell: Cell, event: dict[str, Any]) -> None:
        """Put a cell where its last event says."""
        with self.lock:
            if event["event"] == "claimed":
                self.elsewhere.append(cell)
            elif event["event"] == "stopped":
                self.waiting.appendleft(cell)
            elif event["event"] == "failed":
                self.failed[cell] = str(event["error"])
            else:
                (self.done if event["event"] == "done" else self.skipped).append(cell)
            self.board.ended(cell, event)

    def idle(self) -> bool:
        """Whether nothing is left to do; cells of other runners come back to be tried again."""
        with self.lock:
            if self.over or not (self.waiting or self.elsewhere):
                return True
            self.waiting.extend(self.elsewhere)
            self.elsewhere.clear()
            return False

    def stop(self) -> None:
        """End all workers now; their cells resume from the last checkpoint another time."""
        with self.lock:
            self.over = True
            workers = list(self.workers)
        for worker in workers:
            worker.dismiss()


def available(grid: Grid) -> tuple[list[Cell], tuple[str, ...]]:
    """The cells whose algorithm exists here, and the names of the paper's that do not (yet).

    Raises ValueError for a name that is neither known nor one of the paper's.
    """
    missing = []
    for name in grid.algorithms:
        if name in OWN:
            continue  # nothing to import, which may take seconds
        if name in named_algorithms() and name not in algorithms():
            missing.append(name)
        else:
            algorithm(name)  # says what is wrong with the name
    return [cell for cell in grid.cells if cell.algorithm not in missing], tuple(missing)


def run(
    grid: Grid,
    folder: Path,
    *,
    workers: int | None = None,
    checkpoint: float = 30.0,
    screen: Screen,
) -> Outcome:
    """Run every cell of a grid that is not finished, on ``workers`` processes (default: cores)."""
    folder.mkdir(parents=True, exist_ok=True)
    cells, unavailable = available(grid)
    records = Records([folder])
    for path in records.broken:
        path.replace(path.with_suffix(".broken"))  # kept to be looked at; its cell is run again
    skipped = [cell for cell in cells if cell in records]
    waiting = deque(cell for cell in cells if cell not in records)
    known = [(entry.cell, float(entry.summary["seconds"])) for entry in records]
    n = min(workers or os.cpu_count() or 1, len(waiting))
    board = Board(grid.title, list(waiting), len(skipped), n, known)
    campaign = _Campaign(folder, checkpoint, board, waiting, skipped=skipped)
    threads = [
        threading.Thread(target=_serve, args=(campaign, slot), daemon=True) for slot in range(n)
    ]
    with screen.shown(board):
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
        except KeyboardInterrupt:
            campaign.stop()
            for thread in threads:
                thread.join()
    Records([folder])  # brings the index up to date, so that the next look is quick
    left = tuple(campaign.waiting) + tuple(campaign.elsewhere)
    return Outcome(
        tuple(campaign.done), tuple(campaign.skipped), dict(campaign.failed), left, unavailable
    )


def _serve(campaign: _Campaign, slot: int) -> None:
    """One worker's life: hand it cells until none is left; replace it if it dies."""
    worker: _Worker | None = None
    try:
        while True:
            cell = campaign.take()
            if cell is None:
                if campaign.idle():
                    return
                time.sleep(WAIT_SECONDS)
                continue
            if worker is None:
                worker = _Worker()
                with campaign.lock:
                    campaign.workers.append(worker)
            campaign.board.began(slot, cell)
            event = worker.run(cell, campaign, slot)
            campaign.finish(cell, event)
            if not worker.alive:
                worker.close()
                worker = None
    finally:
        if worker is not None:
            worker.close()


class _Worker:
    """A worker process and its two pipes; its complaints go to a file that is read if it dies."""

    def __init__(self) -> None:
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "neuropareto.bench.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True,
            encoding="utf-8", bufsize=1, env={**os.environ, **ONE_THREAD},
            # Ctrl-C reaches only the runner, which then lets its workers go.
            start_new_session=True,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def run(self, cell: Cell, campaign: _Campaign, slot: int) -> dict[str, Any]:
        """Have one cell run; returns the event that ended it, also if the process died of it."""
        job = {
            "cell": cell.as_dict(),
            "folder": str(campaign.folder.resolve()),
            "checkpoint": campaign.checkpoint,
        }
        try:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                event: dict[str, Any] = json.loads(line)
                if event["event"] != "round":
                    return event
                campaign.board.advanced(slot, int(event["evaluations"]))
        except (BrokenPipeError, ValueError) as error:
            return self._died(cell, campaign, f"lost its worker: {error}")
        return self._died(cell, campaign, "its worker process died")

    def _died(self, cell: Cell, campaign: _Campaign, what: str) -> dict[str, Any]:
        self._process.kill()
        code = self._process.wait()
        clear(Places(campaign.folder, cell).claim, self._process.pid)
        if campaign.over:
            return {"event": "stopped"}
        self._complaints.seek(0)
        tail = self._complaints.read().decode(errors="replace")[-4000:]
        report = failure(cell, f"{what} (exit code {code})", tail)
        path = Places(campaign.folder, cell).failure
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1), encoding="utf-8")
        return {"event": "failed", "error": report["error"]}

    def dismiss(self) -> None:
        """Have the process end in the middle of its work."""
        self._process.kill()

    def close(self) -> None:
        """Let the process go: it ends when its standard input closes."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()


def failures(folder: Path, cells: Iterable[Cell]) -> dict[Cell, str]:
    """Cells of a grid whose last attempt failed, with the error."""
    found = {}
    for cell in cells:
        path = Places(folder, cell).failure
        if path.exists():
            found[cell] = str(json.loads(path.read_text(encoding="utf-8"))["error"])
    return found
