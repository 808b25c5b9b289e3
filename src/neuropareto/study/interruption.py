"""Ctrl-C and SIGTERM as a wish that is granted at the next safe point.

The first signal only sets a flag, so that no bookkeeping is cut in half, except while something
long and repeatable goes on (a proposal), which it breaks off. A second Ctrl-C raises
KeyboardInterrupt anywhere. A SIGTERM is passed on to whoever handled it before, after everything
is in order. Outside the main thread nothing is installed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any


class _BrokenOffError(BaseException):
    """Somebody wants an end in the middle of something that can be repeated."""


class Interruption:
    """Context in which ``requested`` tells whether somebody wants the run to end."""

    def __init__(self) -> None:
        self.requested = False
        self._terminated = self._breakable = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        """Listen to SIGINT and SIGTERM."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._heard)
        return self

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        self._terminated = self._terminated or number == signal.SIGTERM
        if self._breakable:
            self._breakable = False
            raise _BrokenOffError

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """A block that a signal ends at once; what follows it sees ``requested``."""
        with suppress(_BrokenOffError):
            self._breakable = True
            try:
                yield
            finally:
                self._breakable = False

    def __exit__(self, *args: object) -> None:
        """Give the signals back, and a SIGTERM to whom it belongs."""
        for number, handler in self._before.items():
            # None: the handler was not installed from Python and cannot be put back by it.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if self._terminated:
            signal.raise_signal(signal.SIGTERM)
