"""Calibration errors, their floor, and the variants of the classifier on archives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuropareto.analysis.calibration_errors import drawn, errors
from neuropareto.analysis.classifier_calibration import (
    BOTH,
    DROPOUT,
    RAW,
    SCALED,
    VARIANTS,
    ClassifierCalibration,
    Predicted,
    Row,
    fitted_variants,
    forward,
    held_out,
    measured,
    stratified,
    table,
)
from neuropareto.analysis.runs import Run
from neuropareto.archive import Archive
from neuropareto.bench.layout import render
from neuropareto.calibration import Uncalibrated
from neuropareto.classifier import RankClassifier
from neuropareto.randomness import stream
from neuropareto.space import Array
from neuropareto.testing.classifier import layered

TARGETS = {"ece": "0.032", "mce": "0.056", "ace": "0.028"}


def perfect(n: int, seed: int = 0) -> tuple[Array, np.typing.NDArray[np.integer]]:
    """Predictions (n, 3) and labels that were drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.7), n)
    return p, drawn(p, 1, rng=rng)[0]


def test_labels_are_drawn_with_the_stated_probabilities() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    labels = drawn(p, 20000, rng=np.random.default_rng(0))
    assert (labels[:, 1] == 3).all()
    share = np.bincount(labels[:, 0], minlength=4)[1:] / 20000
    assert share == pytest.approx(p[0], abs=0.02)


def test_a_perfect_classifier_sits_at_its_floor_and_the_floor_falls_with_n() -> None:
    found = [errors(*perfect(n), rng=np.random.default_rng(1)) for n in (100, 5000)]
    assert found[0].ece_floor > 3 * found[1].ece_floor, "of order 1 / sqrt(n)"
    for e in found:
        assert e.ece == pytest.approx(e.ece_floor, rel=0.7) and e.chance > 0.01
        assert e.accuracy == pytest.approx(e.confidence, abs=3 / np.sqrt(e.n))


def test_the_floor_of_one_bin_is_that_of_a_coin() -> None:
    # One bin, n tosses with probability 0.8: E|accuracy - 0.8| ~ sqrt(2 * 0.16 / (pi n)).
    p, n = np.tile([[0.8, 0.2]], (400, 1)), 400
    e = errors(p, np.ones(n, dtype=np.int64), rng=np.random.default_rng(0), draws=2000)
    assert e.ece_floor == pytest.approx(np.sqrt(2 * 0.16 / (np.pi * n)), rel=0.08)
    assert e.ece == pytest.approx(0.2) and e.mce == pytest.approx(0.2)
    assert e.nll == pytest.approx(-np.log(0.8)) and e.chance < 0.01


def test_overconfidence_is_not_put_down_to_chance() -> None:
    p, labels = perfect(2000)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    e = errors(sharp, labels, rng=np.random.default_rng(0))
    assert e.ece > 3 * e.ece_floor and e.chance < 0.02 and e.confidence > e.accuracy


def test_raw_variants_are_those_without_a_calibration() -> None:
    U, labels = layered(90, 4, 5)
    models = fitted_variants(U, labels, seed=0, fold=0)
    assert tuple(models) == VARIANTS
    plain = RankClassifier(calibration=Uncalibrated()).fit(
        U, labels, warm=None, rng=stream(0, 0, "calibration-fit")
    )
    assert np.array_equal(models[DROPOUT].predict(U).probability, plain.predict(U).probability)
    assert models[RAW].temperature == models[DROPOUT].temperature == 1.0
    assert models[SCALED].temperature != 1.0 != models[BOTH].temperature


def a_run(n: int = 80) -> Run:
    rng = np.random.default_rng(0)
    U = rng.random((n, 4))
    F = np.stack([U[:, 0], 1 - U[:, 0] + U[:, 1:].sum(axis=1)], axis=1)
    notes: tuple[dict[str, object], ...] = tuple(
        {"stage_seconds": {}, "evaluations": e} for e in (60, 70)
    )
    return Run("toy 4D", "neuropareto", 3, notes, F, 60, 1.0, Archive.of(U, F))


