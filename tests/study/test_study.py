"""Studies: exact resume, what is counted, readers, algorithms from elsewhere, threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuropareto import NSGA2, Batch, Categorical, Integer, Optimizer, Proposal, RandomSearch, Real
from neuropareto.algorithm import Algorithm
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.study import StorageError, Study, StudyError, StudyInUse
from neuropareto.study.description import Bound
from neuropareto.study.doctor import rescue
from neuropareto.study.events import Asked, Closed, Created, Event, Failed, Note, Retried, Told
from neuropareto.study.warm import Warm

SPACE = [Real(0.1, 10.0, log=True), Real(-1.0, 1.0), Integer(0, 4), Categorical(("a", "b", "c"))]


def objectives(X: Array) -> Array:
    U = X / np.array([10.0, 1.0, 4.0, 2.0])
    return np.stack([((U - 0.2) ** 2).sum(axis=1), -((U - 0.8) ** 2).sum(axis=1)], axis=1)


USUAL = NSGA2(population=6)


def make(path: Path, algorithm: Algorithm = USUAL, **options: Any) -> Study:
    given = {"seed": 3, "n_initial": 5, **options}
    return Study.create(path, SPACE, {"a": "minimize", "b": "maximize"}, algorithm, **given)


def state(study: Study) -> dict[str, Any]:
    """Everything that later proposals depend on, as bytes and plain values."""
    optimizer = study.optimizer
    archive = optimizer.archive
    memory = optimizer.memory or {}
    return {
        "U": archive.U.tobytes(),
        "F": archive.F.tobytes(),
        "G": archive.G.tobytes(),
        "failed": archive.failed.tobytes(),
        "X": optimizer.X.tobytes(),
        "pending": (optimizer.pending.ids, optimizer.pending.X.tobytes()),
        "memory": [(k, v.dtype.str, v.shape, v.tobytes()) for k, v in memory.items()],
        "notes": optimizer.notes,
        "order": optimizer.succeeded.tolist(),
        "failures": [(f.x.tobytes(), f.reason) for f in optimizer.failures],
        "finished": study.finished,
        "imported": study.imported,
        "front": archive.front_indices.tolist(),
    }


# -- resume --

steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 4)),
        st.tuples(st.just("tell"), st.integers(0, 9)),
        st.tuples(st.just("tell all"), st.just(0)),
        st.tuples(st.just("nan"), st.integers(0, 9)),
        st.tuples(st.just("fail"), st.integers(0, 9)),
        st.tuples(st.just("array"), st.integers(0, 9)),
        st.tuples(st.just("outside"), st.integers(0, 5)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=14,
)


def perform(study: Study, path: Path, what: str, k: int) -> Study:
    pending = study.pending
    if what == "ask":
        study.ask(k)
    elif what == "outside":
        x = np.random.default_rng(k).random((2, 4))
        X = np.stack([0.1 + x[:, 0], x[:, 1], np.rint(4 * x[:, 2]), np.rint(2 * x[:, 3])], axis=1)
        study.tell(X, objectives(X))
    elif what == "reopen":
        study.close()
        study = Study.open(path)
    elif what == "tell all" and len(pending):
        study.tell(pending, objectives(pending.X))
    elif len(pending):
        trial = list(pending)[k % len(pending)]
        if what == "tell":
            study.tell(trial, objectives(trial.x[None]))
        elif what == "nan":
            study.tell(trial, [np.nan, 1.0])
        elif what == "fail":
            study.fail(trial, "did not converge", "timeout")
        elif what == "array":
            study.tell(trial.x[None], objectives(trial.x[None]))
    return study


@pytest.mark.parametrize("algorithm", [USUAL, RandomSearch()])
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(todo=steps)
def test_a_reopened_study_goes_on_bit_for_bit(
    memory_disk: Path, algorithm: Algorithm, todo: list[tuple[str, int]]
) -> None:
    for old in memory_disk.iterdir():
        old.unlink()
    whole = make(memory_disk / "whole", algorithm)
    parts = make(memory_disk / "parts", algorithm)
    for what, k in todo:
        if what != "reopen":
            perform(whole, memory_disk / "whole", what, k)
        parts = perform(parts, memory_disk / "parts", what, k)
    parts.close()
    parts = Study.open(memory_disk / "parts")
    without_clock = {"seconds"}
    one, two = state(whole), state(parts)
    for notes in (one.pop("notes"), two.pop("notes")):
        assert all(without_clock < set(note) for note in notes)
    assert one == two
    assert whole.ask(3).X.tobytes() == parts.ask(3).X.tobytes()
    whole.close()
    parts.close()


def test_a_study_proposes_what_its_optimizer_would(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    optimizer = Optimizer(
        SPACE, 2, NSGA2(population=6), seed=3, n_initial=5, directions=["minimize", "maximize"]
    )
    for n in (2, 4, 3, 1, 5):
        mine, plain = study.ask(n), optimizer.ask(n)
        assert mine.ids == plain.ids and mine.X.tobytes() == plain.X.tobytes()
        study.tell(mine, objectives(mine.X))
        optimizer.tell(plain, objectives(plain.X))
    study.close()


def test_the_result_survives_reopening(memory_disk: Path) -> None:
    study = make(memory_disk / "a", reference_point=[9.0, -9.0], name="my study")
    for _ in range(4):
        batch = study.ask(4)
        study.tell(batch, objectives(batch.X))
    before = study.result()
    study.close()
    reader = Study.view(memory_disk / "a")
    after = reader.result()
    reader.close()
    assert before.hypervolume == after.hypervolume > 0
    assert before.X.tobytes() == after.X.tobytes()
    assert before.front.rows.tolist() == after.front.rows.tolist()
    assert before.notes == after.notes
    assert (after.name, after.algorithm, after.directions) == (
        "my study", "NSGA2", ("minimize", "maximize"),
    )  # fmt: skip
    assert after.reference_point.tolist() == [9.0, -9.0]


def test_dropped_memory_costs_time_and_nothing_else(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, objectives(batch.X))
    study._store.append([], memory=Warm(0, {}))
    study.close()
    again = Study.open(memory_disk / "a")
    assert again.optimizer.memory is None
    assert len(again.ask(2)) == 2
    again.close()


# -- accidents in mid call --


@dataclass(frozen=True)
class Interrupted:
    """An algorithm during which somebody presses Ctrl-C, or which fails, the first times."""

    error: type[BaseException]
    times: list[int]

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        if self.times:
            self.times.pop()
            raise self.error("now")
        return RandomSearch().propose(archive, q, pending=pending, memory=memory, rng=rng)


def test_a_planned_budget_makes_the_start_design_small(memory_disk: Path) -> None:
    path = memory_disk / "planned.db"
    with Study.create(path, [(0, 1)] * 50, 2, RandomSearch(), seed=0, budget=30) as study:
        assert study.optimizer.n_initial == 10
    with Study.open(path) as study:
        assert study.optimizer.n_initial == 10


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_an_interrupted_ask_leaves_no_trace(memory_disk: Path, error: type[BaseException]) -> None:
    study = make(memory_disk / "a", Interrupted(error, [1]))
    calm = make(memory_disk / "b", RandomSearch())
    first = study.ask(3)
    assert first.X.tobytes() == calm.ask(3).X.tobytes()
    with pytest.raises(error, match="now"):
        study.ask(5)  # two of the start design, three of the algorithm
    assert study.pending.ids == first.ids
    assert study.ask(5).X.tobytes() == calm.ask(5).X.tobytes()
    study.close()
    calm.close()


def test_signs_of_life_do_not_wait_for_a_proposal(memory_disk: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow:
        def propose(
            self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
        ) -> Proposal:
            inside.set()
            assert go_on.wait(60)
            return Proposal(rng("slow").random((q, archive.d)))

    study = make(memory_disk / "a", Slow(), n_initial=1)
    first = study.ask(1)
    asking = threading.Thread(target=lambda: study.ask(1))
    asking.start()
    assert inside.wait(60)
    study.started(first.ids[0], "worker")
    study.heartbeat(first.ids[0])
    study.note("while asking")
    go_on.set()
    asking.join()
    assert study.attempts(first.ids[0]) == 1
    study.close()


def test_many_threads_tell(memory_disk: Path) -> None:
    study = make(memory_disk / "a", RandomSearch(), n_initial=0)
    batch = study.ask(24)

    def tell(trials: list[Any]) -> None:
        for trial in trials:
            study.started(trial.id, "w")
            study.tell(trial, objectives(trial.x[None]))

    threads = [threading.Thread(target=tell, args=(list(batch)[k::4],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.finished == 24 and len(study.pending) == 0
    before = state(study)
    study.close()
    reader = Study.view(memory_disk / "a")
    after = state(reader)
    reader.close()
    assert before["U"] == after["U"] and before["order"] == after["order"]


# -- evaluations under way --


def test_attempts_and_heartbeats(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    trial = next(iter(study.ask(1)))
    assert study.attempts(trial.id) == 0 and study.last_heartbeat(trial.id) is None
    study.started(trial.id, "host-1")
    study.retried(trial.id, "lost the node", "lost")
    study.started(trial.id, "host-2")
    study.heartbeat(trial.id)
    assert study.attempts(trial.id) == 2
    said = study.last_heartbeat(trial.id)
    assert said is not None and abs(said - time.time()) < 3600
    assert 0 <= study.silence(trial.id) < 3600
    study.close()
    again = Study.open(memory_disk / "a")
    assert again.attempts(trial.id) == 2
    assert again.last_heartbeat(trial.id) == pytest.approx(said, abs=60)
    again.tell(trial, objectives(trial.x[None]))
    assert again.attempts(trial.id) == 2
    too_late: tuple[Callable[[], None], ...] = (
        lambda: again.started(trial.id, "x"),
        lambda: again.heartbeat(trial.id),
        lambda: again.retried(trial.id, "x", "error"),
        lambda: again.heartbeat(99),
    )
    for late in too_late:
        with pytest.raises(ValueError, match="not pending"):
            late()
    again.close()


def test_a_late_sign_of_life_in_the_log_is_harmless(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    trial = next(iter(study.ask(1)))
    study.tell(trial, objectives(trial.x[None]))
    study._store.append([Retried(trial.id, "came too late", "lost")])
    study.close()
    again = Study.open(memory_disk / "a")
    assert again.finished == 1
    again.close()


def test_what_is_counted(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    X = np.array([[1.0, 0.0, 2.0, 1.0], [2.0, 0.5, 3.0, 0.0]])
    study.tell(X, objectives(X))
    assert (study.finished, study.imported) == (0, 2)
    batch = study.ask(3)
    study.tell(next(iter(batch)), objectives(batch.X[:1]))
    study.fail(list(batch)[1], "broke")
    assert (study.finished, study.imported, study.pending.ids) == (2, 2, (2,))
    study.fail(np.array([[3.0, 0.0, 1.0, 1.0]]), "known to break")
    assert (study.finished, study.imported) == (2, 3)
    assert len(study.result().failures) == 2
    study.close()


# -- events --


def kinds(events: Any) -> list[str]:
    return [event.kind for event in events]


def test_events_tell_the_story(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    batch = study.ask(2)
    study.started(0, "w")
    study.tell(next(iter(batch)), objectives(batch.X[:1]))
    study.fail(list(batch)[1], "x" * 200_000, "timeout")
    study.note("lunch\x1b[2J")
    study.close()
    reader = Study.view(memory_disk / "a")
    events: list[Event] = list(reader.events())
    assert kinds(events) == [
        "created", "asked", "asked", "started", "told", "failed", "note", "closed",
    ]  # fmt: skip
    created, asked, _, _, told, failed, note, closed = events
    assert isinstance(created, Created) and created.description["seed"] == 3
    assert isinstance(asked, Asked) and asked.x.tobytes() == batch.X[0].tobytes()
    assert isinstance(told, Told) and told.f.tobytes() == objectives(batch.X[:1]).tobytes()
    assert isinstance(failed, Failed) and len(failed.reason) < 70_000
    assert failed.failure == "timeout" and "characters left out" in failed.reason
    assert isinstance(note, Note) and note.text == "lunch\x1b[2J"
    assert isinstance(closed, Closed)
    assert kinds(reader.events(since=6)) == ["note", "closed"]
    reader.close()


# -- readers --


def test_a_view_follows_the_writer_and_never_writes(memory_disk: Path) -> None:
    study = make(memory_disk / "a")
    study.ask(2)
    reader = Study.view(memory_disk / "a")
    assert len(reader.pending) == 2
    batch = study.ask(3)
    study.tell(batch, objectives(batch.X))
    assert reader.finished == 0
    assert reader.refresh() == 6
    assert reader.finished == 3 and len(reader.pending) == 2
    assert state(reader)["U"] == state(study)["U"]
    for write in (
        lambda: reader.ask(),
        lambda: reader.tell(batch, objectives(batch.X)),
        lambda: reader.fail(batch, "x"),
        lambda: reader.note("x"),
        lambda: reader.heartbeat(0),
    ):
        with pytest.raises(StudyError, match="opened for reading"):
            write()
    reader.close()
    reader.close()
    study.close()


def test_a_closed_study_says_so(memory_disk: Path) -> None:
    with make(memory_disk / "a") as study:
        study.ask()
    for use in (study.ask, lambda: study.note("x"), lambda: list(study.events())):
        with pytest.raises(StudyError, match="closed"):
            use()


def test_an_error_inside_the_context_is_the_one_reported(memory_disk: Path) -> None:
    with pytest.raises(ZeroDivisionError), make(memory_disk / "a"):
        raise ZeroDivisionError
    Study.open(memory_disk / "a").close()


# -- algorithms from elsewhere --


@dataclass(frozen=True)
class Outsider:
    step: float = 0.5

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        seen = 0 if memory is None else int(memory["seen"][0])
        U = rng("outsider").random((q, archive.d)) * self.step
        # In columns-first order and with odd notes: both must come back as they go on.
        known = {"seen": np.array([seen + q]), "columns": np.asfortranarray(U)}
        return Proposal(U, known, {"nan": np.nan, "numpy": np.float32(1.5), "thing": self})


def test_an_outsider_is_brought_along(memory_disk: Path) -> None:
    study = make(memory_disk / "a", Outsider(0.25))
    for _ in range(3):
        batch = study.ask(4)
        study.tell(batch, objectives(batch.X))
    live = state(study)
    study.close()
    with pytest.raises(StudyError, match="algorithm="):
        Study.open(memory_disk / "a")
    for wrong in (Outsider(0.5), NSGA2()):
        with pytest.raises(StudyError, match="created with"):
            Study.open(memory_disk / "a", algorithm=wrong)
    again = Study.open(memory_disk / "a", algorithm=Outsider(0.25))
    assert state(again) == live
    again.close()
    reader = Study.view(memory_disk / "a")
    assert reader.result().algorithm == "Outsider"
    reader.close()


def test_the_right_algorithm_of_the_package_may_be_named(memory_disk: Path) -> None:
    make(memory_disk / "a").close()
    Study.open(memory_disk / "a", algorithm=NSGA2(population=6)).close()
    with pytest.raises(StudyError, match="created with"):
        Study.open(memory_disk / "a", algorithm=NSGA2(population=7))
    Study.open(memory_disk / "a").close()


@dataclass(frozen=True)
class Hoarder:
    memory: Any

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        return Proposal(rng("hoarder").random((q, archive.d)), self.memory)


def test_memory_that_cannot_be_stored_is_refused(memory_disk: Path) -> None:
    study = make(memory_disk / "a", Hoarder({"x": np.array([object()])}), n_initial=0)
    with pytest.raises(ValueError, match="arrays of numbers"):
        study.ask()
    assert len(study.pending) == 0
    study.close()


def test_memory_that_is_too_large_is_forgotten(
    memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuropareto.study.warm.LARGEST_MEMORY", 1000)
    study = make(memory_disk / "a", Hoarder({"x": np.zeros(200)}), n_initial=0)
    study.ask()
    assert study.optimizer.memory is None
    study.close()


# -- what is refused --


def test_wrong_tells_change_nothing(memory_disk: Path) -> None:
    study = make(memory_disk / "a", n_constraints=1)
    batch = study.ask(2)
    one = next(iter(batch))
    wrong: list[Callable[[], None]] = [
        lambda: study.tell(one, None, [0.0]),  # type: ignore[arg-type]
        lambda: study.tell(one, [1.0, None], [0.0]),  # type: ignore[arg-type]
        lambda: study.tell(one, [1.0], [0.0]),
        lambda: study.tell(one, [1.0, 2.0, 3.0], [0.0]),
        lambda: study.tell(one, ["1", "2"], [0.0]),
        lambda: study.tell(one, [1j, 2.0], [0.0]),
        lambda: study.tell(one, [[1.0], [2.0, 3.0]], [0.0]),
        lambda: study.tell(one, [1.0, 2.0]),
        lambda: study.tell(one, [1.0, 2.0], [0.0, 0.0]),
        lambda: study.tell(batch, [[1.0, 2.0]], [[0.0]]),
        lambda: study.tell([one, one], [[1.0, 2.0]] * 2, [[0.0]] * 2),
        lambda: study.tell([one, 5], [[1.0, 2.0]] * 2, [[0.0]] * 2),  # type: ignore[arg-type]
        lambda: study.tell(type(one)(99, one.x), [1.0, 2.0], [0.0]),
        lambda: study.tell([[np.nan] * 4], [[1.0, 2.0]], [[0.0]]),
        lambda: study.tell([[1e9] * 4], [[1.0, 2.0]], [[0.0]]),
        lambda: study.tell(np.stack([one.x, one.x]), [[1.0, 2.0]] * 2, [[0.0]] * 2),
        lambda: study.tell("all", [1.0, 2.0], [0.0]),
    ]
    before, n = state(study), len(list(study.events()))
    for tell in wrong:
        with pytest.raises(ValueError, match=r".+"):
            tell()
        assert state(study) == before
    assert len(list(study.events())) == n
    study.tell(one, [1.0, 2.0], [0.0])
    with pytest.raises(ValueError, match="told already"):
        study.tell(one, [1.0, 2.0], [0.0])
    with pytest.raises(ValueError, match="told already"):
        study.tell(one.x[None], [[1.0, 2.0]], [[0.0]])
    study.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_become_failures_with_what_came(
    memory_disk: Path, value: float
) -> None:
    study = make(memory_disk / "a")
    batch = study.ask(3)
    F = objectives(batch.X)
    F[1, 0] = value
    study.tell(batch, F)
    assert study.finished == 3 and study.optimizer.succeeded.tolist() == [True, False, True]
    live = state(study)
    study.close()
    again = Study.open(memory_disk / "a")
    assert state(again) == live
    failed = [e for e in again.events() if isinstance(e, Failed)]
    assert len(failed) == 1 and failed[0].f is not None
    assert failed[0].f.tobytes() == F[1].tobytes() and failed[0].failure == "invalid"
    again.close()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3", None])
def test_wrong_numbers_of_points(memory_disk: Path, n: Any) -> None:
    with make(memory_disk / "a") as study, pytest.raises(ValueError, match="whole number"):
        study.ask(n)


@pytest.mark.parametrize(
    "options",
    [
        {"seed": -1},
        {"seed": 1.5},
        {"n_initial": -1},
        {"n_constraints": -1},
        {"reference_point": [1.0]},
        {"reference_point": [np.nan, 1.0]},
        {"name": "x" * 1000},
        {"n_initial": 10**9},
        {"n_constraints": 10**7},
        {"algorithm": "random"},
        {"algorithm": RandomSearch},
        {"n_constraints": 2, "bounds": [Bound("h", "at_most", 1.0)]},
        {"n_constraints": 1, "bounds": [Bound("h", "at_most", float("inf"))]},
        {"n_constraints": 1, "bounds": [Bound("h", "around", 1.0)]},
    ],
)
def test_a_wrong_create_leaves_no_file(memory_disk: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        make(memory_disk / "a", **options)
    assert not list(memory_disk.iterdir())


def test_a_folder_that_cannot_take_the_study_is_named(
    memory_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(memory_disk / "a").close()
    for wrong in (memory_disk / "missing" / "a", memory_disk / "a" / "b"):
        for made in (make, lambda path: rescue(memory_disk / "a", path)):
            with pytest.raises(StorageError, match="There is no folder"):
                made(wrong)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(StorageError, match="cannot be written to"):
        make(memory_disk / "b")
    assert [path.name for path in memory_disk.iterdir()] == ["a"]


def test_two_studies_in_one_file_are_refused(memory_disk: Path) -> None:
    with make(memory_disk / "a"):
        with pytest.raises(StudyError, match="exists already"):
            make(memory_disk / "a")
        with pytest.raises(StudyInUse, match="this process"):
            Study.open(memory_disk / "a")


def test_a_batch_of_a_view_can_be_told(memory_disk: Path) -> None:
    with make(memory_disk / "a") as study:
        study.ask(2)
        reader = Study.view(memory_disk / "a")
        waiting: Batch = reader.pending
        reader.close()
        study.tell(waiting, objectives(waiting.X))
        assert study.finished == 2
