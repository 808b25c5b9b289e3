"""MORBO (Daulton, Eriksson, Balandat, Bakshy, UAI 2022): trust regions that share one front.

Several boxes, each with GPs of its own points, sit on the front points that carry most
hypervolume. Every point of a batch is the candidate whose Thompson sample adds most hypervolume to
the front and to the points chosen before it. Boxes shrink on failure and restart elsewhere.
Notation: t regions, d variables, m objectives, c constraints, o = m + c outputs, k front points,
r candidates a region. Step numbers are those of the authors' loop: 1 state, 2 centres, 3 models,
4 selection, 5 counting, 6 restarts. Objectives are standardised over the archive throughout.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.hypervolume import hypervolume
from neuropareto.memory import Memory
from neuropareto.peers.local_gp import Box, Paths, fit_local_gp
from neuropareto.peers.thompson import BY_HYPERVOLUME, Sampler, Search, World, greedy, world_of
from neuropareto.peers.trust_regions import (
    ASKED,
    ENDED,
    Growth,
    Mask,
    Regions,
    aged,
    box,
    decay,
    inside,
    recentred,
    sobol,
    training_rows,
)
from neuropareto.randomness import Streams
from neuropareto.space import Array

_FEWEST = 4  # evaluations below which no model is fitted


@dataclass(frozen=True)
class MORBO:
    """MORBO with the authors' settings, but for ``batch``, ``fewest`` and ``most``.

    ``fewest=None`` stands for the size of the start design. ``budget`` is the length of the run
    that perturbation and restart size decay over. ``share`` points in a row are chosen from the
    same candidates (published: one); ten are five times as fast. Constraints are modelled like
    objectives.
    """

    batch: int = 10
    regions: int = 5
    growth: Growth = Growth()
    candidates: int = 4096
    share: int = 1
    features: int = 1024
    fewest: int | None = None
    most: int = 400
    winsor: float = 0.05
    least_gain: float = 1e-3
    iterations: int = 50
    budget: int = 300

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points: centres for restarted regions, then Thompson samples of all regions."""
        if len(archive) < _FEWEST:
            return Proposal(np.asarray(rng("random").random((q, archive.d)), dtype=np.float64))
        clock, world = _Clock(), world_of(archive)
        with clock("regions"):
            state = self._told(_state(archive, memory, self), archive, world, pending)
        with clock("restarts"):
            restarts, whose = self._restarts(state, archive, world, q, rng("restarts"))
        with clock("surrogate"):
            samplers = self._samplers(state, archive, world, q - len(restarts), rng)
        with clock("selection"):
            waiting = np.concatenate([pending, restarts])
            chosen, owner, rules = greedy(samplers, world, waiting, q - len(restarts), rng)
        U = np.concatenate([restarts, chosen])
        state = state.asking(U, np.concatenate([whose, owner]), len(restarts))
        notes = {
            "stage_seconds": clock.seconds,
            "lengths": state.regions.length.tolist(),
            "centres": state.regions.centre.tolist(),
            "owners": owner.tolist(),
            "by_hypervolume": int(np.sum(rules == BY_HYPERVOLUME)),
            "restarts": len(restarts),
        }
        return Proposal(U, memory=state.memory, notes=notes)

    def _told(self, state: _State, archive: Archive, world: World, pending: Array) -> _State:
        """Steps 5, 6 and 2: count what came back, begin restarted regions, move the others."""
        n, d = len(archive), archive.d
        place = _fates(state, archive, pending)
        back = (place != _WAITS) & ~state.restart
        points = np.bincount(state.owner[back & (state.owner >= 0)], minlength=self.regions)
        improved = np.array(
            [
                self._improved(place[back & (state.owner == i) & (place >= 0)], state, world)
                for i in range(self.regions)
            ]
        )
        regions = self.growth.counted(state.regions, points, improved, d)
        fresh: list[int] = []
        rows = state.restart_rows
        size = decay(n, state.n_start, self.budget)
        for i in np.flatnonzero(regions.centre == ASKED):
            asked = state.restart & (state.owner == i)
            if (place[asked] >= 0).any():
                row = int(place[asked].max())
                regions = self.growth.restarted(regions, int(i), row, size)
                rows = np.append(rows, row)
                fresh.append(int(i))
            elif not (place[asked] == _WAITS).any():  # failed or lost: it is asked again
                regions = _with_centre(regions, int(i), ENDED)
        moving = np.setdiff1d(
            np.arange(self.regions) if state.first else regions.active,
            np.array(fresh, dtype=np.int64),
        )
        regions = aged(regions, world.front)
        regions = recentred(regions, moving, archive.U, world.front, world.contribution)
        waits = place == _WAITS
        return replace(
            state, regions=regions, restart_rows=rows, asked=state.asked[waits],
            owner=state.owner[waits], restart=state.restart[waits], seen=n,
            seen_failed=archive.n_failed, first=False,
        )  # fmt: skip

    def _improved(self, rows: Indices, state: _State, world: World) -> bool:
        """Whether rows raise the hypervolume of what was known before by more than 0.1 percent."""
        before = world.Z[: state.seen][world.feasible[: state.seen]]
        new = world.Z[rows[world.feasible[rows]]]
        if not len(new):
            return False
        known = hypervolume(before, world.reference)
        return hypervolume(np.vstack([before, new]), world.reference) > known * (
            1.0 + self.least_gain
        )

    def _restarts(
        self, state: _State, archive: Archive, world: World, q: int, rng: np.random.Generator
    ) -> tuple[Array, Indices]:
        """Step 6: new centres by random hypervolume scalarisations of a global Thompson sample.

        Scalarisation: max over candidates of min_j (z_j - f_j) / v_j, v a random positive unit
        vector. With no region at work the whole batch is drawn in this way.
        """
        ended = np.flatnonzero(state.regions.centre == ENDED)
        n = q if not len(state.regions.active) else min(len(ended), q)
        if not n:
            return np.empty((0, archive.d)), np.empty(0, dtype=np.int64)
        rows, m = state.restart_rows[-self.most :], archive.m
        whole = Box(np.zeros(archive.d), np.ones(archive.d))
        paths = self._paths(archive.U[rows], world.outputs[rows], whole, n, rng)
        C = sobol(self.candidates, archive.d, rng=rng)
        direction = np.abs(rng.standard_normal((n, m)))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        sample = paths(C)
        value = ((world.reference - sample[:, :, :m]) / direction).min(axis=2)
        violation = np.maximum(sample[:, :, m:], 0.0).sum(axis=2)
        # A feasible sample goes before every infeasible one.
        value = np.where(violation > 0, value.min() - violation, value)
        chosen = np.empty(n, dtype=np.int64)
        for i in range(n):
            chosen[i] = np.argmax(value[:, i])
            value[chosen[i]] = -np.inf
        whose = np.concatenate([ended[:n], np.full(max(0, n - len(ended)), -1, dtype=np.int64)])
        return C[chosen], whose

    def _samplers(
        self, state: _State, archive: Archive, world: World, n: int, rng: Streams
    ) -> list[Sampler]:
        """Step 3: local models with n sample functions each."""
        samplers = []
        p = min(20.0 / archive.d, 1.0) * decay(len(archive), state.n_start, self.budget)
        fewest = min(state.n_start if self.fewest is None else self.fewest, self.most)
        for i in state.regions.active if n else ():
            generator = rng(f"region-{i}")
            centre, length = archive.U[state.regions.centre[i]], float(state.regions.length[i])
            rows = training_rows(archive.U, centre, length, fewest, self.most)
            paths = self._paths(
                archive.U[rows], world.outputs[rows], box(centre, 2.0 * length), n, generator
            )
            parents = archive.U[world.front]
            parents = parents[inside(parents, centre, length)]
            parents = parents if len(parents) else centre[None]
            search = Search(
                parents, box(centre, length), self.candidates, p, self.share, generator
            )
            samplers.append(Sampler(int(i), centre, length, search, paths))
        return samplers

    def _paths(self, U: Array, Y: Array, region: Box, n: int, rng: np.random.Generator) -> Paths:
        gp = fit_local_gp(U, winsorised(Y, self.winsor), region, iterations=self.iterations)
        return gp.paths(n, features=self.features, rng=rng)


