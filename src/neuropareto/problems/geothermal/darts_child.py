"""Run schedules in open-darts. A script for another interpreter; the package never imports it.

Usage: python -I darts_child.py input.npz output.npz. The input holds a connection list, node
properties, wells and rates in SI units; the output holds, per run and interval, the means of the
produced temperature in K, of the produced enthalpy above that of the injected water in J/kg, and of
the bottom-hole pressure in Pa. A run that fails is NaN, with its reason.
The state is (pressure, temperature), one liquid phase, IAPWS-97 region 1.
"""

from __future__ import annotations

# First of all imports: the engines need the newer libstdc++ that comes with them, and whatever is
# loaded before them (numpy) would bring the system's.
import darts.engines as engines  # type: ignore[import-not-found]  # isort: skip

import sys
import time
from typing import Any

import numpy as np
from darts.linear_solvers import CPRSolverSpec, GMRESSolverSpec  # type: ignore[import-not-found]
from darts.models.darts_model import DartsModel  # type: ignore[import-not-found]
from darts.nonlinear_solvers import NewtonSolver  # type: ignore[import-not-found]
from darts.physics.base.physics import PhysicsBase  # type: ignore[import-not-found]
from darts.physics.base.property_container import (  # type: ignore[import-not-found]
    PropertyContainer,
)
from darts.physics.properties.basic import ConstFunc  # type: ignore[import-not-found]
from darts.physics.properties.flash import SinglePhase  # type: ignore[import-not-found]
from darts.reservoirs.reservoir_base import ReservoirBase  # type: ignore[import-not-found]
from iapws._iapws import _Viscosity  # type: ignore[import-not-found]
from iapws.iapws97 import _Region1  # type: ignore[import-not-found]

MOLAR_MASS = 18.015
BAR, DAY = 1e5, 86400.0
# m3 of k A / d to darts' m3/day at 1 bar and 1 cP; W/K to kJ/day/K.
DARCY, FOURIER = BAR * DAY / 1e-3, DAY / 1e3
LARGEST_UPDATE = 40.0
"""No Newton step may change a pressure by more bar, or a temperature by more kelvin."""
BALANCE = 1e-6
"""A step has converged when its mass and energy residuals are this share of what the wells move."""


class _Water:
    """IAPWS-97 region 1 at one state, remembered: darts asks for its properties one by one."""

    def __init__(self) -> None:
        self._state: tuple[float, float] = (0.0, 0.0)
        self._found: dict[str, float] = {}

    def at(self, pressure: float, temperature: float) -> dict[str, float]:
        """v, h, ... at a pressure in bar and a temperature in K, clipped to the liquid."""
        if (pressure, temperature) != self._state:
            self._state = (pressure, temperature)
            self._found = _Region1(
                min(max(temperature, 273.16), 520.0), min(max(pressure, 50.0), 990.0) / 10.0
            )
        return self._found


class _Density:
    def __init__(self, water: _Water) -> None:
        self.water = water

    def evaluate(self, pressure: float, temperature: float, x: Any) -> float:
        """kg/m3."""
        return 1.0 / self.water.at(pressure, temperature)["v"]


class _Enthalpy:
    evaluate_PT_bool = False

    def __init__(self, water: _Water) -> None:
        self.water = water

    def evaluate(self, pressure: float, temperature: float, x: Any) -> float:
        """kJ/kmol."""
        return self.water.at(pressure, temperature)["h"] * MOLAR_MASS


class _ViscosityOf:
    def evaluate(self, pressure: float, temperature: float, x: Any, density: float) -> float:
        """cP."""
        return float(_Viscosity(density, min(max(temperature, 273.16), 520.0))) * 1e3


