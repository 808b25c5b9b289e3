"""The structured GP with a smooth one beside it, in the shares that their forecasts have earned.

A wrong structure should cost little: on a rotated problem no variable acts on its own, and a plain
GP may forecast better. Both are fitted each round; the mean is (1 - w) s + w e with s the structured
mean and e the exact GP's. The share w of each objective minimises the squared error of what the last
rounds' models said of the points that were evaluated next, with a few made-up rows in favour of the
structure. Not the default; decision D-62 says what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from neuropareto.memory import Memory, joined, part
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.exact_gp import ExactGP, FittedExactGP
from neuropareto.surrogate.structured.model import FittedStructuredGP, Modulators, StructuredGP
from neuropareto.surrogate.structured.record import Record


@dataclass(frozen=True)
class Hedged:
    """``structure`` and ``smooth`` in shares learnt from the ``recent`` arrivals.

    ``inertia`` is the number of made-up rows that the structure forecasts perfectly.
    """

    structure: StructuredGP = StructuredGP()
    smooth: ExactGP = ExactGP(iterations=30)
    recent: int = 30
    inertia: float = 5.0

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedHedged:
        """Fit both to ``U`` (n, d), ``F`` (n, m), n >= 2; ValueError, NumericalFailure."""
        streams = rng.spawn(2)
        forecasts = self._forecasts(np.asarray(U), np.asarray(F), warm)
        first = self.structure.fit(U, F, warm=part(warm, "structure"), rng=streams[0])
        second = self.smooth.fit(U, F, warm=part(warm, "smooth"), rng=streams[1])
        return FittedHedged(first, second, earned(forecasts, self.inertia), forecasts)

    def _forecasts(self, U: Array, F: Array, warm: Memory | None) -> Array:
        """What came and what both models had said, (b, 3, m), the latest last."""
        record = Record.recalled(part(warm, "structure"), U, F, self.structure.variants)
        nothing = np.empty((0, 3, F.shape[1]))
        if warm is None or record is None or "forecasts" not in warm:
            return nothing
        kept = np.asarray(warm["forecasts"])
        if kept.shape[1:] != nothing.shape[1:]:
            return nothing
        n = record.n
        if len(U) > n:
            asis = replace(self.smooth, iterations=0)
            old = asis.fit(U[:n], F[:n], warm=part(warm, "smooth"), rng=np.random.default_rng(0))
            said = record.predicted(U, F, self.structure.points, np.ones(F.shape[1])).mean
            new = np.stack([F[n:], said, old.posterior(U[n:]).mean], axis=1)
            kept = np.concatenate([kept, new])
        return kept[-self.recent :]


def earned(forecasts: Array, inertia: float) -> Array:
    """The share w (m,) in [0, 1] of the second forecaster: least squares with a prior at 0.

    ``forecasts`` (n, 3, m) are outcome y, first s and second e. w minimises the sum of
    (y - (1 - w) s - w e)^2 / c + inertia w^2 with c the row's scale (y - s)^2 + (e - s)^2: a row
    counts by how it divides its error between the two, not by its size.
    """
    y, s, e = forecasts[:, 0], forecasts[:, 1], forecasts[:, 2]
    scale = np.maximum((y - s) ** 2 + (e - s) ** 2, 1e-300)
    above = ((y - s) * (e - s) / scale).sum(axis=0)
    below = ((e - s) ** 2 / scale).sum(axis=0) + inertia
    return np.asarray(np.clip(above / below, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class FittedHedged:
    """Two fitted models; ``share`` (m,) is the weight of the smooth one."""

    structure: FittedStructuredGP
    smooth: FittedExactGP
    share: Array
    forecasts: Array = field(repr=False)

    def posterior(self, U: Array) -> Posterior:
        """The mixture's mean and variances at ``U`` (n, d)."""
        first, w = self.structure.posterior(U), self.share
        if not w.any():
            return first
        second = self.smooth.posterior(U)
        apart = w * (1 - w) * (first.mean - second.mean) ** 2
        return Posterior(
            mean=(1 - w) * first.mean + w * second.mean,
            epistemic=(1 - w) * first.epistemic + w * second.epistemic + apart,
            aleatoric=(1 - w) * first.aleatoric + w * second.aleatoric,
        )

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, each from one of the two models, (n, len(U), m)."""
        first = self.structure.samples(U, n, rng=rng)
        if not self.share.any():
            return first
        chosen = rng.random((n, 1, len(self.share))) < self.share
        return np.where(chosen, self.smooth.samples(U, n, rng=rng), first)

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u at ``U``, (len(U), m, d)."""
        return self.mean_and_gradient(U)[1]

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """The mean (n, m) and its gradient (n, m, d), together."""
        mean, slope = self.structure.mean_and_gradient(U)
        w = self.share
        if not w.any():
            return mean, slope
        other, steep = self.smooth.mean_and_gradient(U)
        return (1 - w) * mean + w * other, (1 - w)[:, None] * slope + w[:, None] * steep

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        """The structure's one-dimensional curves, (b, d, g)."""
        return self.structure.profiles(U, weights, grid)

    @property
    def modulators(self) -> tuple[Modulators, ...]:
        """The structure's modulating variables of each objective."""
        return self.structure.modulators

    @property
    def signal(self) -> Array:
        """The structure's evidence against pure noise, (m,)."""
        return self.structure.signal

    @property
    def density(self) -> Array:
        """The structure's leave-one-out log density of each output, (m,)."""
        return self.structure.density

    @property
    def warm(self) -> Memory:
        """Both models' and the forecasts that the share was learnt from."""
        models = joined({"structure": self.structure.warm, "smooth": self.smooth.warm})
        return {**models, "forecasts": self.forecasts}

    @property
    def notes(self) -> dict[str, object]:
        """The structure's, and the share of the smooth model."""
        return {**self.structure.notes, "model": "hedged_gp", "share": self.share.tolist()}
