"""Static-EHVI by hand; the surrogate's own estimate."""

from __future__ import annotations

import numpy as np
import pytest

from neuropareto.acquisition import Gains, Signals, StaticEHVI, SurrogateEstimate

SIGNALS = Signals(
    mean=np.zeros((2, 2)),
    epistemic=np.array([[1.0, 2.0], [0.5, 0.5]]),
    aleatoric=np.array([[0.1, 0.2], [0.3, 0.4]]),
    probability=np.array([[0.6, 0.4], [0.2, 0.8]]),
    information=np.zeros(2),
    estimate=np.array([10.0, 20.0]),
    window_mean=5.0,
    window_std=7.0,
)
NOTHING = (np.empty((0, 10)), np.empty(0), Gains(np.empty(0), np.empty(0)))


def test_the_static_score_by_hand() -> None:
    fitted = StaticEHVI((1.0, 2.0, -3.0, 4.0, 0.5, -0.1)).fit(
        *NOTHING, warm=None, rng=np.random.default_rng(0)
    )
    utility = fitted.score(SIGNALS)
    expected = [
        10 + 2 * 3 - 3 * 0.3 + 4 * 0.6 + 2.5 - 0.7,
        20 + 2 * 1 - 3 * 0.7 + 4 * 0.2 + 2.5 - 0.7,
    ]
    assert utility.hypervolume == pytest.approx(expected)
    assert utility.diversity.tolist() == [0.0, 0.0]
    assert dict(fitted.warm) == {} and dict(fitted.notes) == {}


def test_the_surrogates_estimate_is_handed_on() -> None:
    fitted = SurrogateEstimate().fit(*NOTHING, warm=None, rng=np.random.default_rng(0))
    assert fitted.score(SIGNALS).hypervolume.tolist() == [10.0, 20.0]
    assert fitted.score(SIGNALS).diversity.tolist() == [0.0, 0.0]
    assert dict(fitted.warm) == {} and dict(fitted.notes) == {}


def test_six_finite_weights_are_needed() -> None:
    with pytest.raises(ValueError, match="six finite"):
        StaticEHVI((1.0, 2.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="six finite"):
        StaticEHVI((1.0, 2.0, np.nan, 0.0, 0.0, 0.0))
