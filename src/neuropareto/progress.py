"""Progress of a run on the terminal: evaluations, hypervolume, failures, time left.

``Bar`` draws a live bar with rich, on a terminal only; elsewhere it writes a line now and then.
``Silent`` is its null object.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Reporter(Protocol):
    """What a run tells about itself while it goes on."""

    def __enter__(self) -> Reporter:
        """Start reporting."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop reporting, whatever happened."""
        ...

    def update(self, done: int, *, hypervolume: float, front: int, failed: int) -> None:
        """``done`` evaluations are finished."""
        ...


class Silent:
    """Reports nothing."""

    def __enter__(self) -> Silent:
        """Start."""
        return self

    def __exit__(self, *args: object) -> None:
        """Stop."""

    def update(self, done: int, *, hypervolume: float, front: int, failed: int) -> None:
        """Say nothing."""


class Bar:
    """A live progress bar for ``total`` evaluations; plain lines where there is no terminal."""

    def __init__(self, total: int, title: str, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._total, self._title = total, title
        self._live = self._console.is_terminal
        self._spoke = self._began = time.monotonic()
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._progress.add_task(title, total=total, state="starting")

    def __enter__(self) -> Bar:
        """Draw."""
        self._progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()

    def update(self, done: int, *, hypervolume: float, front: int, failed: int) -> None:
        """Show ``done`` of ``total`` with the present hypervolume and front."""
        state = f"hypervolume {hypervolume:.5g}  front {front}" + (
            f"  [red]failed {failed}[/red]" if failed else ""
        )
        self._progress.update(self._task, completed=done, state=state)
        now = time.monotonic()
        if not self._live and (now - self._spoke > 10.0 or done >= self._total):
            self._spoke = now
            left = (now - self._began) / max(done, 1) * (self._total - done)
            self._console.print(
                f"{self._title}: {done}/{self._total}  {state}  about {left:.0f} s left",
                highlight=False,
            )
