"""The thirteen systems that the paper compares with, each an ``Algorithm`` in a file of its own.

``from neuropareto.peers import KRVEA`` and ``minimize(..., algorithm=KRVEA())``, or by name:
``algorithm("k-rvea")``. A peer is imported when it is asked for, so that a library which one of
them needs and which is not installed stands in nobody else's way. ``batch`` of a spec is the
published number of evaluations a round; the benchmark runner asks for that many. Facts, sources
and deviations: docs/peers.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from neuropareto.algorithm import Algorithm
from neuropareto.algorithms import Factory

# Name in tables -> (module, class)
_HOMES: Mapping[str, tuple[str, str]] = {
    "gp-ei": ("gp_ei", "GPEI"),
    "rf-ei": ("rf_ei", "RFEI"),
    "gp-hv": ("gp_hv", "GPHV"),
    "cl-ego": ("cl_ego", "CLEGO"),
    "cps-moea": ("cps_moea", "CPSMOEA"),
    "k-rvea": ("k_rvea", "KRVEA"),
    "csea": ("csea", "CSEA"),
    "edn-armoea": ("edn_armoea", "EDNARMOEA"),
    "mcea-d": ("mcea_d", "MCEAD"),
    "clmea": ("clmea", "CLMEA"),
    "morbo": ("morbo", "MORBO"),
    "egbo": ("egbo", "EGBO"),
    "cdm-psl": ("cdm_psl", "CDMPSL"),
}
_LIBRARIES = {"botorch": "BoTorch", "gpytorch": "GPyTorch", "pymoo": "pymoo"}


def _class(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"neuropareto.peers.{module}"), name)
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in _LIBRARIES:
            raise
        raise ModuleNotFoundError(
            f"{name} needs {_LIBRARIES[library]}, which is not installed: "
            "pip install 'neuropareto[peers]'.",
            name=library,
        ) from error


def _make(module: str, name: str) -> Algorithm:
    made: Algorithm = _class(module, name)()
    return made


def __getattr__(name: str) -> Any:
    for module, known in _HOMES.values():
        if name == known:
            return _class(module, name)
    raise AttributeError(f"neuropareto.peers has no {name!r}; it has {', '.join(_classes())}.")


def _classes() -> tuple[str, ...]:
    return tuple(name for _, name in _HOMES.values())


def __dir__() -> list[str]:
    return sorted([*globals(), *_classes()])


PEERS: Mapping[str, Factory] = {name: partial(_make, *home) for name, home in _HOMES.items()}
