"""What a round leaves to the next: hyper-parameters, the rows they saw, and recent z-scores.

All named arrays, so that a study can store them. The predictions of earlier proposals are not
stored but made again: rows arrive in order, so the last round's model is its hyper-parameters
conditioned on the first ``n`` rows, and everything after row n was unknown to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from neuropareto.memory import Memory, joined, part
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.structured.conditioned import Conditioned, posterior
from neuropareto.surrogate.structured.corners import Corners
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.parameters import vector
from neuropareto.surrogate.structured.placed import Placed
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.training import Looked, Trained, Variant

NOMINAL_Z = 1.6448536269514722  # two-sided 90 %
_KEPT = 100  # scores that a later round may ask for


@dataclass(frozen=True, eq=False)
class Record:
    """The state after a fit to ``n`` rows; ``factors`` (m,) the recalibration it worked with.

    ``looked`` is when hyper-parameters were last trained, ``earlier`` are the |z|-scores (b, m) of the
    latest proposals.
    """

    trained: tuple[Trained, ...]
    n: int
    looked: Looked
    factors: Array
    earlier: Array
    memory: Memory

    @classmethod
    def of(
        cls,
        U: Array,
        F: Array,
        trained: tuple[Trained, ...],
        factors: Array,
        scores: Array,
        looked: Looked,
        variants: Sequence[Variant],
    ) -> Record:
        """The record of a fit; the latest of the ``scores``, |z| (b, m), are kept.

        ``variants`` are the beliefs among which the fit could choose, in a fixed order.
        """
        kept = scores[-_KEPT:]
        state: dict[str, npt.NDArray[Any]] = {
            "mark": _mark(U, F),
            "count": np.array([len(U), looked.steps, looked.rescan], dtype=np.int64),
            "factors": factors,
            "scores": kept,
        }
        outputs = {str(j): _stored(t, variants) for j, t in enumerate(trained)}
        memory = state | joined(outputs)
        return cls(trained, len(U), looked, factors, kept, memory)

    @classmethod
    def recalled(
        cls, warm: Memory | None, U: Array, F: Array, variants: Sequence[Variant]
    ) -> Record | None:
        """The record in ``warm``, or None if it is not about the first rows of this data."""
        if warm is None or not {"mark", "count", "factors", "scores"} <= set(warm):
            return None
        # Studies of before D-89 stored two numbers, of which the second counted rounds.
        n, steps, rescan, *_ = (*(int(v) for v in warm["count"]), 0)
        m = F.shape[1]
        mark = np.asarray(warm["mark"])
        if n > len(U) or mark.shape != (3 + m,) or mark[0] != U.shape[1]:
            return None
        if not np.array_equal(mark, _mark(U[:n], F[:n])):
            return None
        restored = [_restored(part(warm, str(j)), U.shape[1], variants) for j in range(m)]
        found = tuple(t for t in restored if t is not None)
        if len(found) < m:
            return None
        scores = np.asarray(warm["scores"])
        factors = np.asarray(warm["factors"])
        return cls(found, n, Looked(steps, rescan), factors, scores, warm)

    def predicted(self, U: Array, F: Array, points: int, factors: Array) -> Posterior:
        """What the recorded model says about the rows after its own."""
        kept = even_subsample(self.n, points)
        X = Points.of(torch.tensor(U[kept]))
        models = tuple(
            Conditioned.on(t.kernel, t.P, X, F[kept, j]) for j, t in enumerate(self.trained)
        )
        return posterior(models, factors, U[self.n :])

    def scores(self, U: Array, F: Array, points: int) -> Array:
        """|z| (b, m) of earlier proposals and, last, of the rows that arrived since the record."""
        if len(U) == self.n:
            return self.earlier
        raw = self.predicted(U, F, points, np.ones(F.shape[1]))
        new = np.abs(F[self.n :] - raw.mean) / np.sqrt(raw.variance)
        return np.concatenate([self.earlier, new])

    def coverage(self, U: Array, F: Array, points: int) -> float | None:
        """The share of new values inside the recorded model's recalibrated 90 % intervals."""
        if len(U) == self.n:
            return None
        said = self.predicted(U, F, points, self.factors)
        inside = np.abs(F[self.n :] - said.mean) <= NOMINAL_Z * np.sqrt(said.variance)
        return float(inside.mean())


def _mark(U: Array, F: Array) -> Array:
    """A fingerprint of rows: enough to notice other data, cheap to compare; (3 + m,)."""
    return np.concatenate([[U.shape[1], U.sum(), U[-1].sum()], F.sum(axis=0)])


def _stored(model: Trained, variants: Sequence[Variant]) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {k: v.numpy().copy() for k, v in model.P.items()}
    arrays["modulating"] = np.array(model.kernel.modulation.J, dtype=np.int64)
    which = [variant.name for variant in variants].index(model.variant.name)
    kernel = model.kernel
    parts = (kernel.waves, kernel.corners, kernel.places)
    arrays["form"] = np.array([which, *(len(part) > 0 for part in parts)])
    return arrays


def _restored(stored: Memory | None, d: int, variants: Sequence[Variant]) -> Trained | None:
    if stored is None or not {"modulating", "form", "weight"} <= set(stored):
        return None
    J = tuple(int(j) for j in stored["modulating"])
    # Studies from before there were corners stored two numbers, from before there were places three.
    which, waves, corners, places, *_ = (*(int(v) for v in stored["form"]), 0, 0)
    if len(stored["weight"]) != d or not 0 <= which < len(variants):
        return None
    variant = variants[which]
    kernel = variant.kernel()
    kernel = kernel.modulated(variant.modulation(J)) if J else kernel
    kernel = kernel.with_waves() if waves else kernel
    kernel = kernel.with_corners(Corners(variant.weights)) if corners else kernel
    kernel = kernel.with_places(Placed()) if places else kernel
    nothing = Points.of(torch.empty(0, d, dtype=torch.float64))
    values = torch.empty(0, dtype=torch.float64)
    table = Evidence(kernel, nothing, values, variant.warped).table
    known = {k: vector(v) for k, v in stored.items() if k in table.parameters}
    return Trained(variant, kernel, table.start(known))
