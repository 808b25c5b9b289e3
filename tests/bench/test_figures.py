from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.bench.cell import run_cell
from neuropareto.bench.figures import FIGURES, NotYet, draw, save
from neuropareto.bench.figures.bars import rank_figure
from neuropareto.bench.figures.curves import _nlpd
from neuropareto.bench.figures.style import look
from neuropareto.bench.grid import Cell, Scale, Task, load
from neuropareto.bench.material import Material
from neuropareto.bench.record import Record, write
from neuropareto.bench.statistics import friedman

NEEDS_NOTHING = {"information-gain"}


def titles(figure: Any) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes]


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - NEEDS_NOTHING))
def test_without_records_every_figure_says_what_to_run(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotYet) as reason:
        draw(name, Material([tmp_path]))
    assert "neuropareto bench run" in str(reason.value) or "run" in str(reason.value)


def test_the_issues_figures_are_there() -> None:
    assert {
        "convergence-igd", "convergence-hv", "inducing-sensitivity", "uncertainty", "timing",
        "ablation", "scaling", "reliability", "fronts", "proxy-rank", "nlpd", "slice",
        "k-sensitivity", "lmc-correlation", "information-gain", "static-vs-learned", "geothermal",
    } <= FIGURES.keys()  # fmt: skip


@pytest.fixture
def pictured(campaign: Path, grid_file: Path) -> Material:
    return Material([campaign], Scale(dimensions=[10]), str(grid_file))


@pytest.mark.parametrize("name", ["convergence-igd", "convergence-hv", "fronts", "scaling"])
def test_records_become_a_picture(name: str, pictured: Material, tmp_path: Path) -> None:
    paths = save(name, pictured, tmp_path)
    assert [p.name for p in paths] == [f"{name}.png", f"{name}.svg"]
    assert all(p.stat().st_size > 5_000 for p in paths)


def test_a_convergence_curve_is_the_median_of_its_runs(pictured: Material) -> None:
    figure = draw("convergence-igd", pictured)
    assert titles(figure) == ["DTLZ2, 10D", "ZDT1, 10D"]
    ax: Any = figure.axes[0]
    line = next(x for x in ax.lines if x.get_label() == "Random")
    task = pictured.grid("dtlz-bi").tasks[0]
    final = [e.summary["measures"]["igd"] for e in pictured.runs(task, "random").values()]
    assert line.get_ydata()[-1] == pytest.approx(np.median(final))
    assert "24 records" in figure.get_supxlabel() and "seeds 0-3" in figure.get_supxlabel()


def test_a_figure_can_go_to_one_file(pictured: Material, tmp_path: Path) -> None:
    assert save("fronts", pictured, tmp_path / "a" / "f.svg") == [tmp_path / "a" / "f.svg"]
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        save("fronts", pictured, tmp_path / "f.pdf")
    with pytest.raises(ValueError, match="no figure called"):
        draw("nothing", pictured)


def test_the_same_records_give_the_same_file(pictured: Material, tmp_path: Path) -> None:
    a, b = (save("scaling", pictured, tmp_path / f"{x}.png")[0].read_bytes() for x in "ab")
    assert a == b


def test_mean_ranks_are_drawn_where_they_are(pictured: Material) -> None:
    figure = draw("critical-difference", Material([pictured.records.folders[0]]))
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert any(text.startswith("NeuroPareto") for text in texts)
    test = friedman(np.tile(np.arange(10.0), (30, 1)), tuple(f"a{i}" for i in range(10)))
    assert len(rank_figure(test).axes[0].texts) == 10 + 10 + 1


def noted(cell: Cell, folder: Path, rounds: int = 2) -> Record:
    """A random run with the notes of a model that is right up to a tenth."""
    record = run_cell(Cell(cell.task, "random", cell.seed), folder / "base")
    notes = []
    for i, note in enumerate(record.notes):
        first = int(note["evaluations"])
        F = record.F[first : first + 10]
        notes.append(
            {
                **note,
                "predicted_mean": (F + 0.1).tolist(),
                "predicted_epistemic": np.full_like(F, 0.01 / (i + 1)).tolist(),
                "predicted_aleatoric": np.full_like(F, 1e-3).tolist(),
                "information_gain": [0.1] * len(F),
                "stage_seconds": {"classifier": 0.1, "surrogate": 0.5, "selection": 0.01},
            }
        )
    made = replace(record, cell=cell, notes=tuple(notes))
    write(made, folder / f"{cell.key}.npz")
    return made


@pytest.fixture(scope="module")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modelled")
    for seed in range(2):
        noted(Cell(Task("dtlz2", 10, 2, "plain", 60, 10, 40), "neuropareto", seed), folder)
    return folder


@pytest.mark.parametrize("name", ["uncertainty", "timing", "nlpd"])
def test_notes_become_a_picture(name: str, modelled: Path, tmp_path: Path) -> None:
    material = Material([modelled], Scale(dimensions=[10]))
    assert save(name, material, tmp_path)[0].stat().st_size > 5_000
    assert "2 records" in " ".join(material.account())


def test_nlpd_is_the_gaussian_one(modelled: Path, tmp_path: Path) -> None:
    cell = Cell(Task("dtlz2", 10, 2, "plain", 60, 10, 40), "neuropareto", 0)
    record = noted(cell, tmp_path)
    scale = record.F[:40].std(axis=0)
    v = (0.01 + 1e-3) / scale**2
    expected = np.mean(0.5 * (np.log(2 * np.pi * v) + (0.1 / scale) ** 2 / v))
    assert _nlpd(record, 0) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reliability", "proxy-rank", "slice", "lmc-correlation"])
def test_parts_are_fitted_to_a_record(name: str, modelled: Path, tmp_path: Path) -> None:
    material = Material([modelled], Scale(dimensions=[10]))
    assert save(name, material, tmp_path)[0].stat().st_size > 5_000
    assert material.used, "the figure says which records it was fitted to"


@pytest.mark.slow
def test_the_dropout_index_is_compared_with_an_ensemble(tmp_path: Path) -> None:
    material = Material([tmp_path])
    assert save("information-gain", material, tmp_path)[0].stat().st_size > 5_000
    assert material.account() == ("Made without records of runs.",)


@pytest.mark.parametrize(
    "name", ["ablation", "k-sensitivity", "inducing-sensitivity", "static-vs-learned"]
)
def test_settings_become_a_picture(name: str, tmp_path: Path) -> None:
    scale = Scale(seeds=[0, 1], budget=210)
    for cell in load(name, scale).cells[::2]:  # every other one, so that some are missing
        noted(cell, tmp_path / "r", 1)
    material = Material([tmp_path / "r"], scale)
    assert save(name, material, tmp_path)[0].stat().st_size > 5_000
    assert material.missing


def test_a_scale_that_leaves_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotYet, match="widen it"):
        draw("ablation", Material([tmp_path], Scale(dimensions=[7])))


def test_known_algorithms_differ_in_colour_or_line() -> None:
    names = ["neuropareto", "neuropareto-paper", "nsga2", "random", "clmea", "mcea-d", "k-rvea",
             "csea", "edn-armoea", "cps-moea", "gp-ei", "rf-ei", "gp-hv", "cl-ego", "morbo", "egbo",
             "cdm-psl"]  # fmt: skip
    assert len({(look(n)["color"], str(look(n)["ls"])) for n in names}) == len(names)
