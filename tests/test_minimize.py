from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto import NSGA2, Categorical, Integer, Problem, RandomSearch, Real, Result, Space
from neuropareto import minimize as run
from neuropareto.space import Array


def f(x: Array) -> tuple[float, float]:
    return float((x**2).sum()), float(((x - 1) ** 2).sum())


def short(objective: Any = f, space: Any = None, **options: Any) -> Result:
    settings: dict[str, Any] = {
        "n_objectives": 2, "budget": 20, "n_initial": 8, "batch": 4, "seed": 0,
        "algorithm": NSGA2(population=8), "progress": False, **options,
    }  # fmt: skip
    return run(objective, [(0, 1)] * 3 if space is None else space, **settings)


def test_a_run_spends_its_budget_and_reports_its_front() -> None:
    result = short(lambda x: [*f(x)], budget=21)
    assert result.X.shape == (21, 3) and result.F.shape == (21, 2)
    assert np.allclose(result.F, [f(x) for x in result.X])
    front = result.front
    dominated = [((g <= p).all() and (g < p).any()) for p in front.F for g in result.F]
    assert len(front) >= 1 and not any(dominated)
    assert np.array_equal(front.X, result.X[front.rows])
    assert (np.diff(result.history.hypervolume) >= 0).all() and len(result.history) == 21
    assert "21 evaluations" in repr(result)


def test_vectorized_and_pointwise_objectives_agree() -> None:
    many = short(lambda X: np.stack([(X**2).sum(1), ((X - 1) ** 2).sum(1)], 1), vectorized=True)
    assert np.allclose(many.F, short().F) and np.array_equal(many.X, short().X)


def test_a_problem_brings_everything() -> None:
    def objective(X: Array) -> Array:
        return np.stack([X.sum(1), 3 - X.sum(1)], axis=1)

    problem = Problem(
        "sum", Space.of([(0, 1)] * 3), 2, objective, directions=("minimize", "maximize"),
        reference_point=np.array([3.0, 0.0]),
    )  # fmt: skip
    result = run(problem, budget=12, n_initial=6, seed=0, algorithm=NSGA2(6), progress=False)
    assert result.name == "sum" and result.directions == ("minimize", "maximize")
    assert len(result.front) == 1, "both objectives want the same sum, so one point wins"
    assert result.front.F[0, 0] == result.F[:, 0].min()
    assert result.hypervolume == pytest.approx((3 - result.front.F[0, 0]) * result.front.F[0, 1])
    with pytest.raises(ValueError, match="brings its own space"):
        run(problem, [(0, 1)], budget=10)


def test_failures_are_recorded_and_the_run_goes_on() -> None:
    calls = []

    def moody(x: Array) -> list[float]:
        calls.append(x)
        if len(calls) % 3 == 0:
            raise ArithmeticError("solver diverged")
        return [np.nan, 1.0] if len(calls) % 5 == 0 else [*f(x)]

    result = short(moody)
    assert len(calls) == 20 == len(result.F) + len(result.failures)
    reasons = [failure.reason for failure in result.failures]
    assert any("solver diverged" in r and "Traceback" in r for r in reasons)
    assert any("returned [nan, 1.0]" in r for r in reasons)


def test_a_function_that_always_fails_still_ends_with_a_result(tmp_path: Path) -> None:
    def broken(x: Array) -> list[float]:
        raise RuntimeError("no licence")

    result = short(broken)
    assert len(result.F) == 0 and len(result.failures) == 20 and result.hypervolume == 0
    assert result.to_csv(tmp_path / "run.csv").exists() and result.to_json(tmp_path / "r").exists()


def test_ctrl_c_returns_what_is_known() -> None:
    calls = []

    def impatient(x: Array) -> tuple[float, float]:
        calls.append(x)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return f(x)

    result = short(impatient)
    assert result.interrupted and len(result.F) == 10


def test_an_odd_answer_late_in_a_run_is_one_failure() -> None:
    calls = []

    def forgetful(x: Array) -> Any:
        calls.append(x)
        return [1.0] if len(calls) == 9 else [*f(x)]

    result = short(forgetful)
    assert len(result.failures) == 1 and "shape (1, 2)" in result.failures[0].reason


class Attached:
    """A tensor that still knows its gradient: it does not become an array."""

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        raise RuntimeError("call detach first")


@pytest.mark.parametrize("odd", [(1.0, 2.0, 3.0), Attached(), SystemExit(3), GeneratorExit()])
def test_whatever_comes_late_in_a_run_is_one_failure(odd: Any) -> None:
    seen: list[Array] = []

    def sometimes(x: Array) -> Any:
        seen.append(x)
        if len(seen) != 12:
            return f(x), [x[0] - 2.0]
        if isinstance(odd, BaseException):
            raise odd
        return odd

    result = short(sometimes, n_constraints=1)
    assert len(result.F) == 19 and len(result.failures) == 1


def test_a_reference_point_is_checked_before_anything_is_paid_for() -> None:
    def paid(x: Array) -> tuple[float, float]:
        raise AssertionError("evaluated")

    with pytest.raises(ValueError, match="reference point needs 2 values"):
        short(paid, reference_point=[1.0])


