from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuropareto.analysis import surrogate_calibration as surrogate
from neuropareto.analysis.calibration_errors import drawn
from neuropareto.analysis.calibration_figures import MOST, classifier_figure, surrogate_figure
from neuropareto.analysis.classifier_calibration import VARIANTS, Predicted, measured
from neuropareto.analysis.runs import Run


def predictions(tasks: int) -> list[Predicted]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5, 0.5), 60)
    y = drawn(p, 1, rng=rng)[0]
    return [Predicted(f"t{i}", 0, name, p, y) for i in range(tasks) for name in VARIANTS]


def a_run() -> Run:
    rng = np.random.default_rng(1)
    F = rng.normal(size=(50, 2))
    notes = [
        {
            "evaluations": 10 * t,
            "predicted_mean": (F[10 * t : 10 * t + 10] + 0.5).tolist(),
            "predicted_epistemic": np.full((10, 2), 0.2).tolist(),
            "predicted_aleatoric": np.full((10, 2), 0.05).tolist(),
        }
        for t in range(1, 5)
    ]
    return Run("toy", "neuropareto", 0, tuple(notes), F, 10, 1.0)


@pytest.mark.parametrize("tasks", [3, MOST + 3])
def test_few_tasks_are_named_and_many_are_a_distribution(tasks: int) -> None:
    right = classifier_figure(measured(predictions(tasks), draws=5)).axes[1]
    named = [label.get_text() for label in right.get_xticklabels()]
    if tasks <= MOST:
        assert named == ["t0", "t1", "t2"]
    else:
        assert named[0] == "raw" and len(named) == len(VARIANTS)
        assert f"each of {tasks} problems" in right.get_title(loc="left")


@pytest.mark.parametrize("tasks", [3, MOST + 3])
def test_many_surrogates_are_bands_around_the_whole(tasks: int) -> None:
    runs = [replace(a_run(), task=f"t{i}") for i in range(tasks)]
    left = surrogate_figure(surrogate.measured(runs), "neuropareto").axes[0]
    legend = left.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()]
    assert any("t0:" in text for text in said) == (tasks <= MOST)
    assert any(f"of {tasks} problems" in text for text in said) == (tasks > MOST)
