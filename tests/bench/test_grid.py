from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.bench.grid import Cell, Grid, Scale, Task, grid_of, load, shipped
from neuropareto.bench.printed import LARGE, igd_table


def test_a_grid_is_the_product_of_its_lists(small: Grid) -> None:
    assert len(small.cells) == 2 * 2 * 4
    assert len(set(small.cells)) == len(small.cells)
    assert small.algorithms == ("nsga2", "random") and small.seeds == (0, 1, 2, 3)


def test_cells_run_seed_by_seed(small: Grid) -> None:
    seeds = [cell.seed for cell in small.cells]
    assert seeds == sorted(seeds)


def test_every_cell_has_its_own_file_name() -> None:
    keys = [cell.key for name in shipped() for cell in load(name).cells]
    cells = {cell for name in shipped() for cell in load(name).cells}
    assert len(set(keys)) == len(cells)


def test_a_cell_survives_its_description(small: Grid) -> None:
    for cell in small.cells:
        assert Cell.of(cell.as_dict()) == cell


def test_the_shipped_grids_have_the_papers_83_cells() -> None:
    assert sum(len(load(name).tasks) for name in LARGE) == 28 + 28 + 20 + 7
    for name, m in LARGE.items():
        tasks = load(name).tasks
        assert {(t.problem, t.d) for t in tasks} == set(igd_table(name))
        assert {t.m for t in tasks} == {m} and {t.budget for t in tasks} == {300}
        assert all(t.n_initial == (100 if t.d < 100 else 200) for t in tasks)


def test_the_first_campaign_covers_all_problems_plain_shifted_and_rotated() -> None:
    grid = load("first-campaign")
    assert len({t.problem for t in grid.tasks}) == 12
    assert {t.variant for t in grid.tasks} == {"plain", "shifted", "rotated"}
    assert {t.d for t in grid.tasks} == {30, 100} and len(grid.seeds) >= 3


def test_parts_differ_from_the_top(tmp_path: Path) -> None:
    tasks = load("mobo").tasks
    assert {(t.problem, t.d, t.n_initial) for t in tasks} == {
        ("dtlz2", 100, 100), ("zdt3", 100, 100), ("dtlz2", 200, 200),
    }  # fmt: skip


def test_a_problem_of_fixed_size_needs_no_dimension() -> None:
    grid = grid_of("g", {"problems": ["re21"], "algorithms": ["random"], "seeds": 1}, Scale())
    assert (grid.tasks[0].d, grid.tasks[0].m) == (4, 2)


def test_the_scale_picks_and_replaces() -> None:
    scale = Scale(problems=["dtlz2"], dimensions=[30], algorithms=["random"], seeds=[7], budget=60)
    grid = load("dtlz-bi", scale)
    assert [
        (c.task.problem, c.task.d, c.algorithm, c.seed, c.task.budget) for c in grid.cells
    ] == [("dtlz2", 30, "random", 7, 60)]
    assert grid.tasks[0].n_initial == 40  # two thirds of a budget that cannot hold the paper's 100


def test_variants_of_a_seed_are_the_same_instance_for_all_algorithms() -> None:
    task = Task("dtlz2", 12, 2, "shifted", 40, 10, 20)
    X = task.instance(0).space.from_unit(np.full((1, 12), 0.3))
    a, b, c = (np.asarray(task.instance(seed)(X)) for seed in (3, 3, 4))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


GOOD: dict[str, Any] = {"problems": ["dtlz2"], "algorithms": ["random"], "seeds": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"problem": ["dtlz2"]}, "did you mean 'problems'"),
        ({"seeds": "3"}, "'seeds'"),
        ({"seeds": 0}, "at least one"),
        ({"seeds": [-1]}, "whole numbers"),
        ({"dimensions": [True]}, "whole numbers"),
        ({"algorithms": []}, "at least one"),
        ({"problems": ["dtlz99"]}, "no problem called 'dtlz99'"),
        ({"variants": ["bent"]}, "no variant called 'bent'"),
        ({"budget": 10, "n_initial": 20}, "cover the start design"),
        ({"part": {"seeds": 1}}, "[[part]]"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        grid_of("g", {**GOOD, **change}, Scale())
    assert said in str(caught.value)


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ValueError, match="needs algorithms, seeds"):
        grid_of("g", {"problems": ["dtlz2"]}, Scale())


def test_files_that_are_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="bench grids"):
        load("nowhere")
    path = tmp_path / "bad.toml"
    path.write_text("problems = [", encoding="utf-8")
    with pytest.raises(ValueError, match="not valid TOML"):
        load(path)
