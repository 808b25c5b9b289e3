"""Description: all that a study is before its first result, as one JSON object in its file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuropareto.algorithm import Algorithm, Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.optimizer import Optimizer
from neuropareto.problem import signs
from neuropareto.randomness import Streams
from neuropareto.space import Array, Space, numbers
from neuropareto.study.errors import StudyDamaged, StudyError
from neuropareto.study.events import Created, Event
from neuropareto.study.spec import build, build_space, describe, describe_space, matches

MOST_INITIAL, MOST_CONSTRAINTS = 10**8, 10**6
Objectives: TypeAlias = "int | Sequence[str] | Mapping[str, str]"


@dataclass(frozen=True)
class Bound:
    """What a constraint asks for: its ``side`` is "at_most" or "at_least" of ``value``."""

    name: str
    side: str
    value: float

    def to_json(self) -> dict[str, Any]:
        """One JSON object like {"name": "stress", "at_most": 1.0}."""
        return {"name": self.name, self.side: self.value}

    @classmethod
    def from_json(cls, given: Any) -> Bound:
        """Read :meth:`to_json`'s object; raises StudyDamaged if it is anything else."""
        match given:
            case {"name": str(name), "at_most": float(value)} if math.isfinite(value):
                return cls(name, "at_most", value)
            case {"name": str(name), "at_least": float(value)} if math.isfinite(value):
                return cls(name, "at_least", value)
        raise StudyDamaged(
            f"A constraint in the study's description is unreadable: {given!r:.80}."
        )


