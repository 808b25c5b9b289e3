from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from neuropareto import NSGA2, Integer, Optimizer, Proposal, RandomSearch, Trial
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.optimizer import start_design_size
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import conflicting


def optimizer(**options: Any) -> Optimizer:
    settings: dict[str, Any] = {"seed": 1, "n_initial": 6, **options}
    return Optimizer([(0, 2)] * 3, 2, NSGA2(population=6), **settings)


def f(X: Array) -> Array:
    return conflicting(X / 2, 2)


def test_the_same_seed_and_tells_give_the_same_asks() -> None:
    def run(seed: int) -> Array:
        o = optimizer(seed=seed)
        for q in (6, 3, 1, 4):
            batch = o.ask(q)
            o.tell(batch, f(batch.X))
        return o.X

    assert np.array_equal(run(3), run(3))
    assert not np.array_equal(run(3), run(4))


def test_the_start_design_does_not_depend_on_how_it_is_asked_for() -> None:
    at_once, in_parts = optimizer().ask(6).X, optimizer()
    assert np.array_equal(at_once, np.concatenate([in_parts.ask(2).X, in_parts.ask(4).X]))


def test_several_asks_before_a_tell_and_tells_in_any_order() -> None:
    o = optimizer()
    first, second = o.ask(8), o.ask(3)
    assert first.ids == tuple(range(8)) and second.ids == (8, 9, 10)
    mixed = [*list(second)[::-1], *list(first)[:5]]
    o.tell(mixed, f(np.array([t.x for t in mixed])))
    assert o.pending.ids == (5, 6, 7)
    o.tell(o.pending, f(o.pending.X))
    assert len(o.archive) == 11 and len(o.pending) == 0
    assert np.allclose(o.F, f(o.X))


@dataclass(frozen=True)
class Spy:
    seen: list[Array]

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        self.seen.append(pending)
        return Proposal(rng("spy").random((q, archive.d)))


def test_the_algorithm_is_told_which_points_are_pending() -> None:
    spy = Spy([])
    o = Optimizer([(0, 2)] * 3, 2, spy, seed=0, n_initial=2)
    first = o.ask(3)
    o.ask(1)
    assert spy.seen[0].shape == (2, 3) and spy.seen[1].shape == (3, 3)
    assert np.allclose(spy.seen[1], first.X / 2)


def test_a_trial_takes_one_result() -> None:
    o = optimizer()
    batch = o.ask(2)
    o.tell(batch, f(batch.X))
    with pytest.raises(ValueError, match="Trial 0 was told already"):
        o.tell(batch, f(batch.X))
    with pytest.raises(ValueError, match="Row 0 is a proposed point that was told already"):
        o.tell(batch.X, f(batch.X))
    with pytest.raises(ValueError, match="Trial 99 was never asked"):
        o.tell(Trial(99, batch.X[0]), f(batch.X[:1]))
    one = o.ask(1)
    with pytest.raises(ValueError, match="twice in one tell"):
        o.tell([*one, *one], f(np.repeat(one.X, 2, axis=0)))
    assert len(o.archive) == 2 and o.pending.ids == (2,)


def test_a_refused_tell_changes_nothing() -> None:
    o = optimizer()
    batch = o.ask(2)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        o.tell(batch, np.zeros((2, 3)))
    assert o.pending.ids == batch.ids and len(o.archive) == 0


def test_arrays_are_matched_to_pending_trials_and_outside_points_are_a_warm_start() -> None:
    o = optimizer()
    known = np.full((2, 3), [[0.5], [1.5]])
    o.tell(known, f(known))
    batch = o.ask(5)
    assert len(o.notes) == 1, "four points of the start design are left, the fifth is proposed"
    o.tell(batch.X[::-1], f(batch.X[::-1]))
    assert len(o.pending) == 0 and len(o.archive) == 7
    o.tell(known, f(known))  # a replicate of an outside point is an observation of its own
    assert len(o.archive) == 9


