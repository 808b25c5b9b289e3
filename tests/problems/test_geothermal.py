"""The geothermal case as a problem: variables, rates, money, bad input, the structured front."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.problem import Problem
from neuropareto.problems.geothermal import (
    CashFlow,
    Economics,
    Geometry,
    GivenFractures,
    Ledger,
    Rates,
    Reservoir,
    Schedule,
    Well,
    Wells,
    coarse_reservoir,
    geothermal,
    geothermal_coarse,
    reservoir_problem,
    structured_front,
)
from neuropareto.problems.geothermal.economics import ledger, pumping_power
from neuropareto.space import Array

COARSE = coarse_reservoir()
MIDDLE = np.full(160, 0.5)


@pytest.fixture(scope="module")
def coarse() -> Problem:
    return geothermal_coarse()


def test_the_named_problems_are_the_case() -> None:
    for problem, name in (
        (geothermal(), "geothermal"),
        (geothermal_coarse(), "geothermal-coarse"),
    ):
        assert problem.name == name
        assert problem.d == 160
        assert problem.n_objectives == 2
        assert problem.directions == ("maximize", "maximize")
        assert problem.reference_point is not None
        np.testing.assert_array_equal(problem.reference_point, [20.0, 20.0])
        assert problem.space.names[0] == "injection_1[1]"
        assert problem.space.names[8] == "injection_1[2]"
        assert problem.space.names[-1] == "production_4[20]"
        np.testing.assert_array_equal(problem.space.lower, np.zeros(160))
        np.testing.assert_array_equal(problem.space.upper, np.ones(160))


def test_rows_are_simulated_one_by_one(coarse: Problem) -> None:
    X = np.random.default_rng(0).random((3, 160))
    F = coarse(X)
    assert isinstance(F, np.ndarray) and F.shape == (3, 2)
    np.testing.assert_array_equal(F[1], COARSE.simulate(X[1]).objectives)
    np.testing.assert_array_equal(F[:1], coarse(X[:1]))


def test_the_problem_travels_to_other_processes(coarse: Problem) -> None:
    twin = pickle.loads(pickle.dumps(coarse))
    np.testing.assert_array_equal(twin(MIDDLE[None]), coarse(MIDDLE[None]))


def test_the_outcome_has_the_promised_shapes() -> None:
    outcome = COARSE.simulate(MIDDLE)
    n = COARSE.discretisation.network.grid.n
    assert outcome.objectives.shape == (2,)
    assert outcome.cash.shape == (20,)
    assert outcome.days[-1] == pytest.approx(12000.0)
    assert outcome.production_temperature.shape == (len(outcome.days), 4)
    assert outcome.pressure.shape == (20, 8)
    assert outcome.temperature.shape == (n, n)
    assert (outcome.pressure[:, :4] > outcome.pressure[:, 4:]).all()
    assert (outcome.production_temperature[-1] < outcome.production_temperature[0]).all()


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_producers_share_what_is_injected(seed: int) -> None:
    rates = Reservoir().rates(np.random.default_rng(seed).random(160))
    assert rates.injection.min() >= 2.0 and rates.injection.max() <= 50.0
    total = rates.injection.sum(axis=1)
    np.testing.assert_allclose(rates.production.sum(axis=1), total)
    # The smallest share is that of weight 0.2 beside three of weight 1.
    assert (rates.production.min(axis=1) >= total * 0.2 / 3.2 - 1e-9).all()


def test_rates_at_the_bounds() -> None:
    wells = Wells()
    np.testing.assert_allclose(wells.rates(np.zeros(160), 20).injection, 2.0)
    np.testing.assert_allclose(wells.rates(np.ones((20, 8)), 20).production, 50.0)


def test_rates_in_kg_per_s_are_the_same_as_their_decision() -> None:
    by_rates = COARSE.simulate(COARSE.rates(MIDDLE)).objectives
    np.testing.assert_array_equal(COARSE.simulate(MIDDLE).objectives, by_rates)


def test_money_is_what_the_formulas_say() -> None:
    """One MWh of heat, pumping and a tonne of water, by hand."""
    table = ledger(
        np.array([7.2e9]), np.array([3.6e9 / 100.0]), np.array([5.0]), 100.0, Economics()
    )
    np.testing.assert_allclose(table.heat, 2.0)
    np.testing.assert_allclose(table.pumping, 1.0)
    np.testing.assert_allclose(table.water, 0.5)
    np.testing.assert_allclose(table.cash, (20.0 * 2.0 - 100.0 - 0.125) / 1e6)
    power = pumping_power(
        np.array([[10.0, 10.0]]),
        np.array([[9.0]]),
        np.array([[3e5, -1e5]]),
        np.array([[2e5]]),
        0.5,
    )
    np.testing.assert_allclose(power, (10.0 * 3e5 / 1000.0 + 9.0 * 2e5 / 900.0) / 0.5)


def test_objectives_are_discounted_early_and_plain_late_cash() -> None:
    cash = np.arange(1.0, 21.0)
    table = Ledger(cash, cash, cash, cash)
    f1, f2 = table.objectives(Schedule(), Economics())
    years = (np.arange(10) + 0.5) * 600.0 / 365.25
    assert f1 == pytest.approx(sum(c / 1.08**y for c, y in zip(cash[:10], years, strict=True)))
    assert f2 == pytest.approx(cash[10:].sum())


def test_the_two_objectives_are_in_conflict() -> None:
    low = COARSE.simulate(np.repeat([0.0, 1.0], 80)).objectives
    high = COARSE.simulate(np.repeat([1.0, 1.0], 80)).objectives
    assert high[0] > 3 * low[0]
    assert low[1] > 2 * high[1]


def test_objectives_are_smooth_along_lines() -> None:
    rng = np.random.default_rng(3)
    a, b, s = rng.random(160), rng.random(160), np.linspace(0.0, 1.0, 15)
    F = CashFlow(COARSE)(a + s[:, None] * (b - a))
    for j in range(2):
        fitted = np.polyval(np.polyfit(s, F[:, j], 4), s)
        rough = float(np.sqrt(np.mean((F[:, j] - fitted) ** 2)))
        assert rough < 2e-4 * abs(F[:, j].mean())


def bad(change: float, at: int = 3) -> Array:
    u = MIDDLE.copy()
    u[at] = change
    return u


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (bad(1.2), r"\[0, 1\].*1\.2.*injection_4\[1\]"),
        (bad(-1e-9, at=13), r"\[0, 1\].*production_2\[2\]"),
        (bad(float("nan")), "nan"),
        (bad(float("inf")), "inf"),
        (np.full(159, 0.5), "160 values"),
        (np.full((8, 20), 0.5), "160 values"),
        (np.array(["a"] * 160), "real numbers"),
    ],
)
def test_a_bad_schedule_gets_a_clear_error(schedule: Array, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        COARSE.simulate(schedule)
    with pytest.raises(ValueError):
        geothermal_coarse()(np.asarray(schedule)[None])


def test_bad_rates_get_a_clear_error() -> None:
    table = np.full((20, 4), 10.0)
    with pytest.raises(ValueError, match="finite values >= 0"):
        Rates(-table, table)
    with pytest.raises(ValueError, match="as many intervals"):
        Rates(table[:5], table)
    with pytest.raises(ValueError, match="20 intervals, 4 injectors and 4 producers"):
        COARSE.simulate(Rates(table[:, :3], table))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Economics(heat=-1.0),
        lambda: Economics(efficiency=0.0),
        lambda: Schedule(early=20),
        lambda: Schedule(days=0.0),
        lambda: Schedule(steps=0),
    ],
)
def test_impossible_prices_and_schedules_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError):
        make()


def test_a_reservoir_of_ones_own() -> None:
    reservoir = Reservoir(
        geometry=Geometry(cell=80.0),
        fractures=GivenFractures(((-300.0, 100.0, 300.0, -100.0),)),
        wells=Wells(
            injectors=(Well(-200.0, 0.0, 150.0, 60.0),),
            producers=(Well(200.0, 0.0, 150.0, 60.0), Well(0.0, 300.0, 100.0, 0.0)),
            high=30.0,
        ),
        schedule=Schedule(intervals=6, days=365.25, early=3),
        economics=Economics(heat=30.0),
    )
    problem = reservoir_problem(reservoir, "two producers", (0.0, 0.0))
    assert problem.d == 18
    F = problem(np.random.default_rng(0).random((2, 18)))
    assert isinstance(F, np.ndarray) and np.isfinite(F).all()


def test_dearer_heat_is_worth_more() -> None:
    rich = Reservoir(COARSE.geometry, schedule=COARSE.schedule, economics=Economics(heat=40.0))
    assert (rich.simulate(MIDDLE).objectives > 1.9 * COARSE.simulate(MIDDLE).objectives).all()


def test_the_structured_front_is_early_level_times_late_level() -> None:
    X, F = structured_front(3, COARSE)
    assert X.shape == (9, 160) and F.shape == (9, 2)
    assert {(row[0], row[-1]) for row in X} == {(a, b) for a in (0, 0.5, 1) for b in (0, 0.5, 1)}
    assert all(len(set(row[:80])) == 1 and len(set(row[80:])) == 1 for row in X)
    np.testing.assert_array_equal(F[5], COARSE.simulate(X[5]).objectives)
    with pytest.raises(ValueError, match="n >= 2"):
        structured_front(1, COARSE)
