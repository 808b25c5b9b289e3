"""Flow, heat and cover rock against closed forms and independent solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve
from scipy.special import erfc

from neuropareto.problems.geothermal import (
    Geometry,
    GivenFractures,
    Outcome,
    Rates,
    Reservoir,
    Rock,
    Schedule,
    SimulationFailed,
    Well,
    Wells,
    coarse_reservoir,
)
from neuropareto.problems.geothermal.banded import factorise, pattern
from neuropareto.problems.geothermal.cover import cover
from neuropareto.problems.geothermal.flow import solve_flow
from neuropareto.problems.geothermal.fluid import Fluid
from neuropareto.problems.geothermal.heat import HeatState, heat_step
from neuropareto.space import Array

COARSE = coarse_reservoir()


def random_schedule(seed: int, intervals: int = 20, wells: int = 8) -> Array:
    return np.random.default_rng(seed).random(intervals * wells)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=8)
def test_mass_and_energy_are_conserved_and_temperatures_bounded(seed: int) -> None:
    outcome = COARSE.simulate(random_schedule(seed))
    assert outcome.balance.mass < 1e-8
    assert outcome.balance.energy < 1e-9
    assert 0.0 < outcome.balance.heat_left < 1.0
    for temperature in (outcome.temperature, outcome.production_temperature):
        assert temperature.min() >= 293.15 - 1e-6
        assert temperature.max() <= 473.15 + 1e-6


def test_mass_and_energy_are_conserved_on_the_fine_grid() -> None:
    balance = Reservoir().simulate(random_schedule(1)).balance
    assert balance.mass < 1e-8
    assert balance.energy < 1e-9


def test_wells_may_stand_still() -> None:
    still, running = np.zeros((20, 4)), np.full((20, 4), 10.0)
    nothing = COARSE.simulate(Rates(still, still))
    np.testing.assert_array_equal(nothing.objectives, 0.0)
    np.testing.assert_array_equal(nothing.temperature, 473.15)
    assert COARSE.simulate(Rates(running, still)).balance.energy < 1e-9
    # Production alone draws hot water through the boundary: nothing cools down.
    drawn = COARSE.simulate(Rates(still, running))
    np.testing.assert_allclose(drawn.production_temperature, 473.15)


def single_fracture(cell: float, days: float, injected: float = 293.15) -> Reservoir:
    """A fracture of 200 m along x in tight rock, injector and producer at its ends."""
    return Reservoir(
        geometry=Geometry(half_width=700.0, core=140.0, cell=cell, growth=1.3, cover=()),
        fractures=GivenFractures(((-100.0, 0.0, 100.0, 0.0),)),
        rock=Rock(permeability=1e-22),
        fluid=Fluid(injected=injected),
        wells=Wells(injectors=(Well(-100.0, 0.0, 0.0, 0.0),), producers=(Well(100.0, 0.0, 0.0, 0.0),)),
        schedule=Schedule(days=days, sweeps=1),
    )  # fmt: skip


def constant(reservoir: Reservoir, rate: float) -> Outcome:
    table = np.full((reservoir.schedule.intervals, 1), rate)
    return reservoir.simulate(Rates(table, table))


def test_pressure_drop_along_a_fracture_is_that_of_a_channel() -> None:
    """Delta p = q mu L / (rho k b H) for the whole length L between the wells."""
    reservoir = single_fracture(40.0, 600.0, injected=473.15)
    pressure = constant(reservoir, 0.5).pressure[-1] * 1e5
    rock = reservoir.rock
    mobility = float(reservoir.fluid.mobility(np.array(473.15)))
    channel = rock.fracture_permeability * rock.aperture * 100.0
    np.testing.assert_allclose(
        pressure[0] - pressure[1], 0.5 * 200.0 / (mobility * channel), rtol=1e-6
    )


def lauwerier_error(cell: float) -> float:
    """RMS error in K of the produced temperature against Lauwerier's solution.

    T = T0 - (T0 - Tin) erfc(lambda H L / (m c_p sqrt(kappa t))): a fracture that sweeps heat from
    rock in which conduction is perpendicular to it only, so conduction along it is taken out.
    """
    reservoir, rate = single_fracture(cell, 6000.0), 0.25
    disc = reservoir.discretisation
    c, n = disc.network.connections, disc.network.grid.n
    along = (c.right < n * n) & (c.left // n != c.right // n)
    fewer = replace(c, conductance=np.where(along, 0.0, c.conductance))
    changed = replace(disc, network=replace(disc.network, connections=fewer))
    reservoir.__dict__["discretisation"] = changed
    outcome = constant(reservoir, rate)
    conductivity = reservoir.rock.bulk_conductivity(reservoir.fluid)
    diffusivity = conductivity / reservoir.rock.bulk_heat_capacity(reservoir.fluid)
    depth = np.sqrt(diffusivity * outcome.days * 86400.0)
    swept = erfc(conductivity * 100.0 * 200.0 / (rate * 4190.0 * depth))
    exact = 473.15 - 180.0 * swept
    return float(np.sqrt(np.mean((outcome.production_temperature[:, 0] - exact) ** 2)))


def test_heat_sweep_converges_to_the_analytic_solution() -> None:
    """First order in the cell width, and within about one per cent of 180 K on the finest grid."""
    errors = [lauwerier_error(40.0 / 3**k) for k in range(3)]
    assert errors[0] / errors[1] > 2.2
    assert errors[1] / errors[2] > 2.5
    assert errors[2] < 2.5


def test_cover_rock_takes_up_heat_like_a_half_space() -> None:
    """A wall that is held at 1 K loses 2 lambda sqrt(t / (pi kappa)) on each of its two sides."""
    geometry = Geometry(thickness=1e-3, cover=(0.5,) * 40 + (2.0,) * 30)
    rock, dt, steps = Rock(), 20 * 86400.0, 100
    columns = cover(geometry, rock, dt)
    layers, wall = np.zeros((70, 1)), np.ones(1)
    for _ in range(steps):
        layers = columns.advanced(layers, wall)
    taken = float(columns.storage @ layers[:, 0])
    kappa = rock.conductivity / rock.heat_capacity
    exact = 2 * 2 * rock.conductivity * np.sqrt(steps * dt / (np.pi * kappa))
    np.testing.assert_allclose(taken, exact, rtol=0.02)


def test_no_cover_means_no_exchange() -> None:
    columns = cover(Geometry(cover=()), Rock(), 1e6)
    assert columns.loss == 0.0
    np.testing.assert_array_equal(columns.inflow(np.zeros((0, 3))), np.zeros(3))


def test_flow_equals_an_independent_sparse_solution() -> None:
    disc = COARSE.discretisation
    network, c = disc.network, disc.network.connections
    rng = np.random.default_rng(0)
    mobility = rng.uniform(1e6, 6e6, network.nodes)
    last = rng.normal(size=network.nodes)
    source = np.zeros(network.nodes)
    source[network.completions.node] = rng.normal(size=8) * 20.0
    flow = solve_flow(network, disc.pattern, mobility, source, last)
    up = np.where(last[c.left] >= last[c.right], c.left, c.right)
    t = c.transmissibility * mobility[up]
    rows = np.concatenate([c.left, c.right, c.left, c.right])
    columns = np.concatenate([c.left, c.right, c.right, c.left])
    full = coo_matrix((np.concatenate([t, t, -t, -t]), (rows, columns))).tocsr()
    free = np.flatnonzero(network.fixed == 0)
    expected = np.zeros(network.nodes)
    expected[free] = spsolve(full[free][:, free].tocsc(), source[free])
    np.testing.assert_allclose(flow.pressure, expected, rtol=1e-8, atol=1e-4)


def test_heat_step_equals_the_system_with_explicit_cover_nodes() -> None:
    """Eliminating the columns changes nothing: one sparse system over nodes and layers agrees."""
    disc, reservoir = COARSE.discretisation, COARSE
    network, c = disc.network, disc.network.connections
    rng = np.random.default_rng(1)
    size, layers, dt = network.nodes, 4, 600 * 86400.0 / reservoir.schedule.steps
    source = np.zeros(size)
    source[network.completions.node] = np.array([20.0, 5.0, 12.0, 8.0, -15.0, -9.0, -11.0, -10.0])
    flow = solve_flow(network, disc.pattern, np.full(size, 5e6), source, np.zeros(size))
    flux, sink = 4190.0 * flow.flux, 4190.0 * np.maximum(-source, 0.0)
    supply = -4190.0 * 180.0 * np.maximum(source, 0.0)
    fixed = network.fixed > 0
    state = HeatState(np.where(fixed, 0.0, rng.normal(size=size)), rng.normal(size=(layers, size)))
    state.layers[:, network.cover_area == 0] = 0.0
    found, _ = heat_step(network, disc.pattern, disc.cover, dt, (flux, sink, supply)).advanced(
        state
    )

    total = size * (1 + layers)
    left, right = c.left, c.right
    out, back = np.maximum(flux, 0.0) + c.conductance, np.maximum(-flux, 0.0) + c.conductance
    parts = [(left, left, out), (right, right, back), (left, right, -back), (right, left, -out)]
    nodes = np.arange(size)
    storage = [network.heat_capacity / dt]
    thickness = np.array([100.0, *reservoir.geometry.cover])
    for k in range(layers):
        area = 2.0 * network.cover_area
        link = reservoir.rock.conductivity * area / (0.5 * (thickness[k] + thickness[k + 1]))
        a, b = nodes + k * size, nodes + (k + 1) * size
        parts += [(a, a, link), (b, b, link), (a, b, -link), (b, a, -link)]
        storage.append(
            np.maximum(reservoir.rock.heat_capacity * area * thickness[k + 1], 1.0) / dt
        )
    held = np.concatenate(storage)
    held[:size] += sink
    every = np.arange(total)
    parts.append((every, every, held))
    rows, columns, values = (np.concatenate([p[q] for p in parts]) for q in range(3))
    full = coo_matrix((values, (rows, columns)), (total, total)).tocsr()
    old = np.concatenate([state.node, state.layers.ravel()])
    right_side = np.concatenate(storage) * old
    right_side[:size] += supply
    free = np.flatnonzero(np.concatenate([network.fixed, np.zeros(total - size)]) == 0)
    expected = np.zeros(total)
    expected[free] = spsolve(full[free][:, free].tocsc(), right_side[free])
    np.testing.assert_allclose(found.node, expected[:size], atol=1e-7)
    covered = network.cover_area > 0
    layered = expected[size:].reshape(layers, size)
    np.testing.assert_allclose(found.layers[:, covered], layered[:, covered], atol=1e-7)


def symmetric_reservoir() -> Reservoir:
    """Eight wells with the symmetry of a square, axis-parallel and diagonal fractures."""
    injectors = (
        Well(0.0, 400.0, 240.0, 0.0),
        Well(0.0, -400.0, 240.0, 0.0),
        Well(400.0, 0.0, 240.0, 90.0),
        Well(-400.0, 0.0, 240.0, 90.0),
    )
    producers = (
        Well(400.0, 400.0, 200.0, 45.0),
        Well(400.0, -400.0, 200.0, 135.0),
        Well(-400.0, 400.0, 200.0, 135.0),
        Well(-400.0, -400.0, 200.0, 45.0),
    )
    cross = GivenFractures(((-300.0, 0.0, 300.0, 0.0), (0.0, -300.0, 0.0, 300.0)))
    return Reservoir(
        geometry=Geometry(cell=60.0), fractures=cross, wells=Wells(injectors, producers)
    )


def test_a_symmetric_layout_gives_symmetric_results() -> None:
    outcome = symmetric_reservoir().simulate(np.full(160, 0.6))
    last = outcome.production_temperature[-1]
    assert last[0] < 470.0
    np.testing.assert_allclose(last, last[0], atol=1e-5)
    assert np.ptp(outcome.pressure[:, :4], axis=1).max() < 1e-5
    np.testing.assert_allclose(outcome.temperature, outcome.temperature[::-1], atol=1e-5)
    np.testing.assert_allclose(outcome.temperature, outcome.temperature.T, atol=1e-5)


def test_mirrored_rates_give_the_mirrored_field() -> None:
    reservoir = symmetric_reservoir()
    u = random_schedule(5).reshape(20, 8)
    # x -> -x swaps injectors 3 and 4, producers 1 and 3, and 2 and 4.
    mirrored = u[:, [0, 1, 3, 2, 6, 7, 4, 5]]
    one, two = reservoir.simulate(u.ravel()), reservoir.simulate(mirrored.ravel())
    np.testing.assert_allclose(one.objectives, two.objectives, rtol=1e-7)
    np.testing.assert_allclose(one.temperature, two.temperature[::-1], atol=1e-4)


def test_finer_time_steps_and_more_sweeps_change_little() -> None:
    u = random_schedule(2)
    base = Reservoir(geometry=Geometry(cell=60.0))
    finer = replace(base, schedule=Schedule(steps=24)).simulate(u).objectives
    settled = replace(base, schedule=Schedule(sweeps=5)).simulate(u).objectives
    np.testing.assert_allclose(base.simulate(u).objectives, finer, rtol=0.01)
    np.testing.assert_allclose(base.simulate(u).objectives, settled, rtol=1e-3)


def test_water_properties_match_published_values() -> None:
    """IAPWS-97 at 300 bar: 1011.5 and 884.6 kg/m3, 0.994 and 0.1415 mPa s at 20 and 200 C."""
    fluid, temperature = Fluid(), np.array([293.15, 473.15])
    density = fluid.density(temperature)
    np.testing.assert_allclose(density, [1011.5, 884.6], rtol=2e-3)
    viscosity = density / fluid.mobility(temperature)
    np.testing.assert_allclose(viscosity, [0.9945e-3, 0.1415e-3], rtol=5e-3)


def test_equations_that_cannot_be_solved_well_are_a_failed_simulation() -> None:
    open_fracture = Reservoir(geometry=Geometry(cell=60.0), rock=Rock(aperture=0.5))
    with pytest.raises(SimulationFailed, match="kg/s"):
        open_fracture.simulate(random_schedule(0))


def test_rates_beyond_all_numbers_are_a_failed_simulation() -> None:
    table = np.full((20, 4), 1e300)
    with pytest.raises(SimulationFailed):
        COARSE.simulate(Rates(table, table))


def test_a_singular_system_is_a_failed_simulation() -> None:
    order = pattern(COARSE.discretisation.network)
    nothing = np.zeros(len(order.inner))
    with pytest.raises(SimulationFailed, match="singular"):
        factorise(order, np.zeros(len(order)), nothing, nothing)


@pytest.mark.slow
def test_ranking_does_not_change_under_refinement() -> None:
    """Spearman correlation of at least 0.99 over 20 schedules between 40 m and 25 m cells."""
    from scipy.stats import spearmanr

    from neuropareto.problems.geothermal import CashFlow

    U = np.random.default_rng(0).random((20, 160))
    coarse = CashFlow(Reservoir(geometry=Geometry(cell=40.0)))(U)
    fine = CashFlow(Reservoir(geometry=Geometry(cell=25.0)))(U)
    for j in range(2):
        assert spearmanr(coarse[:, j], fine[:, j]).statistic >= 0.99
    np.testing.assert_allclose(coarse, fine, rtol=0.06)
