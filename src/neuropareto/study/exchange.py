"""Exchange: earlier evaluations into a study as a warm start, and a study's evaluations out.

In: CSV, other studies, Optuna storages, pymoo results. Out: CSV, JSON, Parquet, Optuna. Rows that do
not fit the study, or are in it already, are left out and named in the report, never silently.
Columns carry the names of variables and objectives, constraints are g1, g2, ...; objectives are in
the user's own directions.
"""

from __future__ import annotations

import csv
import importlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from neuropareto.problem import signs
from neuropareto.space import Array, Categorical, Integer, Space, Variable
from neuropareto.study import gate
from neuropareto.study.description import Description
from neuropareto.study.events import Asked, Failed, Told
from neuropareto.study.filesystem import refuse_overwriting, replacing, with_journals
from neuropareto.study.study import Study


@dataclass(frozen=True)
class Imported:
    """What an import did: results told, failures recorded, and lines about rows left out."""

    told: int
    failed: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """An earlier evaluation: its point, objectives (None: failed), constraints, and its place.

    ``status`` is what a source says of one without values: "failed", "pending", or nothing ("").
    """

    point: Mapping[str, Any] | Array
    values: Sequence[Any] | None
    limits: Sequence[Any]
    where: str
    status: str = "failed"
    reason: str = ""


@dataclass(frozen=True)
class _Columns:
    """Column names of a table of evaluations, all different."""

    variables: tuple[str, ...]
    objectives: tuple[str, ...]
    limits: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, description: Description) -> _Columns:
        taken: set[str] = set()

        def free(names: Iterable[str]) -> tuple[str, ...]:
            chosen = []
            for name in names:
                while name in taken:
                    name += "_"
                taken.add(name)
                chosen.append(name)
            return tuple(chosen)

        return cls(
            free(description.space.names),
            free(description.objectives),
            free(f"g{j + 1}" for j in range(description.n_constraints)),
            free(("trial", "status", "on_front", "reason")),
        )


# -- in --


def import_csv(study: Study, path: str | os.PathLike[str]) -> Imported:
    """Add the rows of a CSV file with a header: variables, objectives and g1, g2, ... by name.

    A row whose point is pending becomes that trial's result. A row without objective values is
    recorded as a failure, unless its status or its point is pending: then it is left out. Other
    columns are ignored.
    """
    columns, space = _Columns.of(study.description), study.description.space
    # All of the file before any of it is recorded: it may turn out to be none at its end.
    header, rows = _table(Path(path))
    for name in (*columns.variables, *columns.objectives, *columns.limits):
        if name not in header:
            raise ValueError(
                "The CSV file needs a column for every variable, objective and constraint, but "
                f"{name!r} is missing; its header begins with {header[:20]}."
            )
    return _add(study, (_from_csv(row, line, columns, space) for line, row in rows))


