from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Cell, Scale, Task, load
from neuropareto.bench.layout import Table
from neuropareto.bench.material import Material
from neuropareto.bench.measures import IGD, VERSION
from neuropareto.bench.record import Record, write
from neuropareto.bench.score import Duel, cells, score
from neuropareto.bench.statistics import geometric_mean


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Record:
    task = Task("dtlz2", 30, 2, "plain", 300, 10, 100)
    return run_cell(Cell(task, "random", 0), tmp_path_factory.mktemp("score"))


@pytest.fixture
def folder(base: Record, tmp_path: Path) -> Path:
    """Records whose IGD is set by hand: ours 1..5, nsga2 ten times that, random a hundred times."""
    for problem in ("dtlz2", "zdt1"):
        for variant in ("plain", "shifted"):
            task = replace(base.cell.task, problem=problem, variant=variant)
            for name, factor in (("neuropareto", 1), ("nsga2", 10), ("random", 100), ("k-3", 0.1)):
                for seed in range(5):
                    found = {"version": VERSION, "igd": factor * (seed + 1.0)}
                    cell = Cell(task, name, seed)
                    write(replace(base, cell=cell, measures=found), tmp_path / f"{cell.key}.npz")
    return tmp_path


def texts(made: Table, column: str) -> list[str]:
    c = made.columns.index(column)
    return [row[c].text for row in made.rows]


def test_each_cell_has_printed_ratio_best_other_and_verdict(folder: Path) -> None:
    plain = score(Material([folder]))[0]
    assert texts(plain, "problem") == ["dtlz2", "zdt1"]
    assert texts(plain, "ours") == ["3", "3"] and texts(plain, "seeds") == ["5", "5"]
    assert texts(plain, "printed") == ["0.02901", "0.02901"]
    assert float(texts(plain, "ours/printed")[0]) == pytest.approx(3 / 0.02901, rel=0.01)
    assert texts(plain, "best other") == ["NSGA-II", "NSGA-II"], "an ablation is no rival"
    assert all(text.startswith("win") for text in texts(plain, "verdict"))
    assert any("2 of the 83 plain cells" in note for note in plain.notes)
    expected = geometric_mean(np.array([3 / 0.02901] * 2))
    assert any(f"{expected:.3g}" in note for note in plain.notes)
    assert plain.missing[0].startswith("81 plain cells:")


def test_cells_that_are_not_won_against_everyone_are_named(folder: Path, base: Record) -> None:
    task = replace(base.cell.task, problem="zdt1")
    for seed in range(5):
        for other, igd in (("gp-ei", seed + 1.1), ("k-rvea", 0.01)):
            cell = Cell(task, other, seed)
            found = {"version": VERSION, "igd": igd}
            write(replace(base, cell=cell, measures=found), folder / f"{cell.key}.npz")
    notes = score(Material([folder]))[0].notes
    assert "Won against every other algorithm that was run there: 1 of 2 cells." in notes
    assert "Ties: zdt1 30D (GP-EI)." in notes and "Losses: zdt1 30D (K-RVEA)." in notes


def test_variants_have_their_own_table_without_printed_values(folder: Path) -> None:
    shifted = score(Material([folder]))[1]
    assert "shifted" in shifted.title and set(texts(shifted, "printed")) == {""}


def test_a_variant_can_be_asked_for_alone(folder: Path) -> None:
    made = score(Material([folder], Scale(variants=["shifted"])))
    assert "shifted" in made[0].title and texts(made[0], "ours") == ["3", "3"]
    assert len(made) == 2 and set(texts(made[1], "variant")) == {"shifted"}


def test_problems_that_the_paper_has_not_are_scored_apart(base: Record, tmp_path: Path) -> None:
    task = next(t for t in load("confirmation").tasks if t.problem == "wfg9")
    for name, igd in (("neuropareto", 0.2), ("random", 0.8)):
        for seed in (11, 12):
            cell = Cell(task, name, seed)
            found = {"version": VERSION, "igd": igd}
            write(replace(base, cell=cell, measures=found), tmp_path / f"{cell.key}.npz")
    plain, other, summary = score(Material([tmp_path]))
    assert plain.rows == () and texts(other, "problem") == ["wfg9"]
    assert texts(other, "ours") == ["0.2"] and texts(other, "printed") == [""]
    assert texts(summary, "variant") == ["other"]
    assert len(score(Material([tmp_path], Scale(variants=["rotated"])))) == 0


def test_the_summary_counts_wins(folder: Path) -> None:
    summary = score(Material([folder]))[-1]
    assert texts(summary, "other") == ["NSGA-II", "Random"] * 2
    assert texts(summary, "win") == ["2", "2", "2", "2"] and set(texts(summary, "loss")) == {"0"}
    assert texts(summary, "lower median in") == ["2/2"] * 4
    assert float(texts(summary, "geometric mean of ours/other")[0]) == pytest.approx(0.1)
    assert any("5 records" not in note for note in summary.notes)


