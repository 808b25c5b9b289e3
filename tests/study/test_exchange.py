"""Exchange with CSV, JSON, Parquet, Optuna and pymoo, each through the real library."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto import Categorical, Integer, RandomSearch, Real
from neuropareto.space import Array
from neuropareto.study import Study
from neuropareto.study.description import Bound
from neuropareto.study.exchange import (
    export_csv,
    export_json,
    export_optuna,
    export_parquet,
    import_csv,
    import_optuna,
    import_pymoo,
    import_study,
    records,
)

SPACE = {
    "rate": Real(1e-3, 1.0, log=True),
    "n": Integer(1, 9),
    "kind": Categorical(("a", "b, c", "")),
    "flag": Categorical((True, None, 3)),
}
GOALS = {"cost": "minimize", "yield": "maximize"}


def objectives(X: Array) -> tuple[Array, Array]:
    F = np.stack([X[:, 0] + X[:, 1], X[:, 2] - X[:, 3]], axis=1)
    return F, X[:, :1] - 0.5


def make(path: Path, **options: Any) -> Study:
    given = {"seed": 3, "n_initial": 6, "n_constraints": 1, **options}
    return Study.create(path, SPACE, GOALS, RandomSearch(), **given)


@pytest.fixture
def study(memory_disk: Path) -> Any:
    """Eight results, two failures, two pending, one point from outside."""
    with make(memory_disk / "first") as study:
        batch = list(study.ask(12))
        good = batch[:8]
        study.tell(good, *objectives(np.array([t.x for t in good])))
        study.fail(batch[8], 'line one\nline "two", and so on')
        study.tell(batch[9], [np.nan, 0.0], [0.0])
        outside = np.array([[0.25, 2.0, 1.0, 0.0]])
        study.tell(outside, *objectives(outside))
        yield study


def as_set(study: Study) -> set[tuple[bytes, bytes, bytes]]:
    optimizer = study.optimizer
    G = optimizer.archive.G
    return {
        (x.tobytes(), f.tobytes(), g.tobytes())
        for x, f, g in zip(optimizer.X, optimizer.F, G, strict=True)
    }


# -- tables --


def test_csv_goes_round_with_all_digits(study: Study, memory_disk: Path) -> None:
    path = export_csv(study, memory_disk / "a.csv")
    with make(memory_disk / "second", seed=9) as second:
        report = import_csv(second, path)
        assert (report.told, report.failed, len(report.skipped)) == (9, 2, 2)
        assert report.skipped[0] == "line 14: it is pending and not filled in"
        assert as_set(second) == as_set(study)
        assert second.finished == 0 and second.imported == 11
        again = import_csv(second, path)
        assert (again.told, again.failed, len(again.skipped)) == (0, 0, 13)
        assert "known already" in again.skipped[0]


def test_the_columns_of_a_csv(study: Study, memory_disk: Path) -> None:
    with export_csv(study, memory_disk / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "rate", "n", "kind", "flag", "cost", "yield", "g1", "trial", "status", "on_front", "reason",
    ]  # fmt: skip
    status = [row["status"] for row in rows]
    assert status == ["ok"] * 8 + ["failed"] * 2 + ["ok"] + ["pending"] * 2
    assert rows[8]["reason"] == 'line one\nline "two", and so on'
    assert rows[10]["trial"] == "" and rows[11]["trial"] == "10"
    front = {k for k, row in enumerate(rows) if row["on_front"] == "1"}
    arrived = [k for k, row in enumerate(rows) if row["status"] == "ok"]
    assert front == {arrived[i] for i in study.optimizer.archive.front_indices}


def test_pending_points_can_be_filled_in_by_hand(study: Study, memory_disk: Path) -> None:
    path = export_csv(study, memory_disk / "a.csv")
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "pending"]
    rows[0] |= {"cost": "1.5", "yield": "2.5", "g1": "-1"}
    filled = memory_disk / "filled.csv"
    with filled.open("w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerow(rows[0])
    waiting, finished = study.pending.ids, study.finished
    report = import_csv(study, filled)
    assert report.told == 1 and study.finished == finished + 1
    assert study.pending.ids == waiting[1:]


@pytest.mark.parametrize("status", ["pending", "", "failed"])
def test_a_row_that_is_not_filled_in_stays_pending_unless_it_failed(
    study: Study, memory_disk: Path, status: str
) -> None:
    path = export_csv(study, memory_disk / "a.csv")
    waiting = study.pending.ids
    path.write_text(path.read_text().replace(",pending,", f",{status},"))
    report = import_csv(study, path)
    if status == "failed":
        assert (report.told, report.failed, len(study.pending)) == (0, 2, 0)
    else:
        assert (report.told, report.failed, study.pending.ids) == (0, 0, waiting)
        assert sum("pending and not filled in" in line for line in report.skipped) == 2


@pytest.mark.parametrize(
    "cells", [b"0.5,3,a,True,1,2,\xff\n", b"0.5,3,a,True,1,2," + b"7" * 140_000 + b"\n"]
)
def test_what_is_no_csv_file_is_named_and_nothing_is_recorded(
    memory_disk: Path, cells: bytes
) -> None:
    path = memory_disk / "a.csv"
    path.write_bytes(b"rate,n,kind,flag,cost,yield,g1\n0.25,3,a,True,,,\n" + cells)
    with make(memory_disk / "a") as study:
        with pytest.raises(ValueError, match=r"^a\.csv is no CSV file in UTF-8"):
            import_csv(study, path)
        assert study.imported == 0


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("0.5,3,a,True,1,2", "constraints"),
        ("0.5,3,a,True,one,2,0", "could not convert"),
        ("0.5,3,a,True", "constraints"),
        ("5,3,a,True,1,2,0", "'rate' must lie in"),
        ("nan,3,a,True,1,2,0", "'rate' must lie in"),
        ("0.5,3.5,a,True,1,2,0", "whole"),
        ("0.5,3,z,True,1,2,0", "'kind' must be one of"),
        ("x,3,a,True,1,2,0", "could not convert"),
        (",3,a,True,1,2,0", "could not convert"),
    ],
)
def test_rows_that_do_not_fit_are_named(memory_disk: Path, line: str, sentence: str) -> None:
    path = memory_disk / "a.csv"
    path.write_text(f"rate,n,kind,flag,cost,yield,g1\n{line}\n0.5,3,a,True,1,2,0\n")
    with make(memory_disk / "a") as study:
        report = import_csv(study, path)
        if sentence == "constraints":  # nothing there: the evaluation gave no result
            assert (report.told, report.failed) == (0, 1)
        else:
            assert report.told == 1
            assert report.skipped[0].startswith("line 2: ") and sentence in report.skipped[0]


def test_a_csv_without_a_column(memory_disk: Path) -> None:
    path = memory_disk / "a.csv"
    path.write_text("rate,n,kind,cost,yield,g1\n")
    with make(memory_disk / "a") as study, pytest.raises(ValueError, match="'flag' is missing"):
        import_csv(study, path)


def test_names_that_clash_get_columns_of_their_own(memory_disk: Path) -> None:
    space = {"status": (0.0, 1.0), "f": (0.0, 1.0)}
    with Study.create(memory_disk / "a", space, ["f", "g1"], RandomSearch(), seed=1) as study:
        batch = study.ask(2)
        study.tell(batch, batch.X)
        assert list(next(records(study))) == [
            "status", "f", "f_", "g1", "trial", "status_", "on_front", "reason",
        ]  # fmt: skip
        path = export_csv(study, memory_disk / "a.csv")
    with Study.create(memory_disk / "b", space, ["f", "g1"], RandomSearch(), seed=1) as study:
        assert import_csv(study, path).told == 2


def test_json(study: Study, memory_disk: Path) -> None:
    text = export_json(study, memory_disk / "a.json").read_text()
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in the JSON"))
    assert document["objectives"] == ["cost", "yield"] and len(document["evaluations"]) == 13
    assert document["evaluations"] == list(records(study))


def test_parquet(study: Study, memory_disk: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(export_parquet(study, memory_disk / "a.parquet")).to_pylist()
    for row, record in zip(rows, records(study), strict=True):
        assert {**row, "flag": None} == {**record, "flag": None}
        assert row["flag"] == str(record["flag"])


@pytest.mark.parametrize("export", [export_csv, export_json, export_parquet])
def test_an_export_never_overwrites_a_study(study: Study, memory_disk: Path, export: Any) -> None:
    make(memory_disk / "other").close()
    (memory_disk / "link").symlink_to(memory_disk / "first")
    for name in ("first", "first-wal", "first-shm", "link", "other"):
        with pytest.raises(ValueError, match="write to another file"):
            export(study, memory_disk / name)
    assert study.finished == 10
    make(memory_disk / "new").close()


def test_an_export_that_fails_leaves_the_old_file(
    study: Study, memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = memory_disk / "out" / "a.csv"
    with pytest.raises(FileNotFoundError, match="folder"):
        export_csv(study, path)
    path.parent.mkdir()
    path.write_text("old")
    monkeypatch.setattr(Study, "events", lambda self: iter([None, 1 / 0]))
    with pytest.raises(ZeroDivisionError):
        export_csv(study, path)
    monkeypatch.undo()
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]
    export_csv(study, path)
    assert len(path.read_text().splitlines()) > 13 and list(path.parent.iterdir()) == [path]


def test_an_extra_that_is_missing_is_named(
    study: Study, memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'neuropareto\[parquet\]'"):
        export_parquet(study, memory_disk / "a.parquet")


# -- Optuna --


def quiet_optuna() -> Any:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@pytest.mark.parametrize("storage", ["memory", "sqlite", "journal"])
def test_optuna_goes_round(study: Study, memory_disk: Path, storage: str) -> None:
    optuna = quiet_optuna()
    file = memory_disk / "optuna"
    target: Any = None
    if storage == "sqlite":
        target = f"sqlite:///{file}"
    elif storage == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(file))
        target = optuna.storages.JournalStorage(backend)
    other = export_optuna(study, target, "exported")
    states = [t.state.name for t in other.trials]
    assert states == ["COMPLETE"] * 8 + ["FAIL"] * 2 + ["COMPLETE"]
    front = {tuple(t.values) for t in other.best_trials}
    feasible = study.optimizer.archive.violation == 0
    assert front == {tuple(f) for f in study.result().front.F.tolist()} and feasible.any()
    source = other if storage == "memory" else file
    with make(memory_disk / "second") as second:
        report = import_optuna(second, source, "exported")
        assert (report.told, report.failed, report.skipped) == (9, 2, ())
        assert as_set(second) == as_set(study)


def test_a_real_optuna_study_is_imported(memory_disk: Path) -> None:
    optuna = quiet_optuna()
    sampler = optuna.samplers.RandomSampler(seed=1)
    theirs = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)

    def objective(trial: Any) -> tuple[float, float]:
        rate = trial.suggest_float("rate", 1e-3, 2.0, log=True)
        n = trial.suggest_int("n", 1, 9)
        if trial.number == 3:
            raise ArithmeticError
        trial.suggest_categorical("kind", ("a", "b, c", ""))
        trial.suggest_categorical("flag", (True, None, 3))
        trial.set_constraint("g", rate - 0.5)
        return rate, n

    theirs.optimize(objective, n_trials=30, catch=(ArithmeticError,))
    inside = [t for t in theirs.trials if t.params["rate"] <= 1.0 and t.number != 3]
    with make(memory_disk / "a") as study:
        report = import_optuna(study, theirs)
        assert report.told == len(inside) and report.told + len(report.skipped) == 30
        assert any("trial 3: " in line for line in report.skipped)
        assert study.optimizer.F.tolist() == [t.values for t in inside]
        limits = [[t.params["rate"] - 0.5] for t in inside]
        assert study.optimizer.archive.G.tolist() == limits


def test_optuna_with_other_directions_is_refused(memory_disk: Path) -> None:
    optuna = quiet_optuna()
    theirs = optuna.create_study(directions=["minimize", "minimize"])
    with make(memory_disk / "a") as study, pytest.raises(ValueError, match="both must agree"):
        import_optuna(study, theirs)


def test_optuna_never_writes_into_a_study(study: Study, memory_disk: Path) -> None:
    quiet_optuna()
    study.close()
    path = memory_disk / "first"
    before = path.read_bytes()
    with make(memory_disk / "second") as second:
        for source in (path, str(path), f"sqlite:///{path}"):
            with pytest.raises(ValueError, match="is a NeuroPareto study"):
                import_optuna(second, source)
        with pytest.raises(ValueError, match="is a NeuroPareto study"):
            export_optuna(second, f"sqlite:///{path}", "x")
    assert path.read_bytes() == before
    Study.open(path).close()


def test_only_a_database_of_optuna_is_handed_to_optuna(memory_disk: Path) -> None:
    quiet_optuna()
    path = memory_disk / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE cake (layers)")
    before = path.read_bytes()
    with make(memory_disk / "a") as study:
        with pytest.raises(ValueError, match="no database of Optuna"):
            import_optuna(study, path)
        with pytest.raises(FileNotFoundError):
            import_optuna(study, f"sqlite:///{memory_disk}/nothing.db")
    assert path.read_bytes() == before and not (memory_disk / "nothing.db").exists()


def test_an_optuna_study_that_is_not_there_or_there_already_is_named(
    study: Study, memory_disk: Path
) -> None:
    quiet_optuna()
    path = memory_disk / "optuna.sqlite3"
    export_optuna(study, f"sqlite:///{path}", "exported")
    with pytest.raises(ValueError, match="holds a study 'exported' already"):
        export_optuna(study, f"sqlite:///{path}", "exported")
    with pytest.raises(ValueError, match="no study called 'other'"):
        import_optuna(study, path, "other")


# -- studies --


def test_the_evaluations_of_another_study(study: Study, memory_disk: Path) -> None:
    study.close()
    path = memory_disk / "first"
    before = path.read_bytes()
    with make(memory_disk / "second", seed=9) as second:
        report = import_study(second, path)
        assert (report.told, report.failed, len(report.skipped)) == (9, 2, 0)
        assert second.imported == 11 and second.finished == 0
        reasons = {failure.reason for failure in second.optimizer.failures}
        assert 'line one\nline "two", and so on' in reasons
        again = import_study(second, path)
        assert (again.told, again.failed, len(again.skipped)) == (0, 0, 11)
        assert "known already" in again.skipped[0]
    with Study.view(path) as first, Study.view(memory_disk / "second") as second:
        assert as_set(second) == as_set(first)
    assert path.read_bytes() == before


def test_another_study_is_matched_by_name(memory_disk: Path) -> None:
    bounds = Bound("h", "at_most", 1.0), Bound("k", "at_least", 2.0)
    space = {"a": (0.0, 1.0), "b": (2.0, 3.0)}
    with Study.create(
        memory_disk / "a",
        space,
        ["f", "g"],
        RandomSearch(),
        seed=1,
        n_constraints=2,
        bounds=bounds,
    ) as first:
        first.tell([[0.5, 2.5]], [[1.0, 2.0]], [[3.0, 4.0]])
    turned = {"b": (2.0, 3.0), "a": (0.0, 1.0)}
    with Study.create(
        memory_disk / "b", turned, ["g", "f"], RandomSearch(), seed=1, n_constraints=2,
        bounds=bounds[::-1],
    ) as second:  # fmt: skip
        assert import_study(second, memory_disk / "a").told == 1
        assert second.optimizer.X.tolist() == [[2.5, 0.5]]
        assert second.optimizer.F.tolist() == [[2.0, 1.0]]
        assert second.optimizer.archive.G.tolist() == [[4.0, 3.0]]


@pytest.mark.parametrize(
    ("space", "goals", "c", "bounds", "word"),
    [
        ({"x": (0, 1)}, ["f"], 1, None, "variables"),
        ({"a": (0, 1)}, ["q"], 1, None, "objectives"),
        ({"a": (0, 1)}, ["f"], 2, None, "constraints"),
        ({"a": (0, 1)}, ["f"], 1, [Bound("h", "at_most", 2.0)], "constraints"),
    ],
)
def test_another_study_must_be_about_the_same(
    memory_disk: Path, space: Any, goals: Any, c: int, bounds: Any, word: str
) -> None:
    known = [Bound("h", "at_most", 1.0)]
    Study.create(
        memory_disk / "a", {"a": (0, 1)}, ["f"], RandomSearch(), seed=1, n_constraints=1, bounds=known
    ).close()  # fmt: skip
    with (
        Study.create(
            memory_disk / "b", space, goals, RandomSearch(), seed=1, n_constraints=c, bounds=bounds
        ) as study,
        pytest.raises(ValueError, match=f"other {word}"),
    ):
        import_study(study, memory_disk / "a")


# -- pymoo --


@pytest.mark.parametrize("history", [False, True])
def test_a_real_pymoo_result_is_imported(memory_disk: Path, history: bool) -> None:
    pytest.importorskip("pymoo")
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize
    from pymoo.problems.multi import BNH

    problem = BNH()
    result = minimize(problem, NSGA2(pop_size=12), ("n_gen", 4), seed=1, save_history=history)
    bounds = list(zip(problem.xl, problem.xu, strict=True))
    with Study.create(
        memory_disk / "a", bounds, 2, RandomSearch(), seed=1, n_constraints=problem.n_ieq_constr
    ) as study:
        report = import_pymoo(study, result)
        assert report.skipped == () and report.told == study.imported
        assert (report.told > 12) if history else (report.told == 12)
        F, G = problem.evaluate(study.optimizer.X, return_values_of=["F", "G"])
        np.testing.assert_array_equal(study.optimizer.F, F)
        np.testing.assert_array_equal(study.optimizer.archive.G, G)


def test_pymoo_maximisation_gets_its_sign_back(memory_disk: Path) -> None:
    class Population:
        def get(self, name: str) -> Array:
            return {"X": np.array([[0.5]]), "F": np.array([[1.0, -2.0]]), "G": np.empty((1, 0))}[
                name
            ]

    class Result:
        history = None
        pop = Population()

    goals = {"a": "minimize", "b": "maximize"}
    with Study.create(memory_disk / "a", [(0.0, 1.0)], goals, RandomSearch(), seed=1) as study:
        import_pymoo(study, Result())
        assert study.optimizer.F.tolist() == [[1.0, 2.0]]
        with pytest.raises(ValueError, match=r"pymoo\.optimize\.minimize"):
            import_pymoo(study, object())
