from __future__ import annotations

from typing import Any

import numpy as np

from neuropareto.problems.geothermal.album import predictions

F = np.arange(12.0).reshape(6, 2)


def test_predictions_stand_beside_what_was_simulated() -> None:
    notes: list[dict[str, Any]] = [
        {"evaluations": 2, "proposed": 2, "predicted_mean": [[-1, -2], [-3, -4]],
         "predicted_epistemic": [[1, 1], [1, 1]], "predicted_aleatoric": [[2, 2], [2, 2]]},
        {"evaluations": 4, "proposed": 2},
    ]  # fmt: skip
    found = predictions(notes, F)
    assert found is not None
    simulated, mean, epistemic, aleatoric = found
    assert np.array_equal(simulated, F[2:4]) and mean.tolist() == [[1, 2], [3, 4]]
    assert epistemic.sum() == 4 and aleatoric.sum() == 8


def test_without_predictions_there_is_nothing_to_show() -> None:
    assert predictions([{"evaluations": 2, "proposed": 2}], F) is None
    assert predictions([], F) is None
