"""Viability: where evaluations fail is learnt, and becomes one more constraint of the search.

A simulator that diverges tells nothing about its objectives, but where it diverged. A surrogate of
its own sees -1 at every point that succeeded and +1 at every one that failed, and its output stands
behind the constraints of the round's surrogate: everything that keeps a search feasible then keeps it
viable too. Failures that come at random leave no structure, and so no effect. Ours, decision D-69;
in the paper no evaluation fails.
Notation: n successes, k failures, m + c outputs of the round's surrogate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.moves import Modulating, Profiled, profiled
from neuropareto.space import Array
from neuropareto.surrogate import NumericalFailure
from neuropareto.surrogate.contract import Fitted, Posterior
from neuropareto.surrogate.structured import FittedStructuredGP, StructuredGP, Uncalibrated
from neuropareto.surrogate.structured.training import TIGHT, Effort


class Viability(Protocol):
    """What a round makes of failed evaluations."""

    def guarded(
        self, model: Fitted, archive: Archive, *, rng: np.random.Generator
    ) -> tuple[Fitted, Archive]:
        """The surrogate and the archive as the search shall see them."""
        ...


@dataclass(frozen=True)
class Unguarded:
    """Failures are forgotten."""

    def guarded(
        self, model: Fitted, archive: Archive, *, rng: np.random.Generator
    ) -> tuple[Fitted, Archive]:
        """Both as they are."""
        return model, archive


# Curves and pair products, fitted afresh each round: labels need no modulators, waves or corners.
_LABELS = StructuredGP(
    few=(replace(TIGHT, name="labels", warped=False),),
    effort=Effort(
        additive=25, modulated=1, last=25, modulators=0, waves=False, corners=False, places=False
    ),
    recalibration=Uncalibrated(),
)


@dataclass(frozen=True)
class Learnt:
    """From ``least`` failures on, a constraint that holds where an evaluation should succeed."""

    surrogate: StructuredGP = _LABELS
    least: int = 3

    def guarded(
        self, model: Fitted, archive: Archive, *, rng: np.random.Generator
    ) -> tuple[Fitted, Archive]:
        """With one more output and one more constraint, -1 at every success.

        As they are with fewer failures, or if the labels cannot be fitted.
        """
        n, k = len(archive), len(archive.failed)
        if k < self.least:
            return model, archive
        U = np.concatenate([archive.U, archive.failed])
        label = np.concatenate([-np.ones((n, 1)), np.ones((k, 1))])
        # Models of many points keep the latest half: the two kinds must not lie one after the other.
        order = np.argsort(np.concatenate([np.arange(n) / n, np.arange(k) / k]), kind="stable")
        try:
            labels = self.surrogate.fit(U[order], label[order], warm=None, rng=rng)
        except NumericalFailure:  # better a round that does not know than none
            return model, archive
        G = np.concatenate([archive.G, -np.ones((n, 1))], axis=1)
        seen = Archive.of(archive.U, archive.F, G, archive.failed)
        inside = profiled(model)
        if inside is None:
            return Guarded(model, labels), seen
        return GuardedProfiles(inside, labels), seen


class Guarded:
    """A fitted surrogate with the outputs of two."""

    def __init__(self, model: Fitted, labels: FittedStructuredGP) -> None:
        self._model, self._labels = model, labels

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (b, d), (b, m + c + 1) each."""
        a, b = self._model.posterior(U), self._labels.posterior(U)
        return Posterior(
            np.concatenate([a.mean, b.mean], axis=1),
            np.concatenate([a.epistemic, b.epistemic], axis=1),
            np.concatenate([a.aleatoric, b.aleatoric], axis=1),
        )

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws, (n, b, m + c + 1)."""
        draws = [model.samples(U, n, rng=rng) for model in (self._model, self._labels)]
        return np.concatenate(draws, axis=2)

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u at ``U``, (b, m + c + 1, d)."""
        parts = [model.mean_gradient(U) for model in (self._model, self._labels)]
        return np.concatenate(parts, axis=1)

    @property
    def warm(self) -> Memory:
        """That of the round's surrogate; labels start afresh."""
        return self._model.warm

    @property
    def notes(self) -> dict[str, object]:
        """Those of the round's surrogate."""
        return self._model.notes


class GuardedProfiles(Guarded):
    """The same where the round's surrogate shows its profiles."""

    def __init__(self, model: Profiled, labels: FittedStructuredGP) -> None:
        super().__init__(model, labels)
        self._inside = model

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """The mean (b, m + c + 1) and its gradient (b, m + c + 1, d)."""
        pairs = [model.mean_and_gradient(U) for model in (self._inside, self._labels)]
        F, G = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
        return F, G

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        """The curves (b, d, g) of the weighted outputs along each variable."""
        own = self._inside.profiles(U, weights[:, :-1], grid)
        return own + self._labels.profiles(U, weights[:, -1:], grid)

    @property
    def modulators(self) -> tuple[Modulating, ...]:
        """The modulating variables of each output."""
        return (*self._inside.modulators, *self._labels.modulators)

    @property
    def signal(self) -> Array:
        """The evidence against pure noise, (m + c + 1,)."""
        return np.concatenate([self._inside.signal, self._labels.signal])
