from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from neuropareto.surrogate import DeepGP, Inducing, Schedule
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.deep_start import shallow, start_state, telling_features
from neuropareto.surrogate.stack import Stack, State
from neuropareto.surrogate.training import Trainer, _Adam, _flat
from neuropareto.testing.surrogate import smooth

U, F = smooth(60, 3, noise=0.1)
X = torch.tensor(2.0 * U - 1.0)
Y = torch.tensor((F - F.mean(axis=0)) / F.std(axis=0))


def started(schedule: Schedule, rounds: int = 0) -> tuple[Trainer, State]:
    stack: Stack = DeepGP(features=Inducing(16)).stack
    generator = torch.Generator().manual_seed(0)
    fit = shallow(stack, X, Y, telling_features(X, Y, 4), 5, generator)
    state = start_state(stack, X, Y, fit, 24, np.random.default_rng(0), generator)
    return Trainer(stack, schedule, X, Y, rounds, generator), state


def test_training_raises_the_bound() -> None:
    trainer, state = started(Schedule())
    optimizer = _Adam(trainer.stack.trainable(state, 0), 0.02)
    index = torch.arange(60)
    bounds = []
    for _ in range(25):
        _, state, bound = trainer.step(state, optimizer, index, 60)
        bounds.append(bound)
    assert np.mean(bounds[-5:]) > np.mean(bounds[:5]) + 2.0


def test_a_minibatch_bound_estimates_the_whole() -> None:
    trainer, state = started(Schedule(step=1e-6))
    still = _Adam([], 0.0)
    _, state, whole = trainer.step(state, still, torch.arange(60), 60)
    halves = [
        trainer.step(state, still, part, 60)[2] for part in torch.split(torch.arange(60), 30)
    ]
    assert np.mean(halves) == pytest.approx(whole, rel=0.1, abs=10.0)


def test_the_held_out_fold_rotates_over_all_points() -> None:
    held: list[int] = []
    for rounds in range(5):
        seen, out = started(Schedule(held_out=0.2), rounds)[0].folds()
        assert sorted([*seen.tolist(), *out.tolist()]) == list(range(60))
        held += out.tolist()
    assert sorted(held) == list(range(60)), "five rounds hold out every point once"


def test_the_best_validated_state_is_kept_and_then_learns_all_points() -> None:
    trainer, state = started(Schedule(plateau=-1.0, patience=99, check=1))
    progress = trainer.run(state, 12)
    assert len(progress.nlpd) == 13 and progress.stopped == "epochs"
    seen, held = trainer.folds()
    _, blind, _ = trainer.step(progress.state, _Adam([], 0.0), seen, len(seen))
    assert trainer.nlpd(progress.state, held) < trainer.nlpd(blind, held)


def test_training_stops_on_a_plateau_and_on_validation() -> None:
    trainer, state = started(Schedule(plateau=10.0))
    assert trainer.run(state, 40).stopped == "plateau"
    trainer, state = started(Schedule(plateau=-1.0, patience=3, rate=0.3))
    assert trainer.run(state, 60).stopped == "validation"


def test_repeated_failures_leave_the_last_good_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer, state = started(Schedule(settle=0))

    def broken(*_: Any) -> Any:
        raise NumericalFailure("singular")

    monkeypatch.setattr(Trainer, "step", broken)
    progress = trainer.run(state, 50)
    assert progress.stopped == "last good parameters" and progress.failures == 4
    assert all(torch.equal(progress.state[k], v) for k, v in state.items())


def test_a_bound_that_is_not_finite_is_a_failure() -> None:
    trainer, state = started(Schedule())
    state["noise.bias"] = torch.full_like(state["noise.bias"], math.nan)
    with pytest.raises(NumericalFailure):
        trainer.step(state, _Adam([], 0.0), torch.arange(60), 60)


def test_early_noise_is_dearer_than_late_noise() -> None:
    stack = DeepGP(layers=3, features=Inducing(16)).stack
    generator = torch.Generator().manual_seed(0)
    fit = shallow(stack, X, Y, telling_features(X, Y, 4), 2, generator)
    state = start_state(stack, X, Y, fit, 24, np.random.default_rng(0), generator)

    def cost(layer: int) -> float:
        loud = {**state, f"{layer}.log_noise": torch.zeros_like(state[f"{layer}.log_noise"])}
        return float(stack.log_prior(state, 1.0) - stack.log_prior(loud, 1.0))

    assert cost(1) == pytest.approx(2.0 * cost(2), rel=1e-3) and cost(2) > 0.0


def test_a_plateau_is_judged_over_ten_epochs() -> None:
    assert not _flat([100.0] * 9, 1e-3)
    assert _flat([100.0] * 10, 1e-3)
    assert not _flat([100.0 + i for i in range(10)], 1e-3)
    assert _flat([100.0 + 0.05 * i for i in range(10)], 1e-3)
