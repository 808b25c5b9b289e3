"""What the paper prints: each of its tables as data, every digit as text.

``igd_tables()`` are the four large tables (28 + 28 + 20 + 7 rows), files ``paper/*.csv``; the smaller
ones are in ``paper/tables.toml``. Their numbers stand in our tables in a column of their own and are
never compared with anything by a test of this package.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES: Mapping[str, str] = {
    "gp-ei": "GP-EI", "rf-ei": "RF-EI", "gp-hv": "GP-HV", "cl-ego": "CL-EGO",
    "cps-moea": "CPS-MOEA", "k-rvea": "K-RVEA", "csea": "CSEA", "edn-armoea": "EDN-ARMOEA",
    "mcea-d": "MCEA/D", "clmea": "CLMEA", "morbo": "MORBO", "egbo": "EGBO", "cdm-psl": "CDM-PSL",
    "nsga2": "NSGA-II", "random": "Random", "neuropareto": "NeuroPareto",
    "neuropareto-paper": "NeuroPareto (paper)",
}  # fmt: skip
OURS = "neuropareto"
# How names of ours begin, whole or changed; the paper's own ablations are known from its tables.
_OURS_CHANGED = (OURS, "without-", "with-")
LARGE = {"dtlz-bi": 2, "dtlz-tri": 3, "zdt": 2, "high-dim": 5}
"""The four large tables and their number of objectives."""


def display(algorithm: str) -> str:
    """An algorithm's name as the field writes it."""
    return NAMES.get(algorithm, algorithm)


def _text(name: str) -> str:
    return (resources.files("neuropareto.bench") / "paper" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def igd_table(name: str) -> Mapping[tuple[str, int], Mapping[str, str]]:
    """A large table: (problem, d) -> algorithm -> the printed IGD."""
    rows = list(csv.DictReader(_text(f"{name}.csv").splitlines()))
    return {
        (row["problem"], int(row["d"])): {
            key: value for key, value in row.items() if key not in ("problem", "d")
        }
        for row in rows
    }


@lru_cache(maxsize=1)
def tables() -> Mapping[str, Any]:
    """The smaller tables: name -> label, caption and rows."""
    found: Mapping[str, Any] = tomllib.loads(_text("tables.toml"))
    return found


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a smaller table."""
    return list(tables()[name]["rows"])


def printed_text(name: str) -> dict[str, Any]:
    """A figure that the paper gives in its text."""
    return next(row for row in rows_of("text") if row["name"] == name)


@lru_cache(maxsize=1)
def named_algorithms() -> frozenset[str]:
    """Every algorithm that a table of the paper has a row or column for."""
    small = {
        str(row["algorithm"]) for t in tables().values() for row in t["rows"] if "algorithm" in row
    }
    large = {a for t in LARGE for row in igd_table(t).values() for a in row}
    return frozenset(small | large | set(NAMES))


def own(algorithm: str) -> bool:
    """Whether this is ours, whole or with a part changed: no peer to be compared with."""
    return algorithm.startswith(_OURS_CHANGED) or (
        algorithm in named_algorithms() and algorithm not in NAMES
    )


def printed_igd(problem: str, d: int, m: int, algorithm: str) -> str | None:
    """The printed IGD of a cell of the four large tables, None where the paper has none."""
    for name, objectives in LARGE.items():
        if objectives == m and (problem, d) in igd_table(name):
            return igd_table(name)[problem, d].get(algorithm)
    return None
