"""The album of a run on the reservoir: every picture an engineer wants to see, into one folder.

Notation: X (n, 160) designs, F (n, 2) values in M$, n_start simulations of the start design. The
structured front (early level x late level, the same for all wells) is the yardstick: random
designs are so poor here that every optimizer looks good against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto.hypervolume import hypervolume
from neuropareto.problems.geothermal.case import structured_front
from neuropareto.problems.geothermal.figures import (
    LABELS,
    field_figure,
    front_figure,
    hypervolume_figure,
    prediction_figure,
    schedules_figure,
    temperature_figure,
    three_points,
)
from neuropareto.problems.geothermal.reservoir import Reservoir
from neuropareto.space import Array

Predictions = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Album:
    """Where the pictures are, the hypervolume after each simulation (n,), and the yardstick's."""

    pictures: dict[str, Path]
    history: Array
    yardstick: float


def predictions(notes: Sequence[Mapping[str, Any]], F: Array) -> Predictions | None:
    """(simulated, mean, epistemic, aleatoric), each (k, 2), of all proposed points; else None.

    The algorithm predicts what it minimises, so the sign of the mean is turned. Rounds that
    predicted nothing, or whose points failed, are left out.
    """
    parts = []
    for note in notes:
        first, q = int(note["evaluations"]), int(note["proposed"])
        simulated = F[first : first + q]
        if "predicted_mean" in note and len(simulated) == len(note["predicted_mean"]):
            mean = -np.array(note["predicted_mean"])
            spread = [np.array(note[f"predicted_{kind}"]) for kind in ("epistemic", "aleatoric")]
            parts.append((simulated, mean, *spread))
    if not parts:
        return None
    simulated, mean, epistemic, aleatoric = (np.concatenate(p) for p in zip(*parts, strict=True))
    return simulated, mean, epistemic, aleatoric


def draw(
    reservoir: Reservoir, X: Array, F: Array, notes: Sequence[Mapping[str, Any]], to: Path
) -> Album:
    """All pictures of a run with designs X (n, 160) and values F (n, 2) in M$, into a folder."""
    to.mkdir(parents=True, exist_ok=True)
    n_start = int(notes[0]["evaluations"]) if notes else len(F)
    predicted = predictions(notes, F)
    _, structured = structured_front(7, reservoir)
    yardstick = hypervolume(-structured, [-20.0, -20.0])
    history = np.array([hypervolume(-F[: k + 1], [-20.0, -20.0]) for k in range(len(F))])
    rows = list(three_points(F))
    outcomes = [reservoir.simulate(u) for u in X[rows]]
    figures = {
        "front": front_figure(F, structured, n_start),
        "hypervolume": hypervolume_figure(history, yardstick, n_start),
        "schedules": schedules_figure(reservoir, X[rows], F[rows]),
        "temperature": temperature_figure(outcomes),
        "field": field_figure(reservoir, outcomes, LABELS),
    }
    if predicted is not None:
        figures["predictions"] = prediction_figure(*predicted)
    paths = {name: to / f"geothermal-{name}.png" for name in figures}
    for name, figure in figures.items():
        figure.savefig(paths[name])
    return Album(paths, history, yardstick)
