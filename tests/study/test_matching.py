from __future__ import annotations

from pathlib import Path

import numpy as np

from neuropareto import NSGA2
from neuropareto.study import Study


def test_a_simulator_may_change_the_array_that_it_is_given(tmp_path: Path) -> None:
    """The live search and the reopened one know the same points: those that were asked for."""
    path = tmp_path / "study.db"
    with Study.create(path, [(0, 1)] * 2, 2, NSGA2(), seed=0, n_initial=6) as study:
        batch = study.ask(6)
        asked = batch.X.copy()
        batch.X[:] = np.nan
        study.tell(batch, np.stack([asked[:, 0], 1 - asked[:, 0]], axis=1))
        live = study.optimizer.archive.U.copy()
        np.testing.assert_array_equal(study.optimizer.X, asked)
    with Study.view(path) as study:
        np.testing.assert_array_equal(study.optimizer.X, asked)
        np.testing.assert_array_equal(study.optimizer.archive.U, live)
