"""The exam itself: it must fail whoever cheats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from neuropareto.memory import Memory
from neuropareto.space import Array
from neuropareto.surrogate import Fitted, LinearProxy, Posterior
from neuropareto.testing.surrogate import check_surrogate


class Cheat:
    """A linear proxy with one thing wrong."""

    def __init__(self, honest: Fitted, trick: str) -> None:
        self._honest, self._trick, self._asked = honest, trick, 0

    def posterior(self, U: Array) -> Posterior:
        found = self._honest.posterior(U)
        self._asked += 1
        if self._trick == "impure":
            return Posterior(found.mean + self._asked, found.epistemic, found.aleatoric)
        if self._trick == "overconfident":
            return Posterior(found.mean, 1e-4 * found.epistemic, found.aleatoric)
        if self._trick == "negative":
            return Posterior(found.mean, -found.epistemic, found.aleatoric)
        return found

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        drawn = self._honest.samples(U, n, rng=rng)
        return rng.permuted(drawn, axis=0) if self._trick == "independent draws" else drawn

    def mean_gradient(self, U: Array) -> Array:
        gradient = self._honest.mean_gradient(U)
        return 2.0 * gradient if self._trick == "gradient" else gradient

    @property
    def warm(self) -> Memory:
        odd = np.array(["text"]) if self._trick == "warm" else np.zeros(1)
        return {**self._honest.warm, "odd": odd}

    @property
    def notes(self) -> dict[str, object]:
        return {"value": float("nan")} if self._trick == "notes" else {}


@dataclass(frozen=True)
class Cheating:
    trick: str

    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Cheat:
        if self.trick == "global":
            np.random.rand()  # noqa: NPY002
        if self.trick == "careless" and len(U) != len(F):
            F = np.ones((len(U), 2))
        return Cheat(LinearProxy(iterations=5).fit(U, F, warm=None, rng=rng), self.trick)


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        ("impure", "deviations off"),
        ("overconfident", "deviation"),
        ("negative", "not positive"),
        ("independent draws", "not joint"),
        ("gradient", "finite differences"),
        ("warm", "dtype"),
        ("global", "global generator"),
        ("careless", "must be a ValueError"),
    ],
)
def test_cheats_are_found(trick: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_surrogate(Cheating(trick))


def test_notes_must_be_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        check_surrogate(Cheating("notes"))


def test_an_honest_wrapper_passes() -> None:
    check_surrogate(Cheating("none"))
