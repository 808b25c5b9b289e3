"""The fidelity factor rho: how much of the best possible gain the acquisition's choice brings.

Appendix "Estimating rho". A scenario is one evaluation: the front before it, the candidates that
were on offer, and the one that was taken; its gain over the best candidate's is the ratio r. Every
choice was made before its result was known; the paper takes 5 % of the scenarios as validation, we
do too and show all of them beside it. The reference point is the archive's own at the beginning
of the round, because far from the front nothing gains anything at the problem's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto import pareto
from neuropareto.analysis.observation import ObservedRound, ObservedRun, described, read_all
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.randomness import stream
from neuropareto.space import Array

FORMAT = 1
FOLDER = Path("benchmarks/records/analysis")


@dataclass(frozen=True)
class Fidelity:
    """rho: the median ratio over the held-out scenarios, and over all, with quartiles.

    ``whole`` compares with the best candidate of the whole pool instead of the shortlist, which
    adds what the screening lost. ``empty`` scenarios had nothing to gain and have no ratio.
    """

    rho: float
    held_out: int
    median: float
    quartiles: tuple[float, float]
    whole: float
    scenarios: int
    empty: int


def scenarios(observed: ObservedRound) -> Array:
    """The evaluations of a round: best gain on the shortlist, in the pool, and the gain taken, (q, 3).

    The members of the batch are taken in order of choice, and each joins the front with its true
    objectives before the next. A gain is Delta HV, at the archive's own reference point.
    """
    front, z = observed.front, observed.nearby
    rows = []
    for f in observed.choice:
        both = pareto.improvement(np.vstack([f, observed.pool]), front, z)
        taken, gains = both[0], both[1:]
        short = max(gains[observed.short].max(), taken)
        rows.append([short, max(gains.max(), short), taken])
        front = np.vstack([front, f])
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def fidelity(found: Array, *, rng: np.random.Generator, share: float = 0.05) -> Fidelity:
    """rho = median of Delta HV^acq / Delta HV* over ``share`` of the scenarios (n, 3), at least one.

    Paper: section "Estimating rho", Table rho. Raises ValueError if no scenario had a gain to find.
    """
    some = found[found[:, 0] > 0]
    if not len(some):
        raise ValueError("No candidate of any scenario would have gained anything: rho is 0 / 0.")
    ratios = some[:, 2] / some[:, 0]
    n = max(1, round(share * len(some)))
    held = rng.permutation(len(some))[:n]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return Fidelity(
        rho=float(np.median(ratios[held])),
        held_out=n,
        median=float(middle),
        quartiles=(float(low), float(high)),
        whole=float(np.median(some[:, 2] / some[:, 1])),
        scenarios=len(found),
        empty=len(found) - len(some),
    )


def all_scenarios(runs: Iterable[ObservedRun]) -> Array:
    """The scenarios of every round of every run, in order, (n, 3)."""
    return np.concatenate([scenarios(observed) for run in runs for observed in run.rounds])


def measured(runs: Sequence[ObservedRun]) -> Fidelity:
    """rho over all rounds of some runs; the held-out scenarios are drawn from a fixed stream."""
    return fidelity(all_scenarios(runs), rng=stream(0, 0, "held-out"))


@dataclass(frozen=True, eq=False)
class Record:
    """The scenarios of one problem as a small file keeps them, ``found`` (n, 3)."""

    problem: str
    d: int
    m: int
    algorithm: str
    seeds: tuple[int, ...]
    rounds: int
    found: Array
    made: Mapping[str, Any]

    @classmethod
    def of(cls, runs: Sequence[ObservedRun]) -> Record:
        """The record of some runs on one problem."""
        first = runs[0]
        rounds = sum(len(run.rounds) for run in runs)
        seeds = tuple(run.seed for run in runs)
        return cls(
            first.problem, first.d, first.m, first.algorithm, seeds, rounds,
            all_scenarios(runs), first.made,
        )  # fmt: skip

    @property
    def fidelity(self) -> Fidelity:
        """rho of these scenarios."""
        return fidelity(self.found, rng=stream(0, 0, "held-out"))

    @property
    def name(self) -> str:
        """The usual name of its file."""
        return f"rho-{self.problem}-d{self.d}-m{self.m}-{self.algorithm}.json"

    def write(self, folder: Path) -> Path:
        """Write the record into ``folder``; one line a scenario."""
        made = {key: self.made[key] for key in ("commit", "date") if key in self.made}
        head = {
            "format": FORMAT, "problem": self.problem, "d": self.d, "m": self.m,
            "algorithm": self.algorithm, "seeds": list(self.seeds), "rounds": self.rounds,
            "made": made, "columns": ["best of shortlist", "best of pool", "taken"],
        }  # fmt: skip
        lines = ",\n".join(json.dumps([float(f"{v:.8g}") for v in row]) for row in self.found)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        text = json.dumps(head)[:-1] + ', "scenarios": [\n' + lines + "\n]}\n"
        path.write_text(text, encoding="utf-8")
        return path


def read_record(path: Path) -> Record:
    """A record from its file; raises ValueError for a file that is not one."""
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
        if text["format"] != FORMAT:
            raise ValueError(f"it has format {text['format']}, this version reads {FORMAT}")
        found = np.array(text["scenarios"], dtype=np.float64).reshape(-1, 3)
        return Record(
            text["problem"], int(text["d"]), int(text["m"]), text["algorithm"],
            tuple(text["seeds"]), int(text["rounds"]), found, text["made"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a record of rho ({error}); write it again.") from error


def records_in(folders: Iterable[Path]) -> dict[tuple[str, int, str], Record]:
    """The records in some folders by problem, variables and algorithm; the first of equals counts."""
    found: dict[tuple[str, int, str], Record] = {}
    for folder in folders:
        for path in sorted(folder.glob("rho-*.json")):
            record = read_record(path)
            found.setdefault((record.problem, record.d, record.algorithm), record)
    return found


def table(found: Fidelity, title: str) -> Table:
    """The figures of rho as a table."""
    low, high = found.quartiles
    rows = (
        items(f"rho, {found.held_out} held-out scenarios", number(found.rho, 3)),
        items("rho, all scenarios", number(found.median, 3)),
        items("quartiles of the ratio", f"{low:.3g} to {high:.3g}"),
        items("rho against the whole pool", number(found.whole, 3)),
        items("scenarios", str(found.scenarios)),
        items("of these without anything to gain", str(found.empty)),
    )
    return Table(title, ("figure", "value"), rows)


def command(argv: Sequence[str]) -> int:
    """``neuropareto analyse rho``: rho of observed runs, and a record for the table."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse rho", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="files of `analyse observe`")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER",
        help=f"write the scenarios there for `bench table rho`, which looks in {FOLDER}",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    runs = read_all(options.runs)
    if options.output is not None:
        print(Record.of(runs).write(options.output))
    title = f"Fidelity rho: {described(runs)}"
    print(render(table(measured(runs), title), options.format), end="")
    return 0