def _table(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str | None]]]]:
    """Header of a CSV file, and its rows with their line numbers."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            return list(reader.fieldnames or ()), [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} is no CSV file in UTF-8: {error}.") from None


def _from_csv(
    row: Mapping[str, str | None], line: int, columns: _Columns, space: Space
) -> _Evaluation:
    cells = {name: (row[name] or "").strip() for name in row if name is not None}
    point = {
        name: _cell(cells[column], variable)
        for name, column, variable in zip(
            space.names, columns.variables, space.variables, strict=True
        )
    }
    values = [cells[name] or math.nan for name in columns.objectives]
    limits = [cells[name] or math.nan for name in columns.limits]
    return _Evaluation(point, values, limits, f"line {line}", cells.get(columns.others[1], ""))


def _cell(text: str, variable: Variable) -> Any:
    if isinstance(variable, Categorical):
        return next((choice for choice in variable.choices if str(choice) == text), text)
    return text


def import_pymoo(study: Study, result: Any) -> Imported:
    """Add the evaluations of a pymoo ``Result``: its history if it was saved, else its population.

    pymoo minimises everything, so an objective that the study maximises gets its sign back.
    """
    steps = getattr(result, "history", None) or [result]
    sign = signs(study.description.directions, len(study.description.objectives))
    found: dict[bytes, _Evaluation] = {}
    for k, step in enumerate(steps):
        population = getattr(step, "pop", None)
        if population is None:
            raise ValueError(
                f"Expected what pymoo.optimize.minimize returns, got {type(result).__name__}."
            )
        X, F = (np.array(population.get(name), dtype=np.float64) for name in ("X", "F"))
        G = np.array(population.get("G"), dtype=np.float64).reshape(len(X), -1)
        if F.shape[1:] != sign.shape:
            raise ValueError(f"The pymoo result has {F.shape[1]} objectives, not {len(sign)}.")
        for x, f, g in zip(X, sign * F, G, strict=True):
            found.setdefault(
                x.tobytes(), _Evaluation(x, f.tolist(), g.tolist(), f"generation {k + 1}")
            )
    return _add(study, found.values())


def import_study(study: Study, path: str | os.PathLike[str]) -> Imported:
    """Add the finished evaluations of another study, failures too; its file is only read.

    Variables, objectives and constraints are matched by name and must be the same; constraints by
    order where a study knows only their number. What is pending there is left out.
    """
    with Study.view(path) as other:
        theirs, ours = other.description, study.description
        _order(theirs.space.names, ours.space.names, "variables")
        f_order = _order(theirs.objectives, ours.objectives, "objectives")
        if theirs.bounds is None or ours.bounds is None:
            counts = range(theirs.n_constraints), range(ours.n_constraints)
            g_order = _order(counts[0], counts[1], "constraints")
        else:
            g_order = _order(theirs.bounds, ours.bounds, "constraints")
        found = [_from_study(e, x, theirs.space, f_order, g_order) for e, x in _ended(other)]
    return _add(study, found)


def _order(theirs: Sequence[Any], ours: Sequence[Any], what: str) -> list[int]:
    """Where each of ``ours`` stands among ``theirs``; ValueError if they are not the same."""
    if len(theirs) != len(ours) or set(theirs) != set(ours):
        raise ValueError(
            f"The study to import from has other {what} than this one; import from one that has "
            "the same."
        )
    places = {one: i for i, one in enumerate(theirs)}
    return [places[one] for one in ours]


def _from_study(
    event: Told | Failed, x: Array, space: Space, f_order: list[int], g_order: list[int]
) -> _Evaluation:
    where = f"event {event.seq}"
    if isinstance(event, Failed):
        return _Evaluation(space.as_dict(x), None, (), where, reason=event.reason)
    f, g = event.f[f_order].tolist(), event.g[g_order].tolist()
    return _Evaluation(space.as_dict(x), f, g, where)


def _ended(study: Study) -> Iterator[tuple[Told | Failed, Array]]:
    """Every result and failure in order of arrival, with its point."""
    places: dict[int | None, Array] = {}
    for event in study.events():
        if isinstance(event, Asked):
            places[event.trial] = event.x
        elif isinstance(event, (Told, Failed)):
            yield event, places.pop(event.trial) if event.x is None else event.x


def import_optuna(study: Study, source: Any, name: str | None = None) -> Imported:
    """Add the finished trials of an Optuna study: the object, a storage URL, or a file.

    Parameters are matched by name, objectives by order; directions must agree. Failed and pruned
    trials are recorded as failures. Nothing that Optuna pickled is unpickled here, and a file is
    only read.
    """
    optuna = _extra("optuna")
    given = source
    if not isinstance(source, optuna.study.Study):
        storage = _optuna_storage(source)
        try:
            given = optuna.load_study(study_name=name, storage=storage)
        except KeyError:
            raise ValueError(f"The storage of Optuna has no study called {name!r}.") from None
    directions = tuple(d.name.lower() for d in given.directions)
    if directions != study.description.directions:
        raise ValueError(
            f"The Optuna study wants {list(directions)}, this one "
            f"{list(study.description.directions)}; both must agree."
        )
    done = [t for t in given.get_trials(deepcopy=False) if t.state.is_finished()]
    return _add(study, map(_from_optuna, done))


def _from_optuna(trial: Any) -> _Evaluation:
    # Optuna 5 keeps constraints by name, earlier ones as a list among the system attributes.
    named = getattr(trial, "constraints", None)
    limits = list(named.values()) if named else trial.system_attrs.get("constraints", ())
    values = trial.values if trial.state.name == "COMPLETE" else None
    return _Evaluation(trial.params, values, limits, f"trial {trial.number}")


def _optuna_storage(source: Any) -> Any:
    """A storage to read from; a file is checked first, because Optuna adds its tables to any."""
    path = _optuna_file(source)
    if path is None:
        return source
    _refuse_study(path)
    with path.open("rb") as file:
        if file.read(15) == b"SQLite format 3":
            if not gate.has_table(path, "studies"):
                raise ValueError(
                    f"{gate.shown(path)} is no database of Optuna: it has no table `studies`; give "
                    "one that Optuna wrote."
                )
            return f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true"
    journal = _extra("optuna").storages.journal
    return _extra("optuna").storages.JournalStorage(journal.JournalFileBackend(str(path)))


def _optuna_file(storage: Any) -> Path | None:
    """The file behind a path or a plain sqlite:/// URL; None for every other storage."""
    if not isinstance(storage, (str, os.PathLike)):
        return None
    text = os.fspath(storage)
    if "?" not in text:
        text = text.removeprefix("sqlite:///")
    return None if "://" in text else Path(text)


