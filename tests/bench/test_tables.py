from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

from neuropareto.analysis.timing import COMPONENTS
from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Cell, Scale, load
from neuropareto.bench.layout import FORMS, Table, render
from neuropareto.bench.material import Material, missing_lines, ranges
from neuropareto.bench.measures import IGD
from neuropareto.bench.records import Records
from neuropareto.bench.tables import TABLES, ingredients, table
from neuropareto.bench.tables.costs import component_shares


def cell(made: Table, row: str, column: str) -> str:
    c = made.columns.index(column)
    return next(r[c].text for r in made.rows if r[0].text == row)


# The geothermal table simulates its yardstick, which takes seconds.
SLOW = {"geothermal"}
NAMES = [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in TABLES]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_can_be_printed_without_any_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # away from the committed records that a table may fall back on
    made = table(name, Material([tmp_path]))
    for form in FORMS:
        assert made.title and render(made, form)
    if name not in ("variants", "ingredients", "engineering", "constrained", *SLOW):
        assert any("printed" in column for column in made.columns)
        assert made.rows
    assert made.missing or name == "grid"


def test_medians_and_marks_are_those_of_the_records(material: Material, campaign: Path) -> None:
    made = table("dtlz-bi", material)
    task = next(t for t in material.grid("dtlz-bi").tasks if t.problem == "dtlz2")
    values = Records([campaign]).values(task, "random", IGD)
    shown = cell(made, "dtlz2", "Random")
    assert float(shown.split()[0]) == pytest.approx(
        float(np.median(list(values.values()))), rel=1e-3
    )
    c = made.columns.index("NSGA-II")
    assert [row[c].mark for row in made.rows[:2]] == ["=", "="], "ours is NSGA-II's copy here"
    c = made.columns.index("NeuroPareto")
    assert [row[c].mark for row in made.rows[:2]] == ["", ""]


def test_printed_values_stand_beside_ours(tmp_path: Path) -> None:
    made = table("dtlz-bi", Material([tmp_path], Scale(dimensions=[100])))
    assert cell(made, "dtlz2", "NeuroPareto\nprinted") == "0.17226"
    assert cell(made, "dtlz2", "CLMEA\nprinted") == "0.38858"
    assert cell(made, "dtlz2", "NeuroPareto") == "-"
    assert "CLMEA" not in made.columns, "what was not run has no column of its own"


def test_the_account_says_what_a_table_is_made_of(material: Material) -> None:
    made = table("dtlz-bi", material)
    text = " ".join(made.notes)
    assert "24 records" in text and "seeds 0-3" in text and "commit" in text
    assert made.missing == (
        "neuropareto: seeds 4 of all 2 tasks",
        "nsga2: seeds 4 of all 2 tasks",
        "random: seeds 4 of all 2 tasks",
    )


def test_the_scale_restricts_seeds(campaign: Path, grid_file: Path) -> None:
    material = Material([campaign], Scale(seeds=[0, 1, 2]), str(grid_file))
    made = table("dtlz-bi", material)
    assert "seeds 0-2" in " ".join(made.notes) and not made.missing
    assert any("no difference can be significant" in note for note in made.notes)


def test_mean_ranks_and_counts_close_the_table(material: Material) -> None:
    made = table("dtlz-bi", material)
    assert [row[0].text for row in made.rows[-2:]] == ["+/=/-", "mean rank (2 tasks)"]
    c = made.columns.index("NSGA-II")
    assert made.rows[-2][c].text == "0/2/0"
    ranks = [float(i.text) for i in made.rows[-1][2:] if i.text]
    assert sum(ranks) == pytest.approx(6.0)


def test_an_algorithm_of_a_users_own_gets_a_column(material: Material, campaign: Path) -> None:
    assert "NSGA-II" in table("dtlz-bi", material).columns


def test_ingredients_are_compared_run_by_run(campaign: Path, grid_file: Path) -> None:
    made = ingredients.table(Material([campaign], grid=str(grid_file)))
    assert [row[0].text for row in made.rows] == ["neuropareto", "nsga2", "random"]
    # Ours is NSGA-II's copy here.
    assert [item.text for item in made.rows[1][1:]] == ["1", "1", "1", "1"]
    records = Records([campaign])
    ratios, logs = [], []
    for task in Material([campaign], grid=str(grid_file)).grid("ingredients").tasks:
        ours, other = (records.values(task, a, IGD) for a in ("neuropareto", "random"))
        logs += [np.log(other[seed] / ours[seed]) for seed in ours]
        ratios.append(np.median(list(other.values())) / np.median(list(ours.values())))
    shown = [float(item.text) for item in made.rows[2][1:4]]
    assert shown == pytest.approx([*ratios, np.sqrt(ratios[0] * ratios[1])], rel=0.01)
    assert len(logs) == 8
    assert float(made.rows[2][4].text) == pytest.approx(wilcoxon(logs).pvalue, abs=0.01)


