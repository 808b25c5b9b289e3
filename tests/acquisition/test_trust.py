"""Trust: partial correlation against regression residuals, and what earns a weight."""

from __future__ import annotations

import numpy as np
import pytest

from neuropareto.acquisition import EarnedTrust, FullTrust
from neuropareto.acquisition.trust import partial_correlation


def test_partial_correlation_is_that_of_regression_residuals() -> None:
    rng = np.random.default_rng(0)
    given = rng.normal(size=200)
    a, b = given + rng.normal(size=200), given + rng.normal(size=200)
    a, b, given = (v - v.mean() for v in (a, b, given))
    left = [v - given * np.polyfit(given, v, 1)[0] for v in (a, b)]
    assert partial_correlation(a, b, given) == pytest.approx(np.corrcoef(left)[0, 1], abs=1e-6)
    assert partial_correlation(a, b, np.zeros(200)) == pytest.approx(np.corrcoef(a, b)[0, 1])


def test_nothing_left_to_vary_is_no_correlation() -> None:
    given = np.linspace(-1, 1, 30)
    assert partial_correlation(2 * given, np.sin(9 * given), given) == 0.0
    assert partial_correlation(np.zeros(30), given, np.zeros(30)) == 0.0


def test_the_later_half_is_tested_in_consecutive_blocks() -> None:
    trust = EarnedTrust(blocks=4)
    for b in (20, 37, 41, 1000):
        blocks = trust.tested(b)
        assert np.concatenate(blocks).tolist() == list(range(b // 2, b))
        assert min(len(rows) for rows in blocks) >= 5 and len(blocks) <= 4
    assert len(trust.tested(20)) == 2
    assert FullTrust().tested(100) == []


def test_knowledge_earns_weight_and_repeating_the_estimate_does_not() -> None:
    rng = np.random.default_rng(0)
    trust = EarnedTrust()
    known = rng.normal(size=400)
    news = rng.normal(size=400)
    outcome = known + news
    blocks = trust.tested(400)
    assert trust.weight(blocks, news, outcome, known) > 0.8
    assert trust.weight(blocks, 2 * known + 1, outcome, known) == 0.0
    assert trust.weight(blocks, -news, outcome, known) == 0.0
    assert trust.weight(blocks, np.zeros(400), outcome, known) == 0.0


def test_noise_seldom_earns_weight_and_then_little() -> None:
    rng = np.random.default_rng(0)
    trust = EarnedTrust()
    weights = []
    for _ in range(300):
        predicted, outcome, known = rng.normal(size=(3, 60))
        weights.append(trust.weight(trust.tested(60), predicted, outcome, known))
    assert np.mean(np.array(weights) > 0) < 0.1
    assert np.mean(weights) < 0.01


def test_a_trend_shared_by_all_candidates_of_a_round_earns_nothing() -> None:
    rng = np.random.default_rng(0)
    trust = EarnedTrust(blocks=10)
    round_ = np.repeat(np.arange(20), 10)
    trend = -round_.astype(float)
    outcome = trend + 0.01 * rng.normal(size=200)
    blocks = [np.arange(i, i + 10) for i in range(100, 200, 10)]
    assert trust.weight(blocks, trend, outcome, np.zeros(200)) == 0.0


def test_full_trust_and_refusals() -> None:
    nothing = np.zeros(0)
    assert FullTrust().weight([], nothing, nothing, nothing) == 1.0
    with pytest.raises(ValueError, match="n_min"):
        EarnedTrust(n_min=3)
