"""study.toml: what is varied, what is wanted, and the program that is asked.

The tables: settings at the top, ``[variables]``, ``[objectives]``, ``[constraints]``,
``[algorithm]``, ``[evaluation]`` (leave it out to evaluate by hand), ``[retries]``, ``[stop]``. Every
complaint names line and key. Nothing in the file is evaluated; files it names lie beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropareto.algorithm import Algorithm
from neuropareto.optimizer import start_design_size
from neuropareto.space import Space
from neuropareto.study.algorithms import algorithm_in, algorithm_of
from neuropareto.study.description import Bound
from neuropareto.study.errors import StudyError
from neuropareto.study.gate import begun
from neuropareto.study.limits import FailureStop, Limits, Retries
from neuropareto.study.readings import Constraint
from neuropareto.study.sections import (
    beside,
    constraints_of,
    limits_of,
    objectives_of,
    reference_of,
    simulator_of,
    space_of,
)
from neuropareto.study.simulator import Simulator
from neuropareto.study.spec import matches
from neuropareto.study.study import Study
from neuropareto.study.toml_table import StudyFileError, Table, load


@dataclass(frozen=True)
class StudyFile:
    """A study file, read and checked; ``simulator`` is None where people evaluate by hand."""

    path: Path
    name: str
    budget: int
    seed: int
    initial: int
    workers: int
    batch: int | None
    engine: str
    store: Path
    space: Space
    objectives: dict[str, str]
    constraints: dict[str, Constraint]
    reference_point: tuple[float, ...] | None
    algorithm: Algorithm
    simulator: Simulator | None
    limits: Limits
    retries: Retries
    failure_stop: FailureStop

    def open(self, *, take_over: bool = False) -> Study:
        """The study of this file: the one begun earlier, or a new one."""
        if not self.begun:
            return Study.create(
                self.store, self.space, self.objectives, self.algorithm, seed=self.seed,
                n_initial=self.initial, n_constraints=len(self.constraints),
                reference_point=self.reference_point, name=self.name, bounds=self.bounds,
            )  # fmt: skip
        study = Study.open(self.store, take_over=take_over)
        try:
            self.check_same(study)
        except StudyError:
            study.close()
            raise
        return study

    @property
    def begun(self) -> bool:
        """Whether the study of this file was begun."""
        return begun(self.store)

    def check_same(self, study: Study) -> None:
        """Raise StudyError if the study was begun with other variables, objectives or constraints."""
        stored = study.description
        pairs: dict[str, tuple[Any, Any]] = {
            "variables": (stored.space.variables, self.space.variables),
            # With their order: results are told by position.
            "objectives": (
                list(zip(stored.objectives, stored.directions, strict=True)),
                list(self.objectives.items()),
            ),
            "constraints": (stored.n_constraints, len(self.constraints))
            if stored.bounds is None
            else (stored.bounds, self.bounds),
        }
        for what, (then, now) in pairs.items():
            if then != now:
                raise StudyError(
                    f"The {what} in {self.path.name} are not those that {self.store.name} was begun "
                    f"with; restore them, or begin anew with another `store` in {self.path.name}."
                )

    def ignored(self, study: Study) -> tuple[str, ...]:
        """What this file says otherwise than when the study was begun, and what has no effect now."""
        stored = study.description
        by_budget = start_design_size(self.space.d, self.budget)
        changed = {
            "seed": self.seed != stored.seed,
            "initial": self.initial not in (stored.n_initial, by_budget),
            "reference": self.reference_point != stored.reference_point,
            "[algorithm]": not matches(self.algorithm, stored.algorithm),
        }
        return tuple(name for name, other in changed.items() if other)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What the constraints ask for, in their order."""
        return tuple(
            Bound(name, "at_most" if c.sign > 0 else "at_least", c.bound)
            for name, c in self.constraints.items()
        )


def read(path: Path) -> StudyFile:
    """Read and check a study file; raises StudyFileError."""
    path = path.absolute()
    root, home = load(path), path.parent.resolve()
    name = root.text("name", path.stem)
    if len(name) > 200:
        root.wrong("name", "expected at most 200 characters")
    budget = root.whole("budget")
    space = space_of(root)
    objectives, readings = objectives_of(root)
    constraints = constraints_of(root)
    store = beside(root, "store", home, root.text("store", f"{path.stem}.db"))
    reference = reference_of(root, len(objectives))
    evaluation = root.table("evaluation")
    limits = limits_of(evaluation)
    simulator = None
    if "evaluation" in root.values:
        bound = tuple(constraints.values())
        missing = [n for n, r in readings.items() if r is None]
        if missing:
            root.table("objectives").wrong(
                missing[0], "say where to read it: json, column or pattern"
            )
        simulator = simulator_of(
            evaluation, home, store, space, tuple(r for r in readings.values() if r), bound
        )
    found = StudyFile(
        path=path,
        name=name,
        budget=budget,
        seed=root.whole("seed", 0, least=0),
        initial=root.whole("initial", start_design_size(space.d, budget), least=0),
        workers=root.whole("workers", 1),
        batch=root.whole("batch") if "batch" in root.values else None,
        engine=root.text("engine", "processes"),
        store=store,
        space=space,
        objectives=objectives,
        constraints=constraints,
        reference_point=reference,
        algorithm=_algorithm(root.table("algorithm"), home),
        simulator=simulator,
        limits=limits,
        retries=_retries(root.table("retries")),
        failure_stop=_stop(root.table("stop")),
    )
    root.done()
    return found


def _algorithm(table: Table, home: Path) -> Algorithm:
    if "file" in table.values:
        return _tuned(table, home)
    name = table.text("name", "neuropareto")
    try:
        algorithm_of(name, {})
    except ValueError as error:
        table.wrong("name", str(error).rstrip("."))
    options: dict[str, Any] = {k: table.take(k) for k in table.values if k != "name"}
    for key, value in options.items():
        try:
            algorithm_of(name, {key: value})
        except ValueError as error:
            table.wrong(key, str(error))
    return algorithm_of(name, options)


def _tuned(table: Table, home: Path) -> Algorithm:
    """The algorithm of a file of settings beside the study file."""
    others = [key for key in table.values if key != "file"]
    if others:
        table.wrong(others[0], "the file sets everything; leave this out, or leave out file")
    path = beside(table, "file", home, table.text("file"))
    try:
        return algorithm_in(path)
    except ValueError as error:
        table.wrong("file", str(error).rstrip("."))


def _retries(table: Table) -> Retries:
    usual = Retries()
    found = Retries(
        error=table.whole("error", usual.error, least=0),
        invalid=table.whole("invalid", usual.invalid, least=0),
        crash=table.whole("crash", usual.crash, least=0),
        timeout=table.whole("timeout", usual.timeout, least=0),
        memory=table.whole("memory", usual.memory, least=0),
        lost=table.whole("lost", usual.lost, least=0),
    )
    table.done()
    return found


def _stop(table: Table) -> FailureStop:
    rate, after = table.number("rate", 0.5), table.whole("after", 5)
    if not 0.0 <= rate <= 1.0:
        table.wrong("rate", "expected a share between 0 and 1")
    table.done()
    return FailureStop(rate, after)


__all__ = ["StudyFile", "StudyFileError", "read"]
