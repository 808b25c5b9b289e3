"""Small campaigns for the tests of the benchmark: run once, in this process, with tiny budgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Cell, Grid, Scale, grid_of
from neuropareto.bench.material import Material
from neuropareto.bench.record import write

SMALL = {
    "title": "small",
    "problems": ["dtlz2", "zdt1"],
    "dimensions": [10],
    "objectives": [2],
    "algorithms": ["nsga2", "random"],
    "seeds": 4,
    "budget": 40,
    "n_initial": 20,
}


@pytest.fixture(scope="session")
def small() -> Grid:
    return grid_of("small", SMALL, Scale())


@pytest.fixture(scope="session")
def campaign(small: Grid, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the small grid; those of NSGA-II also under the name of ours."""
    folder = tmp_path_factory.mktemp("campaign")
    for cell in small.cells:
        record = run_cell(cell, folder)
        if cell.algorithm == "nsga2":
            ours = Cell(cell.task, "neuropareto", cell.seed)
            write(replace(record, cell=ours), folder / f"{ours.key}.npz")
    return folder


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    """The small grid as a file."""
    path = tmp_path / "small.toml"
    lines = [
        'title = "small"', 'problems = ["dtlz2", "zdt1"]', "dimensions = [10]", "objectives = [2]",
        'algorithms = ["neuropareto", "nsga2", "random"]', "seeds = 5", "budget = 40",
        "n_initial = 20",
    ]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def material(campaign: Path, grid_file: Path) -> Material:
    return Material([campaign], grid=str(grid_file))
