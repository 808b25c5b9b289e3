"""Algorithms and spaces as JSON, and back, without pickle.

An algorithm is a frozen dataclass, written as its class name and its fields, nested where fields
are dataclasses themselves. Reading builds only classes that this package defines in the modules
of ``_STAGES``: a file can choose among them and nothing else. An algorithm from elsewhere is
described, never built; whoever opens the study brings it and it must match the description.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import math
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from neuropareto.algorithm import Algorithm
from neuropareto.space import Categorical, Integer, Real, Space, Variable
from neuropareto.study.errors import StudyDamaged, StudyError

_STAGES = frozenset(
    {
        "ablations", "acquisition", "algorithm", "calibration", "candidates", "classifier", "dropout",
        "exploration", "moves", "neuropareto", "nsga2", "past", "peers", "rank_network", "retreat",
        "screening", "second", "selection", "stages", "surrogate", "variation", "viability",
    }
)  # fmt: skip
_CLASS = re.compile(r"neuropareto\.(([a-z][a-z0-9_]*)(?:\.[a-z][a-z0-9_]*)*):([A-Za-z]\w*)", re.A)
_DTYPE = re.compile(r"[<>|][biuf]\d{1,2}", re.A)
# Fields of older files that counted rounds, of ten evaluations, and the ones that count evaluations
# in their place (decision D-89).
_COUNTED_ROUNDS = {
    "neuropareto.surrogate.structured.training:Effort": ("rescan_every", "rescan_after"),
    "neuropareto.surrogate.structured.recalibration:Online": ("batches", "recent"),
    "neuropareto.surrogate.hedged:Hedged": ("batches", "recent"),
}


# -- values --


def describe(value: Any) -> Any:
    """``value`` as JSON; what has no JSON form is named by its type and cannot be built again."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [describe(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [describe(v) for v in value]}
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {"map": {k: describe(v) for k, v in value.items()}}
    if isinstance(value, np.ndarray) and _DTYPE.fullmatch(value.dtype.str):
        shape = list(value.shape)
        return {"array": value.dtype.str, "shape": shape, "hex": value.tobytes().hex()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: describe(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init
        }
        return {"class": _qualified(type(value)), "fields": fields}
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        return {"type": _qualified(value)}
    named = isinstance(value, (type, types.FunctionType))
    return {"opaque": _qualified(value if named else type(value))}


def build(described: Any) -> Any:
    """The value of :func:`describe`'s JSON.

    Raises StudyError if it names a class from outside this package or a value that was only
    described, and StudyDamaged if it is not such a JSON.
    """
    if described is None or isinstance(described, (bool, int, float, str)):
        return described
    if isinstance(described, list):
        return [build(v) for v in described]
    match described:
        case {"float": ("nan" | "inf" | "-inf") as word}:
            return float(word)
        case {"tuple": list(items)}:
            return tuple(build(v) for v in items)
        case {"map": dict(items)}:
            return {k: build(v) for k, v in items.items()}
        case {"array": str(dtype), "shape": list(shape), "hex": str(data)}:
            return _array(dtype, shape, data)
        case {"class": str(name), "fields": dict(fields)}:
            return _built(name, fields)
        case {"type": str(name)}:
            return _known_class(name)
        case {"opaque": str(name)}:
            raise StudyError(
                f"The algorithm holds {name[:100]!r}, which a file cannot hold; "
                "pass it yourself: Study.open(path, algorithm=...)."
            )
    raise StudyDamaged(f"The algorithm's description is unreadable: {str(described)[:80]!r}.")


def matches(algorithm: Algorithm, stored: Mapping[str, Any]) -> bool:
    """Whether an algorithm is the one that a file describes."""
    given = describe(algorithm)
    if given == stored:
        return True
    try:
        # An older file may lack a field that has got a default since; the built value has it.
        return bool(describe(build(stored)) == given)
    except StudyError:
        return False


def _built(name: str, fields: Mapping[str, Any]) -> Any:
    kind = _known_class(name)
    given = {str(k): build(v) for k, v in fields.items()}
    rounds, evaluations = _COUNTED_ROUNDS.get(name, ("", ""))
    if isinstance(given.get(rounds), int):
        given[evaluations] = 10 * given.pop(rounds)
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise StudyDamaged(f"{name!r} does not take the fields in the file: {error}") from None


def _known_class(name: str) -> type[Any]:
    """The frozen dataclass of this package that is called ``name``; nothing else is ever imported."""
    match = _CLASS.fullmatch(name)
    if match is None or match.group(2) not in _STAGES:
        raise StudyError(
            f"The algorithm uses {name[:100]!r}, which is not part of this package; a file never "
            "decides what is imported. Pass it yourself: Study.open(path, algorithm=...)."
        )
    path = "neuropareto"
    for step in match.group(1).split("."):
        path += f".{step}"
        if importlib.util.find_spec(path) is None:
            raise StudyError(
                f"This version of the package has no {path!r}; use the one that wrote it."
            )
    kind = vars(importlib.import_module(path)).get(match.group(3))
    if (
        not isinstance(kind, type)
        or kind.__module__ != path
        or not dataclasses.is_dataclass(kind)
        or not kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    ):
        raise StudyError(f"{name!r} is not an algorithm part of this version of the package.")
    return kind


def _qualified(kind: type[Any] | types.FunctionType) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _array(dtype: str, shape: list[Any], data: str) -> npt.NDArray[Any]:
    try:
        if not _DTYPE.fullmatch(dtype) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(dtype)
        return np.frombuffer(bytes.fromhex(data), dtype=np.dtype(dtype)).reshape(shape).copy()
    except (ValueError, TypeError):
        raise StudyDamaged("An array in the algorithm's description is unreadable.") from None


# -- spaces --


def describe_space(space: Space) -> list[dict[str, Any]]:
    """One JSON object per variable; categories must be numbers, strings, booleans or None."""
    return [_variable_json(v) for v in space.variables]


def _variable_json(v: Variable) -> dict[str, Any]:
    name = {"name": v.name} if v.name else {}
    if isinstance(v, Categorical):
        for choice in v.choices:
            if not _scalar(choice):
                raise ValueError(
                    f"The choices of {v.name!r} must be strings, finite numbers, booleans or None to "
                    f"be stored, got {choice!r:.60}; use names and look the objects up."
                )
        return {"choices": list(v.choices), **name}
    if isinstance(v, Integer):
        return {"integer": [int(v.lower), int(v.upper)], **_log(v.log), **name}
    return {"real": [float(v.lower), float(v.upper)], **_log(v.log), **name}


def _log(log: bool) -> dict[str, bool]:
    return {"log": True} if log else {}


def build_space(described: Any) -> Space:
    """The space of :func:`describe_space`'s JSON; raises StudyDamaged if it is anything else."""
    try:
        return Space(tuple(_variable(v) for v in described))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise StudyDamaged(f"The space in the file is unreadable: {str(error)[:200]}") from None


def _variable(given: Any) -> Variable:
    if not isinstance(given, dict):
        raise TypeError("a variable must be a JSON object")
    name, log = given.get("name", ""), given.get("log", False)
    if not isinstance(name, str) or not isinstance(log, bool):
        raise TypeError("a name must be text and log true or false")
    match given:
        case {"real": [float(lower), float(upper)]}:
            return Real(lower, upper, log, name)
        case {"integer": [int(lower), int(upper)]}:
            return Integer(lower, upper, log, name)
        case {"choices": list(choices)} if all(_scalar(c) for c in choices):
            return Categorical(tuple(choices), name)
    raise ValueError("a variable must be real, integer or have choices")


def _scalar(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (str, bool, int)
