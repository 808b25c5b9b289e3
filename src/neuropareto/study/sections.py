"""The tables of a study file as values: variables, objectives, constraints, the program.

Every function takes a :class:`Table` and raises StudyFileError, with line and key, for what does
not fit. Files that are named must lie beside the study file; results inside the working directory.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from neuropareto.space import Categorical, Integer, Real, Space, Variable
from neuropareto.study.limits import Limits
from neuropareto.study.readings import (
    STDOUT,
    Constraint,
    CsvColumn,
    JsonPath,
    LinePattern,
    Reading,
)
from neuropareto.study.simulator import KEEP, Simulator, inside
from neuropareto.study.template import CsvPoint, InputFile, JsonPoint, Template, check
from neuropareto.study.toml_table import Table

MOST_VARIABLES = 100_000
LARGEST_TEMPLATE = 10_000_000
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30}  # fmt: skip

_NAME = re.compile(r"\w[\w.-]{0,99}")
_FAMILY = re.compile(r"(\w[\w.-]{0,99})\[(\d{1,7})\.\.(\d{1,7})\]")


# -- variables --


def space_of(root: Table) -> Space:
    """The space of ``[variables]``."""
    table = root.table("variables")
    variables: list[Variable] = []
    for key in table.values:
        for name in _names(table, key):
            variables.append(_variable(table, key, name))
        if len(variables) > MOST_VARIABLES:
            table.wrong(None, f"a study has at most {MOST_VARIABLES} variables")
    if not variables:
        root.wrong("variables", "a study needs variables like depth = { lower = 1, upper = 9 }")
    try:
        return Space(tuple(variables))
    except ValueError as error:
        bad = next((k for k in table.values if any(f"{n!r}" in str(error) for n in _names(table, k))),
                   None)  # fmt: skip
        table.wrong(bad, str(error).rstrip("."))


def _names(table: Table, key: str) -> list[str]:
    """The variables behind a key: itself, or name[1], name[2], ... for name[1..n]."""
    if family := _FAMILY.fullmatch(key):
        first, last = int(family[2]), int(family[3])
        if not first <= last or last - first >= MOST_VARIABLES:
            table.wrong(key, f"expected name[first..last] with at most {MOST_VARIABLES} members")
        return [f"{family[1]}[{i}]" for i in range(first, last + 1)]
    if not re.fullmatch(rf"{_NAME.pattern}(\[\d{{1,7}}\])?", key):
        table.wrong(key, 'a variable is called like depth, well-2.rate, rate[7] or "rate[1..160]"')
    return [key]


def _variable(table: Table, key: str, name: str) -> Variable:
    given = table.take(key)
    if isinstance(given, list):
        if len(given) != 2:
            table.wrong(key, "expected [lower, upper]")
        given = {"lower": given[0], "upper": given[1]}
    if not isinstance(given, dict):
        table.wrong(key, "expected { lower = ..., upper = ... } or { choices = [...] }")
    own = Table(table.file, given, (*table.place, key), table.lines)
    if "choices" in given:
        choices = own.take("choices")
        if not isinstance(choices, list) or not all(
            isinstance(c, (str, int, float, bool)) for c in choices
        ):
            own.wrong("choices", "expected a list of texts or numbers")
        own.done()
        return Categorical(tuple(choices), name=name)
    kind = own.choice("type", ("real", "integer"), "real")
    log = own.flag("log")
    if kind == "integer":
        for end in ("lower", "upper"):
            if own.number(end) != math.floor(own.number(end)):
                own.wrong(end, "the bounds of an integer must be whole")
        variable: Variable = Integer(int(own.number("lower")), int(own.number("upper")), log, name)
    else:
        variable = Real(own.number("lower"), own.number("upper"), log, name)
    own.done()
    return variable


# -- results --


def objectives_of(root: Table) -> tuple[dict[str, str], dict[str, Reading | None]]:
    """Directions and readings of ``[objectives]``."""
    table = root.table("objectives")
    directions: dict[str, str] = {}
    readings: dict[str, Reading | None] = {}
    for name in table.values:
        if isinstance(table.take(name), str):
            directions[name], readings[name] = table.choice(name, ("minimize", "maximize")), None
            continue
        own = table.table(name)
        directions[name] = own.choice("direction", ("minimize", "maximize"), "minimize")
        readings[name] = _reading(own)
        own.done()
    if not directions:
        root.wrong("objectives", 'a study needs objectives like cost = { direction = "minimize" }')
    return directions, readings


def constraints_of(root: Table) -> dict[str, Constraint]:
    """The constraints of ``[constraints]``."""
    table = root.table("constraints")
    found: dict[str, Constraint] = {}
    for name in table.values:
        own = table.table(name)
        if "at_most" in own.values and "at_least" in own.values:
            own.wrong("at_least", "give at_most or at_least, not both")
        side = "at_least" if "at_least" in own.values else "at_most"
        bound, sign = own.number(side, 0.0), -1.0 if side == "at_least" else 1.0
        reading = _reading(own)
        if reading is None and "evaluation" in root.values:
            own.wrong(None, "say where to read it: json, column or pattern")
        own.done()
        # By hand nobody reads a file; the bound still turns what people tell into g <= 0.
        found[name] = Constraint(reading or JsonPath(""), bound, sign)
    return found


def _reading(table: Table) -> Reading | None:
    given = [key for key in ("json", "column", "pattern") if key in table.values]
    file = table.text("file", STDOUT)
    if len(given) > 1:
        table.wrong(given[1], f"give one of json, column and pattern, not also {given[0]}")
    if not given:
        return None
    key = given[0]
    _relative(table, "file", file)
    row = table.take("row") if key == "column" else -1
    if row is not None and (isinstance(row, bool) or not isinstance(row, int)):
        table.wrong("row", "expected a whole number, -1 being the last row")
    delimiter = table.text("delimiter", ",") if key == "column" else ","
    if len(delimiter) != 1:
        table.wrong("delimiter", "expected one character")
    try:
        if key == "json":
            return JsonPath(table.text(key), file)
        if key == "pattern":
            return LinePattern(table.text(key), file)
        return CsvColumn(table.text(key), file, -1 if row is None else row, delimiter)
    except ValueError as error:
        table.wrong(key, str(error))


def reference_of(root: Table, m: int) -> tuple[float, ...] | None:
    """The reference point, if one is given."""
    value = root.take("reference")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != m or not all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in value
    ):  # fmt: skip
        root.wrong("reference", f"expected {m} numbers, one per objective")
    return tuple(map(float, value))


# -- the program --


def simulator_of(
    table: Table,
    home: Path,
    store: Path,
    space: Space,
    objectives: tuple[Reading, ...],
    constraints: tuple[Constraint, ...],
) -> Simulator:
    """The program of ``[evaluation]``."""
    command = table.texts("command")
    if not command or not command[0]:
        table.wrong(
            "command", 'expected the program and its arguments like ["./simulate", "in.txt"]'
        )
    if "/" in command[0] and not command[0].startswith("/"):
        program = beside(table, "command", home, command[0])
        if not program.is_file():
            table.wrong("command", f"there is no program {command[0]!r} beside the study file")
    files = table.texts("files")
    for name in files:
        if not beside(table, "files", home, name).is_file():
            table.wrong("files", f"there is no file {name!r} beside the study file")
    for text in command:
        _checked(table, "command", text, space)
    simulator = Simulator(
        space=space,
        command=command,
        home=home,
        runs=store.with_suffix(".runs"),
        objectives=objectives,
        constraints=constraints,
        inputs=tuple(_input(own, home, space) for own in table.tables("input")),
        files=files,
        keep=table.choice("keep", KEEP, "failed"),
        memory=limits_of(table).memory,
    )
    table.done()
    return simulator


def _input(table: Table, home: Path, space: Space) -> InputFile:
    file = table.text("file")
    _relative(table, "file", file)
    if "template" not in table.values:
        kind = table.choice("format", ("json", "csv"), "json")
        table.done()
        return JsonPoint(file) if kind == "json" else CsvPoint(file)
    path = beside(table, "template", home, table.text("template"))
    try:
        if path.stat().st_size > LARGEST_TEMPLATE:
            table.wrong("template", f"a template has at most {LARGEST_TEMPLATE} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        table.wrong("template", f"the template cannot be read ({type(error).__name__})")
    _checked(table, "template", text, space)
    table.done()
    return Template(file, text)


def limits_of(table: Table) -> Limits:
    """The limits in ``[evaluation]``."""
    memory = table.amount("memory", BYTES, "2 GB")
    disk = table.amount("disk", BYTES, "500 MB")
    return Limits(
        wall=table.amount("wall", SECONDS, "30 min"),
        cpu=table.amount("cpu", SECONDS, "30 min"),
        memory=None if memory is None else int(memory),
        grace=table.amount("grace", SECONDS, "5 s") or 5.0,
        disk=None if disk is None else int(disk),
    )


def _checked(table: Table, key: str, text: str, space: Space) -> None:
    try:
        check(text, space.names)
    except ValueError as error:
        table.wrong(key, str(error))


def _relative(table: Table, key: str, name: str) -> None:
    """Refuse a name that would leave the working directory."""
    try:
        inside(Path("/working-directory"), name)
    except ValueError:
        table.wrong(key, "expected a file inside the working directory")


def beside(table: Table, key: str, home: Path, name: str) -> Path:
    """A path beside (or below) the study file."""
    try:
        return inside(home, name)
    except ValueError:
        table.wrong(
            key, f"{name[:80]!r} leaves the folder of the study file; move it there (a program may "
            "also be given by its full path or its bare name)",
        )  # fmt: skip
