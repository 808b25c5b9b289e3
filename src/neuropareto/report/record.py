"""What a study's log knows beyond its result: names, failure classes, times, predictions.

A prediction is matched to its observation by trial number where there is a log; from a result
alone only where rounds were evaluated one after the other, so that the order tells.
Notation: p matched predictions, m objectives, in the user's own directions; variances, not std.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuropareto.problem import signs
from neuropareto.result import Result
from neuropareto.space import Array
from neuropareto.study.events import Asked, Failed, Retried, Started, Told
from neuropareto.study.study import Study


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted mean and variance (p, m) beside what was observed (p, m)."""

    mean: Array
    epistemic: Array
    aleatoric: Array
    observed: Array

    def __len__(self) -> int:
        """The number of predictions."""
        return len(self.mean)

    def coverage(self, share: float) -> Array:
        """How much of the observations lies in the central ``share`` of the prediction, (m,)."""
        from scipy.special import ndtri

        reach = ndtri(0.5 + share / 2) * np.sqrt(self.epistemic + self.aleatoric)
        return np.asarray((np.abs(self.observed - self.mean) <= reach).mean(axis=0))


@dataclass(frozen=True, eq=False)
class Record:
    """Names of the objectives, failures as (class, reason), seconds of evaluations, predictions."""

    objectives: tuple[str, ...]
    failures: tuple[tuple[str, str], ...] = ()
    retries: tuple[tuple[str, str], ...] = ()
    seconds: Array = field(default_factory=lambda: np.empty(0))
    predictions: Predictions | None = None


def record_of(study: Study) -> Record:
    """The record of a study, from its event log."""
    failures, retries, seconds = [], [], []
    started: dict[int, float] = {}
    notes: dict[int, tuple[Mapping[str, Any], int]] = {}
    told: dict[int, Array] = {}
    batches: dict[int, list[int]] = {}
    for event in study.events():
        if isinstance(event, Asked):
            batches.setdefault(event.ask, []).append(event.trial)
            if event.note is not None:
                notes[event.ask] = (event.note, event.trial)
        elif isinstance(event, Started):
            started[event.trial] = event.time
        elif isinstance(event, Retried):
            retries.append((event.failure, event.reason))
        elif isinstance(event, Failed):
            failures.append((event.failure, event.reason))
        elif isinstance(event, Told) and event.trial is not None:
            told[event.trial] = event.f
            # A clock that was set back gives no duration.
            if event.time >= started.get(event.trial, np.inf):
                seconds.append(event.time - started[event.trial])
    sign = signs(study.description.directions, len(study.description.objectives))
    rows = []
    for ask, (note, _) in notes.items():
        trials = batches[ask][-int(note.get("proposed", 0)) :]
        rows += [
            (*values, told[trial])
            for trial, values in zip(trials, _foretold(note, sign), strict=False)
            if trial in told
        ]
    return Record(
        study.description.objectives,
        tuple(failures),
        tuple(retries),
        np.array(seconds),
        _stacked(rows),
    )


def record_of_result(result: Result) -> Record:
    """What a result alone tells."""
    sign = signs(result.directions, result.F.shape[1])
    starts = [int(note.get("evaluations", 0)) for note in result.notes] + [len(result.F)]
    rows = []
    for note, first, after in zip(result.notes, starts, starts[1:], strict=False):
        foretold = _foretold(note, sign)
        if note.get("pending", 1) or after - first != len(foretold):
            continue
        rows += [(*values, result.F[first + i]) for i, values in enumerate(foretold)]
    return Record(
        tuple(f"f{j + 1}" for j in range(result.F.shape[1])),
        tuple(("error", failure.reason) for failure in result.failures),
        predictions=_stacked(rows),
    )


def _foretold(note: Mapping[str, Any], sign: Array) -> list[tuple[Array, Array, Array]]:
    """(mean, epistemic, aleatoric) of each proposed point of a round; empty if it has none.

    A point that replaced a repeat is not the one that was predicted, so such a round is left out.
    """
    keys = ("predicted_mean", "predicted_epistemic", "predicted_aleatoric")
    if note.get("repeats_replaced", 0) or any(key not in note for key in keys):
        return []
    try:
        mean, epistemic, aleatoric = (np.array(note[key], dtype=np.float64) for key in keys)
    except (ValueError, TypeError):
        return []
    shape = (int(note.get("proposed", 0)), len(sign))
    if not mean.shape == epistemic.shape == aleatoric.shape == shape:
        return []
    if not all(np.isfinite(v).all() for v in (mean, epistemic, aleatoric)):
        return []
    return list(zip(sign * mean, epistemic, aleatoric, strict=True))


def _stacked(rows: list[tuple[Array, Array, Array, Array]]) -> Predictions | None:
    if not rows:
        return None
    mean, epistemic, aleatoric, observed = (np.array(column) for column in zip(*rows, strict=True))
    return Predictions(mean, np.maximum(epistemic, 0.0), np.maximum(aleatoric, 0.0), observed)
