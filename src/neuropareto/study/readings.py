"""Where results stand in what a program leaves: a JSON path, a CSV column, a line's pattern.

Each reading takes the text of one file (or of "stdout") and gives one number. What is missing or
is no number raises ValueError with a sentence that names the place. Nothing is evaluated.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

STDOUT = "stdout"
_STEP = re.compile(r'\.?([^.\[\]"]+)|\[(-?\d{1,9})\]|\["([^"]+)"\]')
_LINE_LIMIT = 10_000


class Reading(Protocol):
    """One number in one file."""

    @property
    def file(self) -> str:
        """The file's name in the working directory, or "stdout"."""
        ...

    def read(self, text: str) -> float:
        """The number, or ValueError."""
        ...


@dataclass(frozen=True)
class JsonPath:
    """A value in a JSON document: ``summary.cost``, ``wells[0].rate``, ``["a.b"]``."""

    path: str
    file: str = STDOUT

    def __post_init__(self) -> None:
        self.steps()

    def steps(self) -> list[str | int]:
        """The keys and indices of the path."""
        steps: list[str | int] = []
        at = 0
        while at < len(self.path):
            found = _STEP.match(self.path, at)
            if not found:
                raise ValueError(
                    f"{self.path!r} is no JSON path like summary.cost or wells[0].rate"
                )
            steps.append(int(found[2]) if found[2] else found[1] or found[3])
            at = found.end()
        return steps

    def read(self, text: str) -> float:
        """Follow the path."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.file} is no JSON document: {error}") from None
        for step in self.steps():
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                raise ValueError(f"{self.file} has nothing at {self.path!r} ({step!r})") from None
        return _number(value, f"{self.file} at {self.path!r}")


@dataclass(frozen=True)
class CsvColumn:
    """A column of a CSV file with a header; ``row`` counts data rows from 0, -1 is the last."""

    column: str
    file: str = STDOUT
    row: int = -1
    delimiter: str = ","

    def read(self, text: str) -> float:
        """The cell in that column and row."""
        try:
            rows = [r for r in csv.reader(io.StringIO(text), delimiter=self.delimiter) if r]
        except csv.Error as error:
            raise ValueError(f"{self.file} is no CSV file: {error}") from None
        header = [name.strip() for name in rows[0]] if rows else []
        if self.column not in header:
            raise ValueError(f"{self.file} has no column {self.column!r}; it has {header[:8]}")
        try:
            cell = rows[1:][self.row][header.index(self.column)]
        except IndexError:
            raise ValueError(
                f"{self.file} has no value of {self.column!r} in row {self.row}"
            ) from None
        return _parsed(cell, f"{self.file}, column {self.column!r}")


@dataclass(frozen=True)
class LinePattern:
    """The group of a regular expression that matches from the start of a line; the last such line.

    ``^total cost *= *(\\S+)``
    """

    pattern: str
    file: str = STDOUT

    def __post_init__(self) -> None:
        if not self.pattern.startswith("^"):
            raise ValueError(
                f"the pattern {self.pattern!r} must begin with ^, the start of a line"
            )
        try:
            groups = re.compile(self.pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"the pattern {self.pattern!r} is wrong: {error}") from None
        if groups != 1:
            raise ValueError(
                f"the pattern {self.pattern!r} must have one group (...) for the number, has {groups}"
            )

    def read(self, text: str) -> float:
        """The number in the last line that matches."""
        expression = re.compile(self.pattern)
        for line in reversed(text.splitlines()):
            if found := expression.match(line[:_LINE_LIMIT]):
                return _parsed(found[1] or "", f"{self.file}, pattern {self.pattern!r}")
        raise ValueError(f"no line of {self.file} matches {self.pattern!r}")


@dataclass(frozen=True)
class Constraint:
    """A reading that must stay on one side of ``bound``: g = sign (value - bound) <= 0."""

    reading: Reading
    bound: float
    sign: float

    def violation(self, value: float) -> float:
        """g, feasible where <= 0."""
        return self.sign * (value - self.bound)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected a number in {where}, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"the number in {where} is too large for a float") from None


def _parsed(text: str, where: str) -> float:
    # Fortran writes 1.5D+03; float() also takes "1_000" and "infinity", which no simulator means.
    clean = re.sub(r"(?<=[\d.])[dD](?=[+-]?\d)", "e", text.strip()[:400])
    try:
        return float(clean if "_" not in clean else "")
    except ValueError:
        raise ValueError(f"expected a number in {where}, got {text[:60]!r}") from None
