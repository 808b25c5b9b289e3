"""Input files of a simulator: a text with placeholders, or the point as JSON or CSV.

``{x.name}`` becomes the value of a variable with all its digits, ``{x.name:10.4f}`` the value in a
fixed width, ``{x.rate[*]}`` all of ``rate[1]``, ``rate[2]``, ... with spaces between. Every other
brace is left alone. Nothing is evaluated.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Scalar: TypeAlias = "int | float | str | bool"

_PLACEHOLDER = re.compile(r"\{x\.([^{}:\n]{1,200})(?::([^{}\n]{0,40}))?\}")
_FORMAT = re.compile(r"[<>^]?[+ -]?0?\d{0,3}(\.\d{1,2})?[eEfFgGds]?")


class InputFile(Protocol):
    """A file written into the working directory before the program starts."""

    @property
    def file(self) -> str:
        """Its name there."""
        ...

    def written(self, point: Mapping[str, Scalar]) -> str:
        """Its text for a point {name: value}."""
        ...


@dataclass(frozen=True)
class Template:
    """A text with placeholders that becomes ``file``."""

    file: str
    text: str

    def written(self, point: Mapping[str, Scalar]) -> str:
        """The text with every placeholder filled in."""
        return filled(self.text, point)


@dataclass(frozen=True)
class JsonPoint:
    """The point as one JSON object {name: value}."""

    file: str

    def written(self, point: Mapping[str, Scalar]) -> str:
        """The object, on one line."""
        return json.dumps(dict(point)) + "\n"


@dataclass(frozen=True)
class CsvPoint:
    """The point as CSV: a line of names, a line of values."""

    file: str

    def written(self, point: Mapping[str, Scalar]) -> str:
        """The two lines."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(point)
        out.writerow([plain(v) for v in point.values()])
        return text.getvalue()


def filled(text: str, point: Mapping[str, Scalar]) -> str:
    """``text`` with its placeholders replaced by the values of ``point``."""
    return _PLACEHOLDER.sub(lambda found: _value(found[1], found[2], point), text)


def check(text: str, names: Iterable[str]) -> None:
    """ValueError with the line of the first placeholder that cannot be filled in."""
    # Zero serves every kind of variable here: only names and formats are under test.
    point = dict.fromkeys(names, 0.0)
    for found in _PLACEHOLDER.finditer(text):
        try:
            _value(found[1], found[2], point)
        except ValueError as error:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"line {line}: {error}") from None


def plain(value: Scalar) -> str:
    """A value as text: floats with all digits, truth as true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _value(name: str, form: str | None, point: Mapping[str, Scalar]) -> str:
    if name.endswith("[*]"):
        stem = name[:-2]
        family = [v for k, v in point.items() if k.startswith(stem) and k.endswith("]")]
        if not family:
            raise ValueError(f"no variable is called {name[:-3]!r} with a number in brackets")
        return " ".join(_formatted(v, form) for v in family)
    if name not in point:
        raise ValueError(f"{{x.{name}}} names no variable; the first ones are {list(point)[:5]}")
    return _formatted(point[name], form)


def _formatted(value: Scalar, form: str | None) -> str:
    if form is None:
        return plain(value)
    if not _FORMAT.fullmatch(form):
        raise ValueError(f"the format {form!r} is not like 10.4f, .6g, 08d or >12s")
    shown: Any = value
    if form[-1:] == "s":
        shown = plain(value)
    elif form[-1:] == "d" and not isinstance(value, str):
        shown = round(value)
    try:
        return format(shown, form)
    except ValueError:
        raise ValueError(f"the format {form!r} does not suit the value {value!r}") from None
