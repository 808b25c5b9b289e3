"""Algorithms by name: ours, its ablations, the peers, and anybody's by ``package.module:Name``.

``algorithm(name)`` makes one with its usual settings, ``algorithms()`` lists the names. Peers,
ablations and the settings of the sensitivity studies come from ``PEERS``, ``ABLATIONS`` and
``SENSITIVITY`` of the modules named here: mappings from a name to a function without arguments.
They are imported when asked for, because they bring torch and optional libraries.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from neuropareto.algorithm import Algorithm, RandomSearch
from neuropareto.nsga2 import NSGA2

Factory = Callable[[], Algorithm]


def _neuropareto() -> Algorithm:
    from neuropareto.neuropareto import NeuroPareto

    return NeuroPareto()


def _paper() -> Algorithm:
    from neuropareto.neuropareto import NeuroPareto

    return NeuroPareto.paper()


OWN: Mapping[str, Factory] = {
    "neuropareto": _neuropareto,
    "neuropareto-paper": _paper,
    "nsga2": NSGA2,
    "random": RandomSearch,
}
_TABLES = (
    ("neuropareto.peers", "PEERS"),
    ("neuropareto.ablations", "ABLATIONS"),
    ("neuropareto.ablations", "INGREDIENTS"),
    ("neuropareto.bench.sensitivity", "SENSITIVITY"),
)


def algorithms() -> tuple[str, ...]:
    """The names that :func:`algorithm` knows, besides ``package.module:Name``."""
    return tuple(_factories())


def algorithm(name: str) -> Algorithm:
    """The algorithm called ``name``, or the one at ``package.module:Name``.

    ``Name`` may be an algorithm, or a class or function without arguments that makes one. Raises
    ValueError for an unknown name and for something that is not an algorithm.
    """
    if ":" in name:
        return _foreign(name)
    known = dict(OWN) if name in OWN else _factories()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}."
        raise ValueError(
            f"There is no algorithm called {name!r}; {guess} Your own is package.module:Name."
        )
    return known[name]()


def _factories() -> dict[str, Factory]:
    found = dict(OWN)
    for module, table in _TABLES:
        if importlib.util.find_spec(module) is not None:
            for name, factory in getattr(importlib.import_module(module), table).items():
                # An ablation may be called like one of the whole algorithms: that one stays.
                found.setdefault(name, factory)
    return found


def _foreign(path: str) -> Algorithm:
    module, _, name = path.partition(":")
    try:
        made: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"The algorithm {path!r} cannot be imported: {error}; give package.module:Name of "
            "something on the Python path."
        ) from error
    for part in name.split("."):
        made = getattr(made, part, None)
    if callable(made) and (isinstance(made, type) or not callable(getattr(made, "propose", None))):
        made = made()
    if not callable(getattr(made, "propose", None)):
        raise ValueError(
            f"{path!r} is not an algorithm: it needs a method propose(archive, q, *, pending, "
            "memory, rng); see neuropareto.Algorithm."
        )
    found: Algorithm = made
    return found
