"""A table as a value, and its four forms: text, Markdown, LaTeX (booktabs) and CSV.

An :class:`Item` is a text with an optional significance mark and a flag for the best of its row.
In text the best is followed by ``*``; Markdown and LaTeX set it bold. CSV has marks in columns of
their own, so that numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Item:
    """One entry of a table."""

    text: str = ""
    mark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Title, columns, rows of as many items, and what is said below: notes, then what is missing.

    A column's name may have two lines, as in "CLMEA\\nprinted"; text sets them below each other.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Item, ...], ...]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"A row has {len(row)} items for {len(self.columns)} columns.")


def items(*texts: object) -> tuple[Item, ...]:
    """A row of plain texts; items pass through."""
    return tuple(text if isinstance(text, Item) else Item(str(text)) for text in texts)


def number(value: float, digits: int = 4) -> str:
    """A number with some significant digits, "-" for NaN."""
    if value != value:
        return "-"
    text = f"{value:.{digits}g}"
    return (
        text if "e" not in text or abs(value) >= 1e6 or 0 < abs(value) < 1e-4 else f"{value:.0f}"
    )


def render(table: Table, form: str) -> str:
    """The table in one of FORMS; raises ValueError for another word."""
    if form not in FORMS:
        raise ValueError(f"A table has the forms {', '.join(FORMS)}, got {form!r}.")
    return FORMS[form](table)


def _plain(item: Item) -> str:
    return item.text + ("*" if item.best else "") + (f" {item.mark}" if item.mark else "")


def _text(table: Table) -> str:
    heads = [name.split("\n") for name in table.columns]
    depth = max(map(len, heads))
    top = [[name[i] if i < len(name) else "" for name in heads] for i in range(depth)]
    grid = [*top, *([_plain(item) for item in row] for row in table.rows)]
    widths = [max(len(line[c]) for line in grid) for c in range(len(table.columns))]
    left = _left_columns(table)

    def line(texts: Sequence[str]) -> str:
        padded = [
            t.ljust(w) if c in left else t.rjust(w)
            for c, (t, w) in enumerate(zip(texts, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * w for w in widths)
    body = [*map(line, top), rule, *(line(row) for row in grid[depth:])]
    return "\n".join([table.title, "=" * len(table.title), *body, "", *_below(table)]) + "\n"


def _one_line(table: Table) -> list[str]:
    return [name.replace("\n", " ") for name in table.columns]


def _left_columns(table: Table) -> set[int]:
    """Columns of words; numbers stand right."""
    wordy = set()
    for c in range(len(table.columns)):
        texts = [row[c].text for row in table.rows if row[c].text not in ("", "-", "--", "---")]
        if texts and not all(re.match(r"[-+({]?[\d.]", text) for text in texts):
            wordy.add(c)
    return wordy


def _below(table: Table) -> list[str]:
    lines = list(table.notes)
    if table.missing:
        lines += ["Missing:", *(f"  {line}" for line in table.missing)]
    return lines


def _markdown(table: Table) -> str:
    left = _left_columns(table)
    lines = [f"**{_escaped(table.title)}**", ""]
    lines.append("| " + " | ".join(_escaped(name) for name in _one_line(table)) + " |")
    ends = ("---" if c in left else "---:" for c in range(len(table.columns)))
    lines.append("|" + "|".join(ends) + "|")
    for row in table.rows:
        cells = []
        for item in row:
            text = _escaped(item.text)
            text = f"**{text}**" if item.best and text else text
            cells.append(f"{text} {item.mark}".strip())
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"{_escaped(note)}  " for note in table.notes)]
    if table.missing:
        lines += ["", "Missing:", "", *(f"- {_escaped(line)}" for line in table.missing)]
    return "\n".join(line.rstrip() if not line.endswith("  ") else line for line in lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex(table: Table) -> str:
    left = _left_columns(table)
    spec = "".join("l" if c in left else "r" for c in range(len(table.columns)))
    marks = {"+": "$+$", "-": "$-$", "=": "$\\approx$"}
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{spec}}}", r"\toprule"]
    lines += [" & ".join(_tex(name) for name in _one_line(table)) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = []
        for item in row:
            text = _tex(item.text)
            text = rf"\textbf{{{text}}}" if item.best else text
            cells.append(f"{text} {marks.get(item.mark, _tex(item.mark))}".strip())
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    lines += [f"% {line}" for line in _below(table)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _csv(table: Table) -> str:
    marked = [any(row[c].mark for row in table.rows) for c in range(len(table.columns))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header: list[str] = []
    for name, has in zip(_one_line(table), marked, strict=True):
        header += [name, f"{name} mark"] if has else [name]
    writer.writerow(header)
    for row in table.rows:
        line: list[str] = []
        for item, has in zip(row, marked, strict=True):
            line += [item.text, item.mark] if has else [item.text]
        writer.writerow(line)
    return out.getvalue() + "".join(f"# {line}\n" for line in _below(table))


FORMS: Mapping[str, Callable[[Table], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}