def test_every_point_is_predicted_once_by_every_variant() -> None:
    run = a_run()
    found = held_out(run)
    assert [p.variant for p in found] == list(VARIANTS)
    assert run.archive is not None
    for p in found:
        assert p.probability.shape == (80, 5) and (p.labels == run.archive.labels(5)).all()
        assert p.probability.sum(axis=1) == pytest.approx(1.0)


def test_folds_hold_the_same_share_of_each_class() -> None:
    """A forecast of the training rows' shares is calibrated then, and too sure with blind folds."""
    rng = np.random.default_rng(4)
    gaps: dict[str, list[float]] = {"blind": [], "stratified": []}
    y = np.repeat([1, 2, 3, 4, 5], 60)
    for _ in range(40):
        folds = {"blind": rng.permutation(300) % 4, "stratified": stratified(y, 4, rng=rng)}
        counts = [np.bincount(y[folds["stratified"] == j])[1:] for j in range(4)]
        assert np.ptp(counts, axis=0).max() <= 1
        for name, place in folds.items():
            for j in range(4):
                share = np.bincount(y[place != j], minlength=6) / (place != j).sum()
                gaps[name].append(np.mean(y[place == j] == share.argmax()) - share.max())
    assert np.mean(gaps["blind"]) < -0.05
    assert abs(np.mean(gaps["stratified"])) < 0.02


def test_forward_predicts_the_points_of_a_round_from_what_was_there_before() -> None:
    found = forward(a_run(), every=1)
    assert [len(p.labels) for p in found] == [20] * len(VARIANTS)
    assert [len(p.labels) for p in forward(a_run(), every=2)] == [10] * len(VARIANTS)
    nothing = Run("toy 4D", "nsga2", 0, (), a_run().F, 60, 1.0, a_run().archive)
    assert forward(nothing) == []


def test_results_by_run_task_and_over_all_with_paired_tests() -> None:
    p, labels = perfect(300)
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    predictions = [
        Predicted("a", seed, name, (p if name == BOTH else sharp)[part], labels[part])
        for seed in range(10)
        for part in [slice(30 * seed, 30 * seed + 30)]
        for name in VARIANTS
    ]
    found = measured(predictions, draws=10)
    assert len(found.runs) == 50 and len(found.tasks) == len(found.whole) == 5
    whole = {row.variant: row.errors for row in found.whole}
    assert whole[BOTH].n == 300 and whole[BOTH].nll < whole[RAW].nll
    tests = [c for c in found.comparisons() if c.measure == "nll"]
    assert len(tests) == 4 and all(c.difference > 0 and c.p < 0.1 and c.pairs == 10 for c in tests)
    text = render(table(found, "Title", TARGETS), "markdown")
    assert "0.032" in text and "floor" in text and text.count("| a |") == 5


def test_equal_variants_do_not_differ() -> None:
    e = errors(*perfect(50), rng=np.random.default_rng(0))
    rows = tuple(Row("a", s, name, e) for s in range(6) for name in VARIANTS)
    found = ClassifierCalibration(rows, (), (), {})
    assert all(c.p == 1.0 and c.difference == 0.0 for c in found.comparisons())


def test_refusals() -> None:
    with pytest.raises(ValueError, match="No predictions"):
        measured([])
    with pytest.raises(ValueError, match="does not hold its points"):
        held_out(Run("toy 4D", "neuropareto", 0, (), np.empty((0, 2)), 0, 0.0))


RECORDS = Path(__file__).parents[2] / "benchmarks" / "records" / "analysis"


@pytest.mark.skipif(not RECORDS.exists(), reason="raw results are not shipped with a package")
def test_the_stored_results_are_whole() -> None:
    lines = (RECORDS / "calibration-classifier.csv").read_text().splitlines()
    head = lines[0].split(",")
    assert head[:3] == ["task", "seed", "variant"] and "ece_floor" in head
    assert sum(line.startswith("all,") for line in lines) == len(VARIANTS)
