"""The history of proposals: window statistics, replay buffer, normalised targets.

Sections "Sliding window statistics", "Online training" and "Estimation of Diversity Score".
Notation: b remembered proposals, d variables, f features. A ``History`` keeps the features of each
point as they were when it was proposed. They are never recomputed: a model that has seen the
outcome would describe the point differently, and the outcome would leak into its own prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter
from scipy.spatial.distance import cdist

from neuropareto.memory import Memory
from neuropareto.space import Array

Rows = npt.NDArray[np.int64]

_SMALLEST = float(np.finfo(np.float64).tiny)
_HALF_CELL = 0.25 + 1e-9


def window_statistics(gains: Array, w: int) -> tuple[float, float]:
    """Mean and standard deviation of the last ``w`` hypervolume gains; (0, 0) if there are none.

    Paper: mu and sigma of Delta HV in Eq. feat. ``gains`` (b,) in order of arrival.
    """
    if w < 1:
        raise ValueError(f"The window must hold at least one gain, got w={w}.")
    recent = np.asarray(gains, dtype=np.float64)[-w:]
    return (float(recent.mean()), float(recent.std())) if len(recent) else (0.0, 0.0)


def running_magnitude(gains: Array, memory: float = 0.9) -> Array:
    """The running average of |gain| after each arrival, (b,) -> (b,).

    An exponential moving average that forgets by the factor ``memory`` per arrival, divided by the
    weight it has gathered so far, so that it is an average from the first arrival on.
    """
    if not 0 <= memory < 1:
        raise ValueError(f"The memory of a running average must lie in [0, 1), got {memory}.")
    size = np.abs(np.asarray(gains, dtype=np.float64))
    gathered = 1.0 - memory ** np.arange(1, len(size) + 1)
    return np.asarray(lfilter([1.0 - memory], [1.0, -memory], size) / gathered)


def normalised(gains: Array, memory: float = 0.9, epsilon: float = _SMALLEST) -> Array:
    """Gains over the running magnitude at their arrival: gain_i / (eps + mean |gain|_i), (b,).

    Paper: Eq. div_norm. The running average includes gain i itself, so no target exceeds
    1 / (1 - memory) once the average has settled, however large a spike. The default ``epsilon``
    only guards the division, so the targets do not depend on the unit of the gains.
    """
    return np.asarray(gains, dtype=np.float64) / (epsilon + running_magnitude(gains, memory))


@dataclass(frozen=True, eq=False)
class History:
    """The last proposals, oldest first: points ``U`` (b, d), ``features`` (b, f), ``estimate`` (b,).

    A value: :meth:`extended` returns a new one. Paper: the bounded history buffer of Eq. acq_loss.
    """

    U: Array
    features: Array
    estimate: Array

    @classmethod
    def empty(cls, d: int, width: int) -> History:
        """A history without proposals, for d variables and f = ``width`` features."""
        return cls(np.empty((0, d)), np.empty((0, width)), np.empty(0))

    @classmethod
    def recalled(cls, memory: Memory | None, d: int, width: int) -> History:
        """The history in ``memory``, or an empty one if it is missing or of another shape."""
        if memory is None or any(name not in memory for name in ("U", "features", "estimate")):
            return cls.empty(d, width)
        U, features, estimate = memory["U"], memory["features"], memory["estimate"]
        if U.shape != (len(U), d) or features.shape != (len(U), width):
            return cls.empty(d, width)
        return cls(U, features, estimate) if estimate.shape == (len(U),) else cls.empty(d, width)

    @property
    def memory(self) -> Memory:
        """The history as named arrays; the inverse of :meth:`recalled`."""
        return {"U": self.U, "features": self.features, "estimate": self.estimate}

    def __len__(self) -> int:
        """The number of remembered proposals."""
        return len(self.U)

    def extended(
        self, U: Array, features: Array, estimate: Array, capacity: int = 1000
    ) -> History:
        """This history with q more proposals; the oldest beyond ``capacity`` are forgotten.

        ``U`` (q, d), ``features`` (q, f) and ``estimate`` (q,) as they are now, when proposing.
        The paper uses capacities of 500 to 2000. Raises ValueError on other shapes.
        """
        d, width = self.U.shape[1], self.features.shape[1]
        expected = ((len(U), d), (len(U), width), (len(U),))
        if (U.shape, features.shape, estimate.shape) != expected or capacity < 1:
            raise ValueError(
                f"New proposals need shapes {expected} and a capacity >= 1, got {U.shape}, "
                f"{features.shape}, {estimate.shape} and {capacity}."
            )
        return History(
            np.concatenate([self.U, U])[-capacity:],
            np.concatenate([self.features, features])[-capacity:],
            np.concatenate([self.estimate, estimate])[-capacity:],
        )

    def matched(self, U: Array) -> tuple[Rows, Rows]:
        """Which remembered proposals have been evaluated: (rows here, rows of ``U``), in step.

        ``U`` (n, d) are evaluated points in order of arrival. Points match if all coordinates are
        equal, one to one; of repeated points the latest are matched with the latest. Proposals
        still pending, or failed, match nothing. Both results are in the order of ``U``.
        """
        if not len(self) or not len(U):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        # The archive may be large: one column leaves few rows to compare whole.
        near = np.flatnonzero(np.isin(U[:, 0], self.U[:, 0]))
        waiting: dict[bytes, list[int]] = {}
        for place in near:
            waiting.setdefault(_key(U[place]), []).append(int(place))
        pairs = []
        for row in range(len(self) - 1, -1, -1):
            places = waiting.get(_key(self.U[row]))
            if places:
                pairs.append((places.pop(), row))
        pairs.sort()
        found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return found[:, 1], found[:, 0]

    def settled(self, U: Array) -> History:
        """This history with its points moved to where they were really evaluated.

        Rounding, and whole or categorical variables, may move a proposal on its way to the
        evaluation and back. ``U`` (n, d) are the points it may have become: evaluated, pending or
        failed. A remembered point without its equal there takes the nearest that is still free, one
        to one, nearest pairs first, if no coordinate moves by more than a quarter: half the width
        of the widest cell, that of a variable with two values. Features stay as they were.
        """
        here, there = self.matched(U)
        rows = np.setdiff1d(np.arange(len(self)), here)
        free = np.setdiff1d(np.arange(len(U)), there)
        if not len(rows) or not len(free):
            return self
        distance = cdist(self.U[rows], U[free], "chebyshev")
        pairs = np.argwhere(distance <= _HALF_CELL)
        moved = self.U.copy()
        for i, j in pairs[np.argsort(distance[tuple(pairs.T)], kind="stable")]:
            if rows[i] >= 0 and free[j] >= 0:
                moved[rows[i]] = U[free[j]]
                rows[i] = free[j] = -1
        return replace(self, U=moved)


def _key(u: Array) -> bytes:
    return (u + 0.0).tobytes()  # -0.0 and 0.0 are the same coordinate
