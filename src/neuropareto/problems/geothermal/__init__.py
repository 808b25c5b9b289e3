"""A fractured geothermal reservoir: 160 rates, short-term revenue against the long term.

In the order in which a simulation flows:

- the parts: ``Geometry``, ``NaturalFractures`` or ``GivenFractures``, ``Rock``, ``Fluid``, ``Wells``
  (of ``Well``), ``Schedule``, ``Economics``; together a ``Reservoir``
- ``edfm``: cells, fracture segments and connections; ``flow``, ``heat``, ``cover``: the equations
- ``Reservoir.simulate(u or Rates) -> Outcome``; a solve that fails raises ``SimulationFailed``
- the problems: ``geothermal``, ``geothermal_coarse``, ``reservoir_problem``, ``structured_front``
- ``high_fidelity``: the same schedules in open-darts; ``figures``: pictures
"""

from neuropareto.problems.geothermal.banded import SimulationFailed
from neuropareto.problems.geothermal.case import (
    CashFlow,
    coarse_reservoir,
    geothermal,
    geothermal_coarse,
    reservoir_problem,
    structured_front,
)
from neuropareto.problems.geothermal.economics import Economics, Ledger
from neuropareto.problems.geothermal.fluid import Fluid, Rock
from neuropareto.problems.geothermal.fractures import GivenFractures, NaturalFractures
from neuropareto.problems.geothermal.geometry import Geometry
from neuropareto.problems.geothermal.reservoir import Reservoir
from neuropareto.problems.geothermal.schedule import Schedule
from neuropareto.problems.geothermal.simulate import Balance, Outcome
from neuropareto.problems.geothermal.wells import Rates, Well, Wells

__all__ = [
    "Balance",
    "CashFlow",
    "Economics",
    "Fluid",
    "Geometry",
    "GivenFractures",
    "Ledger",
    "NaturalFractures",
    "Outcome",
    "Rates",
    "Reservoir",
    "Rock",
    "Schedule",
    "SimulationFailed",
    "Well",
    "Wells",
    "coarse_reservoir",
    "geothermal",
    "geothermal_coarse",
    "reservoir_problem",
    "structured_front",
]
