"""The named problems, and the structured front against which every optimizer is measured.

160 variables u in [0, 1]: for each of 20 intervals of 600 days, 4 injection rates and 4 shares of
production (:mod:`wells` has the map to kg/s). Two objectives to maximise, in M$: f1, the discounted
cash of the first 10 intervals, and f2, the cash of the last 10. The case follows the lineage of
fractured-reservoir studies with time-varying rates; geometry and objectives are its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problem import Problem
from neuropareto.problems.geothermal.geometry import Geometry
from neuropareto.problems.geothermal.reservoir import Reservoir
from neuropareto.problems.geothermal.schedule import Schedule
from neuropareto.space import Array, Real, Space

REFERENCE = (20.0, 20.0)
"""The reference point of the hypervolume, (f1, f2) in M$."""


@dataclass(frozen=True)
class CashFlow:
    """The objective of a reservoir: X (n, t w) in [0, 1] to F (n, 2), f1 and f2 in M$."""

    reservoir: Reservoir

    def __call__(self, X: Array) -> Array:
        """Simulate every row. Raises as :meth:`Reservoir.simulate` does."""
        rows = np.atleast_2d(np.asarray(X))
        return np.array([self.reservoir.simulate(u).objectives for u in rows]).reshape(-1, 2)


def reservoir_problem(
    reservoir: Reservoir, name: str, reference_point: tuple[float, float] = REFERENCE
) -> Problem:
    """A reservoir of one's own as a problem: maximise f1 and f2 over its schedule.

    Variables are called ``injection_1[1]``, ..., ``production_4[20]`` and lie in [0, 1].
    """
    return Problem(
        name,
        Space(tuple(Real(0.0, 1.0, name=variable) for variable in reservoir.names)),
        2,
        CashFlow(reservoir),
        directions=("maximize", "maximize"),
        reference_point=np.array(reference_point),
    )


def geothermal(cell: float = 40.0) -> Problem:
    """The geothermal case with cells of about ``cell`` metres in the core."""
    return reservoir_problem(Reservoir(geometry=Geometry(cell=cell)), "geothermal")


def coarse_reservoir() -> Reservoir:
    """The reservoir with 60 m cells and one flow solution an interval: about 5 times faster."""
    return Reservoir(geometry=Geometry(cell=60.0), schedule=Schedule(sweeps=1))


def geothermal_coarse() -> Problem:
    """The geothermal case on a coarse grid, for tests and demonstrations."""
    return reservoir_problem(coarse_reservoir(), "geothermal-coarse")


def structured_front(n: int = 7, reservoir: Reservoir | None = None) -> tuple[Array, Array]:
    """The yardstick: n early levels x n late levels, the same for all wells; (X, F).

    X (n n, d) and F (n n, 2). These few schedules, which any engineer would try first, beat
    hundreds of random ones, so a hypervolume means little until it is compared with theirs.
    """
    if n < 2:
        raise ValueError(f"A structured front needs n >= 2 levels, got {n}.")
    chosen = reservoir if reservoir is not None else Reservoir()
    schedule, wells = chosen.schedule, len(chosen.wells.all)
    early = np.arange(schedule.intervals) < schedule.early
    levels = np.linspace(0.0, 1.0, n)
    first, second = (grid.ravel() for grid in np.meshgrid(levels, levels, indexing="ij"))
    rows = np.where(early[None, :], first[:, None], second[:, None])
    X = np.repeat(rows, wells, axis=1)
    return X, CashFlow(chosen)(X)
