"""The RE suite of real-world problems and its constrained half CRE (Tanabe, Ishibuchi 2020).

RE problems have no constraints: where the original had some, the sum of their violations is the
last objective. CRE problems keep the constraints, G = -slack <= 0. Notation: X (n, d), F (n, m),
G (n, c). Reference points are ideal + 1.1 (nadir - ideal); the ideal and nadir points are those
published with the suite where we could read them, and otherwise come from runs of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuropareto.problem import Outcome, Problem
from neuropareto.problems import machines, vehicles
from neuropareto.problems.sizes import fixed
from neuropareto.space import Array, Space

Formula = Callable[[Array], tuple[Array, Array]]
Bounds = tuple[tuple[float, float], ...]

_ROOT = float(np.sqrt(2.0))
_SIDE_IMPACT: Bounds = (
    (0.5, 1.5), (0.45, 1.35), (0.5, 1.5), (0.5, 1.5), (0.875, 2.625), (0.4, 1.2), (0.4, 1.2),
)  # fmt: skip
_TWO_BARS: Bounds = ((1e-5, 100.0), (1e-5, 100.0), (1.0, 3.0))
_WELDED: Bounds = ((0.125, 5.0), (0.1, 10.0), (0.1, 10.0), (0.125, 5.0))
_BRAKE: Bounds = ((55.0, 80.0), (75.0, 110.0), (1000.0, 3000.0), (11.0, 20.0))
_REDUCER: Bounds = (
    (2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5),
)  # fmt: skip
_CARRIER: Bounds = (
    (150.0, 274.32), (20.0, 32.31), (13.0, 25.0), (10.0, 11.71), (14.0, 18.0), (0.63, 0.75),
)  # fmt: skip
_DRAINAGE: Bounds = ((0.01, 0.45), (0.01, 0.1), (0.01, 0.1))


@dataclass(frozen=True)
class Design:
    """One problem of the suite: formula, box, ideal and nadir point of its front."""

    formula: Formula
    bounds: Bounds
    ideal: tuple[float, ...]
    nadir: tuple[float, ...]

    @property
    def reference_point(self) -> Array:
        """ideal + 1.1 (nadir - ideal); (m,)."""
        ideal, nadir = np.array(self.ideal), np.array(self.nadir)
        point: Array = ideal + 1.1 * (nadir - ideal)
        return point


@dataclass(frozen=True, eq=False)
class Unconstrained:
    """The objective of an RE problem: the violations, if any, summed as the last objective."""

    formula: Formula

    def __call__(self, X: Array) -> Array:
        """X (n, d) -> F (n, m)."""
        F, slacks = self.formula(np.asarray(X, dtype=np.float64))
        if slacks.shape[1] == 0:
            return F
        return np.column_stack([F, np.maximum(0.0, -slacks).sum(axis=1)])


@dataclass(frozen=True, eq=False)
class Constrained:
    """The objective of a CRE problem: (F, G) with G = -slack."""

    formula: Formula

    def __call__(self, X: Array) -> Outcome:
        """X (n, d) -> F (n, m), G (n, c)."""
        F, slacks = self.formula(np.asarray(X, dtype=np.float64))
        return F, -slacks


DESIGNS: dict[str, Design] = {
    "re21": Design(
        machines.four_bar_truss,
        ((1.0, 3.0), (_ROOT, 3.0), (_ROOT, 3.0), (1.0, 3.0)),
        ideal=(1237.8414230005742, 0.002761423749158419),
        nadir=(2886.3695604236013, 0.04),
    ),
    "re22": Design(
        machines.reinforced_beam,
        ((0.2, 15.0), (0.0, 20.0), (0.0, 40.0)),
        ideal=(5.88, 0.0),
        nadir=(361.24, 180.01547),
    ),
    "re23": Design(
        machines.pressure_vessel,
        ((1.0, 100.0), (1.0, 100.0), (10.0, 200.0), (10.0, 240.0)),
        ideal=(15.901801, 0.0),
        nadir=(5850.3845, 1288669.8),
    ),
    "re24": Design(
        machines.hatch_cover,
        ((0.5, 4.0), (0.5, 50.0)),
        ideal=(60.5, 0.0),
        nadir=(481.608088535, 44.2819047619),
    ),
    "re25": Design(
        machines.coil_spring,
        ((1.0, 70.0), (0.6, 3.0), (0.09, 0.5)),
        ideal=(0.037591349, 0.0),
        nadir=(0.40397037, 2224669.4),
    ),
    "re31": Design(
        machines.two_bar_truss,
        _TWO_BARS,
        ideal=(5.5373192e-05, 1.0 / 3.0, 0.0),
        nadir=(500.002668442, 8246211.25124, 19359919.7502),
    ),
    "re32": Design(
        machines.welded_beam,
        _WELDED,
        ideal=(0.010205497, 0.00043904, 0.0),
        nadir=(37.7831517014, 17561.6, 425062976.628),
    ),
    "re33": Design(
        machines.disc_brake,
        _BRAKE,
        ideal=(-0.721525, 1.13907203907, 0.0),
        nadir=(5.3067, 3.12833430979, 25.0),
    ),
    "re34": Design(
        vehicles.crashworthiness,
        ((1.0, 3.0),) * 5,
        ideal=(1661.7078, 6.1428, 0.0394),
        nadir=(1695.2002035, 10.7454, 0.264),
    ),
    "re35": Design(
        machines.speed_reducer,
        _REDUCER,
        ideal=(2352.3461, 694.23359, 0.0),
        nadir=(6634.56208, 1695.96387746, 397.358927317),
    ),
    "re36": Design(
        machines.gear_train,
        ((12.0, 60.0),) * 4,
        ideal=(7.89473684213e-05, 12.0, 0.0),
        nadir=(5.931, 56.0, 0.355720675227),
    ),
    "re37": Design(
        vehicles.rocket_injector,
        ((0.0, 1.0),) * 4,
        ideal=(0.00889341391106, 0.00488, -0.4315),
        nadir=(0.98949120096, 0.956587924661, 0.987530948586),
    ),
    "re41": Design(
        vehicles.side_impact,
        _SIDE_IMPACT,
        ideal=(15.576004, 3.58525, 10.61064375, 0.0),
        nadir=(42.768012, 4.42725, 13.09138125, 9.49401929991),
    ),
    "re42": Design(
        vehicles.bulk_carrier,
        _CARRIER,
        ideal=(-2756.2590400638524, 3962.557843228888, 1947.880856925791, 0.0),
        nadir=(-1010.5229595219643, 13827.138456300128, 2611.9668107424536, 12.437669929732023),
    ),
    "re61": Design(
        vehicles.storm_drainage,
        _DRAINAGE,
        ideal=(63840.2774, 30.0, 285346.896494, 183749.967061, 7.22222222222, 0.0),
        nadir=(83060.0282, 1350.0, 2853469.06, 16027067.6, 357719.742, 99660.3359),
    ),
    "re91": Design(
        vehicles.car_cab,
        _SIDE_IMPACT,
        ideal=(
            15.549754,
            0.2679155,
            0.35378456,
            0.31806453,
            0.64874793,
            0.65929728,
            0.8963125,
            0.8390846,
            0.82257006,
        ),
        nadir=(
            42.689262,
            1.0299035,
            0.92752556,
            0.78976985,
            1.4706287,
            1.1397553,
            1.1068125,
            1.0227891,
            1.0227484,
        ),
    ),
    "cre21": Design(
        machines.two_bar_truss, _TWO_BARS, ideal=(0.0040, 1712.33), nadir=(0.1, 100000.0)
    ),
    "cre22": Design(
        machines.welded_beam, _WELDED, ideal=(1.72485, 0.00043904), nadir=(35.3076, 0.0144597)
    ),
    "cre23": Design(machines.disc_brake, _BRAKE, ideal=(1.274, 1.13907), nadir=(5.3067, 3.02817)),
    "cre24": Design(
        machines.speed_reducer, _REDUCER, ideal=(2771.92, 694.706), nadir=(5777.92, 1300.0)
    ),
    "cre25": Design(
        machines.gear_train, ((12.0, 60.0),) * 4, ideal=(7.8947e-05, 23.0), nadir=(3.25739, 49.0)
    ),
    "cre31": Design(
        vehicles.side_impact,
        _SIDE_IMPACT,
        ideal=(23.5857, 3.58525, 10.6106),
        nadir=(42.768, 4.0, 12.5212),
    ),
    "cre32": Design(
        vehicles.bulk_carrier,
        _CARRIER,
        ideal=(-1941.86, 4880.11, 2440.84),
        nadir=(-691.564, 10723.1, 4925.96),
    ),
    "cre51": Design(
        vehicles.storm_drainage,
        _DRAINAGE,
        ideal=(63840.28, 40.4619, 285346.9, 183750.0, 7.22222),
        nadir=(75026.4, 1350.0, 2853469.0, 7847329.0, 25000.0),
    ),
}
NAMES = tuple(DESIGNS)


def engineering(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """One of the RE and CRE problems by name; d and m are those of the suite.

    Source: Tanabe, Ishibuchi, "An easy-to-use real-world multi-objective problem suite", Applied
    Soft Computing 89, 2020. Raises ValueError if another d or m is asked for.
    """
    design = DESIGNS[name]
    fixed(name, "d", d, len(design.bounds))
    fixed(name, "m", m, len(design.ideal))
    is_constrained = name.startswith("cre")
    n_slacks = design.formula(np.array(design.bounds).mean(axis=1)[None])[1].shape[1]
    return Problem(
        name=name,
        space=Space.of(list(design.bounds)),
        n_objectives=len(design.ideal),
        objective=(Constrained if is_constrained else Unconstrained)(design.formula),
        n_constraints=n_slacks if is_constrained else 0,
        reference_point=design.reference_point,
    )