def _refuse_study(path: Path) -> None:
    if gate.is_study(path):
        raise ValueError(
            f"{gate.shown(path)} is a NeuroPareto study, which Optuna would damage; to read it use "
            "import_study, to export, write to another file."
        )


def _add(study: Study, found: Iterable[_Evaluation]) -> Imported:
    """Tell what fits, record as failed what has no values, name what is left out."""
    description = study.description
    m, c = len(description.objectives), description.n_constraints
    known = {_place(x) for x in study.optimizer.X}
    known |= {_place(f.x) for f in study.optimizer.failures}
    waiting = {_place(x) for x in study.pending.X}
    good: list[tuple[Array, list[float], list[float]]] = []
    failed, skipped = 0, []
    for one in found:
        try:
            x = _point(one.point, description.space)
            if _place(x) in known:
                raise ValueError("its point is known already")
            values, limits = [float(v) for v in one.values or ()], [float(v) for v in one.limits]
            if one.values is None or not np.isfinite([*values, *limits]).all():
                if one.status == "pending" or (one.status != "failed" and _place(x) in waiting):
                    raise ValueError("it is pending and not filled in")
                reason = one.reason or f"imported without a result ({one.where})"
                study.fail(x[None], reason, kind="invalid")
                failed += 1
            elif (len(values), len(limits)) != (m, c):
                raise ValueError(
                    f"it has {len(values)} objectives and {len(limits)} constraints, not {m} and {c}"
                )
            else:
                good.append((x, values, limits))
            known.add(_place(x))
        except (ValueError, TypeError) as error:
            skipped.append(f"{one.where}: {error}")
    for start in range(0, len(good), 1000):
        X, F, G = zip(*good[start : start + 1000], strict=True)
        study.tell(np.array(X), np.array(F), np.array(G).reshape(len(X), c) if c else None)
    return Imported(len(good), failed, tuple(skipped))


def _point(given: Mapping[str, Any] | Array, space: Space) -> Array:
    if isinstance(given, np.ndarray):
        return space.check_points(given[None]).reshape(-1)
    return space.from_dict(given)


def _place(x: Array) -> bytes:
    # Adding zero turns -0.0 into 0.0: both are the same place.
    return (x + 0.0).tobytes()


# -- out --


def records(study: Study) -> Iterator[dict[str, Any]]:
    """Every evaluation in order of arrival, then what is pending, each as {column: value}."""
    columns, space = _Columns.of(study.description), study.description.space
    front = set(study.optimizer.archive.front_indices.tolist())
    places: dict[int | None, Array] = {}
    arrived = 0

    def record(
        trial: int | None, x: Array, event: Told | None, status: str, reason: str
    ) -> dict[str, Any]:
        m, c = len(columns.objectives), len(columns.limits)
        values = [None] * (m + c) if event is None else [*event.f.tolist(), *event.g.tolist()]
        last = (trial, status, int(event is not None and arrived in front), reason)
        names = (*columns.variables, *columns.objectives, *columns.limits, *columns.others)
        return dict(zip(names, [*space.as_dict(x).values(), *values, *last], strict=True))

    for event in study.events():
        if isinstance(event, Asked):
            places[event.trial] = event.x
        elif isinstance(event, (Told, Failed)):
            x = places.pop(event.trial) if event.x is None else event.x
            if isinstance(event, Told):
                yield record(event.trial, x, event, "ok", "")
                arrived += 1
            else:
                yield record(event.trial, x, None, "failed", event.reason)
    for trial, x in places.items():
        yield record(trial, x, None, "pending", "")