@dataclass(frozen=True)
class Description:
    """All that a study is before its first event; ``algorithm`` is :func:`describe`'s JSON.

    ``bounds`` says what the constraints are, in their order; None where only their number is known.
    """

    name: str
    space: Space
    objectives: tuple[str, ...]
    directions: tuple[str, ...]
    n_constraints: int
    reference_point: tuple[float, ...] | None
    seed: int
    n_initial: int
    algorithm: Mapping[str, Any]
    bounds: tuple[Bound, ...] | None = None

    @classmethod
    def of(
        cls,
        optimizer: Optimizer,
        objectives: Objectives,
        *,
        reference_point: npt.ArrayLike | None,
        name: str,
        bounds: Sequence[Bound] | None = None,
    ) -> Description:
        """Describe a fresh optimizer whose objectives have these names."""
        names, directions = named_objectives(objectives)
        point = None
        if reference_point is not None:
            values = numbers(reference_point, "The reference point")
            if values.shape != (len(names),) or not np.isfinite(values).all():
                raise ValueError(
                    f"The reference point needs {len(names)} finite values, one per objective, "
                    f"got {reference_point!r}."
                )
            point = tuple(values.tolist())
        if not isinstance(name, str) or len(name) > 200:
            raise ValueError("The name of a study must be a text of at most 200 characters.")
        if bounds is not None and len(bounds) != optimizer.n_constraints:
            raise ValueError(
                f"The study has {optimizer.n_constraints} constraints, but bounds of {len(bounds)} "
                "were given; give one for each, or none."
            )
        for what, most in (("n_initial", MOST_INITIAL), ("n_constraints", MOST_CONSTRAINTS)):
            if getattr(optimizer, what) > most:
                raise ValueError(
                    f"{what} must be at most {most}, got {getattr(optimizer, what)}; choose less."
                )
        described = cls(
            name, optimizer.space, names, directions, optimizer.n_constraints, point,
            optimizer.seed, optimizer.n_initial, describe(optimizer.algorithm),
            None if bounds is None else tuple(bounds),
        )  # fmt: skip
        try:
            cls.from_json(json.loads(json.dumps(described.to_json(), allow_nan=False)))
        except (StudyDamaged, TypeError, ValueError) as error:
            raise ValueError(f"This cannot be kept in a study: {error}") from None
        return described

    def to_json(self) -> dict[str, Any]:
        """One JSON object, the body of the ``created`` event."""
        known = {"constraints": [bound.to_json() for bound in self.bounds or ()]}
        return {
            "name": self.name,
            "objectives": list(self.objectives),
            "directions": list(self.directions),
            "n_constraints": self.n_constraints,
            "reference_point": None
            if self.reference_point is None
            else list(self.reference_point),
            "seed": self.seed,
            "n_initial": self.n_initial,
            "algorithm": self.algorithm,
            "variables": describe_space(self.space),
            **({} if self.bounds is None else known),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Description:
        """Read :meth:`to_json`'s object; raises StudyDamaged if it is anything else."""
        match given:
            case {
                "name": str(name),
                "objectives": list(objectives),
                "directions": list(directions),
                "n_constraints": int(n_constraints),
                "reference_point": (list() | None) as point,
                "seed": int(seed),
                "n_initial": int(n_initial),
                "algorithm": dict(algorithm),
                "variables": list(variables),
            } if all(isinstance(w, str) for w in [*objectives, *directions]):
                pass
            case _:
                raise StudyDamaged(
                    "The study's description lacks a field or has one of a wrong type."
                )
        space = build_space(variables)
        try:
            _check_names(objectives)
            signs(directions, len(objectives))
            reference = None if point is None else tuple(map(float, point))
        except (ValueError, TypeError) as error:
            raise StudyDamaged(f"The study's description is wrong: {str(error)[:200]}") from None
        least = min(n_constraints, seed, n_initial)
        if least < 0 or n_constraints > MOST_CONSTRAINTS or n_initial > MOST_INITIAL:
            raise StudyDamaged("The study's description holds a number out of range.")
        if reference is not None and len(reference) != len(objectives):
            raise StudyDamaged("The study's reference point does not fit its objectives.")
        return cls(
            name, space, tuple(objectives), tuple(directions), n_constraints, reference, seed,
            n_initial, algorithm, _bounds(given.get("constraints"), n_constraints),
        )  # fmt: skip

    @property
    def algorithm_name(self) -> str:
        """The class name of the algorithm, without its module."""
        name = self.algorithm.get("class", self.algorithm.get("opaque", "unknown"))
        return str(name).rpartition(":")[2]

    @classmethod
    def first(cls, events: Iterable[Event]) -> tuple[Description, float]:
        """The description that a study's events begin with, and its clock time."""
        event = next(iter(events), None)
        if not isinstance(event, Created):
            raise StudyDamaged("The study does not begin with its description.")
        return cls.from_json(event.description), event.time

    def agreed(self, given: Algorithm | None) -> Algorithm:
        """The algorithm: built from the description, or the given one if it matches it."""
        if given is None:
            built: Algorithm = build(self.algorithm)
            return built
        if given is not READING and not matches(given, self.algorithm):
            raise StudyError(
                f"The study was created with {str(self.algorithm)[:400]}, but "
                f"{str(describe(given))[:400]} was given; pass the algorithm it was created with, "
                "or none if it is part of this package."
            )
        return given

    def optimizer(self, algorithm: Algorithm) -> Optimizer:
        """A fresh optimizer, before any event."""
        return Optimizer(
            self.space,
            len(self.objectives),
            algorithm,
            seed=self.seed,
            n_initial=self.n_initial,
            directions=self.directions,
            n_constraints=self.n_constraints,
        )


def _bounds(given: Any, n_constraints: int) -> tuple[Bound, ...] | None:
    """The bounds of a description; None in one that has none, as before they were written."""
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != n_constraints:
        raise StudyDamaged("The constraints in the study's description do not fit their number.")
    return tuple(Bound.from_json(one) for one in given)


def named_objectives(objectives: Objectives) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and directions from a number, a list of names, or a mapping name -> direction."""
    if isinstance(objectives, (int, np.integer)) and not isinstance(objectives, bool):
        if objectives < 1:
            raise ValueError(f"A study needs at least one objective, got {objectives}.")
        return tuple(f"f{j + 1}" for j in range(objectives)), ("minimize",) * int(objectives)
    if isinstance(objectives, (str, bytes)) or not isinstance(objectives, (Sequence, Mapping)):
        raise ValueError(
            "Objectives must be their number, a list of names, or {name: 'minimize' or "
            f"'maximize'}}, got {objectives!r}."
        )
    names = tuple(objectives)
    _check_names(names)
    if isinstance(objectives, Mapping):
        directions = tuple(objectives.values())
    else:
        directions = ("minimize",) * len(names)
    signs(directions, len(names))
    return names, directions


def _check_names(names: Sequence[Any]) -> None:
    if not names:
        raise ValueError("A study needs at least one objective, got none.")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[^\x00-\x1f\x7f]{1,200}", name):
            raise ValueError(
                f"An objective's name must be 1 to 200 printable characters, got {str(name)[:40]!r}."
            )
    if len(set(names)) < len(names):
        raise ValueError(f"Objectives must have different names, got {list(names)}.")


@dataclass(frozen=True)
class Reading:
    """Stands for the algorithm of a study that is only read: it proposes nothing."""

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """Refuse; raises StudyError."""
        raise StudyError("A study opened for reading proposes nothing; use Study.open.")


READING = Reading()
