"""The geothermal case from start to pictures: 300 simulations, then everything one wants to see.

Run: OMP_NUM_THREADS=1 python examples/geothermal.py --output geothermal-output
Add --coarse for 60 m cells (five times faster), --budget 40 for a first look, or another algorithm:
--algorithm nsga2. The pictures of predictions need an algorithm that predicts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto import NSGA2, Algorithm, RandomSearch, minimize
from neuropareto.hypervolume import hypervolume
from neuropareto.problems.geothermal import (
    Reservoir,
    coarse_reservoir,
    geothermal,
    geothermal_coarse,
    structured_front,
)
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
from neuropareto.space import Array

Predictions = tuple[Array, Array, Array, Array]


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
    reservoir: Reservoir, X: Array, F: Array, n_start: int, predicted: Predictions | None, to: Path
) -> None:
    """All pictures of a run with designs X (n, 160) and values F (n, 2) in M$, into a folder."""
    to.mkdir(parents=True, exist_ok=True)
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
    for name, figure in figures.items():
        figure.savefig(to / f"geothermal-{name}.png")
    print(f"hypervolume {history[-1]:.0f}, structured front {yardstick:.0f}; pictures in {to}")


def algorithm(name: str) -> Algorithm:
    """The algorithm called ``name``."""
    if name == "neuropareto":
        from neuropareto import NeuroPareto

        return NeuroPareto()
    return NSGA2() if name == "nsga2" else RandomSearch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coarse", action="store_true", help="60 m cells instead of 40 m")
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--algorithm", choices=("neuropareto", "nsga2", "random"), default="neuropareto"
    )
    parser.add_argument("--output", type=Path, default=Path("geothermal-output"))
    options = parser.parse_args()
    problem = geothermal_coarse() if options.coarse else geothermal()
    reservoir = coarse_reservoir() if options.coarse else Reservoir()
    result = minimize(
        problem,
        budget=options.budget,
        batch=options.batch,
        algorithm=algorithm(options.algorithm),
        seed=options.seed,
        n_initial=min(200, max(2, 2 * options.budget // 3)),
        progress=True,
    )
    n_start = int(result.notes[0]["evaluations"]) if result.notes else len(result.F)
    predicted = predictions(result.notes, result.F)
    draw(reservoir, result.X, result.F, n_start, predicted, options.output)
    print(f"{len(result.front.F)} points on the front after {len(result.F)} simulations")


if __name__ == "__main__":
    main()