def test_failures_and_nan_are_kept_apart() -> None:
    o = optimizer()
    a, b, c = o.ask(3)
    o.fail(a, "the mesh could not be built")
    o.tell([b, c], [[np.nan, 1.0], [1.0, 2.0]])
    assert len(o.archive) == 1 and len(o.archive.failed) == 2
    assert o.failures[0].reason == "the mesh could not be built"
    assert "nan" in o.failures[1].reason
    assert o.succeeded.tolist() == [False, False, True]


def test_a_simulator_may_change_the_array_that_it_is_given() -> None:
    """x *= 1000, to other units, in place: the point that was asked for counts."""
    o, other = optimizer(), optimizer()
    batch, same = o.ask(6), other.ask(6)
    kept, F = batch.X.copy(), f(batch.X)
    for x in batch.X:
        x *= 1000.0
    o.tell(batch, F)
    other.tell(same, F)
    np.testing.assert_array_equal(o.X, kept)
    np.testing.assert_array_equal(o.archive.U, other.archive.U)
    np.testing.assert_array_equal(o.ask(4).X, other.ask(4).X)


def test_maximised_objectives_are_turned_once() -> None:
    o = optimizer(directions=["minimize", "maximize"])
    batch = o.ask(2)
    o.tell(batch, [[1.0, 5.0], [2.0, 3.0]])
    assert o.archive.F.tolist() == [[1, -5], [2, -3]] and o.F.tolist() == [[1, 5], [2, 3]]
    assert o.archive.front_indices.tolist() == [0]


def test_constraints_are_required_where_announced() -> None:
    o = optimizer(n_constraints=1)
    batch = o.ask(1)
    with pytest.raises(ValueError, match="pass G"):
        o.tell(batch, [[1.0, 2.0]])
    o.tell(batch, [1.0, 2.0], [0.5])
    assert len(o.archive.front_indices) == 0, "an infeasible point is no front"


@dataclass(frozen=True)
class Stubborn:
    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        return Proposal(np.full((q, archive.d), 0.25))


def test_repeats_are_replaced() -> None:
    o = Optimizer([(0, 1)] * 2, 2, Stubborn(), seed=0, n_initial=0)
    for _ in range(3):
        batch = o.ask(4)
        o.tell(batch, conflicting(batch.X, 2))
    assert len(np.unique(o.X, axis=0)) == 12
    assert o.notes[0]["repeats_replaced"] == 3 and o.notes[1]["repeats_replaced"] == 4


def test_a_small_discrete_space_is_searched_whole_and_then_repeats() -> None:
    o = Optimizer([Integer(0, 2), Integer(0, 2)], 2, RandomSearch(), seed=0, n_initial=0)
    seen = set()
    for _ in range(9):
        batch = o.ask(1)
        seen.add(tuple(batch.X[0]))
        o.tell(batch, batch.X)
    assert len(seen) == 9
    assert o.ask(1).X.shape == (1, 2)


@dataclass(frozen=True)
class Broken:
    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        return Proposal(np.full((q + 1, archive.d), np.nan))


def test_a_broken_algorithm_is_named_as_such() -> None:
    with pytest.raises(RuntimeError, match="defect of the algorithm"):
        Optimizer([(0, 1)], 2, Broken(), seed=0, n_initial=0).ask(1)


def test_replaying_the_log_of_a_run_leads_to_the_same_next_ask() -> None:
    lived, told = optimizer(), []
    for q in (4, 4, 3):
        batch = lived.ask(q)
        lived.tell(list(batch)[1:], f(batch.X[1:]))
        told.append((batch, lived.memory, lived.notes[-1] if lived.notes else None))
    again, n_notes = optimizer(), 0
    for batch, memory, note in told:
        fresh = note is not None and note["round"] > n_notes
        n_notes += fresh
        replayed = again.replay_ask(batch.X, memory=memory, note=note if fresh else None)
        assert replayed.ids == batch.ids
        again.tell(list(replayed)[1:], f(replayed.X[1:]))
    assert np.array_equal(lived.archive.U, again.archive.U)
    assert lived.pending.ids == again.pending.ids
    assert np.array_equal(lived.ask(3).X, again.ask(3).X)


