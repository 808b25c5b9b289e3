"""All problems by name: what exists, in which sizes, from where.

``problem(name, d, m)`` makes one, ``problems()`` lists the names; ``pymoo:NAME`` and
``botorch:NAME`` reach the problems of those libraries. :func:`table` writes the table of
``docs/problems.md``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from neuropareto.problem import Problem
from neuropareto.problems.constrained_dtlz import NAMES as CONSTRAINED_DTLZ_NAMES
from neuropareto.problems.constrained_dtlz import constrained_dtlz
from neuropareto.problems.dtlz import NAMES as DTLZ_NAMES
from neuropareto.problems.dtlz import dtlz
from neuropareto.problems.engineering import NAMES as ENGINEERING_NAMES
from neuropareto.problems.engineering import engineering
from neuropareto.problems.foreign import PREFIXES, foreign
from neuropareto.problems.rover import rover
from neuropareto.problems.sizes import chosen, fixed
from neuropareto.problems.sparse import NAMES as SPARSE_NAMES
from neuropareto.problems.sparse import sparse
from neuropareto.problems.truss import truss
from neuropareto.problems.variants import VARIANTS
from neuropareto.problems.wfg import NAMES as WFG_NAMES
from neuropareto.problems.wfg import wfg
from neuropareto.problems.zdt import NAMES as ZDT_NAMES
from neuropareto.problems.zdt import zdt
from neuropareto.space import Array

Maker = Callable[[str, "int | None", "int | None", int], Problem]


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue: how to make it, which sizes it takes, and its source."""

    make: Maker
    sizes: str
    source: str


def _geothermal(name: str, d: int | None, m: int | None, seed: int) -> Problem:
    # Imported when asked for: the reservoir simulator is a package of its own.
    from neuropareto.problems import geothermal as package

    made = package.geothermal() if name == "geothermal" else package.geothermal_coarse()
    fixed(name, "d", d, made.d)
    fixed(name, "m", m, made.n_objectives)
    return made


_RE = "Tanabe & Ishibuchi 2020"
_CATALOGUE: dict[str, Entry] = {
    **{
        name: Entry(lambda name, d, m, seed: dtlz(name, d, m), "m >= 2, d >= m", "Deb et al. 2005")
        for name in DTLZ_NAMES
    },
    **{
        name: Entry(
            lambda name, d, m, seed: constrained_dtlz(name, d, m),
            f"m >= 2, d >= m{' + 3' if name == 'c3-dtlz4' else ''}",
            "Jain & Deb 2014",
        )
        for name in CONSTRAINED_DTLZ_NAMES
    },
    **{
        name: Entry(lambda name, d, m, seed: zdt(name, d, m), "d >= 2", "Zitzler et al. 2000")
        for name in ZDT_NAMES
    },
    **{
        name: Entry(
            lambda name, d, m, seed: wfg(name, d, m), "m = 2, 3, 5, d > 4", "Huband et al. 2006"
        )
        for name in WFG_NAMES
    },
    **{
        name: Entry(lambda name, d, m, seed: sparse(name, d, m, seed=seed), sizes, "this project")
        for name, sizes in zip(
            SPARSE_NAMES, ("d >= 10", "d >= 11", "d >= 5", "d >= 2"), strict=True
        )
    },
    **{
        name: Entry(lambda name, d, m, seed: engineering(name, d, m), "fixed", _RE)
        for name in ENGINEERING_NAMES
    },
    "rover": Entry(lambda name, d, m, seed: rover(d, m), "d even, d >= 6", "this project"),
    "truss": Entry(lambda name, d, m, seed: truss(d, m), "d = 5p + 1, p >= 2", "this project"),
    "geothermal": Entry(_geothermal, "fixed", "this project, after the paper"),
    "geothermal-coarse": Entry(_geothermal, "fixed", "this project, after the paper"),
}


def problems() -> tuple[str, ...]:
    """The names that :func:`problem` knows, besides ``pymoo:...`` and ``botorch:...``."""
    return tuple(_CATALOGUE)


def problem(
    name: str,
    d: int | None = None,
    m: int | None = None,
    *,
    variant: str | None = None,
    seed: int = 0,
) -> Problem:
    """The problem called ``name`` with d variables and m objectives (None: its usual size).

    ``variant`` is one of shifted, translated, rotated, mirrored, permuted; ``seed`` picks its
    instance, and the instance of the sparse problems. Raises ValueError for an unknown name or
    variant and for sizes the problem does not have, ImportError if a library is missing.
    """
    seed = chosen("A problem", "seed", seed, 0, least=0)
    if name.startswith(PREFIXES):
        made = foreign(name, d, m)
    elif name.lower() in _CATALOGUE:
        made = _CATALOGUE[name.lower()].make(name.lower(), d, m, seed)
    else:
        raise ValueError(_unknown("problem", name, problems()))
    if variant is None:
        return made
    if variant not in VARIANTS:
        raise ValueError(_unknown("variant", variant, tuple(VARIANTS)))
    return VARIANTS[variant](made, seed)


def _unknown(what: str, asked: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(asked.lower(), known, n=4, cutoff=0.5)
    guess = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(known)}."
    return f"There is no {what} called {asked!r}; {guess}"


def table() -> str:
    """The catalogue at its usual sizes as a Markdown table."""
    lines = [
        "| name | d | m | constraints | sizes | reference point | front known | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in _CATALOGUE.items():
        made = entry.make(name, None, None, 0)
        cells = [
            f"`{name}`",
            str(made.d),
            str(made.n_objectives),
            str(made.n_constraints),
            entry.sizes,
            _numbers(made.reference_point),
            "no" if made.front is None else "yes",
            entry.source,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(point: Array | None) -> str:
    return "-" if point is None else ", ".join(f"{value:.5g}" for value in point)
