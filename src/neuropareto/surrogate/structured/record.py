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
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.training import Trained, Variant

NOMINAL_Z = 1.6448536269514722  # two-sided 90 %


@dataclass(frozen=True, eq=False)
class Record:
    """The state after a fit to ``n`` rows; ``factors`` (m,) the recalibration it worked with."""

    trained: tuple[Trained, ...]
    n: int
    round: int
    factors: Array
    earlier: list[Array]
    memory: Memory

    @classmethod
    def of(
        cls,
        U: Array,
        F: Array,
        trained: tuple[Trained, ...],
        factors: Array,
        scores: list[Array],
        last: Record | None,
        variants: Sequence[Variant],
    ) -> Record:
        """The record of a fit; ``scores`` are |z| (b, m), one array for each earlier batch.

        ``variants`` are the beliefs among which the fit could choose, in a fixed order.
        """
        round = 1 if last is None else last.round + 1
        m = F.shape[1]
        sizes = np.array([len(z) for z in scores], dtype=np.int64)
        state: dict[str, npt.NDArray[Any]] = {
            "mark": _mark(U, F),
            "count": np.array([len(U), round], dtype=np.int64),
            "factors": factors,
            "scores": np.concatenate([np.empty((0, m)), *scores]),
            "batches": sizes,
        }
        outputs = {str(j): _stored(t, variants) for j, t in enumerate(trained)}
        return cls(trained, len(U), round, factors, scores, state | joined(outputs))

    @classmethod
    def recalled(
        cls, warm: Memory | None, U: Array, F: Array, variants: Sequence[Variant]
    ) -> Record | None:
        """The record in ``warm``, or None if it is not about the first rows of this data."""
        if warm is None or not {"mark", "count", "factors", "scores", "batches"} <= set(warm):
            return None
        n, round = (int(v) for v in warm["count"])
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
        scores = np.split(np.asarray(warm["scores"]), np.cumsum(warm["batches"])[:-1])
        earlier = [z for z in scores if len(z)]
        return cls(found, n, round, np.asarray(warm["factors"]), earlier, warm)

    def predicted(self, U: Array, F: Array, points: int, factors: Array) -> Posterior:
        """What the recorded model says about the rows after its own."""
        kept = even_subsample(self.n, points)
        X = Points.of(torch.tensor(U[kept]))
        models = tuple(
            Conditioned.on(t.kernel, t.P, X, F[kept, j]) for j, t in enumerate(self.trained)
        )
        return posterior(models, factors, U[self.n :])

    def scores(self, U: Array, F: Array, points: int) -> list[Array]:
        """|z| (b, m) of earlier batches and, last, of the rows that arrived since the record."""
        if len(U) == self.n:
            return self.earlier
        raw = self.predicted(U, F, points, np.ones(F.shape[1]))
        return [*self.earlier, np.abs(F[self.n :] - raw.mean) / np.sqrt(raw.variance)]

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
    arrays["form"] = np.array([which, len(kernel.waves) > 0, len(kernel.corners) > 0])
    return arrays


def _restored(stored: Memory | None, d: int, variants: Sequence[Variant]) -> Trained | None:
    if stored is None or not {"modulating", "form", "weight"} <= set(stored):
        return None
    J = tuple(int(j) for j in stored["modulating"])
    # Studies from before there were corners stored two numbers.
    which, waves, corners, *_ = (*(int(v) for v in stored["form"]), 0)
    if len(stored["weight"]) != d or not 0 <= which < len(variants):
        return None
    variant = variants[which]
    kernel = variant.kernel()
    kernel = kernel.modulated(variant.modulation(J)) if J else kernel
    kernel = kernel.with_waves() if waves else kernel
    kernel = kernel.with_corners(Corners(variant.weights)) if corners else kernel
    nothing = Points.of(torch.empty(0, d, dtype=torch.float64))
    values = torch.empty(0, dtype=torch.float64)
    table = Evidence(kernel, nothing, values, variant.warped).table
    known = {k: vector(v) for k, v in stored.items() if k in table.parameters}
    return Trained(variant, kernel, table.start(known))
