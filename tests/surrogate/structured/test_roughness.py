from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from neuropareto.problems import problem
from neuropareto.space import Array
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured.roughness import roughness
from neuropareto.surrogate.structured.training import TIGHT, Effort, Rough

EVIDENT = Rough().evident
UNCHALLENGED = Effort(rough=Rough(satisfied=-math.inf))


def scores(e: Array, U: Array) -> Array:
    return np.asarray(roughness(torch.tensor(e), torch.tensor(U)))


def test_noise_has_scores_around_zero_that_are_rarely_evident() -> None:
    rng = np.random.default_rng(0)
    found = np.stack([scores(rng.standard_normal(150), rng.random((150, 40))) for _ in range(30)])
    assert abs(found.mean()) < 0.1
    assert 0.8 < found.std() < 1.3
    assert np.mean(found.max(axis=1) > EVIDENT) < 0.2


@pytest.mark.parametrize("hills", [3, 6, 8])
def test_the_variable_with_hills_is_found_whatever_its_phase(hills: int) -> None:
    rng = np.random.default_rng(hills)
    U = rng.random((120, 50))
    for phase in rng.uniform(0.0, 2.0 * np.pi, 4):
        e = np.sin(2.0 * np.pi * hills * U[:, 17] + phase) + 0.5 * rng.standard_normal(120)
        found = scores(e, U)
        assert int(found.argmax()) == 17
        assert found[17] > EVIDENT


def test_a_smooth_effect_is_not_rough() -> None:
    U = np.random.default_rng(3).random((200, 10))
    assert scores((U[:, 4] - 0.3) ** 2, U)[4] < 0.0
    assert scores(np.exp(2.0 * U[:, 4]), U)[4] < 0.0


def test_scores_do_not_depend_on_units_or_on_the_order_of_variables() -> None:
    rng = np.random.default_rng(5)
    U, order = rng.random((80, 12)), rng.permutation(12)
    e = np.sin(30.0 * U[:, 2]) + U[:, 5]
    np.testing.assert_allclose(scores(1e6 * e - 3.0, U), scores(e, U), rtol=1e-9)
    np.testing.assert_allclose(scores(e, U[:, order]), scores(e, U)[order], rtol=1e-9)


def test_what_never_moves_is_not_rough() -> None:
    U = np.random.default_rng(6).random((50, 3))
    U[:, 1] = 0.4
    assert np.isfinite(scores(np.ones(50), U)).all()
    assert scores(np.sin(40.0 * U[:, 0]), U)[1] < 0.0


def test_an_objective_of_six_hills_over_one_of_thirty_variables_is_learnt() -> None:
    """ZDT6: without the rival the model fits the noise of thirty variables, R2 < 0."""
    task = problem("zdt6", d=30)
    rng = np.random.default_rng(1)
    U, V = task.space.latin_hypercube(100, rng=rng), rng.random((300, 30))
    F, T = (np.asarray(task(A))[:, :1] for A in (U, V))

    def explained(effort: Effort) -> float:
        spec = StructuredGP(few=(TIGHT,), effort=effort)
        mean = spec.fit(U, F, warm=None, rng=np.random.default_rng(0)).posterior(V).mean
        return float(1.0 - np.mean((mean - T) ** 2) / T.var())

    assert explained(Effort()) > 0.98
    assert explained(UNCHALLENGED) < 0.3


def test_a_model_that_foresees_its_data_meets_no_rival() -> None:
    """Where the rule does not act a fit is the same bit for bit."""
    task = problem("dtlz2", d=12)
    U = np.random.default_rng(2).random((60, 12))
    F = np.asarray(task(U))
    with_rule, without = (
        StructuredGP(few=(TIGHT,), effort=effort).fit(
            U, F, warm=None, rng=np.random.default_rng(0)
        )
        for effort in (Effort(), UNCHALLENGED)
    )
    V = np.random.default_rng(3).random((20, 12))
    np.testing.assert_array_equal(with_rule.posterior(V).mean, without.posterior(V).mean)
