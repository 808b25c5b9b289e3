"""Time: intervals of constant rates, and the steps in which each of them is simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.checks import positive
from neuropareto.space import Array

DAY = 86400.0
"""Seconds."""


@dataclass(frozen=True)
class Schedule:
    """Time: ``intervals`` of ``days`` with constant rates; the first ``early`` count for f1.

    ``steps`` are the time steps of the heat equations in an interval, ``sweeps`` how often flow
    and heat are solved in turn for each interval.
    """

    intervals: int = 20
    days: float = 600.0
    early: int = 10
    steps: int = 6
    sweeps: int = 2

    def __post_init__(self) -> None:
        positive(self.days, "Schedule.days")
        if not 0 < self.early < self.intervals or self.steps < 1 or self.sweeps < 1:
            raise ValueError(
                f"Schedule needs 0 < early < intervals, steps >= 1 and sweeps >= 1, got "
                f"early={self.early}, intervals={self.intervals}, steps={self.steps}, "
                f"sweeps={self.sweeps}."
            )

    @property
    def seconds(self) -> float:
        """The length of an interval in seconds."""
        return self.days * DAY

    @property
    def times(self) -> Array:
        """The end of every time step in days, (intervals x steps,)."""
        ends = np.arange(1, self.intervals * self.steps + 1, dtype=np.float64)
        return ends * (self.days / self.steps)
