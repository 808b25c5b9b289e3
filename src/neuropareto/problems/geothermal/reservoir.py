"""The reservoir as one frozen value, made of parts that can each be replaced.

``Reservoir()`` is the case; ``dataclasses.replace`` or the constructor changes a part. What does
not depend on the schedule is built once, on first use, and kept with the value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy.typing as npt

from neuropareto.problems.geothermal import edfm
from neuropareto.problems.geothermal.banded import pattern
from neuropareto.problems.geothermal.cover import cover
from neuropareto.problems.geothermal.economics import Economics
from neuropareto.problems.geothermal.fluid import Fluid, Rock
from neuropareto.problems.geothermal.fractures import Fractures, NaturalFractures
from neuropareto.problems.geothermal.geometry import Geometry
from neuropareto.problems.geothermal.schedule import Schedule
from neuropareto.problems.geothermal.simulate import Discretisation, Outcome, simulate
from neuropareto.problems.geothermal.wells import Rates, Wells


@dataclass(frozen=True)
class Reservoir:
    """A fractured hot reservoir with wells, a schedule and prices; the defaults are the case."""

    geometry: Geometry = field(default_factory=Geometry)
    fractures: Fractures = field(default_factory=NaturalFractures)
    rock: Rock = field(default_factory=Rock)
    fluid: Fluid = field(default_factory=Fluid)
    wells: Wells = field(default_factory=Wells)
    schedule: Schedule = field(default_factory=Schedule)
    economics: Economics = field(default_factory=Economics)

    @property
    def n_variables(self) -> int:
        """One variable per interval and well."""
        return self.schedule.intervals * len(self.wells.all)

    @property
    def names(self) -> tuple[str, ...]:
        """``injection_1[1]``, ..., ``production_4[20]``: well and interval, in order of u."""
        intervals = range(1, self.schedule.intervals + 1)
        return tuple(f"{name}[{k}]" for k in intervals for name in self.wells.names)

    @cached_property
    def discretisation(self) -> Discretisation:
        """Nodes, connections and the solver's pattern; built once."""
        network = edfm.build(self.geometry, self.fractures, self.rock, self.fluid, self.wells)
        dt = self.schedule.seconds / self.schedule.steps
        return Discretisation(network, pattern(network), cover(self.geometry, self.rock, dt))

    def rates(self, schedule: npt.ArrayLike | Rates) -> Rates:
        """The rates in kg/s of a decision u (t w,) in [0, 1]; :class:`Rates` are only checked.

        Raises ValueError for a schedule of the wrong length, outside its bounds or with NaN.
        """
        t, i, p = self.schedule.intervals, len(self.wells.injectors), len(self.wells.producers)
        if not isinstance(schedule, Rates):
            return self.wells.rates(schedule, t)
        got = (*schedule.injection.shape, schedule.production.shape[1])
        if got != (t, i, p):
            raise ValueError(
                f"Rates must cover {t} intervals, {i} injectors and {p} producers, got "
                f"{got[0]}, {got[1]} and {got[2]}."
            )
        return schedule

    def simulate(self, schedule: npt.ArrayLike | Rates) -> Outcome:
        """Simulate a decision u (t w,) in [0, 1], or :class:`Rates` in kg/s.

        Raises ValueError as :meth:`rates` does, and :class:`SimulationFailed` if the equations
        cannot be solved to the promised accuracy.
        """
        return simulate(self, self.rates(schedule))
