"""The Surrogate contract: a frozen spec ``.fit`` -> a fitted model ``.posterior`` -> a Posterior.

The fitted model is a pure function: all base draws are made in ``fit``, so the same model gives
the same posterior for the same points, whatever else it was asked before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuropareto.memory import Memory
from neuropareto.space import Array


@dataclass(frozen=True)
class Posterior:
    """Predictions at n points for m objectives, each field (n, m). Paper: f_vec, ep_vec, al_vec.

    ``mean`` is E[f], ``epistemic`` the variance that more data would reduce, ``aleatoric`` the
    variance of the observation noise. All in the objectives' own units (variances: squared).
    """

    mean: Array
    epistemic: Array
    aleatoric: Array

    @property
    def variance(self) -> Array:
        """The variance of a fresh observation: epistemic + aleatoric, (n, m)."""
        return self.epistemic + self.aleatoric


class Fitted(Protocol):
    """A fitted surrogate: a pure function of the points it is asked about."""

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (n, d)."""
        ...

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives at ``U``, (n, len(U), m)."""
        ...

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u at ``U``, (len(U), m, d)."""
        ...

    @property
    def warm(self) -> Memory:
        """What a later ``fit`` may start from: named arrays, small enough to store each round."""
        ...

    @property
    def notes(self) -> dict[str, object]:
        """JSON diagnostics of the fit: epochs, losses, the rung of the ladder that was needed."""
        ...


class Surrogate(Protocol):
    """A frozen spec that can be fitted to evaluated points."""

    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Fitted:
        """Fit to points ``U`` (n, d) with objectives ``F`` (n, m), optionally from a warm start."""
        ...