def winsorised(Y: Array, share: float) -> Array:
    """``Y`` (n, o) with the worst ``share`` of each column set to the worst value kept."""
    kept = len(Y) - int(share * len(Y))
    limit = np.sort(Y, axis=0)[kept - 1]
    return np.asarray(np.minimum(Y, limit))


@dataclass(frozen=True)
class _State:
    """What MORBO remembers: regions, points under way and whose they are, and where it stood."""

    regions: Regions
    asked: Array
    owner: Indices
    restart: Mask
    restart_rows: Indices
    seen: int
    seen_failed: int
    n_start: int
    first: bool

    def asking(self, U: Array, owner: Indices, n_restarts: int) -> _State:
        """This state with U under way, the first ``n_restarts`` of them as new centres."""
        regions = self.regions
        for i in owner[:n_restarts][owner[:n_restarts] >= 0]:
            regions = _with_centre(regions, int(i), ASKED)
        return replace(
            self,
            regions=regions,
            asked=np.concatenate([self.asked, U]),
            owner=np.concatenate([self.owner, owner]),
            restart=np.concatenate([self.restart, np.arange(len(U)) < n_restarts]),
        )

    @property
    def memory(self) -> Memory:
        """Named arrays for the next round."""
        r = self.regions
        return {
            "centre": r.centre, "length": r.length, "successes": r.successes,
            "failures": r.failures, "tabu": r.tabu, "tenure": r.tenure, "asked": self.asked,
            "owner": self.owner, "restart": self.restart, "restart_rows": self.restart_rows,
            "seen": np.array([self.seen, self.seen_failed, self.n_start]),
        }  # fmt: skip


