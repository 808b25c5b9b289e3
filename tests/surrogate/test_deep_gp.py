"""The deep GP from round to round: warm starts, inducing points, refits, staged noise, depth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuropareto.space import Array
from neuropareto.surrogate import (
    DeepGP,
    ExactGP,
    Heteroscedastic,
    Homoscedastic,
    Inducing,
    RandomFourier,
    Schedule,
)
from neuropareto.surrogate.deep_gp import FittedDeepGP
from neuropareto.surrogate.deep_start import centres, telling_features
from neuropareto.surrogate.refresh import refreshed
from neuropareto.surrogate.stack import balanced_normals
from neuropareto.testing.surrogate import smooth

QUICK = DeepGP(
    features=Inducing(16),
    inducing=16,
    iterations=10,
    schedule=Schedule(first_epochs=4, epochs=4, settle=1),
)
U, F = smooth(30, 3, noise=0.1)


def fit(
    spec: DeepGP, warm: FittedDeepGP | None = None, seed: int = 0, n: int = 30
) -> FittedDeepGP:
    memory = None if warm is None else warm.warm
    return spec.fit(U[:n], F[:n], warm=memory, rng=np.random.default_rng(seed))


def in_turn(spec: DeepGP, rounds: int) -> list[FittedDeepGP]:
    models = [fit(spec)]
    for seed in range(1, rounds):
        models.append(fit(spec, models[-1], seed))
    return models


def test_rounds_are_counted_and_bounded() -> None:
    models = in_turn(replace(QUICK, refit=1e9), 3)
    assert [m.notes["start"] for m in models] == ["cold", "warm", "warm"]
    assert [m.notes["rounds"] for m in models] == [0, 1, 2]
    assert all(int(str(m.notes["epochs"])) <= 4 for m in models)


def test_a_round_that_trains_for_no_epochs_keeps_the_parameters() -> None:
    frozen = replace(QUICK, schedule=replace(QUICK.schedule, epochs=0))
    first = fit(QUICK)
    second = fit(frozen, first)
    for name, values in first.warm.items():
        if "log_" in name or name.endswith("hidden"):
            assert np.array_equal(values, second.warm[name]), name


@pytest.mark.parametrize(
    "other",
    [
        replace(QUICK, layers=1),
        replace(QUICK, features=RandomFourier(64, anchors=16)),
        replace(QUICK, noise=Homoscedastic()),
        replace(QUICK, noise=Heteroscedastic(hidden=3)),
    ],
    ids=["layers", "features", "noise", "width"],
)
def test_the_memory_of_another_model_is_not_used(other: DeepGP) -> None:
    assert fit(other, fit(QUICK)).notes["start"] == "cold"


def test_a_new_scale_means_a_new_start_in_the_same_count_of_rounds() -> None:
    first = fit(QUICK)
    stretched = QUICK.fit(U, 100.0 * F, warm=first.warm, rng=np.random.default_rng(0))
    assert (stretched.notes["start"], stretched.notes["rounds"]) == ("cold", 1)
    assert stretched.notes["restarted"] == "the scale has changed"


def test_inducing_points_double_only_when_the_bound_drops() -> None:
    dropping = replace(QUICK, doubling=-100.0, refit=1e9, inducing=4, most_inducing=12)
    steady = replace(dropping, doubling=1e9)
    assert [m.notes["inducing"] for m in in_turn(dropping, 5)] == [4, 4, 8, 12, 12]
    assert [m.notes["inducing"] for m in in_turn(steady, 3)] == [4, 4, 4]


def test_a_refit_from_scratch_only_when_the_bound_falls_beyond_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    cold = DeepGP._cold

    def counted(self: DeepGP, data: Any, rounds: int) -> Any:
        calls.append(rounds)
        return cold(self, data, rounds)

    monkeypatch.setattr(DeepGP, "_cold", counted)
    in_turn(replace(QUICK, refit=1e9, refit_gap=1), 4)
    assert calls == [0]
    calls.clear()
    in_turn(replace(QUICK, refit=-1e9, refit_gap=2), 3)
    assert calls == [0, 2], "not before the gap has passed"


def test_the_noise_network_is_frozen_at_first_and_moves_later() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((150, 1))
    values = np.sin(5 * points) + 0.6 * points**2 * rng.standard_normal((150, 1))
    spec = replace(
        QUICK,
        noise=Heteroscedastic(frozen_rounds=1),
        refit=1e9,
        schedule=Schedule(first_epochs=6, epochs=40),
    )
    first = spec.fit(points, values, warm=None, rng=rng)
    second = spec.fit(points, values, warm=first.warm, rng=rng)
    assert not first.warm["noise.weights"].any() and second.warm["noise.weights"].any()
    early, late = (m.posterior(points).aleatoric[:, 0] for m in (first, second))
    assert np.allclose(early, early[0])
    assert np.corrcoef(np.sqrt(late), points[:, 0] ** 2)[0, 1] > 0.8


def test_inducing_points_follow_the_archive() -> None:
    rng = np.random.default_rng(0)
    corner = np.concatenate([U, 0.97 + 0.03 * rng.random((30, 3))])
    values = np.concatenate([F, F + 0.1])
    first = fit(QUICK)
    later = QUICK.fit(corner, values, warm=first.warm, rng=rng)

    def near(model: FittedDeepGP) -> int:
        return int((model.warm["x.Z"] > 0.9).all(axis=1).sum())

    assert near(first) == 0 and near(later) > 0


def test_moving_the_anchors_hardly_changes_the_prediction() -> None:
    model = fit(replace(QUICK, inducing=30, features=Inducing(30)))
    stack, state = model._stack, model._round.state
    X = torch.tensor(2.0 * U - 1.0)
    other = refreshed(stack, state, X, 30, np.random.default_rng(1))
    mean, epistemic, _ = stack.trace(state, stack.factors(state), X, model._base).moments()
    again, carried, _ = stack.trace(other, stack.factors(other), X, model._base).moments()
    assert torch.allclose(mean, again, atol=0.02)
    assert torch.allclose(epistemic.sqrt(), carried.sqrt(), atol=0.02)


def test_centres_are_the_points_themselves_when_there_are_few() -> None:
    few = np.repeat(U[:4], 3, axis=0)
    assert len(centres(few, 10, np.random.default_rng(0))) == 4
    found = centres(U, 5, np.random.default_rng(0), start=U[:3])
    assert found.shape == (5, 3) and (found >= 0).all() and (found <= 1).all()


def test_the_variable_that_tells_most_is_chosen_first() -> None:
    points = torch.tensor(np.random.default_rng(0).uniform(-1, 1, (80, 12)))
    Y = torch.stack([torch.cos(3 * points[:, 7]), points[:, 2] + 0.1 * points[:, 7]], dim=1)
    chosen = telling_features(points, Y, 4)
    assert chosen[:2] == [24, 25], "the sums over all variables come first"
    assert set(chosen[2:]) == {7, 2}


def test_base_draws_are_balanced() -> None:
    draws = balanced_normals(8, (3, 2), torch.Generator().manual_seed(0))
    assert torch.allclose(draws.mean(0), torch.zeros(3, 2, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(draws.square().mean(0), torch.ones(3, 2, dtype=torch.float64))


def product(P: Array) -> Array:
    """A function of one variable times a sum over the others: what needs a second layer."""
    g = 1.0 + ((P[:, 1:] - 0.5) ** 2).sum(axis=1)
    angle = 0.5 * np.pi * P[:, 0]
    return np.stack([g * np.cos(angle), g * np.sin(angle)], axis=1)


def test_the_second_layer_learns_products_that_one_layer_and_an_exact_gp_do_not() -> None:
    rng = np.random.default_rng(0)
    points, test = rng.random((90, 25)), rng.random((200, 25))
    spec = DeepGP(features=Inducing(48), schedule=Schedule(first_epochs=10))

    def error(model: DeepGP | ExactGP) -> float:
        fitted = model.fit(points, product(points), warm=None, rng=np.random.default_rng(1))
        return float(((fitted.posterior(test).mean - product(test)) ** 2).mean())

    deep = error(spec)
    assert deep < 0.2 * error(replace(spec, layers=1))
    assert deep < 0.2 * error(ExactGP())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_hundred_variables_it_is_no_worse_than_an_exact_gp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, test = rng.random((200, 100)), rng.random((300, 100))
    truth = product(test)

    def nlpd(model: DeepGP | ExactGP) -> Array:
        fitted = model.fit(points, product(points), warm=None, rng=np.random.default_rng(seed))
        p = fitted.posterior(test)
        square = (truth - p.mean) ** 2 / p.variance
        return np.asarray(0.5 * (np.log(2 * np.pi * p.variance) + square).mean(axis=0))

    assert (nlpd(DeepGP()) <= nlpd(ExactGP())).all()


def test_the_number_of_threads_is_not_ours_to_change() -> None:
    before = torch.get_num_threads()
    fit(QUICK)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "at least one layer"),
        ({"inducing": 0}, "at least one layer"),
        ({"draws": 3}, "must be even"),
        ({"schedule": Schedule(samples=1)}, "must be even"),
    ],
)
def test_impossible_specs_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(QUICK, **change)
