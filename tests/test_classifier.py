"""The rank classifier against an independent forward pass, planted data and its conformance exam."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from neuropareto.calibration import ece
from neuropareto.classifier import (
    AdaptiveDropout,
    FittedRankClassifier,
    MatrixScaling,
    NoDropout,
    RankClassifier,
    Temperature,
    Training,
    Uncalibrated,
    bounded_k,
)
from neuropareto.dropout import disagreement, information_gain
from neuropareto.rank_network import (
    class_weights,
    first_hidden,
    held_out,
    lesson,
    logits_after,
    shapes,
)
from neuropareto.space import Array
from neuropareto.testing.classifier import check_classifier, layered, stored

SPECS = {
    "default": RankClassifier(),
    "no dropout": RankClassifier(dropout=NoDropout()),
    "uncalibrated": RankClassifier(calibration=Uncalibrated()),
    "matrix": RankClassifier(calibration=MatrixScaling()),
    "three classes": RankClassifier(k=3, width=16, dropout=AdaptiveDropout(p=0.2, s0=4, s_max=10)),
    "no folds": RankClassifier(training=Training(folds=0)),
    "small batches": RankClassifier(training=Training(batch=32, folds=2)),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_conformance(spec: RankClassifier) -> None:
    check_classifier(spec)


def fitted(spec: RankClassifier | None = None, n: int = 120, d: int = 6) -> FittedRankClassifier:
    spec = spec or RankClassifier()
    U, labels = layered(n, d, spec.k)
    return spec.fit(U, labels, warm=None, rng=np.random.default_rng(0))


def passes_by_hand(model: FittedRankClassifier, U: Array) -> Array:
    """Probabilities of all passes from Eqs. h1 to temp_softmax with torch.nn layers, (n, S, K)."""
    P = model.parameters
    width, d = P["W1"].shape[1:]
    k = P["W3"].shape[1]
    first, second, out = (
        torch.nn.Linear(d, width),
        torch.nn.Linear(width, width),
        torch.nn.Linear(width, k),
    )
    norm1, norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
    for layer, weight, bias in (
        (first, "W1", "b1"),
        (norm1, "g1", "c1"),
        (second, "W2", "b2"),
        (norm2, "g2", "c2"),
        (out, "W3", "b3"),
    ):
        layer.load_state_dict({"weight": P[weight][0], "bias": P[bias][0]})
    x = torch.tensor((U - 0.5) * np.sqrt(12.0)).float()
    with torch.no_grad():
        h1 = norm1(torch.relu(first(x)))
        z = [out(norm2(torch.relu(second(h1 * mask)))) for mask in model.masks]
        p = torch.softmax(torch.stack(z, dim=1).double() / model.temperature, dim=-1)
    return p.numpy()


@pytest.mark.parametrize("tau", [1e-4, 1e-3, 0.02])
def test_belief_equals_the_equations_pass_by_pass(tau: float) -> None:
    s0, s_max = 4, 10
    model = fitted(RankClassifier(dropout=AdaptiveDropout(p=0.2, s0=s0, s_max=s_max, tau=tau)))
    U = np.random.default_rng(1).random((700, 6))
    P = passes_by_hand(model, U)
    belief = model.predict(U)
    variance = P[:, :s0].var(axis=1, ddof=1).max(axis=1)
    counts = [
        s0 if v <= tau else min(s_max, s0 * int(np.ceil(v / tau))) for v in variance.tolist()
    ]
    # Where the ratio is a whole number but for rounding, either count is right.
    clear = np.abs(variance / tau - np.rint(variance / tau)) > 1e-4
    assert clear.mean() > 0.9
    assert (belief.passes == counts)[clear].all()
    for i, s in enumerate(belief.passes):
        assert belief.probability[i] == pytest.approx(P[i, :s].mean(axis=0), abs=1e-5)
        assert belief.epistemic[i] == pytest.approx(
            information_gain(P[i : i + 1, :s])[0], abs=1e-5
        )


def test_different_points_get_different_numbers_of_passes_in_one_call() -> None:
    model = fitted(RankClassifier(dropout=AdaptiveDropout(p=0.2, tau=3e-4)))
    passes = model.predict(np.random.default_rng(1).random((2000, 6))).passes
    assert len(np.unique(passes)) >= 3
    assert set(np.unique(passes)) <= {8, 16, 24, 32}


def test_masks_drop_units_at_the_stated_rate_and_keep_the_mean() -> None:
    model = fitted(RankClassifier(width=128, dropout=AdaptiveDropout(p=0.2)))
    masks = model.masks.numpy()
    assert masks.shape == (32, 128)
    assert set(np.unique(masks)) == {np.float32(0.0), np.float32(1.25)}
    assert np.mean(masks == 0) == pytest.approx(0.2, abs=0.03)


def test_no_dropout_takes_one_pass_and_sees_no_epistemic_uncertainty() -> None:
    belief = fitted(RankClassifier(dropout=NoDropout())).predict(
        np.random.default_rng(1).random((50, 6))
    )
    assert (belief.passes == 1).all()
    assert (belief.epistemic == 0).all()


def test_dropout_sees_some() -> None:
    assert fitted().predict(np.random.default_rng(1).random((50, 6))).epistemic.max() > 1e-4


def test_uncalibrated_differs_in_nothing_but_the_temperature() -> None:
    plain, scaled = fitted(RankClassifier(calibration=Uncalibrated())), fitted()
    assert plain.temperature == 1.0 != scaled.temperature
    for name, value in plain.parameters.items():
        assert torch.equal(value, scaled.parameters[name])
    assert torch.equal(plain.masks, scaled.masks)


def test_held_out_rows_are_hidden_from_their_network_in_every_round() -> None:
    U, labels = layered(60, 4, 5)
    data = lesson(U, labels, 5, folds=3, dropout=0.1, device="cpu")
    rows = torch.arange(60)
    assert (data.visible[data.home, rows] == 0).all()
    assert (data.visible.sum(dim=0) == 3).all(), "seen by two folds and the final network"
    assert (data.visible[-1] == 1).all()
    order = np.random.default_rng(0).permutation(60)[:40]
    later = lesson(U[order], labels[order], 5, folds=3, dropout=0.1, device="cpu")
    assert (later.home == data.home[torch.from_numpy(order)]).all(), "folds must not be reshuffled"


def test_held_out_logits_are_those_of_the_network_that_never_saw_the_row() -> None:
    U, labels = layered(40, 4, 3)
    data = lesson(U, labels, 3, folds=3, dropout=0.1, device="cpu")
    generator = torch.Generator().manual_seed(0)
    P = {
        name: torch.randn(shape, generator=generator) for name, shape in shapes(4, 4, 8, 3).items()
    }
    masks = torch.tensor([[1.0] * 8, [1.0, 0.0] * 4])
    z = held_out(P, data, masks)
    assert z.shape == (40, 2, 3)
    for fold in range(3):
        own = {name: value[fold : fold + 1] for name, value in P.items()}
        mine = data.home == fold
        for s, mask in enumerate(masks):
            expected = logits_after(own, first_hidden(own, data.X[mine]) * mask)[0]
            assert torch.allclose(z[mine, s], expected - data.class_weight.log(), atol=1e-5)


def test_scaling_improves_calibration_on_points_never_seen() -> None:
    # One label in three is noise: a network that fits its training rows is too sure of itself.
    rng = np.random.default_rng(0)
    U, labels = layered(1500, 20, 5)
    labels = np.where(rng.random(1500) < 0.33, rng.integers(1, 6, 1500), labels)
    errors = []
    for calibration in (Uncalibrated(), Temperature()):
        spec = RankClassifier(calibration=calibration)
        model = spec.fit(U[:300], labels[:300], warm=None, rng=np.random.default_rng(1))
        errors.append(ece(model.predict(U[300:]).probability, labels[300:]))
    assert errors[1] < 0.7 * errors[0]
    assert errors[1] < 0.12


def test_a_rare_class_is_found() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((400, 5))
    labels = np.where(U[:, 0] < 0.06, 1, 2 + (U[:, 1] > 0.5))
    model = RankClassifier().fit(U, labels, warm=None, rng=rng)
    test = rng.random((4000, 5))
    rare = test[:, 0] < 0.06
    p1 = model.predict(test).probability[:, 0]
    assert np.median(p1[rare]) > 5 * np.median(p1[~rare])


def test_class_weights_do_not_inflate_a_rare_class() -> None:
    # Unpredictable, so its probability should be its frequency; weighting alone would triple it.
    rng = np.random.default_rng(0)
    U = rng.random((400, 5))
    labels = np.where(rng.random(400) < 0.05, 1, 2 + (U[:, 1] > 0.5))
    model = RankClassifier(k=3).fit(U, labels, warm=None, rng=rng)
    p1 = model.predict(rng.random((2000, 5))).probability[:, 0]
    assert 0.02 < p1.mean() < 0.09


def test_class_weights_favour_rare_classes_and_stay_bounded() -> None:
    weights = class_weights(np.array([0] * 8 + [1] * 98), 3)
    assert weights[2] > weights[0] > weights[1] > 0
    assert weights[0] / weights[1] == pytest.approx(np.sqrt(99 / 9))


def test_more_data_make_the_classifier_better() -> None:
    U, labels = layered(2000, 10, 5, seed=9)
    right = []
    for n in (20, 400):
        model = RankClassifier().fit(U[:n], labels[:n], warm=None, rng=np.random.default_rng(0))
        guess = model.predict(U[1000:]).probability.argmax(axis=1) + 1
        right.append(np.mean(guess == labels[1000:]))
    assert right[1] > right[0] + 0.1


def test_a_warm_start_takes_fewer_steps_and_is_never_worse_on_held_out_rows() -> None:
    U, labels = layered(150, 6, 5)
    spec = RankClassifier(training=Training(warm_steps=20))
    cold = spec.fit(U, labels, warm=None, rng=np.random.default_rng(0))
    warm = spec.fit(U, labels, warm=stored(cold.warm), rng=np.random.default_rng(1))
    assert not cold.notes["warm"] and warm.notes["warm"]
    assert warm.notes["steps"] <= 20
    assert warm.notes["held_out_loss"] <= cold.notes["held_out_loss"] + 1e-6


def test_a_damaged_warm_start_is_ignored() -> None:
    U, labels = layered(40, 3, 5)
    spec = RankClassifier()
    cold = spec.fit(U, labels, warm=None, rng=np.random.default_rng(0))
    broken = {**cold.warm, "W2": np.full_like(cold.warm["W2"], np.nan)}
    for warm in (broken, {"W1": cold.warm["W1"]}, {}):
        again = spec.fit(U, labels, warm=warm, rng=np.random.default_rng(0))
        assert not again.notes["warm"]
        assert np.array_equal(again.predict(U).probability, cold.predict(U).probability)


def test_another_seed_gives_another_classifier() -> None:
    U, labels = layered(60, 4, 5)
    a, b = (
        RankClassifier().fit(U, labels, warm=None, rng=np.random.default_rng(s)).predict(U)
        for s in (0, 1)
    )
    assert not np.array_equal(a.probability, b.probability)


def test_repeated_predictions_are_cached_and_the_cache_is_bounded() -> None:
    model = fitted()
    points = [np.random.default_rng(s).random((5, 6)) for s in range(10)]
    assert model.predict(points[0]) is model.predict(points[0].copy())
    for U in points:
        model.predict(U)
    assert len(model._cache) <= 4


def test_a_point_changed_in_place_is_predicted_anew() -> None:
    model = fitted()
    U = np.random.default_rng(0).random((5, 6))
    before = model.predict(U).probability.copy()
    U[:, 0] = 1.0 - U[:, 0]
    assert not np.allclose(model.predict(U).probability, before)


def test_beliefs_are_read_only() -> None:
    belief = fitted().predict(np.random.default_rng(0).random((5, 6)))
    for array in (belief.probability, belief.epistemic, belief.passes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_training_that_blows_up_falls_back_on_the_last_finite_parameters() -> None:
    U, labels = layered(40, 3, 5)
    spec = RankClassifier(training=Training(rate=1e30, folds=2))
    belief = spec.fit(U, labels, warm=None, rng=np.random.default_rng(0)).predict(U)
    assert np.isfinite(belief.probability).all()


@pytest.mark.parametrize(
    ("k", "budget", "n_min", "expected"),
    [(5, 300, 15, 5), (5, 60, 15, 4), (5, 44, 15, 2), (5, 3, 15, 2), (7, 90, 20, 4)],
)
def test_the_number_of_classes_is_bounded_by_the_budget(
    k: int, budget: int, n_min: int, expected: int
) -> None:
    assert bounded_k(k, budget, n_min) == expected


def test_refusals_say_what_was_expected() -> None:
    U, labels = layered(10, 3, 5)
    rng = np.random.default_rng(0)
    spec = RankClassifier()
    with pytest.raises(ValueError, match="n >= 1"):
        spec.fit(U[:0], labels[:0], warm=None, rng=rng)
    with pytest.raises(ValueError, match=r"labels \(n,\)"):
        spec.fit(U, labels[:-1], warm=None, rng=rng)
    with pytest.raises(ValueError, match=r"1\.\.3"):
        RankClassifier(k=3).fit(U, np.full(10, 4), warm=None, rng=rng)
    with pytest.raises(ValueError, match="integers"):
        spec.fit(U, np.ones(10), warm=None, rng=rng)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="finite"):
        spec.fit(np.full((10, 3), np.nan), labels, warm=None, rng=rng)
    with pytest.raises(ValueError, match=r"\(n, 3\)"):
        spec.fit(U, labels, warm=None, rng=rng).predict(U[:, :2])
    with pytest.raises(ValueError, match="NoDropout"):
        AdaptiveDropout(s0=1)
    with pytest.raises(ValueError, match="k >= 2"):
        RankClassifier(k=1)
    with pytest.raises(ValueError, match="folds"):
        Training(folds=1)
    with pytest.raises(ValueError, match="steps"):
        replace(Training(), steps=0)
    with pytest.raises(ValueError, match="n_min >= 1"):
        bounded_k(5, 100, 0)


def test_parts_are_values() -> None:
    assert RankClassifier() == RankClassifier(calibration=Temperature(), dropout=AdaptiveDropout())
    assert hash(RankClassifier()) == hash(RankClassifier())
    assert disagreement(np.ones((3, 1, 2))).tolist() == [0.0, 0.0, 0.0]
