"""Timing, dynamics and slices: closed forms on notes made by hand, and a real small run and study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import NSGA2
from neuropareto.analysis import dynamics, slices, timing
from neuropareto.analysis.runs import Run, noted, runs_of
from neuropareto.archive import Archive
from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Cell, Scale, grid_of
from neuropareto.bench.layout import render
from neuropareto.classifier import bounded_k
from neuropareto.cli import main
from neuropareto.neuropareto import NeuroPareto
from neuropareto.problems import problem
from neuropareto.randomness import Streams
from neuropareto.study import Study
from neuropareto.surrogate import ExactGP


def note(round_: int, **more: Any) -> dict[str, Any]:
    stages = {
        "classifier": 1.0, "surrogate": 4.0, "acquisition": 1.0, "candidates": 0.5,
        "screening": 0.5, "posterior": 1.0, "selection": 1.0,
    }  # fmt: skip
    return {
        "round": round_, "evaluations": 10 + 5 * round_, "seconds": 10.0, "proposed": 5,
        "stage_seconds": stages, **more,
    }  # fmt: skip


def run(notes: list[dict[str, Any]], seed: int = 0) -> Run:
    F = np.array([[0.0, 0.0], [2.0, 20.0]] * 10)  # variances 1 and 100
    return Run("toy 3D", "mine", seed, tuple(notes), F, 10, seconds=50.0)


def test_the_five_times_add_up_to_the_total() -> None:
    found = timing.of_run(run([note(i) for i in range(3)]))
    assert found is not None
    assert found.seconds == pytest.approx((3.0, 12.0, 3.0, 9.0, 3.0))
    assert found.total == pytest.approx(30.0) and found.outside == pytest.approx(20.0)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.shares["Deep GP training"] == pytest.approx(0.4)
    assert len(timing.SYMBOLS) == len(timing.COMPONENTS)


STAGES = [s for stages in timing.COMPONENTS.values() for s in stages]


@settings(deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(STAGES, st.floats(0, 1e3))), st.floats(0.01, 1e5))
def test_no_component_is_negative(seconds: dict[str, float], total: float) -> None:
    found = timing.breakdown(seconds, total, rounds=1, evaluations=1)
    assert found is not None and min(found.seconds) >= 0 and found.outside == 0.0


def test_runs_without_stages_have_no_breakdown() -> None:
    bare = run([{"seconds": 1.0, "evaluations": 10}])
    assert timing.of_run(bare) is None
    with pytest.raises(ValueError, match="noted 'stage_seconds'; they are runs of mine"):
        timing.table([bare])
    # One round that fell back to quasi-random points does not spoil the others.
    mixed = timing.of_run(run([note(0), {"seconds": 2.0, "evaluations": 15}]))
    assert mixed is not None and mixed.total == pytest.approx(12.0)


def test_the_timing_table_has_the_papers_components() -> None:
    text = render(timing.table([run([note(0)]), run([note(0)], seed=1)]), "csv")
    for name in (*timing.COMPONENTS, "T_total", "40% ±0%"):
        assert name in text
    curves = timing.stage_curves([[note(0), note(1)], [note(0)]], ["surrogate", "posterior"])
    assert curves.tolist() == [[4.0], [1.0]]


def uncertain(i: int, epistemic: float) -> dict[str, Any]:
    return note(
        i, predicted_epistemic=[[epistemic, 100 * epistemic]] * 5,
        predicted_aleatoric=[[0.5, 150.0]] * 5, information_gain=[0.1 * i] * 5,
    )  # fmt: skip


def test_variances_are_in_units_of_the_start_design() -> None:
    found = dynamics.dynamics([run([uncertain(i, 2.0**-i) for i in range(9)])])
    assert found.epistemic[0] == pytest.approx(2.0 ** -np.arange(9.0))
    assert found.aleatoric == pytest.approx(np.full((1, 9), 1.0))  # (0.5/1 + 150/100) / 2
    assert found.information[0] == pytest.approx(0.1 * np.arange(9))
    assert found.evaluations.tolist() == [10 + 5 * i for i in range(9)]
    falling, level = dynamics.trend(found.epistemic), dynamics.trend(found.aleatoric)
    assert falling.correlation == pytest.approx(-1) and level.correlation == 0.0
    assert (falling.first, falling.last) == pytest.approx((2.0**-1, 2.0**-7))


def test_rounds_without_predictions_are_gaps() -> None:
    notes = [uncertain(0, 1.0), note(1), uncertain(2, 1.0)]
    found = dynamics.dynamics([run(notes), run([uncertain(0, 1.0)] * 4, seed=1)])
    assert np.isnan(found.epistemic[0, 1]) and found.epistemic.shape == (2, 3)
    assert np.isnan(dynamics.trend(found.epistemic[:, :2]).correlation)
    assert "epistemic" in render(dynamics.table([run(notes)]), "markdown")


def archive() -> Archive:
    made = problem("zdt1", 3)
    U = np.random.default_rng(0).random((30, 3))
    return Archive.of(U, np.asarray(made.objective(made.space.from_unit(U))))


def test_a_slice_moves_one_variable_and_tells_the_truth() -> None:
    known, made = archive(), problem("zdt1", 3)
    rng = np.random.default_rng(1)
    found = slices.slice_through(
        known, ExactGP(), rng=rng, problem=made, variable=0, row=4, steps=21
    )
    assert found.true is not None
    # On ZDT1 the first objective is the first variable itself.
    assert found.true[:, 0] == pytest.approx(found.t)
    assert found.value == pytest.approx(known.F[4]) and found.point[0] == known.U[4, 0]
    assert found.distance() == pytest.approx(np.abs(found.t - known.U[4, 0]))
    covered = found.coverage()
    assert covered is not None and 0 <= covered <= 1 and found.coverage(1e9) == 1.0
    assert "2 sd cover" in render(slices.table(found), "text")
    with pytest.raises(ValueError, match=r"0\.\.2 and a row in 0\.\.29"):
        slices.slice_through(known, ExactGP(), rng=rng, variable=3)
    dark = slices.slice_through(known, ExactGP(), rng=rng, steps=5)
    assert dark.true is None and dark.coverage() is None and dark.variable == 2


def test_epistemic_variance_is_larger_away_from_the_data() -> None:
    U = np.concatenate([np.linspace(0.0, 0.3, 12)[:, None], np.full((12, 1), 0.5)], axis=1)
    known = Archive.of(U, np.stack([np.sin(6 * U[:, 0]), U[:, 0]], axis=1))
    found = slices.slice_through(
        known, ExactGP(), rng=np.random.default_rng(0), variable=0, row=11, steps=11
    )
    sd = np.sqrt(found.posterior.epistemic)
    assert (sd[-1] > 3 * sd[1]).all()


def test_runs_are_read_from_records_and_studies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {
        "problems": ["zdt1"], "dimensions": [3], "algorithms": ["nsga2"], "seeds": 1,
        "budget": 24, "n_initial": 12,
    }  # fmt: skip
    cell = grid_of("one", document, Scale()).cells[0]
    record = run_cell(cell, tmp_path / "records")
    (found,) = runs_of(tmp_path / "records")
    assert found.algorithm == "nsga2" and found.task == "zdt1 3D" and found.n_initial == 12
    assert pytest.approx(record.minimised) == found.F and found.archive is not None
    assert isinstance(cell, Cell)
    (file,) = (tmp_path / "records").rglob("*.npz")
    assert runs_of(file)[0].seed == 0
    with Study.create(tmp_path / "s.db", [(0, 1)] * 2, 2, NSGA2(), seed=5, n_initial=4) as study:
        for _ in range(3):
            asked = study.ask(4)
            study.tell(asked, asked.X)
    (other,) = runs_of(tmp_path / "s.db")
    assert other.seed == 5 and len(other.F) == 12 and len(other.notes) == 2
    assert other.problem is None and other.archive is not None
    with pytest.raises(ValueError, match="holds neither"):
        (tmp_path / "empty").mkdir()
        runs_of(tmp_path / "empty")
    with pytest.raises(ValueError, match="There is no"):
        runs_of(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="runs of nsga2"):
        noted([found], "predicted_epistemic")
    assert main(["analyse", "timing", str(tmp_path / "s.db")]) == 1
    assert "noted 'stage_seconds'" in capsys.readouterr().err


def test_a_slice_of_a_problem_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "slice.png"
    code = main(
        ["analyse", "slice", "zdt1", "-d", "2", "--surrogate", "exact", "--figure", str(figure)]
    )
    assert code == 0 and figure.stat().st_size > 5000
    assert "Slice along variable 2" in capsys.readouterr().out


@pytest.mark.parametrize("n", [20, 40, 80])
def test_a_round_has_no_more_classes_than_its_evaluations_feed(n: int) -> None:
    """K <= floor(B / N_min) acts by default, with the evaluations made so far as B."""
    made = problem("zdt1", 3)
    U = np.random.default_rng(0).random((n, 3))
    known = Archive.of(U, np.asarray(made.objective(U)))
    seen: list[int] = []

    class Watched(BaseException):
        pass

    class Classifier:
        k = 7

        def fit(self, U: Any, labels: Any, *, warm: Any, rng: Any) -> Any:
            seen.append(int(labels.max()))
            raise Watched

    with pytest.raises(Watched):
        NeuroPareto(classifier=Classifier()).propose(
            known, 1, pending=np.empty((0, 3)), memory=None, rng=Streams(0, 1)
        )
    assert seen == [bounded_k(7, n)] == [max(2, min(7, n // 15))]
