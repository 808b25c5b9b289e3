"""Scores of normal forecasts against quadrature and SciPy, recalibration, forecasts in notes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from neuropareto.analysis.runs import Run
from neuropareto.analysis.surrogate_calibration import (
    LEVELS,
    Forecasts,
    covered,
    crps,
    forecasts_of,
    joined,
    measured,
    nlpd,
    recalibrated,
    scores,
    table,
)
from neuropareto.bench.layout import render
from neuropareto.surrogate.structured.recalibration import conformal_factor


def simulated(n: int, claimed: float = 1.0, rounds: int = 10) -> Forecasts:
    """n outcomes with standard deviation 1 around means whose model claims ``claimed``."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=n)
    batch = np.repeat(np.arange(rounds), n // rounds).astype(np.float64)
    return Forecasts(mean, np.full(n, claimed), mean + rng.normal(size=n), batch)


@pytest.mark.parametrize(
    ("mean", "std", "x"), [(0.0, 1.0, 0.3), (2.0, 0.5, 4.0), (-1.0, 3.0, -1.0)]
)
def test_crps_is_the_integral_of_its_definition(mean: float, std: float, x: float) -> None:
    below = quad(lambda y: norm.cdf(y, mean, std) ** 2, mean - 12 * std, x)[0]
    above = quad(lambda y: norm.sf(y, mean, std) ** 2, x, mean + 12 * std)[0]
    found = crps(np.array([mean]), np.array([std]), np.array([x]))[0]
    assert found == pytest.approx(below + above, abs=1e-6)


def test_nlpd_is_the_log_density() -> None:
    mean, std, x = np.array([0.0, 1.0]), np.array([2.0, 0.1]), np.array([1.0, 1.3])
    assert nlpd(mean, std, x) == pytest.approx(-norm.logpdf(x, mean, std))


def test_a_right_model_covers_what_it_claims() -> None:
    found = scores(simulated(20000))
    assert np.array(found.coverage) == pytest.approx(LEVELS, abs=0.015)
    assert found.within_90 == pytest.approx(0.9, abs=0.01)
    assert found.sharpness == 1.0 and found.rmse == pytest.approx(1.0, abs=0.02)
    assert found.nlpd == pytest.approx(0.5 * np.log(2 * np.pi) + 0.5, abs=0.02)
    assert found.crps == pytest.approx(1 / np.sqrt(np.pi), abs=0.01)


def test_a_model_that_is_too_sure_covers_too_little_and_is_mended() -> None:
    raw = simulated(4000, claimed=0.4)
    assert scores(raw).within_90 == pytest.approx(2 * norm.cdf(0.4 * norm.ppf(0.95)) - 1, abs=0.03)
    mended = recalibrated(raw)
    first = raw.batch == 0
    assert (mended.std[first] == raw.std[first]).all(), "nothing is known before the first round"
    assert mended.std[~first] == pytest.approx(1.0, rel=0.12)
    assert scores(mended).nlpd < scores(raw).nlpd


def test_recalibration_never_looks_ahead() -> None:
    raw = simulated(200)
    later = Forecasts(raw.mean, raw.std, raw.observed + 50.0 * (raw.batch == 9), raw.batch)
    assert (recalibrated(raw).std == recalibrated(later).std).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9]), st.integers(0, 2**31))
def test_the_factor_covers_the_residuals_it_was_made_of(n: int, level: float, seed: int) -> None:
    z = np.random.default_rng(seed).standard_t(3, size=n)
    scaled = z / conformal_factor(z, level)
    # The largest one lies on the border, where rounding decides.
    assert covered(scaled * (1 - 1e-12), np.array([level]))[0] >= min(level, 1.0) - 1e-9
    assert conformal_factor(np.empty(0)) == 1.0


def a_run(*, replaced: int = 0) -> Run:
    F = np.arange(28.0).reshape(14, 2)
    notes = tuple(
        {
            "evaluations": e,
            "predicted_mean": (F[e : e + 2] + 1.0).tolist(),
            "predicted_epistemic": [[3.0, 0.0]] * 2,
            "predicted_aleatoric": [[1.0, 0.0]] * 2,
            "repeats_replaced": replaced if e == 12 else 0,
        }
        for e in (10, 12)
    )
    return Run("toy", "neuropareto", 0, notes, F, 10, 1.0)


def test_forecasts_meet_the_evaluations_they_were_made_for() -> None:
    one, two = forecasts_of(a_run())
    unit = np.std(np.arange(0.0, 28.0, 2.0))
    assert one.observed * unit == pytest.approx([20.0, 22.0, 24.0, 26.0])
    assert (one.mean - one.observed) * unit == pytest.approx(1.0)
    assert one.std * unit == pytest.approx(2.0) and one.batch.tolist() == [0, 0, 1, 1]
    assert (two.std > 0).all(), "a certain model must not divide by zero"
    assert len(forecasts_of(a_run(replaced=1))[0].mean) == 2
    assert len(joined([one, two]).mean) == 8


def test_the_table_has_both_kinds_of_intervals() -> None:
    other = replace(a_run(), task="other", seed=1)
    found = measured([a_run(), other, Run("toy", "nsga2", 0, (), a_run().F, 10, 1.0)])
    assert list(found.raw) == [(t, "neuropareto") for t in ("toy", "other", "all")]
    assert found.raw["all", "neuropareto"].n == 16 and len(found.rounds["toy", "neuropareto"]) == 2
    text = render(table(found), "text")
    assert text.count("recalibrated") == 3 and "in 90%" in text


def test_refusals() -> None:
    with pytest.raises(ValueError, match="No run noted predictions"):
        measured([Run("toy", "nsga2", 0, (), a_run().F, 10, 1.0)])
    empty = np.empty(0)
    with pytest.raises(ValueError, match="at least one forecast"):
        scores(Forecasts(empty, empty, empty, empty))
    with pytest.raises(ValueError, match="above 0"):
        scores(Forecasts(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1)))