@pytest.mark.parametrize(
    "option", [{"directions": ["maximize", "minimize"]}, {"n_constraints": 1}]
)
def test_a_problem_is_not_told_what_it_is(option: dict[str, Any]) -> None:
    task = Problem(
        "task", Space.of([(0, 1)] * 2), 2, lambda X: np.stack([X[:, 0], 1 - X[:, 0]], 1)
    )
    with pytest.raises(ValueError, match="brings its own"):
        run(task, budget=9, algorithm=RandomSearch(), progress=False, **option)


def test_penalties_as_large_as_numbers_get_do_no_harm(tmp_path: Path) -> None:
    """Hypervolume overflows; the run, its constraints and its files do not."""
    huge = float(np.finfo(np.float64).max)

    def punished(x: Array) -> Any:
        return ([1e200, 1e200], [huge, huge]) if x[0] > 0.5 else (f(x), [-1.0, -1.0])

    result = short(punished, n_constraints=2)
    assert len(result.F) == 20 and np.isfinite(result.front.F).all() and len(result.front)
    written = json.loads(result.to_json(tmp_path / "run.json").read_text(encoding="utf-8"))
    assert len(written["F"]) == 20


def test_constraints() -> None:
    def limited(x: Array) -> tuple[list[float], list[float]]:
        return [*f(x)], [float(0.5 - x[0])]

    result = short(limited, n_constraints=1, budget=30)
    assert result.G.shape == (30, 1) and (result.front.X[:, 0] >= 0.5).all()


def test_mixed_spaces_and_exact_csv(tmp_path: Path) -> None:
    space = {"a": Real(0, 1), "n": Integer(1, 5), "kind": Categorical(("x", "y"))}
    result = short(lambda x: [x[0] + x[2], x[1] - x[0]], space)
    with result.to_csv(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20 and {r["kind"] for r in rows} == {"x", "y"}
    assert [float(r["a"]) for r in rows] == result.X[:, 0].tolist()
    assert [float(r["f2"]) for r in rows] == result.F[:, 1].tolist()
    assert sum(int(r["on_front"]) for r in rows) == len(result.front)
    assert all(r["n"].isdigit() for r in rows)


def test_failed_rows_stand_in_the_csv_where_they_happened(tmp_path: Path) -> None:
    calls = []

    def once(x: Array) -> tuple[float, float]:
        calls.append(x)
        if len(calls) == 2:
            raise RuntimeError("crash")
        return f(x)

    with short(once).to_csv(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["status"] for r in rows] == ["ok", "failed"] + ["ok"] * 18
    assert float(rows[1]["x1"]) == calls[1][0] and rows[1]["f1"] == ""


def test_json_holds_the_whole_run(tmp_path: Path) -> None:
    result = short()
    stored = json.loads(result.to_json(tmp_path / "run.json").read_text())
    assert stored["X"] == result.X.tolist() and stored["F"] == result.F.tolist()
    assert stored["hypervolume"] == result.hypervolume and stored["seed"] == 0


def test_the_drawn_seed_repeats_the_run() -> None:
    first = short(seed=None)
    assert np.array_equal(short(seed=first.seed).X, first.X)


def test_the_default_start_design_takes_a_third_of_a_small_budget() -> None:
    result = short(budget=12, n_initial=None, batch=4)
    assert result.notes[0]["evaluations"] == 4 and len(result.F) == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "budget must be a whole number >= 1"),
        ({"budget": 10.5}, "budget must be a whole number >= 1"),
        ({"batch": 0}, "batch must be a whole number >= 1"),
        ({"budget": 5, "n_initial": 8}, "must cover the start design"),
        ({"n_objectives": None}, "needs its space and n_objectives"),
        ({"objective": 3}, "must be a function or a Problem"),
        ({"objective": lambda x: [1.0]}, r"does not fit.*shape \(1, 2\)"),
        ({"objective": lambda x: "12"}, "does not fit.*real numbers"),
        ({"objective": lambda x: [1j, 2]}, "does not fit.*real numbers"),
        ({"objective": lambda x: None}, "does not fit.*real numbers"),
        ({"space": [(0, np.nan)]}, "x1 must be finite"),
        ({"reference_point": [1.0]}, "reference point needs 2 values"),
        ({"directions": ["minimize"]}, "for each of 2 objectives"),
        ({"directions": "maximize"}, r"for each of 2 objectives, got \('maximize',\)"),
        ({"n_initial": "5"}, "n_initial must be a whole number >= 0"),
        ({"n_constraints": "1"}, "n_constraints must be a whole number >= 0"),
        ({"algorithm": "nsga2"}, "must be an object like .*got 'nsga2'"),
        ({"algorithm": NSGA2}, "must be an object like .*NSGA2"),
        ({"n_objectives": 9}, "1 to 8 objectives.*got 9"),
        ({"objective": lambda x: (1, 2, 3), "n_constraints": 1}, "does not fit.*a pair"),
    ],
)
def test_wrong_input_gets_a_clear_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        short(**options)


def test_progress_is_written_even_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    short(progress=True, algorithm=RandomSearch())
    assert "20/20" in capsys.readouterr().err
