"""What a campaign shows while it runs: a table of the workers, counts, and the time left.

:class:`Board` gathers what happens, from several threads; a :class:`Screen` shows it: ``Terminal``
as a live table, ``Lines`` as a line now and then (no terminal, logs), ``Quiet`` not at all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from neuropareto.bench.grid import Cell

EVERY_SECONDS = 10.0
Kind: TypeAlias = tuple[str, int, int, int]


@dataclass
class _Slot:
    cell: Cell
    since: float
    evaluations: int = 0


class Board:
    """Counts, running cells and the expected time of a campaign."""

    def __init__(
        self,
        title: str,
        cells: Sequence[Cell],
        skipped: int,
        workers: int,
        known: Iterable[tuple[Cell, float]] = (),
    ) -> None:
        self.title, self.skipped, self.workers = title, skipped, workers
        self.total = len(cells) + skipped
        self.done = self.failed = 0
        self.last_error = ""
        self.began_at = time.monotonic()
        self._slots: dict[int, _Slot] = {}
        self._left = Counter(_kind(cell) for cell in cells)
        self._costs: dict[Kind, list[float]] = {}
        self._lock = threading.Lock()
        for cell, seconds in known:
            self._learn(cell, seconds)

    def began(self, slot: int, cell: Cell) -> None:
        """A worker starts a cell."""
        with self._lock:
            self._slots[slot] = _Slot(cell, time.monotonic())

    def advanced(self, slot: int, evaluations: int) -> None:
        """A running cell has this many evaluations."""
        with self._lock:
            if slot in self._slots:
                self._slots[slot].evaluations = evaluations

    def ended(self, cell: Cell, event: dict[str, Any]) -> None:
        """A cell ended with this event."""
        with self._lock:
            self._slots = {k: s for k, s in self._slots.items() if s.cell != cell}
            if event["event"] in ("done", "failed", "skipped"):
                self._left[_kind(cell)] -= 1
            if event["event"] == "done":
                self.done += 1
                self._learn(cell, float(event["seconds"]))
            elif event["event"] == "failed":
                self.failed += 1
                self.last_error = f"{cell.key}: {event['error']}"
            elif event["event"] == "skipped":
                self.skipped += 1

    @property
    def left(self) -> int:
        """Cells that have not ended."""
        return self.total - self.done - self.skipped - self.failed

    def seconds_left(self) -> float | None:
        """The expected time until the end; None before the first cell has ended.

        A cell is expected to take as long as the average of its kind (algorithm and sizes), or of
        its algorithm, or of all cells, whichever is known.
        """
        with self._lock:
            if not self._costs:
                return None
            now = time.monotonic()
            total = sum(n * self._expected(kind) for kind, n in self._left.items())
            for slot in self._slots.values():
                total -= min(now - slot.since, self._expected(_kind(slot.cell)))
            return max(0.0, total) / max(1, self.workers)

    def running(self) -> list[tuple[int, Cell, int, float]]:
        """Slot, cell, evaluations and seconds of each running cell."""
        with self._lock:
            now = time.monotonic()
            return [(k, s.cell, s.evaluations, now - s.since) for k, s in self._slots.items()]

    def line(self) -> str:
        """The state in one line."""
        left = self.seconds_left()
        words = [f"{self.done} done", f"{self.skipped} found", f"{self.failed} failed"]
        return (
            f"{self.title}: {self.total - self.left}/{self.total} ({', '.join(words)}), "
            f"{duration(time.monotonic() - self.began_at)} so far, "
            + ("time left not known yet" if left is None else f"about {duration(left)} left")
        )

    def _learn(self, cell: Cell, seconds: float) -> None:
        self._costs.setdefault(_kind(cell), []).append(seconds)

    def _expected(self, kind: Kind) -> float:
        if kind not in self._costs:
            same = [c for k, c in self._costs.items() if k[0] == kind[0]]
            costs = [seconds for c in same or self._costs.values() for seconds in c]
        else:
            costs = self._costs[kind]
        return sum(costs) / len(costs)


def _kind(cell: Cell) -> Kind:
    return cell.algorithm, cell.task.d, cell.task.m, cell.task.budget


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Screen(Protocol):
    """Shows a board while the context lasts."""

    def shown(self, board: Board) -> Any:
        """A context manager."""
        ...


class Quiet:
    """Shows nothing."""

    @contextmanager
    def shown(self, board: Board) -> Iterator[None]:
        """Nothing."""
        yield


class Lines:
    """A line every few seconds and one at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def shown(self, board: Board) -> Iterator[None]:
        """Print lines from a thread of its own."""
        over = threading.Event()

        def speak() -> None:
            while not over.wait(EVERY_SECONDS):
                self._console.print(board.line(), highlight=False, soft_wrap=True)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._console.print(board.line(), highlight=False, soft_wrap=True)


class Terminal:
    """A live table of the workers over a bar with counts and the time left."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def shown(self, board: Board) -> Iterator[None]:
        """Redraw twice a second."""
        with Live(
            get_renderable=lambda: self.picture(board),
            console=self._console,
            refresh_per_second=2,
        ):
            yield

    def picture(self, board: Board) -> Group:
        """The table and the bar."""
        table = RichTable(title=board.title, title_justify="left", expand=False)
        for name in ("worker", "problem", "d", "m", "algorithm", "seed", "evaluations", "time"):
            right = name in ("worker", "d", "m", "seed", "evaluations", "time")
            table.add_column(name, justify="right" if right else "left")
        for slot, cell, evaluations, seconds in sorted(board.running(), key=lambda row: row[0]):
            task = cell.task
            table.add_row(
                str(slot + 1), task.name, str(task.d), str(task.m), cell.algorithm, str(cell.seed),
                f"{evaluations}/{task.budget}", duration(seconds),
            )  # fmt: skip
        bar = ProgressBar(total=max(1, board.total), completed=board.total - board.left, width=60)
        below = RichTable.grid()
        below.add_row(bar)
        parts: list[Any] = [table, below, Text(board.line())]
        if board.last_error:
            parts.append(Text(f"last failure: {board.last_error}", style="red"))
        return Group(*parts)


def screen_for(console: Console) -> Screen:
    """A live table on a terminal, lines elsewhere."""
    return Terminal(console) if console.is_terminal else Lines(console)
