"""The time loop: flow and heat in turn for every interval, then the account of the run.

Within an interval rates are constant. The first sweep takes viscosities at the temperature of the
interval's beginning, each further one at the mean of beginning and (last) end; heat is marched from
the beginning again each time. What is checked on the way: mass at every node of every flow, energy
at every node of every step, and over the whole run heat stored against heat that came and went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuropareto.problems.geothermal.banded import Pattern, SimulationFailed
from neuropareto.problems.geothermal.cover import Cover
from neuropareto.problems.geothermal.economics import Ledger, ledger, pumping_power
from neuropareto.problems.geothermal.edfm import Network
from neuropareto.problems.geothermal.flow import Flow, solve_flow
from neuropareto.problems.geothermal.heat import HeatState, heat_step
from neuropareto.problems.geothermal.wells import Rates
from neuropareto.space import Array

if TYPE_CHECKING:
    from neuropareto.problems.geothermal.reservoir import Reservoir

ENERGY_TOLERANCE = 1e-9
"""The largest error of the energy balance of a run, as a share of the produced heat."""


@dataclass(frozen=True)
class Balance:
    """How well a run conserves what it must, and what it leaves behind.

    ``mass`` is the largest imbalance of any node in kg/s; ``energy`` the error of the energy
    balance of the run as a share of the produced heat; ``heat_left`` the heat above the injected
    temperature that remains in the reservoir, as a share of the initial one.
    """

    mass: float
    energy: float
    heat_left: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a simulation found.

    ``objectives`` (2,) f1 and f2 in M$ (maximise); ``rates`` in kg/s; ``ledger`` per interval;
    ``days`` (s,) and ``production_temperature`` (s, p) in K at the end of every time step;
    ``pressure`` (t, w) at the bottom of the wells in bar, injectors first, for every interval;
    ``temperature`` (n, n) in K at the end, first index along x; ``balance``.
    """

    objectives: Array
    rates: Rates
    ledger: Ledger
    days: Array
    production_temperature: Array
    pressure: Array
    temperature: Array
    balance: Balance

    @property
    def cash(self) -> Array:
        """Cash per interval, (t,), in M$."""
        return self.ledger.cash


@dataclass(frozen=True, eq=False)
class Discretisation:
    """All that does not depend on the rates: nodes and connections, band pattern, cover columns."""

    network: Network
    pattern: Pattern
    cover: Cover


@dataclass(frozen=True, eq=False)
class _Interval:
    """One interval: its flow and mobility (N,), the end state, the deviations (s, p) of the
    produced temperature in K, and the heat in J that came in through wells and ring.
    """

    flow: Flow
    mobility: Array
    end: HeatState
    produced: Array
    gained: float


def simulate(reservoir: Reservoir, rates: Rates) -> Outcome:
    """Run ``rates`` and account for them.

    Raises :class:`SimulationFailed` if a solve fails or the energy balance does not close.
    """
    size = reservoir.discretisation.network.nodes
    state = HeatState(np.zeros(size), np.zeros((len(reservoir.geometry.cover), size)))
    pressure, runs = np.zeros(size), []
    signed = np.hstack([rates.injection, -rates.production])
    # Numbers that overflow are found by the checks after every solve; a warning adds nothing.
    with np.errstate(all="ignore"):
        for rate in signed:
            run = _interval(reservoir, state, pressure, rate)
            state, pressure = run.end, run.flow.pressure
            runs.append(run)
        return _outcome(reservoir, rates, signed, runs)