class _Mesh(ReservoirBase):  # type: ignore[misc]
    """A reservoir that is nothing but a connection list."""

    def __init__(self, timer: Any, case: Any) -> None:
        super().__init__(timer)
        self.case = case

    def discretize(self, verbose: bool = False) -> Any:
        """The mesh of the connection list."""
        case, mesh = self.case, engines.conn_mesh()
        mesh.init(
            engines.index_vector(case["left"].astype(np.int32)),
            engines.index_vector(case["right"].astype(np.int32)),
            engines.value_vector(case["transmissibility"] * DARCY),
            engines.value_vector(case["conductance"] * FOURIER),
        )
        # All conduction is in the connections: (1 - porosity) rock_cond is 1 everywhere, and the
        # fluid conducts nothing.
        for name, values in {
            "poro": case["porosity"],
            "volume": case["volume"],
            "depth": np.zeros(len(case["volume"])),
            "heat_capacity": case["rock_heat_capacity"] / 1e3,
            "rock_cond": 1.0 / (1.0 - case["porosity"]),
            "op_num": np.zeros(len(case["volume"])),
        }.items():
            np.array(getattr(mesh, name), copy=False)[:] = values
        return mesh

    def set_wells(self, verbose: bool = False) -> None:
        """One perforation a well, from its body segment into its node."""
        for k, (node, index) in enumerate(
            zip(self.case["well_node"], self.case["well_index"], strict=True)
        ):
            self.add_well(f"W{k}")
            self.wells[-1].segment_volume *= 100.0
            self.wells[-1].perforations = [(0, int(node), float(index * DARCY), 0.0)]


class _Newton(NewtonSolver):  # type: ignore[misc]
    """Newton with bounded updates, converged when mass and energy balance."""

    throughput: tuple[float, float] = (1.0, 1.0)

    def apply_corrections(self) -> None:
        """Clip every update of pressure and temperature."""
        update = np.array(self.engine.dX, copy=False)
        np.clip(update, -LARGEST_UPDATE, LARGEST_UPDATE, out=update)

    def compute_reservoir_residual(self) -> float:
        """Mass or energy that is missing in all nodes, as a share of a step's throughput.

        Fixed nodes are left out: they are so large that rounding alone exceeds the tolerance.
        """
        free = self.model.case["fixed"] == 0
        residual = np.abs(np.array(self.engine.RHS, copy=False)).reshape(-1, 2)
        return float((residual[: len(free)][free].sum(axis=0) / self.throughput).max())


class _Model(DartsModel):  # type: ignore[misc]
    def __init__(self, case: Any) -> None:
        super().__init__()
        self.case = case
        self.reservoir = _Mesh(self.timer, case)
        water = _Water()
        container = PropertyContainer(["water"], ["H2O"], np.array([MOLAR_MASS]), rock_comp=1e-6)
        container.flash_ev = SinglePhase(1)
        container.density_ev = {"water": _Density(water)}
        container.viscosity_ev = {"water": _ViscosityOf()}
        container.enthalpy_ev = {"water": _Enthalpy(water)}
        container.conductivity_ev = {"water": ConstFunc(0.0)}
        container.rel_perm_ev = {"water": ConstFunc(1.0)}
        self.physics = PhysicsBase(
            ["H2O"],
            ["water"],
            self.timer,
            axes_step=[10.0, 2.5],
            axes_origin=[1.0, 273.15],
            state_spec=PhysicsBase.StateSpecification.PT,
        )
        self.physics.add_property_region(container)

    def set_initial_conditions(self) -> None:
        """Uniform pressure and temperature."""
        self.physics.set_initial_conditions_from_array(
            self.reservoir.mesh,
            {
                "pressure": float(self.case["pressure"]) / BAR,
                "temperature": float(self.case["temperature"]),
            },
        )

    def set_solver(self) -> None:
        """Bounded Newton and CPR-preconditioned GMRES."""
        self.nonlinear_solver = _Newton(
            tolerance=BALANCE, well_tolerance_multiplier=100.0, max_iterations=20
        )
        self.linear_solver.spec = GMRESSolverSpec(
            tolerance=1e-8, max_iterations=200, prec=CPRSolverSpec()
        )
        super().set_solver()

    def set_well_controls(self) -> None:
        """Any rates; every interval sets its own."""
        self.control(self.case["injection"][0, 0], self.case["production"][0, 0])

    def control(self, injection: Any, production: Any) -> None:
        """Mass rates in kg/s for all wells."""
        kind = engines.well_control_iface.MASS_RATE
        for k, well in enumerate(self.reservoir.wells):
            inject = k < len(injection)
            rate = injection[k] if inject else production[k - len(injection)]
            self.physics.set_well_controls(
                wctrl=well.control,
                control_type=kind,
                is_inj=inject,
                target=float(rate) * DAY,
                phase_name="water",
                inj_composition=[] if inject else None,
                inj_temp=float(self.case["injected"]) if inject else None,
            )


