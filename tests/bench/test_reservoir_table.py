from __future__ import annotations

from pathlib import Path

from neuropareto.bench.commands import main


def test_the_geothermal_table_knows_its_yardstick_and_says_what_is_missing(
    tmp_path: Path, capsys: object
) -> None:
    assert main(["run", "geothermal", "--records", str(tmp_path), "--algorithms", "random", "nsga2",
                 "--seeds", "2", "--budget", "210", "--workers", "1"]) == 0  # fmt: skip
    assert main(["table", "geothermal", "--records", str(tmp_path), "--budget", "210"]) == 0
    said = capsys.readouterr().out  # type: ignore[attr-defined]
    assert "structured front" in said and "Random" in said and "NSGA-II" in said
    assert "neuropareto: " in said.split("Missing")[1]
