from __future__ import annotations

import csv
import io

import pytest

from neuropareto.bench.layout import FORMS, Item, Table, items, number, render

TABLE = Table(
    "A 100% title",
    ("problem", "D", "ours", "ours\nprinted"),
    (
        (Item("dtlz_1"), Item("30"), Item("1.5", "+", best=True), Item("1.7")),
        (Item("zdt|1"), Item("100"), Item("-"), Item("")),
    ),
    ("A note with a < b.",),
    ("clmea: all 20 cells",),
)


def test_text_is_aligned_and_says_everything() -> None:
    lines = render(TABLE, "text").splitlines()
    assert lines[0] == "A 100% title"
    assert lines[2].split() == ["problem", "D", "ours", "ours"] and lines[3].split() == ["printed"]
    assert lines[5].startswith("dtlz_1") and lines[5].endswith("1.7") and "1.5* +" in lines[5]
    assert len(lines[4]) >= len(lines[5])
    assert lines[-2:] == ["Missing:", "  clmea: all 20 cells"]


def test_markdown() -> None:
    text = render(TABLE, "markdown")
    assert "| problem | D | ours | ours printed |" in text and "|---|---:|---:|---:|" in text
    assert "| **1.5** + |" in text and "zdt\\|1" in text and "- clmea: all 20 cells" in text


def test_latex_escapes_and_sets_bold() -> None:
    text = render(TABLE, "latex")
    assert r"\textbf{1.5} $+$" in text and r"dtlz\_1" in text and r"100\%" in text
    assert text.count(r" \\") == 3 and r"\begin{tabular}{lrrr}" in text
    assert "% clmea" not in text.split(r"\end{tabular}")[0]


def test_csv_keeps_numbers_numbers() -> None:
    text = render(TABLE, "csv")
    rows = list(csv.reader(io.StringIO(text.split("#")[0])))
    assert rows[0] == ["problem", "D", "ours", "ours mark", "ours printed"]
    assert rows[1] == ["dtlz_1", "30", "1.5", "+", "1.7"]
    assert "# Missing:" in text


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_table_is_a_table(form: str) -> None:
    assert "nothing" in render(Table("nothing", ("a", "b"), (), ("nothing",)), form)


def test_unknown_forms_and_crooked_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="text, markdown, latex, csv"):
        render(TABLE, "html")
    with pytest.raises(ValueError, match="1 items for 2 columns"):
        Table("t", ("a", "b"), (items("x"),))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5678, "1235"), (0.00012345, "0.0001234"), (float("nan"), "-"), (18646.0, "18646"),
     (1.5e7, "1.5e+07"), (2.0e-7, "2e-07"), (0.0, "0"), (123456.0, "123456")],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text