def _enthalpy(temperature: Any, pressure: float) -> Any:
    """Specific enthalpy in J/kg at temperatures in K and a pressure in Pa."""
    return np.array([_Region1(float(t), pressure / 1e6)["h"] * 1e3 for t in temperature])


def _interval(model: Any, t: float, days: float, step: float) -> tuple[Any, Any, Any]:
    """March one interval; time means over the wells of pressure, temperature and enthalpy gain."""
    case, solver = model.case, model.nonlinear_solver
    heads = [well.well_head_idx for well in model.reservoir.wells]
    bodies = [well.well_body_idx for well in model.reservoir.wells]
    # Water is compared at one pressure: what it gained below ground is heat, not compression.
    surface = float(case["pressure"])
    cold = _enthalpy([float(case["injected"])], surface)
    pressure, temperature, gain = (np.zeros(len(heads)) for _ in range(3))
    done, dt = 0.0, min(5.0, step)
    while done < days - 1e-9:
        dt = min(dt, days - done)
        solver.throughput = case["throughput_per_day"] * dt
        if not model.run_timestep(dt, t + done, 0):
            dt /= 4.0
            if dt < 1e-3:
                raise RuntimeError(f"no convergence at day {t + done:.1f}")
            continue
        done += dt
        state = np.array(model.physics.engine.X, copy=False).reshape(-1, 2)
        pressure += dt * state[bodies, 0] * BAR
        temperature += dt * state[heads, 1]
        gain += dt * (_enthalpy(state[heads, 1], surface) - cold)
        dt = min(3.0 * dt, step)
    return pressure / days, temperature / days, gain / days


def main(source: str, target: str) -> None:
    """Run every schedule of ``source`` and write the results to ``target``."""
    with np.load(source, allow_pickle=False) as data:
        case: dict[str, Any] = dict(data)
    runs, intervals, i = case["injection"].shape
    wells = len(case["well_node"])
    days, step = float(case["days"]), float(case["step"])
    case["throughput_per_day"] = np.ones(2)
    model = _Model(case)
    model.init(verbose=0)
    temperature = np.full((runs, intervals, wells - i), np.nan)
    gain = temperature.copy()
    pressure = np.full((runs, intervals, wells), np.nan)
    seconds, reasons = np.zeros(runs), []
    for r in range(runs):
        began, reason = time.perf_counter(), ""
        model.reset()
        try:
            for k in range(intervals):
                injection, production = case["injection"][r, k], case["production"][r, k]
                moved = max(float(injection.sum() + production.sum()), 1e-3) * DAY
                # kmol and kJ a day: water that is as hot as the reservoir.
                case["throughput_per_day"] = np.array([moved / MOLAR_MASS, moved * 850.0])
                model.control(injection, production)
                found = _interval(model, k * days, days, step)
                pressure[r, k], temperature[r, k], gain[r, k] = (
                    found[0],
                    found[1][i:],
                    found[2][i:],
                )
        except Exception as error:  # one schedule that fails must not lose the others
            reason = f"{type(error).__name__}: {error}"
            temperature[r], gain[r], pressure[r] = np.nan, np.nan, np.nan
        reasons.append(reason)
        seconds[r] = time.perf_counter() - began
        print(f"run {r + 1}/{runs}: {seconds[r]:.1f} s {reason}", flush=True)
    np.savez(
        target,
        temperature=temperature,
        enthalpy_gain=gain,
        pressure=pressure,
        seconds=seconds,
        reasons=np.array(reasons, dtype=np.str_),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
