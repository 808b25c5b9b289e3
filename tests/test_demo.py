from __future__ import annotations

from pathlib import Path

import pytest

from neuropareto.demo import main


def test_the_demo_ends_with_pictures_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--problem", "geothermal-coarse", "--algorithm", "nsga2", "--budget", "12"]
    assert main([*arguments, "--batch", "4", "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    for name in ("front.png", "report.html", "evaluations.csv", "geothermal-schedules.png"):
        assert (tmp_path / "out" / name).stat().st_size > 100
        assert name in said.replace("\n", "")
    assert "structured front" in said


def test_the_demo_takes_a_benchmark_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--problem", "zdt1", "--variables", "8", "--algorithm", "random"]
    assert main([*arguments, "--budget", "20", "--output", str(tmp_path)]) == 0
    assert "IGD" in capsys.readouterr().out