@contextmanager
def _output(study: Study, path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write a file that becomes ``path``; raises ValueError if that is a study."""
    output = Path(path)
    refuse_overwriting(output, with_journals(study.path))
    if gate.is_study(output):
        refuse_overwriting(output, [output])
    with replacing(output) as part:
        yield part


def export_csv(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write every evaluation; numbers keep all their digits, and :func:`import_csv` reads it."""
    columns = _Columns.of(study.description)
    with _output(study, path) as part, part.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*columns.variables, *columns.objectives, *columns.limits, *columns.others])
        for record in records(study):
            # A category may be None, and must not look like a missing number.
            point = [str(record[name]) for name in columns.variables]
            out.writerow([*point, *list(record.values())[len(point) :]])
    return Path(path)


def export_json(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write the description and every evaluation as one JSON document."""
    document = {**study.description.to_json(), "evaluations": list(records(study))}
    with _output(study, path) as part:
        part.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
    return Path(path)


def export_parquet(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write every evaluation as a Parquet table; mixed categories become text."""
    pyarrow, parquet = _extra("pyarrow", "parquet"), _extra("pyarrow.parquet", "parquet")
    columns: dict[str, list[Any]] = {}
    for record in records(study):
        for name, value in record.items():
            columns.setdefault(name, []).append(value)
    for name, variable in zip(
        _Columns.of(study.description).variables, study.description.space.variables, strict=True
    ):
        if isinstance(variable, Categorical) and len({type(c) for c in variable.choices}) > 1:
            columns[name] = [str(value) for value in columns.get(name, [])]
    with _output(study, path) as part:
        parquet.write_table(pyarrow.table(columns), os.fspath(part))
    return Path(path)


def export_optuna(study: Study, storage: Any, name: str) -> Any:
    """Write all finished evaluations as a new Optuna study ``name``; returns that study.

    ``storage`` is a URL, an Optuna storage, or None for one in memory. In a journal file a trial of
    500 variables costs some 10 ms, in a database nearly a second.
    """
    optuna = _extra("optuna")
    space = study.description.space
    distributions = {
        n: _distribution(v, optuna) for n, v in zip(space.names, space.variables, strict=True)
    }
    if (path := _optuna_file(storage)) is not None:
        _refuse_study(path)
    try:
        target = optuna.create_study(
            storage=storage, study_name=name, directions=list(study.description.directions)
        )
    except optuna.exceptions.DuplicatedStudyError:
        raise ValueError(
            f"The storage holds a study {name!r} already; write to another file."
        ) from None
    states = optuna.trial.TrialState
    trials = []
    for event, x in _ended(study):
        if isinstance(event, Told):
            outcome = {"state": states.COMPLETE, "values": event.f.tolist()}
            # The form that all versions of Optuna read.
            outcome["system_attrs"] = {"constraints": event.g.tolist()} if len(event.g) else {}
        else:
            outcome = {"state": states.FAIL, "user_attrs": {"reason": event.reason}}
        trials.append(
            optuna.trial.create_trial(
                params=space.as_dict(x), distributions=distributions, **outcome
            )
        )
    target.add_trials(trials)
    return target


def _distribution(v: Variable, optuna: Any) -> Any:
    kinds = optuna.distributions
    if isinstance(v, Categorical):
        return kinds.CategoricalDistribution(v.choices)
    if isinstance(v, Integer):
        return kinds.IntDistribution(int(v.lower), int(v.upper), log=v.log)
    return kinds.FloatDistribution(float(v.lower), float(v.upper), log=v.log)


def _extra(module: str, extra: str | None = None) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"This needs {module!r}: pip install 'neuropareto[{extra or module}]'"
        ) from None
