from __future__ import annotations

from pathlib import Path

import pytest

from neuropareto.bench.commands import main
from neuropareto.bench.grid import Scale
from neuropareto.bench.material import Material
from neuropareto.bench.measures import HV
from neuropareto.bench.tables import table


def test_the_engineering_table_shows_hypervolume_and_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--problems", "re24", "--seeds", "2", "--budget", "60"]
    assert main(["run", "engineering", "--records", str(tmp_path), "--algorithms", "random",
                 "nsga2", *small, "--workers", "1"]) == 0  # fmt: skip
    capsys.readouterr()
    material = Material([tmp_path], Scale(problems=["re24"], seeds=[0, 1], budget=60))
    made = table("engineering", material)
    assert made.columns == ("problem", "D", "NSGA-II", "Random")
    (task,) = material.grid("engineering").tasks
    first, second = material.values(task, "random", HV).values()
    shown = float(made.rows[0][3].text.split()[0])
    assert shown == pytest.approx((first + second) / 2, rel=1e-3)
    assert any("neuropareto" in line for line in made.missing)