def _interval(reservoir: Reservoir, start: HeatState, pressure: Array, signed: Array) -> _Interval:
    """March one interval with the signed rates (w,) of the wells, injection > 0."""
    disc, rock, fluid = reservoir.discretisation, reservoir.rock, reservoir.fluid
    network, node = disc.network, disc.network.completions.node
    source = network.summed(node, signed)
    sink = fluid.heat_capacity * network.summed(node, np.maximum(-signed, 0.0))
    cold = fluid.heat_capacity * (fluid.injected - rock.temperature)
    supply = cold * network.summed(node, np.maximum(signed, 0.0))
    dt = reservoir.schedule.seconds / reservoir.schedule.steps
    end = start
    for _ in range(reservoir.schedule.sweeps):
        mobility = fluid.mobility(rock.temperature + 0.5 * (start.node + end.node))
        flow = solve_flow(network, disc.pattern, mobility, source, pressure)
        pressure = flow.pressure
        carried = (fluid.heat_capacity * flow.flux, sink, supply)
        step = heat_step(network, disc.pattern, disc.cover, dt, carried)
        end, produced, gained = start, [], 0.0
        for _ in range(reservoir.schedule.steps):
            end, gain = step.advanced(end)
            produced.append(end.node[node[len(reservoir.wells.injectors) :]])
            gained += dt * gain
    return _Interval(flow, mobility, end, np.array(produced), gained)


def _outcome(reservoir: Reservoir, rates: Rates, signed: Array, runs: list[_Interval]) -> Outcome:
    rock, fluid, schedule = reservoir.rock, reservoir.fluid, reservoir.schedule
    where = reservoir.discretisation.network.completions
    # The water in a well has its own temperature: cold in injectors, that of the node in producers.
    split = rates.injection.shape[1]
    mobility = np.array([run.mobility[where.node] for run in runs])
    mobility[:, :split] = fluid.mobility(np.array(fluid.injected))
    excess = np.array([run.flow.pressure[where.node] for run in runs])
    excess += signed / (mobility * where.index)
    power = pumping_power(
        rates.injection,
        rates.production,
        excess[:, :split],
        -excess[:, split:],
        reservoir.economics.efficiency,
    )
    produced = np.concatenate([run.produced for run in runs]) + rock.temperature
    lift = (produced - fluid.injected).reshape(schedule.intervals, schedule.steps, -1).mean(axis=1)
    heat = schedule.seconds * fluid.heat_capacity * (rates.production * lift).sum(axis=1)
    injected = rates.injection.sum(axis=1)
    account = ledger(heat, power, injected, schedule.seconds, reservoir.economics)
    chilled = fluid.heat_capacity * (rock.temperature - fluid.injected) * injected
    n = reservoir.discretisation.network.grid.n
    return Outcome(
        objectives=account.objectives(schedule, reservoir.economics),
        rates=rates,
        ledger=account,
        days=schedule.times,
        production_temperature=produced,
        pressure=(rock.pressure + excess) / 1e5,
        temperature=rock.temperature + runs[-1].end.node[: n * n].reshape(n, n),
        # Heat is measured against what is produced, unless next to nothing is.
        balance=_balance(
            reservoir, runs, max(float(heat.sum()), schedule.seconds * chilled.sum() / 100)
        ),
    )


def _balance(reservoir: Reservoir, runs: list[_Interval], moved: float) -> Balance:
    disc, end = reservoir.discretisation, runs[-1].end
    capacity = disc.network.heat_capacity
    in_reservoir = float(capacity @ end.node)
    in_cover = float(disc.network.cover_area @ (disc.cover.storage @ end.layers))
    error = in_reservoir + in_cover - sum(run.gained for run in runs)
    energy = abs(error) / max(moved, 1.0)
    if not energy <= ENERGY_TOLERANCE:
        raise SimulationFailed(
            f"The energy balance is off by {energy:.2g} of the produced heat, more than "
            f"{ENERGY_TOLERANCE:g}."
        )
    free = disc.network.fixed == 0
    initial = float(capacity[free].sum()) * (reservoir.rock.temperature - reservoir.fluid.injected)
    return Balance(
        mass=max(run.flow.imbalance for run in runs),
        energy=energy,
        heat_left=1.0 + in_reservoir / initial if initial else 1.0,
    )
