"""neuropareto tell: results of points, as JSON on standard input or in a file.

    {"trials": [{"id": 12, "objectives": {"cost": 3.2, "sag": 14}, "constraints": {"yield": 0.8}},
                {"id": 13, "failed": "the sample broke"},
                {"x": {"depth": 2, "steel": "S355"}, "objectives": [4.1, 9]}]}

A trial has the id that `ask` gave it; a point of your own has "x" instead and counts as known.
Objectives and constraints are lists, or mappings by name. A constraint by name is the measured
value, held against at_most or at_least of the study file; in a list it is g, feasible where <= 0.
"failed" is a text that says why, without values beside it; false and null mean that it did not
fail, and values that are not finite that it did. Nothing is recorded if anything is wrong with
the input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto.commands.target import add_study, add_take_over, target_of
from neuropareto.optimizer import Optimizer, Points, Trial
from neuropareto.space import Array, numbers
from neuropareto.study.description import READING
from neuropareto.study.readings import Constraint
from neuropareto.study.replay import Books, Replay
from neuropareto.study.study import Study


def main(argv: Sequence[str]) -> int:
    """Record results; prints what was recorded, as JSON."""
    parser = argparse.ArgumentParser(
        prog="neuropareto tell", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_study(parser)
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="instead of stdin"
    )
    add_take_over(parser)
    options = parser.parse_args(argv)
    text = _text(options.source)
    target = target_of(options.study)
    bounds = {} if target.file is None else target.file.constraints
    with target.open(take_over=options.take_over) as study:
        entries = _entries(text, study, bounds)
        _rehearse(entries, study)
        before = len(study.optimizer.failures)
        for entry in entries:
            entry.record(study)
        failed = len(study.optimizer.failures) - before
        answer = {
            "told": len(entries) - failed,
            "failed": failed,
            "finished": study.finished,
            "pending": len(study.pending),
        }
    print(json.dumps(answer))
    return 0


@dataclass(frozen=True, eq=False)
class _Entry:
    points: Points
    F: Array
    G: Array | None
    failed: str | None

    def record(self, to: Study | Optimizer) -> None:
        if self.failed is not None:
            to.fail(self.points, self.failed)
        else:
            to.tell(self.points, self.F, self.G)


def _text(source: Path | None) -> str:
    try:
        return sys.stdin.read() if source is None else source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        name = "The input" if source is None else source.name
        raise ValueError(f"{name} is no text in UTF-8: {error}.") from None


def _rehearse(entries: list[_Entry], study: Study) -> None:
    """Raise ValueError, before anything is recorded, if the study would not take all entries."""
    optimizer = study.description.optimizer(READING)
    Replay(optimizer, Books(), None).feed(study.events())
    for place, entry in enumerate(entries):
        try:
            entry.record(optimizer)
        except ValueError as error:
            raise ValueError(f"Entry {place}: {error} Nothing was recorded.") from None


def _entries(text: str, study: Study, bounds: Mapping[str, Constraint]) -> list[_Entry]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The input is no JSON: {error}.") from None
    if isinstance(given, dict):
        given = given.get("trials", [given])
    if not isinstance(given, list) or not all(isinstance(e, dict) for e in given):
        raise ValueError('The input must be like {"trials": [{"id": 0, "objectives": [1, 2]}]}.')
    waiting = {trial.id: trial for trial in study.pending}
    entries: list[_Entry] = []
    for place, entry in enumerate(given):
        try:
            entries.append(_entry(entry, study, waiting, bounds))
        except ValueError as error:
            raise ValueError(f"Entry {place}: {error} Nothing was recorded.") from None
    return entries


def _entry(
    given: dict[str, Any],
    study: Study,
    waiting: Mapping[int, Trial],
    bounds: Mapping[str, Constraint],
) -> _Entry:
    odd = set(given) - {"id", "x", "objectives", "constraints", "failed"}
    if odd or ("id" in given) == ("x" in given):
        raise ValueError(
            f"expected id or x, with objectives (and constraints) or failed; got {sorted(given)}."
        )
    points = _points(given, study, waiting)
    if (reason := _reason(given)) is not None:
        return _Entry(points, np.empty(0), None, reason)
    names, c = study.description.objectives, study.description.n_constraints
    F = _row(given.get("objectives"), names, "objectives")
    if not c:
        return _Entry(points, F, None, None)
    measured = given.get("constraints")
    if isinstance(measured, dict) and bounds:
        values = _row(measured, tuple(bounds), "constraints")[0]
        G = [b.violation(v) for b, v in zip(bounds.values(), values, strict=True)]
        return _Entry(points, F, np.array([G]), None)
    G_row = _row(measured, tuple(f"g{j + 1}" for j in range(c)), "constraints")
    return _Entry(points, F, G_row, None)


def _reason(given: dict[str, Any]) -> str | None:
    """Why the evaluation failed; None if it did not."""
    reason = given.get("failed")
    if reason is None or reason is False:
        return None
    if not isinstance(reason, str) or not reason:
        raise ValueError(f"failed must be a text that says why, got {reason!r:.80}.")
    if given.keys() & {"objectives", "constraints"}:
        raise ValueError("an evaluation has failed or has values, but both were given.")
    return reason


def _points(given: dict[str, Any], study: Study, waiting: Mapping[int, Trial]) -> Points:
    if "id" in given:
        if type(given["id"]) is not int or given["id"] not in waiting:
            raise ValueError(
                f"trial {given['id']!r} is not pending: never asked, or told already."
            )
        return waiting[given["id"]]
    if not isinstance(given["x"], dict):
        raise ValueError("x must be a mapping {name: value}.")
    space = study.description.space
    if odd := sorted(set(given["x"]) - set(space.names)):
        raise ValueError(
            f"x has {odd[0][:80]!r}, which is no variable of the study; it has {space.names[:20]}."
        )
    try:
        return space.from_dict(given["x"])[None]
    except (TypeError, OverflowError) as error:
        raise ValueError(f"x does not fit: {error}.") from None


def _row(given: Any, names: tuple[str, ...], what: str) -> Array:
    """(1, n) values in the order of ``names``."""
    if isinstance(given, dict):
        if set(given) != set(names):
            raise ValueError(f"{what} must be {list(names)}, got {sorted(given)}.")
        given = [given[name] for name in names]
    if not isinstance(given, list) or len(given) != len(names):
        raise ValueError(f"{what} must be {len(names)} numbers, {list(names)}, got {given!r:.80}.")
    row = numbers([given], f"the {what}")
    if row.shape != (1, len(names)):
        raise ValueError(f"{what} must be {len(names)} single numbers, got {given!r:.80}.")
    return row
