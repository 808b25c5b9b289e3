"""What earlier rounds remember and have learned: the history of proposals, joined with the archive.

Sections "Sliding window statistics" and "Online training". Notation: b remembered proposals that
have been evaluated meanwhile, f features, w the window. Features stay as they were when a point
was proposed; only its gains are read from the archive of today.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.acquisition import History, Signals
from neuropareto.acquisition.history import window_statistics
from neuropareto.archive import Archive, Gains
from neuropareto.memory import Memory, part
from neuropareto.space import Array


@dataclass(frozen=True)
class Window:
    """How far a round looks back: ``gains`` arrivals for the statistics, ``buffer`` to learn from.

    The paper calls w "moderate" and gives none (decision D-6); its buffers hold 500 to 2000.
    """

    gains: int = 20
    buffer: int = 1000


@dataclass(frozen=True, eq=False)
class Lessons:
    """What b evaluated proposals teach: features (b, f), estimates (b,), gains; and the window."""

    features: Array
    estimate: Array
    gains: Gains
    window: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Past:
    """The history of proposals as of the start of a round.

    ``elsewhere`` counts the points that were proposed in :mod:`neuropareto.retreat`, without the
    model; they are not part of the history.
    """

    history: History
    elsewhere: int = 0

    @classmethod
    def recalled(cls, memory: Memory | None, archive: Archive, pending: Array, k: int) -> Past:
        """The history in ``memory``; its points moved to where they were really evaluated."""
        history = History.recalled(part(memory, "history"), archive.d, 3 * archive.m + k + 2)
        elsewhere = int((part(memory, "retreat") or {}).get("proposed", 0))
        back = len(history) + len(pending) + elsewhere
        evaluated = archive.U[-back:] if len(history) else archive.U[:0]
        settled = history.settled(np.concatenate([evaluated, pending, archive.failed]))
        return cls(settled, elsewhere)

    def lessons(self, archive: Archive, window: Window) -> Lessons:
        """The remembered proposals whose outcome is known, with their gains."""
        rows, places = self.history.matched(archive.U)
        back = max(window.gains, len(archive) - int(places.min(initial=len(archive))))
        gains = archive.gains(back)
        first = len(archive) - len(gains.hypervolume)
        return Lessons(
            self.history.features[rows],
            self.history.estimate[rows],
            Gains(gains.hypervolume[places - first], gains.diversity[places - first]),
            window_statistics(gains.hypervolume, window.gains),
        )

    def extended(self, U: Array, signals: Signals, window: Window) -> History:
        """The history with this round's proposals, as they look now."""
        return self.history.extended(U, signals.features(), signals.estimate, window.buffer)
