"""Wells, and the map from a decision in [0, 1] to injection and production rates.

Notation: t intervals, i injectors, p producers, w = i + p wells. A decision u (t w,) lists interval
by interval first the injectors, then the producers. Injection q = low + (high - low) u in kg/s.
Producers share what is injected, q_p = Q v / sum(v) with v = floor + (1 - floor) u: production
that is free would draw hot water from the boundary for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuropareto.problems.geothermal.checks import not_negative, positive
from neuropareto.space import Array, numbers


@dataclass(frozen=True)
class Well:
    """A vertical well at (x, y) in metres, in the middle of its own stimulated fracture.

    ``fracture`` is the length of that fracture in metres and ``angle`` its direction in degrees
    from the x axis; length 0 completes the well in the natural fracture that passes through it.
    """

    x: float
    y: float
    fracture: float
    angle: float

    def __post_init__(self) -> None:
        not_negative(self.fracture, "Well.fracture")
        if not np.isfinite([self.x, self.y, self.angle]).all():
            raise ValueError(
                f"A well needs finite x, y and angle, got ({self.x}, {self.y}, {self.angle})."
            )


INJECTORS = (
    Well(0.0, 400.0, fracture=260.0, angle=30.0),
    Well(0.0, -400.0, fracture=220.0, angle=30.0),
    Well(400.0, 0.0, fracture=240.0, angle=120.0),
    Well(-400.0, 0.0, fracture=280.0, angle=120.0),
)
PRODUCERS = (
    Well(400.0, 400.0, fracture=200.0, angle=120.0),
    Well(400.0, -400.0, fracture=320.0, angle=30.0),
    Well(-400.0, 400.0, fracture=180.0, angle=30.0),
    Well(-400.0, -400.0, fracture=300.0, angle=120.0),
)


@dataclass(frozen=True)
class Wells:
    """The wells and the range of their rates: injection in [``low``, ``high``] kg/s per well.

    ``floor`` in (0, 1] is the smallest weight of a producer beside 1, the largest.
    """

    injectors: tuple[Well, ...] = INJECTORS
    producers: tuple[Well, ...] = PRODUCERS
    low: float = 2.0
    high: float = 50.0
    floor: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "injectors", tuple(self.injectors))
        object.__setattr__(self, "producers", tuple(self.producers))
        if not (self.injectors and self.producers):
            raise ValueError("Wells needs at least one injector and one producer.")
        not_negative(self.low, "Wells.low")
        positive(self.high, "Wells.high")
        if self.low >= self.high or not 0.0 < self.floor <= 1.0:
            raise ValueError(
                f"Wells needs low < high and a floor in (0, 1], got low={self.low}, "
                f"high={self.high}, floor={self.floor}."
            )

    @property
    def all(self) -> tuple[Well, ...]:
        """All wells, injectors first."""
        return self.injectors + self.producers

    @property
    def names(self) -> tuple[str, ...]:
        """``injection_1``, ..., ``production_1``, ... in the order of a decision."""
        injection = [f"injection_{k + 1}" for k in range(len(self.injectors))]
        return (*injection, *(f"production_{k + 1}" for k in range(len(self.producers))))

    def rates(self, u: npt.ArrayLike, intervals: int) -> Rates:
        """The rates of a decision ``u`` (t w,) or (t, w) in [0, 1].

        Raises ValueError for another length, values outside [0, 1], NaN or infinity.
        """
        w, i = len(self.all), len(self.injectors)
        table = numbers(u, "A schedule")
        if table.shape not in ((intervals * w,), (intervals, w)):
            raise ValueError(
                f"A schedule must have {intervals * w} values ({intervals} intervals x {w} wells), "
                f"got shape {table.shape}; give one value in [0, 1] per interval and well."
            )
        bad = ~((table >= 0.0) & (table <= 1.0))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"A schedule must lie in [0, 1], got {table.ravel()[k]} for "
                f"{self.names[k % w]}[{k // w + 1}]; clip or correct it."
            )
        table = table.reshape(intervals, w)
        injection = self.low + (self.high - self.low) * table[:, :i]
        weight = self.floor + (1.0 - self.floor) * table[:, i:]
        share = weight / weight.sum(axis=1, keepdims=True)
        return Rates(injection, injection.sum(axis=1, keepdims=True) * share)


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates in kg/s: ``injection`` (t, i) and ``production`` (t, p), finite and >= 0."""

    injection: Array
    production: Array

    def __post_init__(self) -> None:
        for name in ("injection", "production"):
            table = numbers(getattr(self, name), f"Rates.{name}")
            if table.ndim != 2 or not (np.isfinite(table) & (table >= 0)).all():
                raise ValueError(
                    f"Rates.{name} must be a table (intervals, wells) of finite values >= 0 in "
                    f"kg/s, got shape {table.shape}; correct negative or missing values."
                )
            table.setflags(write=False)
            object.__setattr__(self, name, table)
        if len(self.injection) != len(self.production):
            raise ValueError(
                f"Rates needs as many intervals of injection as of production, got "
                f"{len(self.injection)} and {len(self.production)}."
            )
