"""The Algorithm contract: one method, ``propose``, and the values that pass through it.

All that an optimisation algorithm implements, ours and each peer. Points are rows of the unit
cube; objectives are minimised; the archive is immutable. What an algorithm wants to remember
between rounds it returns as ``memory``: named arrays, which a study can store without pickle and
which may be dropped at any time, so ``memory=None`` must always work. Randomness comes only from
``rng``. ``notes`` carries stage seconds and diagnostics for tables, figures and the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class Proposal:
    """q points to evaluate next, (q, d) in the unit cube, with memory and notes for later.

    ``notes`` holds only JSON values: numbers, strings, lists and mappings of them.
    """

    U: Array
    memory: Memory | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


class Algorithm(Protocol):
    """A frozen spec whose ``propose`` chooses the next q points."""

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """Choose q points given all evaluations so far.

        ``pending`` (p, d) are points proposed earlier whose results are not known yet; new points
        should not repeat them. The archive may be empty, small, or full of failures.
        """
        ...


@runtime_checkable
class Batched(Protocol):
    """An algorithm that was published with a round of its own size; benchmarks ask for that."""

    @property
    def batch(self) -> int:
        """Evaluations a round."""
        ...


@dataclass(frozen=True)
class RandomSearch:
    """Uniform random points: the yardstick below which nothing may fall."""

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q uniform points of the unit cube."""
        return Proposal(np.asarray(rng("random-search").random((q, archive.d)), dtype=np.float64))
