from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from neuropareto.bench.commands import main, seeds_of
from neuropareto.bench.grid import Cell, Task
from neuropareto.bench.live import Board, Lines, Terminal, duration, screen_for
from neuropareto.bench.records import Records


def test_grids_and_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grids"]) == 0 and main(["table"]) == 0 and main(["figure"]) == 0
    out = capsys.readouterr().out
    assert "first-campaign" in out and "(648 cells)" in out
    assert "tab:dtlz_bi_results" in out and "fig:proxy_vs_hv" in out


def test_a_campaign_from_run_to_table(
    tmp_path: Path, grid_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = ["--records", str(tmp_path / "r")]
    scale = ["--algorithms", "random", "--seeds", "2"]
    assert main(["status", str(grid_file), *records, *scale]) == 1
    assert main(["run", str(grid_file), *records, *scale, "--workers", "1"]) == 0
    assert main(["status", str(grid_file), *records, *scale]) == 0
    out = capsys.readouterr().out
    assert "4 run, 0 found, 0 failed, 0 left" in out and "4 of 4 cells finished" in out
    grid = ["--grid", str(grid_file), *records]
    assert main(["table", "dtlz-bi", *grid, "--format", "csv"]) == 0
    assert "Random" in capsys.readouterr().out
    assert main(["figure", "fronts", *grid, "--dimensions", "10", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "fronts.svg").exists()
    assert main(["figure", "geothermal", *records]) == 1
    assert "neuropareto bench run geothermal" in capsys.readouterr().err


def test_score_and_results(
    campaign: Path, grid_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--records", str(campaign), "--grid", str(grid_file)]
    assert main(["score", *common, "--holm"]) == 0
    assert "Against each other algorithm" in capsys.readouterr().out
    page = tmp_path / "docs" / "results.md"
    assert main(["results", *common, "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "24 of 30 cells" in text and "neuropareto: seeds 4 of all 2 tasks" in text
    assert "commit" in text and "Machine:" in text and "| NSGA-II | 10 | 8 | 2 | 0-3 |" in text
    for line in text.splitlines():
        if line.startswith("!["):
            assert (page.parent / line.split("](")[1].rstrip(")")).exists()
    assert main(["results", *common, "--output", str(page), "--no-figures"]) == 0
    assert "![" not in page.read_text(encoding="utf-8")


def test_compact_records_give_the_same_tables(
    campaign: Path, grid_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", str(campaign), str(tmp_path / "small")]) == 0
    assert "24 records" in capsys.readouterr().out
    texts = []
    for folder in (campaign, tmp_path / "small"):
        main(["table", "dtlz-bi", "--records", str(folder), "--grid", str(grid_file)])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    sizes = [
        sum(p.stat().st_size for p in f.rglob("*.npz")) for f in (campaign, tmp_path / "small")
    ]
    assert sizes[1] < sizes[0]
    front = next(iter(Records([tmp_path / "small"]))).read()
    assert not front.whole and len(front.X) == len(front.front_rows)
    with pytest.raises(ValueError, match="another folder"):
        main(["compact", str(campaign), str(campaign)])


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        (None, None),
        ("3", (0, 1, 2)),
        ("2-4", (2, 3, 4)),
        ("1,5", (1, 5)),
        ("0,2-3", (0, 2, 3)),
    ],
)
def test_seeds(text: str | None, seeds: tuple[int, ...] | None) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "zdt", "--seeds", "x"], "Seeds are"),
        (["run", "zdt", "--workers", "0"], "at least 1"),
        (["run", "zdt", "--problems", "dtlz1"], "Nothing of the grid is left"),
        (["run", "zdt", "--records", "a", "--records", "b"], "one folder"),
        (["table", "nothing"], "no table called"),
    ],
)
def test_mistakes_are_said(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        main(arguments)


# -- what a campaign shows --


def cells(n: int, algorithm: str = "random") -> list[Cell]:
    return [Cell(Task("zdt1", 30, 2, "plain", 300, 10, 100), algorithm, s) for s in range(n)]


def test_the_time_left_follows_the_kind_of_cell() -> None:
    known = [(cells(1, "slow")[0], 100.0), (cells(1)[0], 1.0)]
    board = Board("b", [*cells(4), *cells(3, "slow")], 2, 2, known)
    assert board.total == 9 and board.left == 7
    assert board.seconds_left() == pytest.approx((4 * 1 + 3 * 100) / 2)
    for cell in cells(4):
        board.ended(cell, {"event": "done", "seconds": 1.0})
    assert board.seconds_left() == pytest.approx(150.0) and board.done == 4
    board.ended(cells(1, "slow")[0], {"event": "failed", "error": "no"})
    assert board.seconds_left() == pytest.approx(100.0) and "no" in board.last_error
    assert "7/9" in board.line() and "1 failed" in board.line()


def test_before_the_first_cell_nothing_is_promised() -> None:
    board = Board("b", cells(3), 0, 1)
    assert board.seconds_left() is None and "not known yet" in board.line()
    board.ended(cells(1, "another")[0], {"event": "claimed"})
    assert board.left == 3


def test_the_live_table_names_what_runs() -> None:
    console = Console(width=120, force_terminal=True, file=None, record=True)
    board = Board("my campaign", cells(3), 0, 1)
    board.began(0, cells(3)[1])
    board.advanced(0, 120)
    with console.capture() as captured:
        console.print(Terminal(console).picture(board))
    assert "zdt1" in captured.get() and "120/300" in captured.get()


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    screen = screen_for(Console())
    assert isinstance(screen, Lines)
    with screen.shown(Board("b", cells(1), 0, 1)):
        pass
    assert "b: 0/1" in capsys.readouterr().out
    assert isinstance(screen_for(Console(force_terminal=True)), Terminal)


def test_durations() -> None:
    assert [duration(s) for s in (5, 300, 7200)] == ["5 s", "5 min", "2.0 h"]
