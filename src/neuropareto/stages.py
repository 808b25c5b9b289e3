"""The stages of a round: each with its stream, its warm start, its seconds.

``stages("classifier")`` opens a stage: it hands out the stage's generator and what the stage left
in memory, and times it. :meth:`Stages.notes` gathers what tables, figures and the report read.
Paper: the component times T_class, T_gp, T_acq of Eq. time_breakdown come from these seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from neuropareto.acquisition.contract import Signals
from neuropareto.archive import Indices
from neuropareto.candidates import Pool
from neuropareto.memory import Memory, part
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior


class FittedStage(Protocol):
    """Anything fitted that can be started from again and can tell about its fit."""

    @property
    def warm(self) -> Memory:
        """Named arrays for a later fit."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """JSON diagnostics."""
        ...


@dataclass(frozen=True)
class Stage:
    """One open stage: its generator and what it may start from."""

    rng: np.random.Generator
    warm: Memory | None


class Stages:
    """The stages of one round, timed."""

    def __init__(self, memory: Memory | None, streams: Streams) -> None:
        self._memory, self._streams = memory, streams
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[Stage]:
        """Open the stage ``name``; its seconds count until the block ends."""
        began = time.perf_counter()
        yield Stage(self._streams(name), part(self._memory, name))
        self._seconds[name] = time.perf_counter() - began

    def notes(
        self,
        fitted: Mapping[str, FittedStage],
        pool: Pool,
        short: Indices,
        rows: Indices,
        U: Array,
        chosen: Signals,
        second: Indices,
    ) -> dict[str, Any]:
        """Stage seconds, sizes, how the proposals ``U`` were made, and what was predicted there.

        ``moved`` is how far each lies from the candidate that was chosen: root mean square over
        the variables. Those in the rows ``second`` come from another model and were not moved.
        """
        picked = short[rows]
        operators = pool.operator[picked].astype(object)
        moved = np.sqrt(np.square(U - pool.U[picked]).mean(axis=1))
        operators[second], moved[second] = "second", 0.0
        return {
            "stage_seconds": dict(self._seconds),
            "pool": len(pool),
            "shortlist": len(short),
            "operators": [str(name) for name in operators],
            "moved": moved.tolist(),
            **foretold(chosen, chosen.mean.shape[1]),
            "information_gain": chosen.information.tolist(),
            **{name: dict(part.notes) for name, part in fitted.items()},
        }


def foretold(
    said: Posterior | Signals, m: int, inflation: float = 1.0
) -> dict[str, list[list[float]]]:
    """What was predicted for proposals, before they are evaluated: mean and variances, (q, m).

    Variances are multiplied by ``inflation``.
    """
    return {
        "predicted_mean": said.mean[:, :m].tolist(),
        "predicted_epistemic": (inflation * said.epistemic[:, :m]).tolist(),
        "predicted_aleatoric": (inflation * said.aleatoric[:, :m]).tolist(),
    }


def came_true(note: Mapping[str, Any], F: Array) -> tuple[Array, Array, Array] | None:
    """What a round foretold and what came: mean, variance and objectives, (q, m) each.

    ``F`` (n, m) are the run's objectives in order of arrival, none of them failed. None where the note
    has no forecast, a repeated point was replaced by another one, or the batch was cut short.
    """
    if "predicted_mean" not in note or note.get("repeats_replaced"):
        return None
    mean = np.array(note["predicted_mean"], dtype=np.float64)
    variance = np.array(note["predicted_epistemic"]) + np.array(note["predicted_aleatoric"])
    first = int(note["evaluations"])
    outcome = F[first : first + len(mean)]
    return (mean, variance, outcome) if len(outcome) == len(mean) else None
