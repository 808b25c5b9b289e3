"""A thread that records signs of life of the evaluations in flight.

It beats on while a proposal is computed, so that nobody takes a busy study for a deserted one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from neuropareto.study.errors import StudyError
from neuropareto.study.study import Study

SECONDS = 60.0


class Pulse:
    """Context in which every ``seconds`` a heartbeat of each running trial is recorded."""

    def __init__(
        self, study: Study, running: Callable[[], tuple[int, ...]], seconds: float = SECONDS
    ) -> None:
        self._study, self._running, self._seconds = study, running, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="neuropareto-pulse", daemon=True)

    def __enter__(self) -> Pulse:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._seconds):
            for trial in self._running():
                try:
                    self._study.heartbeat(trial)
                except (ValueError, StudyError):
                    continue  # it ended meanwhile, or the disk is full: the run deals with that
