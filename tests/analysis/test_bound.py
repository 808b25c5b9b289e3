"""The bound as arithmetic: prefactor, bound, chance, martingale, schedule, growth."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.analysis.accumulation import cumulative, growth
from neuropareto.analysis.bound import Bound, concentration, prefactor
from neuropareto.analysis.martingale import envelope, martingale_check
from neuropareto.analysis.schedule import (
    accumulated_error,
    inducing_points,
    refined_exponent,
    sparse_error,
)

positive = st.floats(1e-3, 10.0)


def test_the_prefactor_by_hand() -> None:
    found = prefactor(sensitivity=0.02, diameter=10.0, m=2, rho=0.82)
    assert found == pytest.approx(0.2 * sqrt(2) / 0.82)
    noisy = prefactor(sensitivity=0.0, diameter=10.0, m=2, rho=0.5, noise_std=0.3, tail=exp(-4.0))
    assert noisy == pytest.approx(0.3 * 2 / 0.5)
    for rho in (0.0, 1.2):
        with pytest.raises(ValueError, match="rho"):
            prefactor(sensitivity=1.0, diameter=1.0, m=2, rho=rho)


def test_the_bound_by_hand() -> None:
    bound = Bound(best=0.4, start=0.0, errors=0.1, prefactor=0.2, rounds=50)
    assert bound.root == pytest.approx(0.2 * sqrt(2 * log(100) / 50))
    assert bound.value == pytest.approx(0.4 - 0.1 - bound.root)


def test_a_bound_that_says_something() -> None:
    bound = Bound(best=0.4246, start=0.0, errors=0.15, prefactor=0.345, rounds=100)
    assert not bound.vacuous and "says something" in bound.verdict


@pytest.mark.parametrize(
    ("errors", "factor", "blame"),
    [
        (0.5, 0.01, "the sum of errors alone"),
        (0.01, 9.0, "the root term alone"),
        (0.5, 9.0, "each"),
        (0.3, 0.6, "together"),
    ],
)
def test_a_vacuous_bound_says_so_and_names_the_term(
    errors: float, factor: float, blame: str
) -> None:
    bound = Bound(best=0.42, start=0.0, errors=errors, prefactor=factor, rounds=100)
    assert bound.vacuous and bound.value <= 0
    assert "vacuous" in bound.verdict and blame in bound.verdict


def test_what_the_start_design_has_already_is_no_news() -> None:
    news = Bound(best=0.42, start=0.0, errors=0.2, prefactor=0.0, rounds=10)
    stale = Bound(best=0.42, start=0.3, errors=0.2, prefactor=0.0, rounds=10)
    assert not news.vacuous and stale.vacuous and news.value == stale.value


@settings(deadline=None)
@given(best=positive, errors=positive, factor=positive, rounds=st.integers(3, 10_000))
def test_more_rounds_shrink_the_root_term_and_errors_lower_the_bound(
    best: float, errors: float, factor: float, rounds: int
) -> None:
    one = Bound(best, 0.0, errors, factor, rounds)
    assert Bound(best, 0.0, errors, factor, 2 * rounds).root < one.root
    assert Bound(best, 0.0, 2 * errors, factor, rounds).value < one.value


def test_a_bound_without_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        Bound(1.0, 0.0, 0.1, 0.1, 0)


def test_the_concentration_term_by_hand() -> None:
    assert concentration(0.05, 8, delta=2 * exp(-1.0)) == pytest.approx(0.05 * 4)
    with pytest.raises(ValueError, match="delta"):
        concentration(0.05, 8, delta=1.0)


def test_the_envelope_by_hand() -> None:
    assert envelope(sensitivity=0.5, worst=0.2, loss=0.05) == pytest.approx(0.15)
    noisy = envelope(sensitivity=0.0, worst=1.0, loss=0.0, noise_std=0.1, tail=2 * exp(-2.0))
    assert noisy == pytest.approx(0.2)


def test_azuma_holds_for_a_fair_coin_as_often_as_it_promises() -> None:
    rng = np.random.default_rng(0)
    gains = rng.choice([-1.0, 1.0], size=(400, 50)) + np.linspace(3, 1, 50)
    check = martingale_check(gains, 1.2, delta=0.5)
    assert check.premise and check.largest == pytest.approx(1.0, abs=0.2)
    assert abs(check.correlation) < 0.05
    sums = np.abs((gains - gains.mean(axis=0)).sum(axis=1))
    assert np.mean(sums <= check.limit) >= 0.5


def test_gains_that_make_up_for_each_other_are_no_martingale() -> None:
    rng = np.random.default_rng(0)
    early = rng.random((60, 1))
    check = martingale_check(np.hstack([early, 1 - early]), 0.1)
    assert check.correlation == pytest.approx(-1.0) and check.final == pytest.approx(0.0, abs=1e-9)
    assert not check.premise and check.conclusion


def test_one_run_has_no_expectation() -> None:
    with pytest.raises(ValueError, match="two runs"):
        martingale_check(np.ones((1, 5)), 1.0)


@settings(deadline=None)
@given(side=st.integers(1, 60))
def test_the_schedule_is_the_cube_root(side: int) -> None:
    assert inducing_points(side**3) == side
    assert inducing_points(side**3 + 1) == side + 1
    assert inducing_points(side**3, 2.0) == 2 * side


def test_the_sparse_rate_by_hand() -> None:
    value = sparse_error(np.array([4.0]), np.array([100.0]), alpha=1.0)
    assert value[0] == pytest.approx(0.25 + 0.1)


@pytest.mark.parametrize(("alpha", "power"), [(1.0, 2 / 3), (2.0, 1 / 2), (4.0, 1 / 2)])
def test_the_accumulated_error_grows_with_the_power_that_we_state(
    alpha: float, power: float
) -> None:
    # Two powers compete, so the slope is measured far out.
    T = np.array([10**6, 4 * 10**6])
    sums = [accumulated_error(int(t), alpha=alpha) for t in T]
    slope = log(sums[1] / sums[0]) / log(4)
    assert slope == pytest.approx(power, abs=0.03)
    # The printed power of the first term is (1 - alpha) / 3, which is too small for alpha = 1.
    assert alpha > 1.5 or slope > 0.5 + 0.1


def test_the_refined_rate_by_hand() -> None:
    assert refined_exponent(2.0, 4) == 0.5
    assert refined_exponent(2.0, 100) == pytest.approx(4 / 104)
    with pytest.raises(ValueError, match="beta"):
        refined_exponent(0.0, 4)


def test_growth_recognises_both_laws() -> None:
    t = np.arange(1, 31)
    logarithmic = growth(np.diff(0.3 * np.log(t) + 0.1, prepend=0.0))
    assert logarithmic.law == "log t"
    assert (logarithmic.c10, logarithmic.c11) == pytest.approx((0.3, 0.1))
    assert growth(np.full(30, 0.2)).law == "t"
    with pytest.raises(ValueError, match="three rounds"):
        growth(np.ones(2))


def test_cumulative_is_the_running_sum() -> None:
    assert cumulative(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 3.0, 6.0]
