from __future__ import annotations

from pathlib import Path

from neuropareto.bench.commands import main


def test_the_geothermal_table_knows_its_yardstick_and_says_what_is_missing(
    tmp_path: Path, capsys: object
) -> None:
    assert main(["run", "geothermal", "--records", str(tmp_path), "--algorithms", "random",
                 "--seeds", "1", "--budget", "201", "--workers", "1"]) == 0  # fmt: skip
    assert main(["table", "geothermal", "--records", str(tmp_path), "--budget", "201"]) == 0
    said = capsys.readouterr().out  # type: ignore[attr-defined]
    assert "structured front" in said and "Random" in said
    assert "neuropareto: " in said.split("Missing")[1]