def test_the_page_of_the_ablation_shows_the_committed_records() -> None:
    root = Path(__file__).parents[2]
    records = root / "benchmarks" / "records" / "ingredients"
    grid = load("ingredients")
    found = {entry.cell for entry in Records([records])}
    assert found == set(grid.cells) and {cell.seed for cell in found} == set(range(5))
    variants = [task.variant for task in grid.tasks]
    assert len(variants) >= 6 and min(variants.count(v) for v in ("shifted", "rotated")) >= 2
    page = (root / "docs" / "ablation.md").read_text()
    for line in render(ingredients.table(Material([records])), "markdown").splitlines():
        if line.startswith("| "):
            assert line in page


def test_variant_tables_compare_with_their_reference(tmp_path: Path) -> None:
    scale = Scale(seeds=[0, 1], budget=210, algorithms=["pool-200", "pool-500"])
    for wanted in load("pool-size", scale).cells:
        record = run_cell(Cell(wanted.task, "random", wanted.seed), tmp_path / "base")
        from dataclasses import replace

        from neuropareto.bench.record import write

        write(replace(record, cell=wanted), tmp_path / "r" / f"{wanted.key}.npz")
    made = table("pool-size", Material([tmp_path / "r"], scale))
    assert cell(made, "200", "printed") == "0.836 ±0.009"
    assert cell(made, "200", "seeds") == "2" and cell(made, "1,000", "seeds") == "0"
    assert any("HV reference points: dtlz2 m=2 (1.1, 1.1)" in note for note in made.notes)


def test_component_shares_add_up(tmp_path: Path) -> None:
    from neuropareto.bench.records import Entry

    task = load("wall-clock").tasks[0]
    seconds = {
        "classifier": 1.0, "surrogate": 4.0, "acquisition": 1.0, "candidates": 1.0, "posterior": 2.0,
    }  # fmt: skip
    summary = {"stage_seconds": seconds, "proposal_seconds": 10.0}
    shares = component_shares(Entry(Cell(task, "neuropareto", 0), tmp_path, "x", summary))
    assert shares["Deep GP training"] == pytest.approx(0.4)
    assert shares["Candidate evaluation (surrogate preds)"] == pytest.approx(0.3)
    assert shares["Overhead"] == pytest.approx(0.1) and sum(shares.values()) == pytest.approx(1)
    assert len(shares) == len(COMPONENTS)
    nothing = Entry(
        Cell(task, "random", 0), tmp_path, "x", {"stage_seconds": {}, "proposal_seconds": 1.0}
    )
    assert component_shares(nothing) == {}


def test_the_grid_table_reads_our_settings(tmp_path: Path) -> None:
    made = table("grid", Material([tmp_path]))
    c = made.columns.index("ours (literal pipeline)")
    settings = {(row[0].text, row[1].text): row[c].text for row in made.rows}
    from neuropareto.classifier import RankClassifier

    assert settings["Bayesian classifier", "Hidden width"] == str(RankClassifier().width)


def test_tools_that_have_not_been_run_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = table("retuning", Material([tmp_path])).missing
    assert any("neuropareto tune two-stage" in line for line in missing)
    missing = table("rho", Material([tmp_path])).missing
    assert any("neuropareto analyse observe dtlz2 -d 200" in line for line in missing)


def test_unknown_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dtlz-bi"):
        table("nothing", Material([tmp_path]))


def test_ranges() -> None:
    assert ranges([3, 0, 1, 2, 7, 9, 8]) == "0-3, 7-9" and ranges([5]) == "5" and ranges([]) == ""


def test_missing_cells_are_grouped() -> None:
    cells = load("zdt", Scale(algorithms=["random", "nsga2"], seeds=[0, 1])).cells
    gone = [c for c in cells if c.algorithm == "nsga2" or (c.task.problem == "zdt1" and c.seed)]
    assert missing_lines(gone, cells) == (
        "nsga2: all 40 cells",
        "random: seeds 1 of zdt1 m=2 d=30,50,100,200",
    )
