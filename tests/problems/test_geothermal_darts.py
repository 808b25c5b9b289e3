"""Agreement with open-darts, where an interpreter that has it is at hand.

Name one in $NEUROPARETO_DARTS_PYTHON, or install the extra ``darts`` beside the package.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from neuropareto.problems.geothermal import (
    Geometry,
    Rates,
    Reservoir,
    coarse_reservoir,
    high_fidelity,
)
from neuropareto.problems.geothermal.high_fidelity import DartsUnavailable, available, rescore


def test_an_interpreter_without_open_darts_is_a_clear_error(tmp_path: Path) -> None:
    pretender = tmp_path / "python"
    pretender.write_text("#!/bin/sh\necho 'No module named darts' >&2\nexit 1\n", encoding="utf-8")
    pretender.chmod(0o755)
    assert not available(str(pretender))
    with pytest.raises(DartsUnavailable, match=r"No module named darts.*neuropareto\[darts\]"):
        rescore(coarse_reservoir(), [np.full(160, 0.5)], python=str(pretender))
    with pytest.raises(DartsUnavailable, match="did not run"):
        rescore(coarse_reservoir(), [np.full(160, 0.5)], python=str(tmp_path / "nowhere"))


def test_bad_schedules_are_refused_before_anything_is_started() -> None:
    with pytest.raises(ValueError, match="160 values"):
        rescore(coarse_reservoir(), [np.full(7, 0.5)], python="nowhere")
    with pytest.raises(ValueError, match="at least one"):
        rescore(coarse_reservoir(), [], python="nowhere")


def test_results_come_back_through_the_two_files(tmp_path: Path) -> None:
    """A stand-in for open-darts that answers with fixed temperatures: the accounting is ours."""
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(
        "import sys\nimport numpy as np\n"
        "case = np.load(sys.argv[1], allow_pickle=False)\n"
        "assert len(case['left']) == len(case['conductance'])\n"
        "nodes = max(case['left'].max(), case['right'].max()) + 1\n"
        "assert nodes == len(case['volume']) == len(case['porosity'])\n"
        "runs, t, i = case['injection'].shape\n"
        "p = case['production'].shape[2]\n"
        "T = np.full((runs, t, p), 473.15)\n"
        "T[1] = np.nan\n"
        "P = np.full((runs, t, i + p), float(case['pressure']))\n"
        "np.savez(sys.argv[2], temperature=T, enthalpy_gain=4190.0 * (T - 293.15), pressure=P,\n"
        "         seconds=np.ones(runs), reasons=np.array(['', 'no convergence'], dtype=np.str_))\n",
        encoding="utf-8",
    )
    reservoir = coarse_reservoir()
    table = np.full((20, 4), 10.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(high_fidelity, "SCRIPT", stand_in)
        found = rescore(reservoir, [Rates(table, table), np.full(160, 0.5)], python=sys.executable)
    heat = 40.0 * 4190.0 * 180.0 * reservoir.schedule.seconds / 3.6e9
    np.testing.assert_allclose(found.ledgers[0].heat, heat)
    np.testing.assert_allclose(found.ledgers[0].pumping, 0.0)
    assert np.isfinite(found.objectives[0]).all() and np.isnan(found.objectives[1]).all()
    assert found.failures == {1: "no convergence"}


@pytest.mark.slow
def test_both_simulators_rank_schedules_alike() -> None:
    """Spearman correlation of at least 0.95 on both objectives over 20 schedules."""
    if not available():
        pytest.skip(
            f"open-darts is not installed; name a Python that has it in ${high_fidelity.VARIABLE}"
        )
    reservoir = Reservoir(geometry=Geometry(cell=60.0))
    U = np.random.default_rng(0).random((20, 160))
    own = np.array([reservoir.simulate(u).objectives for u in U])
    theirs = rescore(reservoir, list(U), timeout=1800.0)
    assert not theirs.failures
    for j in range(2):
        assert spearmanr(own[:, j], theirs.objectives[:, j]).statistic >= 0.95
    np.testing.assert_allclose(own, theirs.objectives, rtol=0.06)
