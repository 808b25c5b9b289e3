"""What a run of a study shows while it goes on: evaluations, running, failed, hypervolume, time left.

``Live`` draws one line on a terminal and writes a line now and then elsewhere; ``Quiet`` is its
null object. The hypervolume is asked for at most twice a second, because it costs time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Watcher(Protocol):
    """Somebody who follows a run."""

    def __enter__(self) -> Watcher:
        """Start."""
        ...

    def __exit__(self, *args: object) -> None:
        """Stop, whatever happened."""
        ...

    def update(
        self, done: int, *, running: int, failed: int, hypervolume: Callable[[], float]
    ) -> None:
        """The state of the run now."""
        ...

    def say(self, text: str) -> None:
        """A remark for the user."""
        ...


class Quiet:
    """Shows nothing."""

    def __enter__(self) -> Quiet:
        """Start."""
        return self

    def __exit__(self, *args: object) -> None:
        """Stop."""

    def update(
        self, done: int, *, running: int, failed: int, hypervolume: Callable[[], float]
    ) -> None:
        """Say nothing."""

    def say(self, text: str) -> None:
        """Say nothing."""


class Live:
    """A live line for a run of ``total`` evaluations of which ``before`` were known at its start."""

    def __init__(
        self, total: int, before: int, title: str, console: Console | None = None
    ) -> None:
        self._console = console or Console(stderr=True)
        self._total, self._before, self._title = total, before, title
        self._began = time.monotonic()
        self._shown = self._spoke = -1e9
        self._over = False
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(
            escape(title), total=total, completed=before, state="starting"
        )

    def __enter__(self) -> Live:
        """Draw."""
        self._progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        """Leave the last state on the screen."""
        self._progress.stop()

    def update(
        self, done: int, *, running: int, failed: int, hypervolume: Callable[[], float]
    ) -> None:
        """Show the state, not too often."""
        now, over = time.monotonic(), done >= self._total
        if self._over or (now - self._shown < 0.5 and not over):
            return
        self._shown, self._over = now, over
        state = f"running {running}  failed {failed}  hypervolume {hypervolume():.5g}"
        self._progress.update(self._task, completed=done, state=state)
        if not self._console.is_terminal and (now - self._spoke > 10.0 or over):
            self._spoke = now
            fresh = done - self._before
            left = (now - self._began) / fresh * (self._total - done) if fresh else float("nan")
            about = f"  about {left:.0f} s left" if fresh and not over else ""
            self._print(f"{self._title}: {done}/{self._total}  {state}{about}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
