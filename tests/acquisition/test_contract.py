"""Signals: the order of Eq. feat, and shapes that do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuropareto.acquisition import Signals


def example() -> Signals:
    """Three candidates, two objectives, four classes; every value tells where it belongs."""
    rows = np.arange(3.0)[:, None]
    return Signals(
        mean=10 + np.array([0.1, 0.2]) + rows,
        epistemic=20 + np.array([0.1, 0.2]) + rows,
        aleatoric=30 + np.array([0.1, 0.2]) + rows,
        probability=40 + np.array([0.1, 0.2, 0.3, 0.4]) + rows,
        information=np.array([7.0, 8.0, 9.0]),
        estimate=np.array([4.0, 5.0, 6.0]),
        window_mean=50.0,
        window_std=60.0,
    )


def test_features_are_in_the_order_of_the_paper() -> None:
    features = example().features()
    assert features.shape == (3, 3 * 2 + 4 + 2)
    expected = [10.1, 10.2, 20.1, 20.2, 30.1, 30.2, 40.1, 40.2, 40.3, 40.4, 50.0, 60.0]
    assert features[0] == pytest.approx(expected)
    assert features[2] == pytest.approx([v + 2 for v in expected[:-2]] + [50.0, 60.0])


def test_estimate_and_information_are_no_features() -> None:
    signals = example()
    other = replace(signals, estimate=np.zeros(3), information=np.ones(3))
    assert np.array_equal(signals.features(), other.features())


def test_shapes_that_do_not_fit_are_refused() -> None:
    signals = example()
    for wrong in (
        {"epistemic": np.ones((3, 1))},
        {"probability": np.ones((2, 4))},
        {"estimate": np.ones((3, 1))},
        {"information": np.ones(2)},
    ):
        with pytest.raises(ValueError, match=r"\(n, m\)"):
            replace(signals, **wrong)
