"""The ladder: numerical failures climb to cheaper surrogates and are noted; a run goes on.

Rungs, in order: more jitter (inside every Cholesky factor), the last good parameters (inside every
training), the same model without its warm start, the next cheaper model. If the last model fails
too, :class:`NumericalFailure` tells the algorithm to propose quasi-random points. A model whose
posterior is not finite on its own data has failed as well.
Paper: silent on numerical failures (decision D-29).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from neuropareto.memory import Memory, joined, part
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate

_FAILURES = (
    NumericalFailure,
    np.linalg.LinAlgError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    FloatingPointError,
    ZeroDivisionError,
    OverflowError,
)


@dataclass(frozen=True)
class Ladder:
    """Surrogates from the best to the cheapest; the first that can be fitted is used."""

    surrogates: tuple[Surrogate, ...]

    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Rung:
        """The first fit that works; NumericalFailure if none does."""
        streams = rng.spawn(2 * len(self.surrogates))
        falls: list[str] = []
        for i, surrogate in enumerate(self.surrogates):
            known = part(warm, str(i))
            for start in (known, None) if known else (None,):
                stream = streams[2 * i + (start is not known)]
                try:
                    model = surrogate.fit(U, F, warm=start, rng=stream)
                    _check(model, U)
                except _FAILURES as error:
                    falls.append(f"{type(surrogate).__name__}: {error}")
                else:
                    return Rung(model, i, tuple(falls))
        raise NumericalFailure("No surrogate could be fitted: " + "; ".join(falls))


@dataclass(frozen=True, eq=False)
class Rung:
    """A fitted surrogate and how it was reached: its place on the ladder and what fell before."""

    model: Fitted
    place: int
    falls: tuple[str, ...] = field(default=())

    def posterior(self, U: Array) -> Posterior:
        """The model's."""
        return self.model.posterior(U)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """The model's."""
        return self.model.samples(U, n, rng=rng)

    def mean_gradient(self, U: Array) -> Array:
        """The model's."""
        return self.model.mean_gradient(U)

    @property
    def warm(self) -> Memory:
        """The model's, under its place on the ladder."""
        return joined({str(self.place): self.model.warm})

    @property
    def notes(self) -> dict[str, object]:
        """The model's, with its rung and the failures before it."""
        return {**self.model.notes, "rung": self.place, "failures": list(self.falls)}


def _check(model: Fitted, U: Array) -> None:
    """Ask a few of the model's own points; a posterior that is not finite is a failure."""
    few = model.posterior(U[:: max(1, len(U) // 8)])
    for values in (few.mean, few.epistemic, few.aleatoric):
        if not np.isfinite(values).all():
            raise NumericalFailure("the posterior is not finite")
