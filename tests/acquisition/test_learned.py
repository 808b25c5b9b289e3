"""The learned acquisition on synthetic histories whose truth is known."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from neuropareto.acquisition import (
    FullTrust,
    Gains,
    History,
    Huber,
    LearnedAcquisition,
    OnlineTraining,
    Signals,
    Squared,
    StaticEHVI,
    running_magnitude,
)
from neuropareto.acquisition.learned import FittedLearned, Scale
from neuropareto.space import Array


def candidates(n: int, rng: np.random.Generator, scale: float = 1e4) -> Signals:
    """Random signals with objectives of size ``scale``; the estimate is independent of them."""
    return Signals(
        mean=scale * rng.normal(size=(n, 2)),
        epistemic=scale**2 * rng.lognormal(-1.0, 1.0, (n, 2)),
        aleatoric=scale**2 * rng.lognormal(-3.0, 1.0, (n, 2)),
        probability=rng.dirichlet(np.ones(5), n),
        information=rng.random(n),
        estimate=np.maximum(0.0, rng.normal(size=n)),
        window_mean=0.3,
        window_std=0.1,
    )


def informative(signals: Signals, rng: np.random.Generator) -> Gains:
    """Gains that follow the classifier and the mean, and that the estimate knows nothing of."""
    near = np.exp(-((signals.mean[:, 0] / 1e4) ** 2))
    hypervolume = np.maximum(0.0, 4 * signals.probability[:, 0] * near - 0.3)
    diversity = signals.probability[:, 4] - 0.2 + 0.05 * rng.normal(size=len(signals))
    return Gains(1e-3 * hypervolume, 1e-5 * diversity)


def pure_noise(signals: Signals, rng: np.random.Generator) -> Gains:
    """Mostly no gain, now and then one, whatever the signals say."""
    n = len(signals)
    return Gains(rng.exponential(size=n) * (rng.random(n) < 0.3), rng.normal(size=n))


@dataclass(frozen=True)
class Past:
    """A history as arrays."""

    features: Array
    estimate: Array
    gains: Gains


def informed(n: int = 300, seed: int = 0) -> Past:
    rng = np.random.default_rng(seed)
    signals = candidates(n, rng)
    return Past(signals.features(), signals.estimate, informative(signals, rng))


def fitted(past: Past, spec: LearnedAcquisition | None = None, seed: int = 0) -> FittedLearned:
    spec = spec or LearnedAcquisition()
    return spec.fit(
        past.features, past.estimate, past.gains, warm=None, rng=np.random.default_rng(seed)
    )


def test_learned_beats_static_and_the_estimate_on_an_informative_history() -> None:
    model = fitted(informed())
    rng = np.random.default_rng(99)
    signals = candidates(500, rng)
    truth = informative(signals, rng)
    learned = model.score(signals)
    static = StaticEHVI().score(signals)
    assert model.weight > 0.4 and model.weight_diversity > 0.4

    def skill(score: Array, outcome: Array) -> float:
        return float(spearmanr(score, outcome).statistic)

    at_least = 0.3
    assert skill(learned.hypervolume, truth.hypervolume) > at_least + max(
        skill(static.hypervolume, truth.hypervolume), skill(signals.estimate, truth.hypervolume)
    )
    assert skill(learned.diversity, truth.diversity) > 0.6


def test_a_history_of_noise_leaves_the_estimate_as_it_is() -> None:
    weights = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        signals = candidates(80, rng)
        gains = pure_noise(signals, rng)
        model = fitted(Past(signals.features(), signals.estimate, gains), seed=seed)
        weights.append(model.weight)
        if model.weight == 0:
            assert np.array_equal(model.score(signals).hypervolume, signals.estimate)
    assert np.mean(weights) < 0.05 and np.median(weights) == 0.0


def test_a_surrogate_that_knows_everything_keeps_the_word() -> None:
    rng = np.random.default_rng(0)
    signals = candidates(200, rng)
    gains = Gains(signals.estimate.copy(), np.zeros(200))
    model = fitted(Past(signals.features(), signals.estimate, gains))
    assert model.weight < 0.1
    fresh = candidates(100, rng)
    best = fresh.estimate.argmax()
    assert model.score(fresh).hypervolume.argmax() == best


@pytest.mark.parametrize("b", [0, 1, 2, 19])
def test_before_there_is_history_the_surrogate_speaks(b: int) -> None:
    past = informed(max(b, 1))
    past = Past(
        past.features[:b],
        past.estimate[:b],
        Gains(past.gains.hypervolume[:b], past.gains.diversity[:b]),
    )
    model = fitted(past)
    signals = candidates(30, np.random.default_rng(1))
    assert np.array_equal(model.score(signals).hypervolume, signals.estimate)
    assert (model.score(signals).diversity == 0).all()
    assert model.notes["weight"] == 0.0


@pytest.mark.parametrize("silent", ["hypervolume", "diversity", "both"])
def test_targets_that_are_all_zero_earn_nothing(silent: str) -> None:
    past = informed(60)
    zero = np.zeros(60)
    gains = past.gains
    gains = Gains(
        gains.hypervolume if silent == "diversity" else zero,
        gains.diversity if silent == "hypervolume" else zero,
    )
    model = fitted(replace(past, gains=gains))
    signals = candidates(30, np.random.default_rng(1))
    utility = model.score(signals)
    assert np.isfinite(utility.hypervolume).all() and np.isfinite(utility.diversity).all()
    if silent != "diversity":
        assert np.array_equal(utility.hypervolume, signals.estimate)
    if silent != "hypervolume":
        assert (utility.diversity == 0).all()


def test_units_of_objectives_and_gains_do_not_matter_to_the_order() -> None:
    rng = np.random.default_rng(0)
    signals, fresh = candidates(100, rng, scale=1.0), candidates(50, rng, scale=1.0)
    near = signals.probability[:, 0]
    orders = []
    for scale, unit in ((1.0, 1.0), (2.0**13, 2.0**-20)):
        models = [
            replace(
                s,
                mean=s.mean * scale,
                epistemic=s.epistemic * scale**2,
                aleatoric=s.aleatoric * scale**2,
                estimate=s.estimate * unit,
            )
            for s in (signals, fresh)
        ]
        gains = Gains(near * unit, near * unit)
        model = fitted(Past(models[0].features(), models[0].estimate, gains))
        assert model.weight > 0
        orders.append(model.score(models[1]).hypervolume / unit)
    assert orders[0] == pytest.approx(orders[1], rel=1e-9)


def test_the_same_seed_gives_the_same_scores_and_scoring_is_pure() -> None:
    past = informed(400)  # more rows than a mini-batch: the draws matter
    signals = candidates(40, np.random.default_rng(1))
    state = torch.get_rng_state().clone()
    a, b, other = fitted(past), fitted(past), fitted(past, seed=1)
    first = a.score(signals)
    assert np.array_equal(first.hypervolume, b.score(signals).hypervolume)
    a.score(candidates(7, np.random.default_rng(2)))
    assert np.array_equal(first.hypervolume, a.score(signals).hypervolume)
    assert not np.array_equal(first.hypervolume, other.score(signals).hypervolume)
    assert torch.equal(state, torch.get_rng_state())


def test_a_warm_start_survives_storage_and_helps_a_short_training() -> None:
    past = informed(200)
    spec = LearnedAcquisition(trust=FullTrust(), training=OnlineTraining(steps=3))
    long = replace(spec, training=OnlineTraining(steps=200))
    file = io.BytesIO()
    np.savez(file, **dict(fitted(past, long).warm))  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        warm = {name: read[name] for name in read.files}
    rng = np.random.default_rng(99)
    signals = candidates(300, rng)
    truth = informative(signals, rng).hypervolume
    skills = [
        spearmanr(
            spec.fit(past.features, past.estimate, past.gains, warm=start, rng=rng)
            .score(signals)
            .hypervolume,
            truth,
        ).statistic
        for start in (None, warm)
    ]
    assert skills[1] > skills[0] + 0.05


def test_a_useless_warm_start_is_ignored() -> None:
    past = informed(60)
    signals = candidates(20, np.random.default_rng(1))
    cold = fitted(past)
    broken = {name: np.full_like(value, np.nan) for name, value in cold.warm.items()}
    short = {name: value[:1] for name, value in cold.warm.items()}
    for warm in (broken, short, {}, {"W1": cold.warm["W1"]}):
        model = LearnedAcquisition().fit(
            past.features, past.estimate, past.gains, warm=warm, rng=np.random.default_rng(0)
        )
        assert np.array_equal(model.score(signals).hypervolume, cold.score(signals).hypervolume)


def test_a_warm_start_cannot_fake_skill() -> None:
    # A network that memorised this noise in earlier rounds would pass a test on the same rows.
    rng = np.random.default_rng(3)
    signals = candidates(60, rng)
    gains = pure_noise(signals, rng)
    past = Past(signals.features(), signals.estimate, gains)
    spec = LearnedAcquisition(training=OnlineTraining(steps=400, decay=0.0))
    model = fitted(past, spec)
    assert model.weight == 0.0
    for _ in range(2):
        model = spec.fit(
            past.features, past.estimate, past.gains, warm=model.warm, rng=np.random.default_rng(0)
        )
    assert model.weight == 0.0


def test_recomputed_features_would_leak_and_the_history_prevents_it() -> None:
    # After the outcome is known a refitted surrogate's mean carries it; the proposal's did not.
    rng = np.random.default_rng(0)
    signals = candidates(80, rng)
    gains = pure_noise(signals, rng)
    U = rng.random((80, 3))
    history = History.empty(3, signals.features().shape[1]).extended(
        U, signals.features(), signals.estimate
    )
    hindsight = replace(signals, mean=np.column_stack([gains.hypervolume, signals.mean[:, 1]]))
    leaking = fitted(Past(hindsight.features(), hindsight.estimate, gains))
    rows, _ = history.matched(U)
    honest = fitted(Past(history.features[rows], history.estimate[rows], gains))
    assert leaking.weight > 0.4
    assert honest.weight < 0.1


def test_full_trust_is_the_network_alone() -> None:
    past = informed(100)
    model = fitted(past, LearnedAcquisition(trust=FullTrust()))
    signals = candidates(30, np.random.default_rng(1))
    output = model.network(signals.features())
    assert model.score(signals).hypervolume == pytest.approx(model.unit * output[:, 0])
    assert model.score(signals).diversity == pytest.approx(output[:, 1])
    assert model.unit == pytest.approx(running_magnitude(past.estimate)[-1])


def test_the_diversity_weight_balances_the_two_targets() -> None:
    past = informed(200)
    spec = LearnedAcquisition(trust=FullTrust())
    signals = candidates(30, np.random.default_rng(1))
    without = fitted(past, replace(spec, diversity_weight=0.0)).score(signals)
    assert np.ptp(without.diversity) == 0.0
    assert np.ptp(fitted(past, spec).score(signals).diversity) > 0.1


def test_losses_by_hand() -> None:
    r = torch.tensor([0.5, -1.0, 3.0])
    assert Squared()(r).tolist() == [0.25, 1.0, 9.0]
    assert Huber(1.0)(r).tolist() == [0.25, 1.0, 5.0]


def test_huber_shrugs_off_an_outlier() -> None:
    past = informed(100)
    spiked = past.gains.hypervolume.copy()
    spiked[50] = 30 * spiked.max()
    past = replace(past, gains=Gains(spiked, past.gains.diversity))
    rng = np.random.default_rng(99)
    signals = candidates(300, rng)
    truth = informative(signals, rng).hypervolume
    squared, huber = (
        spearmanr(
            fitted(past, LearnedAcquisition(trust=FullTrust(), loss=loss))
            .score(signals)
            .hypervolume,
            truth,
        ).statistic
        for loss in (Squared(), Huber())
    )
    assert huber > squared + 0.05


def test_scale_is_robust_and_silent_about_what_never_varied() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5.0, 2.0, 1000), np.full(1000, 0.1), rng.random(1000) < 0.1])
    X[0, 0] = 1e12
    scale = Scale.of(X)
    assert scale.centre[0] == pytest.approx(5.0, abs=0.3)
    assert scale.spread[0] == pytest.approx(2.0, abs=0.3)
    new = scale(np.array([[1e300, 77.0, 1.0]]))
    assert np.isfinite(new).all()
    assert new[0, 1] == 0.0 and new[0, 2] > 0.5


def test_rows_that_are_not_finite_are_left_out() -> None:
    past = informed(60)
    features = past.features.copy()
    features[3, 0] = np.inf
    gains = Gains(past.gains.hypervolume.copy(), past.gains.diversity.copy())
    gains.hypervolume[5] = np.nan
    model = fitted(Past(features, past.estimate, gains))
    assert model.notes["n"] == 58
    assert np.isfinite(model.score(candidates(9, np.random.default_rng(1))).hypervolume).all()
    json.dumps(dict(model.notes), allow_nan=False)


def test_refusals_say_what_was_expected() -> None:
    past = informed(30)
    with pytest.raises(ValueError, match=r"\(b, f\)"):
        fitted(replace(past, estimate=past.estimate[:-1]))
    with pytest.raises(ValueError, match="width >= 1"):
        LearnedAcquisition(width=0)
    with pytest.raises(ValueError, match="steps"):
        OnlineTraining(steps=0)
