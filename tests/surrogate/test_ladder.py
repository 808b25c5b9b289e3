from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from neuropareto.memory import Memory
from neuropareto.space import Array
from neuropareto.surrogate import (
    ExactGP,
    Fitted,
    FourierProxy,
    Ladder,
    LinearProxy,
    NumericalFailure,
    Posterior,
)


@dataclass(frozen=True)
class Falls:
    """Fails with a warm start, or always."""

    always: bool = True

    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Fitted:
        if self.always or warm is not None:
            raise NumericalFailure("singular")
        return LinearProxy().fit(U, F, warm=None, rng=rng)


class Foggy:
    warm: dict[str, Array] = {}  # noqa: RUF012
    notes: dict[str, object] = {}  # noqa: RUF012

    def posterior(self, U: Array) -> Posterior:
        nothing = np.full((len(U), 2), np.nan)
        return Posterior(nothing, nothing, nothing)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.zeros((n, len(U), 2))

    def mean_gradient(self, U: Array) -> Array:
        return np.zeros((len(U), 2, U.shape[1]))


@dataclass(frozen=True)
class Blind:
    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Foggy:
        return Foggy()


U = np.random.default_rng(0).random((20, 3))
F = np.stack([U.sum(axis=1), (U**2).sum(axis=1)], axis=1)


def test_the_first_surrogate_that_works_is_used_and_the_fall_is_noted() -> None:
    model = Ladder((Falls(), Blind(), LinearProxy())).fit(
        U, F, warm=None, rng=np.random.default_rng(0)
    )
    assert model.notes["rung"] == 2
    assert model.notes["failures"] == ["Falls: singular", "Blind: the posterior is not finite"]
    assert np.allclose(model.posterior(U).mean[:, 0], F[:, 0], atol=1e-2)


def test_a_poisoned_warm_start_is_dropped_before_the_model_is() -> None:
    model = Ladder((Falls(always=False),)).fit(
        U, F, warm={"0/x": np.ones(1)}, rng=np.random.default_rng(0)
    )
    assert model.notes["rung"] == 0 and len(model.falls) == 1


def test_a_warm_start_goes_to_its_own_rung() -> None:
    ladder = Ladder((Falls(), ExactGP(iterations=10)))
    model = ladder.fit(U, F, warm=None, rng=np.random.default_rng(0))
    assert all(name.startswith("1/") for name in model.warm)
    again = ladder.fit(U, F, warm=model.warm, rng=np.random.default_rng(0))
    assert np.isfinite(again.posterior(U).mean).all()


def test_when_nothing_works_the_algorithm_is_told() -> None:
    with pytest.raises(NumericalFailure, match=r"No surrogate could be fitted: Falls: singular"):
        Ladder((Falls(), Falls())).fit(U, F, warm=None, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("points", "values"),
    [
        (U, np.ones((20, 2))),
        (np.repeat(U[:2], 10, axis=0), np.repeat(F[:2], 10, axis=0)),
        (U, 1e12 * F - 5e12),
        (U[:1], F[:1]),
        (U[:2], F[:2]),
        (np.random.default_rng(1).random((5, 40)), F[:5]),
    ],
    ids=["constant", "repeated", "huge", "one", "two", "n<d"],
)
def test_awkward_data_are_survived(points: Array, values: Array) -> None:
    model = Ladder((ExactGP(iterations=10), FourierProxy(), LinearProxy())).fit(
        points, values, warm=None, rng=np.random.default_rng(0)
    )
    posterior = model.posterior(np.random.default_rng(2).random((4, points.shape[1])))
    assert np.isfinite(posterior.mean).all() and (posterior.epistemic > 0).all()
