"""Temperature scaling and calibration errors against closed forms and planted values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import softmax

from neuropareto.calibration import (
    Calibration,
    MatrixScaling,
    Temperature,
    Uncalibrated,
    _affine_nll,
    _centred,
    ace,
    adaptive_reliability,
    ece,
    mce,
    mean_nll,
    reliability,
    tempered,
)
from neuropareto.space import Array


def planted(
    n: int, temperature: float, seed: int = 0
) -> tuple[Array, np.typing.NDArray[np.int64]]:
    """Logits (n, 1, 4) and labels drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(seed)
    z = 3.0 * rng.normal(size=(n, 4))
    p = softmax(z / temperature, axis=1)
    labels = 1 + (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return z[:, None, :], np.minimum(labels, 4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_planted_temperature_is_recovered(temperature: float) -> None:
    z, labels = planted(6000, temperature)
    assert Temperature().temperature(z, labels) == pytest.approx(temperature, rel=0.06)


def test_the_temperature_minimises_the_held_out_loss() -> None:
    z, labels = planted(2000, 2.0)
    found = Temperature().temperature(z, labels)
    for other in (0.9 * found, 1.1 * found):
        assert mean_nll(z, labels, found) < mean_nll(z, labels, other)


def test_the_loss_averages_probabilities_and_not_logits_over_passes() -> None:
    z = np.log(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    assert mean_nll(z, np.array([1]), 1.0) == pytest.approx(-np.log(0.7))


def test_scaling_lowers_the_calibration_error_of_an_overconfident_model() -> None:
    z, labels = planted(4000, 3.0)
    found = Temperature().temperature(z, labels)
    raw, scaled = tempered(z, 1.0).mean(axis=1), tempered(z, found).mean(axis=1)
    assert ece(scaled, labels) < 0.3 * ece(raw, labels)
    assert ace(scaled, labels) < 0.3 * ace(raw, labels)


def test_without_held_out_points_the_temperature_is_one() -> None:
    assert Temperature().temperature(np.empty((0, 3, 4)), np.empty(0, dtype=np.int64)) == 1.0


def test_a_few_right_answers_do_not_make_the_model_certain() -> None:
    z = np.tile([[[2.0, 0.0]]], (3, 1, 1))
    assert Temperature().temperature(z, np.array([1, 1, 1])) > 0.3


def test_uncalibrated_is_one_whatever_the_data() -> None:
    assert Uncalibrated().temperature(*planted(100, 3.0)) == 1.0


def easy_and_hard(n: int, seed: int = 0) -> tuple[Array, np.typing.NDArray[np.int64]]:
    """Logits that are too modest about class 1 and too bold about which of the others it is."""
    rng = np.random.default_rng(seed)
    first = np.where(rng.random(n) < 0.5, 4.0, -4.0)
    rest = 1.5 * rng.normal(size=(n, 3))
    p1 = 1 / (1 + np.exp(-first))
    others = 1 + rng.integers(3, size=n)
    labels = 1 + np.where(rng.random(n) < p1, 0, others)
    return np.column_stack([0.5 * first, rest])[:, None, :], labels


def test_matrix_scaling_serves_easy_and_hard_classes_where_one_temperature_cannot() -> None:
    z, labels = easy_and_hard(3000)
    other, truth = easy_and_hard(3000, seed=1)
    found = {}
    specs: dict[str, Calibration] = {"one": Temperature(), "matrix": MatrixScaling()}
    for name, spec in specs.items():
        p = softmax(spec.scaling(z, labels).applied(other), axis=-1).mean(axis=1)
        found[name] = ece(p, truth)
    assert found["matrix"] < 0.5 * found["one"]
    assert found["matrix"] < 0.04


def test_matrix_scaling_with_tight_priors_is_temperature_scaling() -> None:
    z, labels = planted(2000, 2.0)
    tight = MatrixScaling(mixing_std=1e-4, shift_std=1e-4).scaling(z, labels)
    assert tight.temperature == pytest.approx(Temperature().temperature(z, labels), rel=0.01)
    assert softmax(tight.applied(z), axis=-1) == pytest.approx(tempered(z, 2.0), abs=0.03)


def test_the_gradient_of_the_affine_loss() -> None:
    rng = np.random.default_rng(0)
    z, y = _centred(rng.normal(size=(30, 4, 3))), rng.integers(0, 3, 30)
    x = 0.3 * rng.normal(size=1 + 9 + 3)
    off = check_grad(lambda x: _affine_nll(x, z, y)[0], lambda x: _affine_nll(x, z, y)[1], x)
    assert off < 1e-4


def test_matrix_scaling_of_nothing_changes_nothing() -> None:
    nothing = MatrixScaling().scaling(np.empty((0, 3, 4)), np.empty(0, dtype=np.int64))
    z = np.random.default_rng(0).normal(size=(5, 4))
    assert nothing.temperature == 1.0
    assert softmax(nothing.applied(z), axis=-1) == pytest.approx(softmax(z, axis=-1))


def test_a_few_right_answers_do_not_make_the_matrix_certain() -> None:
    z = np.tile([[[2.0, 0.0]]], (3, 1, 1))
    p = softmax(MatrixScaling().scaling(z, np.array([1, 1, 1])).applied(z), axis=-1)
    assert 0.8 < p[0, 0, 0] < 0.995


def test_tempered_softmax_by_hand() -> None:
    z = np.array([[0.0, 2.0 * np.log(3.0)]])
    assert tempered(z, 2.0) == pytest.approx(np.array([[0.25, 0.75]]))
    assert tempered(np.array([[1e6, 0.0]]), 0.1) == pytest.approx(np.array([[1.0, 0.0]]))


def test_errors_of_a_case_counted_by_hand() -> None:
    # Confidence 0.9 twice (one right), 0.6 twice (both right): gaps 0.4 and 0.4 in two bins.
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    labels = np.array([1, 2, 1, 1])
    assert ece(p, labels) == pytest.approx(0.4)
    assert mce(p, labels) == pytest.approx(0.4)
    # Three right at 0.9 and one wrong at 0.6: gaps 0.1 with three points, 0.6 with one.
    p, labels = p[[0, 0, 0, 2]], np.array([1, 1, 1, 2])
    assert ece(p, labels) == pytest.approx(0.75 * 0.1 + 0.25 * 0.6)
    assert mce(p, labels) == pytest.approx(0.6)
    assert ace(p, labels, bins=2) == pytest.approx(0.75 * 0.1 + 0.25 * 0.6)


def test_one_bin_compares_the_averages() -> None:
    p = np.array([[0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    labels = np.array([1, 1, 2])
    for error in (ece, mce, ace):
        assert error(p, labels, bins=1) == pytest.approx(abs(2 / 3 - 0.7))


def test_reliability_bins_hold_every_point_once() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 500)
    labels = rng.integers(1, 4, 500)
    diagram = reliability(p, labels)
    assert diagram.count.sum() == 500 and len(diagram.count) <= 15
    assert (diagram.lower <= diagram.confidence).all()
    assert (diagram.confidence <= diagram.upper).all()
    assert diagram.upper - diagram.lower == pytest.approx(1 / 15)
    even = adaptive_reliability(p, labels)
    assert even.count.max() - even.count.min() <= 2 and len(even.count) == 15


def test_certain_and_right_is_perfectly_calibrated() -> None:
    p, labels = np.eye(3)[[0, 1, 2, 1]], np.array([1, 2, 3, 2])
    assert ece(p, labels) == mce(p, labels) == ace(p, labels) == 0.0


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(2, 6), st.integers(1, 20), st.integers(0, 2**31))
def test_errors_are_ordered_and_do_not_depend_on_the_order(
    n: int, k: int, bins: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet(np.ones(k), n), 1)
    labels = rng.integers(1, k + 1, n)
    order = rng.permutation(n)
    assert 0 <= ece(p, labels, bins) <= mce(p, labels, bins) + 1e-12 <= 1 + 1e-9
    for error in (ece, mce, ace):
        assert error(p[order], labels[order], bins) == pytest.approx(error(p, labels, bins))


def test_refusals_say_what_was_expected() -> None:
    p = np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"probabilities \(n, K\)"):
        ece(p, np.array([1, 2]))
    with pytest.raises(ValueError, match=r"1\.\.2"):
        ece(p, np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="at least one bin"):
        ace(p, np.array([1, 1, 2]), bins=0)
    with pytest.raises(ValueError, match="n >= 1"):
        mce(np.empty((0, 2)), np.empty(0, dtype=np.int64))
    with pytest.raises(ValueError, match="prior_std > 0"):
        Temperature(prior_std=0.0)
    with pytest.raises(ValueError, match="positive standard deviations"):
        MatrixScaling(mixing_std=0.0)