def test_five_hundred_variables_and_five_objectives() -> None:
    o = Optimizer([(0, 1)] * 500, 5, NSGA2(), seed=0)
    assert o.n_initial == 200
    for q in (200, 10):
        batch = o.ask(q)
        o.tell(batch, conflicting(batch.X, 5))
    assert o.archive.F.shape == (210, 5) and o.X.shape == (210, 500)


def test_start_design_sizes_follow_the_paper() -> None:
    assert [start_design_size(d) for d in (1, 5, 30, 99, 100, 500)] == [10, 54, 100, 100, 200, 200]


def test_the_start_design_takes_at_most_a_third_of_a_known_budget() -> None:
    sizes = [start_design_size(100, budget) for budget in (1, 2, 30, 300, 600, 10_000)]
    assert sizes == [1, 1, 10, 100, 200, 200]
    assert start_design_size(5, 300) == 54, "no more than usual"
    told = Optimizer([(0, 1)] * 100, 2, RandomSearch(), seed=0, budget=30)
    assert told.n_initial == 10
    both = Optimizer([(0, 1)] * 100, 2, RandomSearch(), seed=0, budget=30, n_initial=20)
    assert both.n_initial == 20, "what is said goes before what follows"
    with pytest.raises(ValueError, match="budget must be a whole number >= 1"):
        Optimizer([(0, 1)], 2, RandomSearch(), seed=0, budget=0)


@pytest.mark.parametrize(
    ("points", "F", "words"),
    [
        ([["a", "b", "c"]], [[1, 2]], "Points must be real numbers"),
        ([[1.0, 1.0]], [[1, 2]], r"Points must have shape \(n, 3\)"),
        ([[1.0, 1.0, 9.0]], [[1, 2]], "'x3' must lie in"),
        ([[1.0, 1.0, 1.0]], [["a", "b"]], "Objective values must be real numbers"),
        ([[1.0, 1.0, 1.0]], [[1, 2j]], "Objective values must be real numbers"),
        ([[1.0, 1.0, 1.0]], [[1, 2, 3]], r"must have shape \(1, 2\)"),
        ([[1.0, 1.0, 1.0]], None, "Objective values must be real numbers"),
    ],
)
def test_bad_tells_get_a_clear_error(points: Any, F: Any, words: str) -> None:
    o = optimizer()
    with pytest.raises(ValueError, match=words):
        o.tell(points, F)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"seed": 1.5}, "seed must be a whole number >= 0"),
        ({"n_initial": -2}, "n_initial must be"),
        ({"n_constraints": -1}, "n_constraints must be"),
        ({"directions": ["up", "down"]}, "must be 'minimize' or 'maximize'"),
    ],
)
def test_bad_settings_get_a_clear_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        optimizer(**options)


def test_bad_counts_get_a_clear_error() -> None:
    with pytest.raises(ValueError, match="n_objectives must be"):
        Optimizer([(0, 1)], 0, RandomSearch(), seed=0)
    with pytest.raises(ValueError, match="number of points to ask for"):
        optimizer().ask(0)
    with pytest.raises(ValueError, match="Expected trials from ask"):
        o = optimizer()
        o.tell([*o.ask(1), 3], [[1, 2], [3, 4]])


@dataclass(frozen=True)
class Moody:
    calls: list[int]

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        self.calls.append(q)
        if len(self.calls) == 1:
            raise KeyboardInterrupt
        return Proposal(rng("moody").random((q, archive.d)))


def test_an_interrupted_ask_leaves_no_trace() -> None:
    interrupted = Optimizer([(0, 1)] * 3, 2, Moody([]), seed=0, n_initial=4)
    smooth = Optimizer([(0, 1)] * 3, 2, Moody([0]), seed=0, n_initial=4)
    with pytest.raises(KeyboardInterrupt):
        interrupted.ask(6)
    assert len(interrupted.pending) == 0
    assert np.array_equal(interrupted.ask(6).X, smooth.ask(6).X)
