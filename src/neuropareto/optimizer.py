"""Optimizer: ask for points, tell their results, in any order and size; shared by all algorithms.

The only mutable object of the core. It owns the border between the user's units and the unit
cube, the start design, the pending points, and the memory that an algorithm wants back. Because
every algorithm runs behind it, comparisons share start design, seeds, bounds and bookkeeping.
The same seed and the same tells give the same asks, bit for bit on the same kind of processor,
however many cores it has.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuropareto.algorithm import Algorithm, Proposal
from neuropareto.archive import Archive
from neuropareto.hypervolume import MOST_OBJECTIVES
from neuropareto.memory import Memory
from neuropareto.problem import signs
from neuropareto.randomness import Streams, stream
from neuropareto.space import Array, Space, SpaceLike, numbers
from neuropareto.threads import one_thread


@dataclass(frozen=True, eq=False)
class Trial:
    """One proposed point: its number and its place ``x`` (d,) in the user's units."""

    id: int
    x: Array


@dataclass(frozen=True, eq=False)
class Batch:
    """Points proposed by one ``ask``: ``X`` (n, d) in the user's units, with their trial numbers."""

    ids: tuple[int, ...]
    X: Array

    def __len__(self) -> int:
        """The number of points."""
        return len(self.ids)

    def __iter__(self) -> Iterator[Trial]:
        """The trials one by one."""
        return (Trial(i, x) for i, x in zip(self.ids, self.X, strict=True))


@dataclass(frozen=True, eq=False)
class Failure:
    """A point ``x`` (d,) whose evaluation failed, and why (an error's text or a traceback)."""

    x: Array
    reason: str


Points: TypeAlias = "Trial | Batch | Sequence[Trial] | npt.ArrayLike"


