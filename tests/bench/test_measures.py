from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuropareto import pareto
from neuropareto.bench import measures
from neuropareto.bench.cell import run_cell
from neuropareto.bench.grid import Cell, Grid, Task
from neuropareto.bench.measures import HV, HV_RATIO, IGD, IGD_PLUS, MEASURES, curve, final
from neuropareto.bench.record import Record


@pytest.fixture(scope="module")
def record(small: Grid, tmp_path_factory: pytest.TempPathFactory) -> Record:
    return run_cell(small.cells[0], tmp_path_factory.mktemp("measures"))


def test_final_values_are_those_of_pareto(record: Record) -> None:
    problem = record.cell.task.instance(0)
    assert problem.front is not None and problem.reference_point is not None
    front, reference = problem.front(), problem.reference_point
    found = final(record)
    assert found["igd"] == pytest.approx(pareto.igd(record.F, front))
    assert found["igd_plus"] == pytest.approx(pareto.igd_plus(record.F, front))
    assert found["hv"] == pytest.approx(pareto.hypervolume(record.F, reference))
    best = pareto.hypervolume(front, reference)
    assert found["hv_ratio"] == pytest.approx(found["hv"] / best)
    assert found["reference_point"] == reference.tolist()
    assert found["front_size"] == int(pareto.nondominated(record.F).sum())


@pytest.mark.parametrize("key", MEASURES)
def test_curves_are_the_measure_of_every_prefix(key: str, record: Record) -> None:
    values = curve(record, MEASURES[key])
    assert values.shape == (40,)
    for n in (1, 7, 20, 40):
        part = replace(record, F=record.F[:n], G=record.G[:n], succeeded=record.succeeded[:n])
        assert values[n - 1] == pytest.approx(final(part)[key], abs=1e-12)
    assert (np.diff(MEASURES[key].order(values)) <= 1e-12).all(), "more evaluations never hurt"


def test_the_true_front_is_perfect() -> None:
    for name, m in (("dtlz1", 2), ("dtlz2", 3), ("zdt3", 2), ("dtlz7", 2)):
        task = Task(name, 10, m, "plain", 40, 10, 20)
        problem = task.instance(0)
        front = measures.true_front(problem)
        assert front is not None
        F = front[:: max(1, len(front) // 400)]
        cell = Cell(task, "random", 0)
        n = len(F)
        record = Record(
            cell, np.zeros((n, 10)), np.arange(n), F, np.empty((n, 0)), np.ones(n, dtype=np.bool_),
            np.empty((0, 10)), (), (), 0.0, {}, {},
        )  # fmt: skip
        found = final(record)
        assert found["igd"] < 0.03 and found["igd_plus"] < 0.03 and 0.9 < found["hv_ratio"] <= 1


def test_igd_plus_history_in_blocks() -> None:
    rng = np.random.default_rng(0)
    F, front = rng.random((30, 3)), rng.random((1203, 3))
    history = measures.igd_plus_history(F, front)
    assert history == pytest.approx([pareto.igd_plus(F[: i + 1], front) for i in range(30)])


def test_failures_count_as_evaluations(record: Record) -> None:
    flags = np.array([False, True, True, False, *[True] * 38])
    failed = replace(record, succeeded=flags, failed_X=np.zeros((2, 10)), reasons=("a", "b"))
    values = curve(failed, IGD)
    assert values.shape == (42,) and np.isnan(values[0]) and values[3] == values[2]
    assert values[-1] == pytest.approx(curve(record, IGD)[-1])


def test_infeasible_points_do_not_count(record: Record) -> None:
    G = np.full((40, 1), 1.0)
    none = replace(record, G=G)
    assert final(none)["igd"] is None and np.isnan(curve(none, IGD)).all()
    assert final(none)["hv"] == final(none)["hv_ratio"] == 0, "the volume of nothing"
    assert (curve(none, HV) == 0).all() and (curve(none, HV_RATIO) == 0).all()
    some = G.copy()
    some[5:] = -1.0
    part = replace(record, G=some)
    rest = replace(record, F=record.F[5:], G=G[5:] * 0)
    assert final(part)["igd"] == pytest.approx(final(rest)["igd"])
    assert np.isnan(curve(part, IGD)[:5]).all() and (curve(part, HV)[:5] == 0).all()


def test_problems_without_a_known_front_have_hypervolume_only(tmp_path: Path) -> None:
    record = run_cell(Cell(Task("re21", 4, 2, "plain", 30, 10, 20), "random", 0), tmp_path)
    found = final(record)
    assert found["igd"] is None and found["hv_ratio"] is None and found["hv"] > 0
    assert np.isnan(curve(record, IGD_PLUS)).all() and np.isnan(curve(record, HV_RATIO)).all()


def test_better_knows_the_direction() -> None:
    assert IGD.better(1.0, 2.0) and not HV.better(1.0, 2.0)
