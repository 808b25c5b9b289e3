"""Reading a TOML file so that every complaint names the line and the key.

``tomllib`` gives values without places, so a small scanner finds the line of each key. A
:class:`Table` hands out checked values one by one and in the end refuses what nobody asked for.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Place: TypeAlias = tuple[str, ...]

LARGEST_FILE = 2_000_000
LONGEST_TEXT = 4_096

_KEY = re.compile(r'\s*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\')\s*')
_QUIET = re.compile(r"[^\"'#\[\]{}\n]+")
# Control characters, and the marks that make text read in another order than it is written.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class StudyFileError(ValueError):
    """A study file that cannot be used; the message names file, line and key."""


def load(path: Path) -> Table:
    """The root table of a TOML file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise StudyFileError(
                f"{path.name}: a study file has at most {LARGEST_FILE} bytes, this one has "
                f"{path.stat().st_size}; put large data into files of its own."
            )
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise StudyFileError(f"{path.name}: not a text file in UTF-8 ({error.reason}).") from None
    except OSError as error:
        raise StudyFileError(f"{path.name} cannot be read: {error.strerror}.") from None
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, OverflowError) as error:
        raise StudyFileError(f"{path.name}: not valid TOML: {str(error)[:300]}.") from None
    root = Table(path.name, values, (), lines_of(text))
    root.check_texts()
    return root


@dataclass(eq=False)
class Table:
    """A table of the file; ``place`` are the keys that lead to it."""

    file: str
    values: Mapping[str, Any]
    place: Place
    lines: Mapping[Place, int]
    used: set[str] = field(default_factory=set)

    def wrong(self, key: str | None, expected: str) -> NoReturn:
        """Complain about a key (None: about the table)."""
        place = self.place if key is None else (*self.place, key)
        known = next((self.lines[place[:n]] for n in range(len(place), 0, -1)
                      if place[:n] in self.lines), None)  # fmt: skip
        where = f" line {known}" if known is not None else ""
        got = "" if key is None or key not in self.values else f", got {_short(self.values[key])}"
        name = ".".join(_short_key(k) for k in place)
        raise StudyFileError(f"{self.file}{where}, {name or 'the file'}: {expected}{got}.")

    def check_texts(self) -> None:
        """Refuse control characters and endless strings anywhere, keys included."""
        stack: list[tuple[Place, Any]] = [(self.place, self.values)]
        while stack:
            place, value = stack.pop()
            if isinstance(value, Mapping):
                for key, inner in value.items():
                    if len(key) > 200 or _UNSAFE.search(key):
                        self._at(place).wrong(key, "a key has at most 200 printable characters")
                    stack.append(((*place, key), inner))
            elif isinstance(value, list):
                stack.extend((place, inner) for inner in value)
            elif isinstance(value, str) and (len(value) > LONGEST_TEXT or _UNSAFE.search(value)):
                self._at(place[:-1]).wrong(
                    place[-1], f"a text has at most {LONGEST_TEXT} printable characters"
                )

    def _at(self, place: Place) -> Table:
        return Table(self.file, {}, place, self.lines)

    # -- values --

    def take(self, key: str) -> Any:
        """The raw value of a key, or None."""
        self.used.add(key)
        return self.values.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self.take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.wrong(key, "expected a text in quotes")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of some words."""
        value = self.text(key, default)
        if value not in choices:
            self.wrong(key, "expected " + " or ".join(f'"{c}"' for c in choices))
        return value

    def whole(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number >= ``least``."""
        value = self.take(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
            self.wrong(key, f"expected a whole number >= {least}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        value = self.take(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, "expected a number")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            self.wrong(key, "expected a finite number")
        return found

    def flag(self, key: str) -> bool:
        """True or false; false if it is missing."""
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, "expected true or false")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if it is missing."""
        value = self.take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            self.wrong(key, 'expected a list of texts like ["a", "b"]')
        return tuple(value)

    def amount(self, key: str, units: Mapping[str, float], example: str) -> float | None:
        """A number > 0, or a text with a unit like "2 GB"; None if it is missing."""
        value = self.take(key)
        if value is None:
            return None
        unit = 1.0
        if isinstance(value, str):
            found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]{1,6})", value)
            if not found or found[2] not in units:
                self.wrong(key, f'expected a number or a text like "{example}"')
            value, unit = float(found[1]), units[found[2]]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, f'expected a number or a text like "{example}"')
        if not 0 < value < 1e18:
            self.wrong(key, "expected a number > 0")
        return float(value) * unit

    def table(self, key: str) -> Table:
        """A sub-table; an empty one if it is missing."""
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            self.wrong(key, "expected a table { ... }")
        return Table(self.file, value or {}, (*self.place, key), self.lines)

    def tables(self, key: str) -> list[Table]:
        """A sub-table or a list of them."""
        value = self.take(key)
        found = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(v, dict) for v in found):
            self.wrong(key, "expected a table { ... } or a list of tables")
        return [Table(self.file, v, (*self.place, key), self.lines) for v in found]

    def done(self) -> None:
        """Refuse keys that nobody took."""
        for key in self.values:
            if key not in self.used:
                near = difflib.get_close_matches(key, self.used, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; known: {sorted(self.used)}"
                self.wrong(key, f"this key means nothing here{hint}")


def _short(value: Any) -> str:
    try:
        text = ascii(value)
    except ValueError:  # a whole number of more digits than Python wants to print
        text = "a huge number"
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text)} characters)"


def _short_key(key: str) -> str:
    shown = key if len(key) <= 40 else f"{key[:30]}..."
    return shown if re.fullmatch(r"[\w.\[\]-]+", shown) else ascii(shown)


# -- lines --


def lines_of(text: str) -> dict[Place, int]:
    """The line of every key and table header of a valid TOML text; inline keys on their own line."""
    found: dict[Place, int] = {}
    header: Place = ()
    at, line, depth, fresh = 0, 1, 0, True
    while at < len(text):
        char = text[at]
        if char == "\n":
            at, line, fresh = at + 1, line + 1, fresh or depth == 0
        elif depth == 0 and fresh and not char.isspace() and char != "#":
            start = at + (2 if text.startswith("[[", at) else 1 if char == "[" else 0)
            keys, at = _keys(text, start)
            if char == "[":
                header, at = keys, _line_end(text, at)
                found.setdefault(header, line)
            else:
                found.setdefault(header + keys, line)
                at += 1
            fresh = False
        else:
            step = _skip(text, at)
            line += text.count("\n", at, step)
            depth += (char in "[{") - (char in "]}")
            at = step
    return found


def _skip(text: str, at: int) -> int:
    """Behind the string, comment or plain stretch that begins at ``at``."""
    for quotes in ('"""', "'''"):
        if text.startswith(quotes, at):
            end = at + 3
            while end < len(text) and not text.startswith(quotes, end):
                end += 2 if text[end] == "\\" and quotes == '"""' else 1
            return min(len(text), end + 3)
    if text[at] in "\"'":
        end = at + 1
        while end < len(text) and text[end] != text[at]:
            end += 2 if text[end] == "\\" and text[at] == '"' else 1
        return min(len(text), end + 1)
    if text[at] == "#":
        return _line_end(text, at)
    quiet = _QUIET.match(text, at)
    return quiet.end() if quiet else at + 1


def _keys(text: str, at: int) -> tuple[Place, int]:
    """A dotted key from ``at`` on, and the place behind it."""
    keys: list[str] = []
    while found := _KEY.match(text, at):
        keys.append(found[1] or (found[2] if found[2] is not None else found[3]) or "")
        at = found.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return tuple(keys), at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