def start_design_size(d: int, budget: int | None = None) -> int:
    """Points of the start design: the paper's 100 (d < 100) or 200; fewer where d is small.

    min(11 d - 1, 100 or 200), and at most a third of the ``budget`` where that is known: what is
    spent before there is a model is spent blindly. Paper: section "Experimental Configuration".
    Decisions D-5 and D-76.
    """
    usual = min(11 * d - 1, 100 if d < 100 else 200)
    return usual if budget is None else min(usual, max(1, budget // 3))


class Optimizer:
    """Ask-and-tell optimisation of ``n_objectives`` objectives over ``space``.

    ``n_initial`` points of a Latin hypercube come first (see :func:`start_design_size`, which a
    planned ``budget`` makes smaller; it limits nothing else); warm-start points told beforehand count
    towards it. Objectives are minimised unless ``directions`` says "maximize"; constraints are feasible
    where <= 0.
    """

    def __init__(
        self,
        space: SpaceLike,
        n_objectives: int,
        algorithm: Algorithm,
        *,
        seed: int,
        n_initial: int | None = None,
        budget: int | None = None,
        directions: Sequence[str] | None = None,
        n_constraints: int = 0,
    ) -> None:
        self.space = Space.of(space)
        self.n_objectives = whole(n_objectives, "n_objectives", least=1)
        if self.n_objectives > MOST_OBJECTIVES:
            raise ValueError(
                f"There may be 1 to {MOST_OBJECTIVES} objectives, because hypervolume is computed for "
                f"no more, got {self.n_objectives}; join some, or make them constraints."
            )
        self.n_constraints = whole(n_constraints, "n_constraints", least=0)
        self.algorithm = _able(algorithm)
        self.seed = whole(seed, "seed", least=0)
        self.directions = tuple(directions) if directions is not None else None
        self._signs = signs(directions, self.n_objectives)
        planned = None if budget is None else whole(budget, "budget", least=1)
        default = start_design_size(self.space.d, planned)
        self.n_initial = whole(default if n_initial is None else n_initial, "n_initial", least=0)
        self.archive = Archive.empty(self.space.d, self.n_objectives, self.n_constraints)
        self.failures: list[Failure] = []
        self.notes: list[dict[str, Any]] = []
        self.memory: Memory | None = None
        self._open: dict[int, Trial] = {}
        self._open_unit: dict[int, Array] = {}
        self._finished: set[bytes] = set()
        self._known: set[bytes] = set()
        self._asked = self._rounds = self._design_used = self._outside = 0
        self._X: list[Array] = []
        self._order: list[bool] = []

    # -- asking --

    def ask(self, n: int = 1) -> Batch:
        """The next n points to evaluate; pending points are known to the algorithm."""
        n = whole(n, "The number of points to ask for", least=1)
        before = self._asked, self._rounds, self._design_used
        try:
            X = self.space.from_unit(self._from_design(n))
            self._register(X)
            if len(X) < n:
                X = np.concatenate([X, self._from_algorithm(n - len(X))])
        except BaseException:  # an interrupted or failed proposal leaves no trace
            for i in range(before[0], self._asked):
                self._known.discard(_key(self._open.pop(i).x))
                del self._open_unit[i]
            self._asked, self._rounds, self._design_used = before
            raise
        return Batch(tuple(range(before[0], self._asked)), X)

    def _from_design(self, n: int) -> Array:
        """The next points of the start design, as far as it still reaches."""
        left = self.n_initial - self._design_used - self._outside
        n = max(0, min(n, left))
        if not n:
            return np.empty((0, self.space.d))
        chosen = self._design[self._design_used : self._design_used + n]
        self._design_used += n
        return chosen

    @cached_property
    def _design(self) -> Array:
        return self.space.latin_hypercube(self.n_initial, rng=stream(self.seed, 0, "start-design"))

    def _from_algorithm(self, n: int) -> Array:
        started = time.perf_counter()
        self._rounds += 1
        streams = Streams(self.seed, self._rounds)
        pending = np.array(list(self._open_unit.values())).reshape(-1, self.space.d)
        with one_thread():
            proposal = self.algorithm.propose(
                self.archive, n, pending=pending, memory=self.memory, rng=streams
            )
        self.memory = proposal.memory
        X, n_repeated = self._without_repeats(_checked(proposal, n, self.space.d), streams)
        self._register(X)
        self.notes.append(
            {
                **proposal.notes,
                "round": self._rounds,
                "evaluations": len(self.archive),
                "pending": len(pending),
                "proposed": n,
                "repeats_replaced": n_repeated,
                "seconds": time.perf_counter() - started,
            }
        )
        return X

    def _without_repeats(self, U: Array, streams: Streams) -> tuple[Array, int]:
        """``U`` in the user's units, with known points replaced by nearby, then by random ones."""
        X, rng, replaced = self.space.from_unit(U), streams("repeats"), 0
        taken: set[bytes] = set()
        for row in range(len(X)):
            attempt, repeated = 0, False
            while (key := _key(X[row])) in self._known or key in taken:
                repeated = True
                attempt += 1
                if attempt > 40:  # a small discrete space may be used up: then a repeat is right
                    break
                step = rng.normal(scale=0.02 * 1.2**attempt, size=self.space.d)
                u = U[row] + step if attempt <= 20 else rng.random(self.space.d)
                X[row] = self.space.from_unit(np.clip(u, 0.0, 1.0))
            taken.add(key)
            replaced += repeated
        return X, replaced

    def _register(self, X: Array) -> None:
        # The unit-cube image is always computed from X, so that a study replayed from its stored
        # X has the very same bits as the run that wrote it.
        for x, u in zip(X, self.space.to_unit(X), strict=True):
            x = x.copy()
            x.setflags(write=False)
            self._open[self._asked] = Trial(self._asked, x)
            self._open_unit[self._asked] = u
            self._known.add(_key(x))
            self._asked += 1

    # -- telling --

    def tell(self, points: Points, F: npt.ArrayLike, G: npt.ArrayLike | None = None) -> None:
        """Report results: ``F`` (n, m) objectives and, with constraints, ``G`` (n, c).

        ``points`` is a batch, a trial, a list of trials, or an array (n, d). Rows of an array that
        were never proposed are taken as known evaluations (a warm start). A row with NaN or inf is
        recorded as failed. Nothing is changed if anything is wrong with the call.
        """
        trials, X = self._resolve(points)
        values = self._values(F, self.n_objectives, len(X), "Objective values")
        if self.n_constraints and G is None:
            raise ValueError(
                f"This problem has {self.n_constraints} constraints: pass G with shape "
                f"({len(X)}, {self.n_constraints}) as the third argument of tell."
            )
        limits = self._values(
            np.empty((len(X), 0)) if G is None else G, self.n_constraints, len(X), "Constraints"
        )
        ok = np.asarray(np.isfinite(values).all(axis=1) & np.isfinite(limits).all(axis=1))
        self._close(trials, X)
        U = self.space.to_unit(X)
        self.archive = self.archive.extended(
            U[ok], self._signs * values[ok], limits[ok], failed=U[~ok]
        )
        for x, good, value in zip(X, ok, values, strict=True):
            self._order.append(bool(good))
            if good:
                self._X.append(x)
            else:
                self.failures.append(Failure(x, f"the evaluation returned {value.tolist()}"))

    def fail(self, points: Points, reason: str) -> None:
        """Report that the evaluation of these points failed; they are kept, never modelled as F."""
        trials, X = self._resolve(points)
        self._close(trials, X)
        self.archive = self.archive.extended(
            np.empty((0, self.space.d)),
            np.empty((0, self.n_objectives)),
            np.empty((0, self.n_constraints)),
            failed=self.space.to_unit(X),
        )
        self.failures.extend(Failure(x, reason) for x in X)
        self._order.extend([False] * len(X))

    def _resolve(self, points: Points) -> tuple[list[int | None], Array]:
        """The trial number (None: from outside) and x of every point that was named."""
        if isinstance(points, Trial):
            points = [points]
        if isinstance(points, Batch) or (
            isinstance(points, Sequence) and len(points) and isinstance(points[0], Trial)
        ):
            trials = [_as_trial(t) for t in points]
            ids: list[int | None] = [t.id for t in trials]
            for trial in trials:
                if trial.id not in self._open:
                    asked = "was told already" if trial.id < self._asked else "was never asked"
                    raise ValueError(
                        f"Trial {trial.id} {asked}; tell each proposed point once, or pass it as an "
                        "array to add an outside evaluation."
                    )
            # Our own record of x: a simulator may have changed the array that it was given.
            X = np.array([self._open[t.id].x for t in trials]).reshape(-1, self.space.d)
        else:
            X = self.space.check_points(np.atleast_2d(numbers(points, "Points")))  # type: ignore[arg-type]
            ids = self._match(X)
        if len({i for i in ids if i is not None}) < sum(i is not None for i in ids):
            raise ValueError("A trial occurs twice in one tell; name each proposed point once.")
        return ids, X

    def _match(self, X: Array) -> list[int | None]:
        """Find rows among the pending trials; refuse rows that were proposed and told before."""
        waiting: dict[bytes, list[int]] = {}
        for i, trial in self._open.items():
            waiting.setdefault(_key(trial.x), []).append(i)
        ids: list[int | None] = []
        for row, x in enumerate(X):
            key = _key(x)
            if waiting.get(key):
                ids.append(waiting[key].pop(0))
            elif key in self._finished:
                raise ValueError(
                    f"Row {row} is a proposed point that was told already; each proposal takes one "
                    "result."
                )
            else:
                ids.append(None)
        return ids

    def _values(self, given: npt.ArrayLike, width: int, n: int, what: str) -> Array:
        values = numbers(given, what)
        if values.ndim < 2 and n == 1:
            values = values.reshape(1, -1)
        if values.shape != (n, width):
            raise ValueError(
                f"{what} must have shape ({n}, {width}): one row per point, one column each; got "
                f"shape {values.shape}."
            )
        return values

    def _close(self, trials: list[int | None], X: Array) -> None:
        for i, x in zip(trials, X, strict=True):
            if i is None:
                self._outside += 1
                self._known.add(_key(x))
            else:
                self._finished.add(_key(self._open.pop(i).x))
                del self._open_unit[i]

    # -- looking --

    @property
    def pending(self) -> Batch:
        """Trials that were asked and not told yet."""
        trials = list(self._open.values())
        X = np.array([t.x for t in trials]).reshape(-1, self.space.d)
        return Batch(tuple(t.id for t in trials), X)

    @property
    def X(self) -> Array:
        """Successfully evaluated points in the user's units, (n, d), in order of arrival."""
        return np.array(self._X).reshape(-1, self.space.d)

    @property
    def F(self) -> Array:
        """Their objectives in the user's own directions, (n, m)."""
        return np.asarray(self._signs * self.archive.F)

    @property
    def succeeded(self) -> npt.NDArray[np.bool_]:
        """For every evaluation told so far, whether it succeeded, (n + failures,)."""
        return np.array(self._order, dtype=np.bool_)

    # -- living again --

    def replay_ask(
        self, X: Array, *, memory: Memory | None, note: Mapping[str, Any] | None = None
    ) -> Batch:
        """Record an earlier life's ask: the same points become pending, nothing is computed.

        ``note`` is that round's entry of ``notes``, None if the whole batch was start design.
        """
        if note is not None:
            self._rounds += 1
            self.memory = memory
            self.notes.append(dict(note))
        self._design_used += len(X) - (int(note["proposed"]) if note is not None else 0)
        self._register(X)
        return Batch(tuple(range(self._asked - len(X), self._asked)), X)


def _key(x: Array) -> bytes:
    # Adding zero turns -0.0 into 0.0: the same point must have the same key.
    return hashlib.blake2b((x + 0.0).tobytes(), digest_size=16).digest()


def _as_trial(given: Any) -> Trial:
    if not isinstance(given, Trial):
        raise ValueError(f"Expected trials from ask, got {type(given).__name__} among them.")
    return given


def _able(algorithm: Any) -> Algorithm:
    if isinstance(algorithm, type) or not callable(getattr(algorithm, "propose", None)):
        raise ValueError(
            f"The algorithm must be an object like NeuroPareto() or NSGA2(), got {algorithm!r}; by "
            "name: from neuropareto.algorithms import algorithm."
        )
    return algorithm  # type: ignore[no-any-return]


def whole(value: Any, what: str, least: int) -> int:
    """``value`` as an int of at least ``least``, or a ValueError that names ``what``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{what} must be a whole number >= {least}, got {value!r}.")
    return int(value)


def _checked(proposal: Proposal, n: int, d: int) -> Array:
    """An algorithm's points, or an error that names the algorithm's fault and not the user's."""
    U = np.asarray(proposal.U, dtype=np.float64)
    if U.shape != (n, d) or not np.isfinite(U).all():
        raise RuntimeError(
            f"The algorithm must propose finite points of shape ({n}, {d}), got shape {U.shape}; "
            "this is a defect of the algorithm."
        )
    return np.clip(U, 0.0, 1.0)
