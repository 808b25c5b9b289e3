"""The Acquisition contract: a frozen spec ``.fit`` -> a fitted scorer ``.score`` -> a Utility.

Section "History aware lightweight acquisition network". Notation: n candidates, m objectives, K
rank classes, b remembered proposals; features have f = 3m + K + 2 columns. ``Signals`` is what is
known about candidates before they are evaluated; ``Gains`` (from the archive) is what evaluated
ones turned out to bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from neuropareto.archive import Gains
from neuropareto.memory import Memory
from neuropareto.space import Array


@dataclass(frozen=True, eq=False)
class Signals:
    """What surrogate, classifier and window say about n candidates.

    ``mean``, ``epistemic``, ``aleatoric`` (n, m) come from the surrogate (variances, not standard
    deviations), ``probability`` (n, K) and ``information`` (n,) from the classifier, ``estimate``
    (n,) is the surrogate's own hypervolume estimate, and ``window_mean`` and ``window_std`` are
    those of the last gains. Raises ValueError if the shapes do not fit together.
    """

    mean: Array
    epistemic: Array
    aleatoric: Array
    probability: Array
    information: Array
    estimate: Array
    window_mean: float
    window_std: float

    def __post_init__(self) -> None:
        n = len(self.mean)
        per_objective = (self.mean, self.epistemic, self.aleatoric)
        same = len({value.shape for value in per_objective}) == 1 and self.mean.ndim == 2
        per_point = self.information.shape == self.estimate.shape == (n,)
        if not (same and per_point and self.probability.ndim == 2 and len(self.probability) == n):
            shapes = [value.shape for value in (*per_objective, self.probability)]
            raise ValueError(
                f"Signals need mean, epistemic and aleatoric (n, m), probability (n, K), "
                f"information and estimate (n,), got {shapes}, {self.information.shape} and "
                f"{self.estimate.shape}."
            )

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self.mean)

    def first(self, n: int) -> Signals:
        """The same about the first n candidates."""
        arrays = ("mean", "epistemic", "aleatoric", "probability", "information", "estimate")
        return replace(self, **{name: getattr(self, name)[:n] for name in arrays})

    def features(self) -> Array:
        """[mean, epistemic, aleatoric, probability, window mean, window std], (n, 3m + K + 2).

        Paper: Eq. feat, in its order.
        """
        window = np.tile([self.window_mean, self.window_std], (len(self), 1))
        parts = (self.mean, self.epistemic, self.aleatoric, self.probability, window)
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class Utility:
    """Predicted hypervolume gain (n,) and diversity gain (n,) of n candidates. Paper: Eq. acq_map.

    Larger is better in both. Only differences between candidates matter: the unit of
    ``hypervolume`` is that of ``Signals.estimate``, ``diversity`` counts average gains.
    """

    hypervolume: Array
    diversity: Array


class FittedAcquisition(Protocol):
    """A fitted acquisition: a pure function of the signals it is shown."""

    def score(self, signals: Signals) -> Utility:
        """The utility of each candidate."""
        ...

    @property
    def warm(self) -> Memory:
        """What a later ``fit`` may start from: named arrays."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """JSON diagnostics of the fit."""
        ...


class Acquisition(Protocol):
    """A frozen spec that can be fitted to what past proposals brought."""

    def fit(
        self,
        features: Array,
        estimate: Array,
        gains: Gains,
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> FittedAcquisition:
        """Fit to b past proposals, oldest first; b may be 0.

        ``features`` (b, f) and the surrogate's ``estimate`` (b,) are those of the moment when each
        point was proposed; ``gains`` (b,) are what it brought, not normalised.
        """
        ...