def test_holm_makes_wins_rarer_not_commoner(folder: Path) -> None:
    plain, corrected = (score(Material([folder]), corrected=c)[-1] for c in (False, True))
    before, after = (sum(map(int, texts(t, "win"))) for t in (plain, corrected))
    assert after <= before and "Holm" in corrected.notes[0]


def test_another_algorithm_can_be_scored(folder: Path) -> None:
    summary = score(Material([folder]), algorithm="random")[-1]
    assert texts(summary, "other") == ["NSGA-II"] * 2 and texts(summary, "loss") == ["2", "2"]


def test_only_common_seeds_are_compared(folder: Path) -> None:
    task = Task("dtlz2", 30, 2, "plain", 300, 10, 100)
    (folder / f"{Cell(task, 'nsga2', 0).key}.npz").unlink()
    found = next(c for c in cells(Material([folder]), "plain") if c.task == task)
    duel = next(d for d in found.duels if d.other == "nsga2")
    assert duel.ours_values.tolist() == [2, 3, 4, 5] and len(found.ours) == 5


def test_nothing_run_is_a_score_of_nothing(tmp_path: Path) -> None:
    made = score(Material([tmp_path]))
    assert len(made) == 1 and made[0].rows == () and "0 of the 83" in made[0].notes[0]


def test_the_scale_restricts_the_score(folder: Path) -> None:
    made = score(Material([folder], Scale(problems=["zdt1"], variants=["plain"])))
    assert texts(made[0], "problem") == ["zdt1"] and len(made) == 2


def test_a_single_run_decides_nothing() -> None:
    task = Task("dtlz2", 30, 2, "plain", 300, 10, 100)
    duel = Duel(task, "x", np.array([1.0]), np.array([2.0]))
    assert duel.p == 1.0 and duel.word() == "tie" and duel.ratio == 0.5
    assert IGD.smaller_is_better


def forecast(base: Record, first: int, errors: Sequence[float], **more: object) -> dict[str, Any]:
    """A round's note: the forecasts of a batch from evaluation ``first`` on, off by so many sd."""
    F = base.minimised[first : first + len(errors)]
    half = np.full((len(errors), F.shape[1]), 0.5).tolist()
    mean = np.resize(F, (len(errors), F.shape[1])) + np.array(errors)[:, None]
    return {
        "seconds": 1.0, "evaluations": first, "predicted_mean": mean.tolist(),
        "predicted_epistemic": half, "predicted_aleatoric": half, **more,
    }  # fmt: skip


def test_the_intervals_of_each_run_are_counted(base: Record, tmp_path: Path) -> None:
    """By the mean over batches, then over runs; where evaluations failed, by what the fits noted."""
    nothing = {"seconds": 1.0}
    fitted = {**nothing, "surrogate": {"coverage": 0.9}}
    failed = replace(base, failed_X=base.X[:1])
    runs = (
        replace(base, notes=(forecast(base, 5, (0, 1, -1)), forecast(base, 8, (3, 1), **fitted))),
        replace(failed, notes=(nothing, fitted)),
        replace(base, notes=(nothing,)),
    )
    for seed, run in enumerate(runs):
        cell = Cell(base.cell.task, "neuropareto", seed)
        write(replace(run, cell=cell), tmp_path / f"{cell.key}.npz")
    held = score(Material([tmp_path]))[-1]
    assert held.title.startswith("90 % intervals of NeuroPareto")
    assert texts(held, "variant") == ["plain", "all"] and texts(held, "runs") == ["2", "2"]
    assert texts(held, "held") == ["0.825"] * 2 and texts(held, "worst run") == ["0.750"] * 2
    one = score(Material([tmp_path], Scale(seeds=[1])))[-1]
    assert texts(one, "held") == ["0.900"] * 2
    assert len(score(Material([tmp_path], Scale(problems=["zdt1"])))) == 1, "no table of nothing"


def test_what_cannot_be_held_against_a_forecast_does_not_count(
    base: Record, tmp_path: Path
) -> None:
    """A batch with a repeat, one that was cut, and steps without a forecast."""
    notes = (
        forecast(base, 5, (1, 1, 3), retreat={"radius": 0.1}),
        forecast(base, 5, (3, 3, 3), repeats_replaced=1),
        forecast(base, len(base.F) - 1, (3, 3, 3)),
        {"seconds": 1.0, "retreat": {"radius": 0.1}},
    )
    cell = Cell(base.cell.task, "neuropareto", 0)
    write(replace(base, cell=cell, notes=notes), tmp_path / f"{cell.key}.npz")
    held = score(Material([tmp_path]))[-1]
    assert texts(held, "held") == ["0.667"] * 2
