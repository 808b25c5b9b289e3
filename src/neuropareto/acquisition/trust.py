"""How far the learned acquisition is trusted against the surrogate's own hypervolume estimate.

The paper does not say what happens before there is history enough to train on. Here trust has to
be earned: networks that saw only older proposals predict newer ones, and the weight of the network
is what it demonstrably knew beyond the surrogate's estimate. Notation: b remembered proposals in
order of time, t of them tested. ``FullTrust`` is the null object: the network's word alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from neuropareto.space import Array

Rows = npt.NDArray[np.int64]

# Ranks within fewer rows than this say next to nothing.
_ROWS_PER_BLOCK = 5


class Trust(Protocol):
    """Which rows are tested, and how much weight the outcome of the test gives to the network."""

    @property
    def n_min(self) -> int:
        """Proposals below which the network is not asked at all."""
        ...

    def tested(self, b: int) -> list[Rows]:
        """Consecutive blocks of rows, each to be predicted from the rows before it."""
        ...

    def weight(self, blocks: list[Rows], predicted: Array, observed: Array, known: Array) -> float:
        """The weight in [0, 1] of ``predicted`` for ``observed`` next to ``known``, each (b,).

        Only the rows in ``blocks`` are looked at.
        """
        ...


@dataclass(frozen=True)
class EarnedTrust:
    """Weight = lower confidence bound of the partial rank correlation, not below 0.

    The later half of the history is cut into ``blocks``; each is predicted by a network trained on
    what came before. With rho the rank correlation of prediction and outcome given the surrogate's
    estimate, the weight is max(0, tanh(artanh(rho) - z / sqrt(t - 4))) for t tested rows less the
    number of blocks. A network that knows nothing, or nothing new, thus has weight 0 but for a
    chance of about 5 % at z = 1.645, and then a small one. Ranks are taken within a block: a trend
    that all candidates of a round share earns nothing.
    """

    n_min: int = 20
    blocks: int = 4
    z: float = 1.645

    def __post_init__(self) -> None:
        if self.n_min < 2 * _ROWS_PER_BLOCK or self.blocks < 1 or self.z < 0:
            raise ValueError(
                f"EarnedTrust needs n_min >= {2 * _ROWS_PER_BLOCK}, blocks >= 1 and z >= 0, got "
                f"{self.n_min}, {self.blocks} and {self.z}."
            )

    def tested(self, b: int) -> list[Rows]:
        """The later half of b rows in blocks of at least five rows."""
        rows = np.arange(b // 2, b, dtype=np.int64)
        return np.array_split(rows, max(1, min(self.blocks, len(rows) // _ROWS_PER_BLOCK)))

    def weight(self, blocks: list[Rows], predicted: Array, observed: Array, known: Array) -> float:
        """The lower bound of the partial rank correlation over ``blocks``."""
        ranked = [
            np.concatenate([_centred_ranks(values[rows]) for rows in blocks])
            for values in (predicted, observed, known)
        ]
        rho = partial_correlation(*ranked)
        freedom = max(1, len(ranked[0]) - len(blocks) - 3)
        return max(0.0, float(np.tanh(np.arctanh(rho) - self.z / np.sqrt(freedom))))


@dataclass(frozen=True)
class FullTrust:
    """The network's word alone from ``n_min`` proposals on, as the paper prints it."""

    n_min: int = 2

    def tested(self, b: int) -> list[Rows]:
        """No rows."""
        return []

    def weight(self, blocks: list[Rows], predicted: Array, observed: Array, known: Array) -> float:
        """Always 1."""
        return 1.0


def partial_correlation(a: Array, b: Array, given: Array) -> float:
    """Correlation of centred a and b after both were regressed on ``given``, each (t,).

    0 where one of them has nothing left to vary; kept a little inside (-1, 1).
    """
    weight = float(given @ given)
    if weight > 0:
        a = a - given * (a @ given) / weight
        b = b - given * (b @ given) / weight
    norm = float(np.sqrt((a @ a) * (b @ b)))
    # What is left of a multiple of ``given`` is rounding, not variation.
    if norm <= 1e-9 * max(1, len(a)):
        return 0.0
    return float(np.clip((a @ b) / norm, -1 + 1e-9, 1 - 1e-9))


def _centred_ranks(values: Array) -> Array:
    ranks = rankdata(values) / len(values)
    return np.asarray(ranks - ranks.mean())
