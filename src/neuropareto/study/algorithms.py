"""An algorithm as a study file may give it: by name with options, or from a file of its settings.

Only names of this package count, so a file never decides what is imported; options are simple
fields (numbers, words, truth values), a file of settings may set them all.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuropareto.algorithm import Algorithm
from neuropareto.study.errors import StudyError
from neuropareto.study.spec import build


def algorithm_of(name: str, options: Mapping[str, Any]) -> Algorithm:
    """The algorithm called ``name`` with some of its fields set; ValueError says what is wrong."""
    from neuropareto.algorithms import algorithm  # it knows the peers, which are above this layer

    if ":" in name:
        raise ValueError("a study file cannot name Python code; use Study.create for your own")
    spec: Any = algorithm(name)
    fields = dataclasses.fields(spec) if dataclasses.is_dataclass(spec) else ()
    simple = {
        f.name: value
        for f in fields
        if f.init and type(value := getattr(spec, f.name)) in (int, float, str, bool)
    }
    for key, value in options.items():
        if key not in simple:
            raise ValueError(f"{name} has no option {key!r}; it has {sorted(simple) or 'none'}")
        wanted = type(simple[key])
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ValueError(f"the option {key!r} must be {wanted.__name__}, got {value!r}")
    built: Algorithm = dataclasses.replace(spec, **options) if options else spec
    return built


def algorithm_in(path: Path) -> Algorithm:
    """The algorithm that a JSON file describes under "algorithm", as ``neuropareto tune`` writes it.

    Raises ValueError if there is none.
    """
    try:
        made = build(json.loads(path.read_text(encoding="utf-8"))["algorithm"])
    except (OSError, KeyError, TypeError, ValueError, RecursionError, StudyError) as error:
        raise ValueError(f"{path.name} holds no settings of an algorithm: {error}") from None
    if not callable(getattr(made, "propose", None)):
        raise ValueError(f"{path.name} describes {type(made).__name__}, which is no algorithm")
    algorithm: Algorithm = made
    return algorithm