def _state(archive: Archive, memory: Memory | None, spec: MORBO) -> _State:
    n = len(archive)
    if (
        memory is None
        or int(memory["seen"][0]) > n
        or int(memory["seen"][1]) > archive.n_failed
        or memory["asked"].shape[1] != archive.d
        or len(memory["centre"]) != spec.regions
    ):
        none = np.empty(0, dtype=np.int64)
        return _State(
            spec.growth.begun(spec.regions), np.empty((0, archive.d)), none,
            np.empty(0, dtype=np.bool_), np.arange(n), n, archive.n_failed, n, True,
        )  # fmt: skip
    regions = Regions(
        *(memory[name] for name in ("centre", "length", "successes", "failures", "tabu", "tenure"))
    )
    seen, seen_failed, n_start = (int(v) for v in memory["seen"])
    return _State(
        regions, memory["asked"], memory["owner"], memory["restart"], memory["restart_rows"],
        seen, seen_failed, n_start, False,
    )  # fmt: skip


_WAITS, _LOST = -1, -2


def _fates(state: _State, archive: Archive, pending: Array) -> Indices:
    """Where each asked point is now: an archive row, still pending, or failed and lost; (p,).

    Points are paired with the nearest places rather than looked up, because integer variables and
    the way through the user's units move them a little.
    """
    arrived, failed = archive.U[state.seen :], archive.failed[state.seen_failed :]
    places = np.concatenate([pending, arrived, failed])
    at = np.concatenate(
        [
            np.full(len(pending), _WAITS),
            np.arange(state.seen, len(archive)),
            np.full(len(failed), _LOST),
        ]
    )
    place = np.full(len(state.asked), _LOST)
    if len(places) and len(state.asked):
        rows, columns = linear_sum_assignment(cdist(state.asked, places))
        place[rows] = at[columns]
    return place


def _with_centre(regions: Regions, which: int, centre: int) -> Regions:
    row = regions.centre.copy()
    row[which] = centre
    return replace(regions, centre=row)


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - began
