"""Retreat: where the model has no grip on a problem, small steps around one good point instead.

A landscape with more hills than a few hundred points can show (a Rastrigin function that has been
rotated) is noise to every model of the whole box, and a search that follows the model finds nothing.
Close to any one point it is smooth. Once a few dozen proposals have brought next to nothing of what
was promised for them, most of what follows stays in a small box around the best compromise so far,
the trust region: a plain Gaussian process of the points near it leads the steps, and the box grows
while they succeed. Ours, decision D-72; the paper's search always believes its model.
Notation: n evaluations, m objectives, c constraints, d variables; V the points as seen from the
trust region, where it is the unit cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from neuropareto import pareto
from neuropareto.acquisition import History
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.goals import Goals
from neuropareto.memory import Memory, joined, part
from neuropareto.past import Past
from neuropareto.randomness import Streams
from neuropareto.screening import margin
from neuropareto.space import Array
from neuropareto.stages import foretold
from neuropareto.surrogate import ExactGP
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.exact_gp import FittedExactGP


class Retreat(Protocol):
    """What a round does where the model has failed."""

    def proposal(
        self,
        past: Past,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal | None:
        """A proposal in place of the round's own, or None: the model goes on."""
        ...


@dataclass(frozen=True)
class Steadfast:
    """No retreat."""

    def proposal(
        self,
        past: Past,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal | None:
        """None."""
        return None


@dataclass(frozen=True)
class TrustRegion:
    """Local steps once the model's proposals have failed: see :meth:`lost`.

    The box reaches ``radius`` (of the unit cube) to each side of its centre; it grows by ``grown``
    if the last ``steps`` brought ``success`` of the hypervolume, else it shrinks by ``shrunk``. Its GP
    sees at most ``points`` evaluations within three boxes; with fewer than ``least`` the steps are
    random. After ``patience`` times ``steps`` of them the model tries ``steps`` proposals again. What
    is noted of the GP's forecasts is corrected by its earlier ones, see :func:`inflation`; the choice
    of steps is not.
    """

    surrogate: ExactGP = ExactGP()
    evidence: int = 30
    little: float = 0.05
    kept: float = 0.2
    patience: int = 4
    radius: float = 0.015
    grown: float = 1.5
    shrunk: float = 0.6
    steps: int = 10
    success: float = 0.003
    least: int = 12
    points: int = 100

    def proposal(
        self,
        past: Past,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal | None:
        """q points of the trust region, if the model is lost and this round is not its own."""
        if not self.lost(past, archive) or self.models_turn(past, archive):
            return None
        own = part(memory, "retreat") or {}
        radius, seen = self._radius(own, archive)
        low, high = box(centre(archive), radius)
        V = (archive.U - low) / (high - low)
        near = self._near(V)
        modelled = len(near) >= self.least
        forecasts = History.recalled(own, archive.d, 2 * archive.m)
        forecasts = forecasts.settled(np.concatenate([archive.U, pending, archive.failed]))
        said: dict[str, Any] = {}
        if modelled:
            local = Archive.of(V[near], archive.F[near], archive.G[near])
            model = self.surrogate.fit(local.U, local.outputs, warm=None, rng=rng("retreat-model"))
            waiting = model.posterior((pending - low) / (high - low)).mean[:, : archive.m]
            front = np.concatenate([archive.front, waiting])
            steps = chosen(model, local, archive, front, q, rng=rng("retreat"))
            expected = model.posterior(steps)
            said = foretold(expected, archive.m, inflation(forecasts, archive))
            U = low + steps * (high - low)
            forecasts = extended(forecasts, U, expected)
        else:
            U = low + rng("retreat").random((q, archive.d)) * (high - low)
        kept = {
            **forecasts.memory,
            "radius": np.array(radius), "seen": np.array(seen),
            "modelled": np.array(modelled), "proposed": np.array(past.elsewhere + q),
        }  # fmt: skip
        notes = {"retreat": {"radius": radius, "near": len(near)}, **said}
        return Proposal(U, {**(memory or {}), **joined({"retreat": kept})}, notes)

    def lost(self, past: Past, archive: Archive) -> bool:
        """Whether the model's proposals earn nothing, in the box of all that was evaluated.

        ``evidence`` of them must be known, and all together must have brought less than a share
        ``little`` of the hypervolume that the rest of the archive has, and less than a share ``kept``
        of what the model's means had promised: where a front is complete, little is promised. The
        retreat ends when they have brought that share, and more for each than the local steps; it
        goes on when the last of them were :meth:`in_vain`.
        """
        rows, places = past.history.matched(archive.U)
        if len(rows) < self.evidence or not len(archive.front_indices):
            return False
        promises = past.history.features[rows, : archive.m]
        feasible = archive.violation == 0
        rest = feasible.copy()
        rest[places] = False
        worst = archive.F.max(axis=0)
        had = pareto.hypervolume(archive.F[rest], worst)
        gained = pareto.hypervolume(archive.F[feasible], worst) - had
        if past.elsewhere:
            little = bool(gained < self.little * had) or _steps_earn_more(places, archive)
            return little or self.in_vain(promises, places, archive)
        if gained >= self.little * had:
            return False
        promised = np.concatenate([archive.F[rest], promises])
        return bool(gained < self.kept * (pareto.hypervolume(promised, worst) - had))

    def in_vain(self, promises: Array, places: Indices, archive: Archive) -> bool:
        """Whether, of the last ``evidence``, each ten promised a share ``little`` and brought nothing.

        ``promises`` (b, m) were made for the evaluations at ``places`` (b,), in their order. Each ten
        (``steps``) is held against what came before it; nothing is less than ``kept`` of ``little``.
        """
        worst, feasible = archive.F.max(axis=0), archive.violation == 0
        for i in range(max(1, self.evidence // self.steps)):
            last = len(places) - i * self.steps
            rows = slice(max(0, last - self.steps), last)
            ten = places[rows]
            before = archive.F[: ten[0]][feasible[: ten[0]]]
            had, promised, has = (
                pareto.hypervolume(np.concatenate([before, F]), worst)
                for F in (before[:0], promises[rows], archive.F[ten][feasible[ten]])
            )
            if promised - had <= self.little * had or has - had >= self.kept * self.little * had:
                return False
        return True

    def models_turn(self, past: Past, archive: Archive) -> bool:
        """Whether enough local steps have come since the last of the model's proposals."""
        _, places = past.history.matched(archive.U)
        proposals = places[-self.steps :]
        since = len(archive) - proposals.min(initial=len(archive))
        return bool(since - len(proposals) >= self.patience * self.steps)

    def _radius(self, own: Memory, archive: Archive) -> tuple[float, int]:
        """The first radius, or the last one grown or shrunk by what came since; and since when."""
        n = len(archive)
        if "radius" not in own:
            return self.radius, n
        radius, seen = float(own["radius"]), int(own["seen"])
        if not own["modelled"]:
            return radius, n
        if n - seen < self.steps:
            return radius, seen
        feasible, worst = archive.violation == 0, archive.F.max(axis=0)
        before = pareto.hypervolume(archive.F[:seen][feasible[:seen]], worst)
        now = pareto.hypervolume(archive.F[feasible], worst)
        factor = self.grown if now > (1.0 + self.success) * before else self.shrunk
        return float(np.clip(radius * factor, 1e-4, 0.5)), n

    def _near(self, V: Array) -> Indices:
        """The nearest ``points`` rows of V within three boxes."""
        distance = np.abs(V - 0.5).max(axis=1)
        order = np.argsort(distance, kind="stable")[: self.points]
        return np.asarray(order[distance[order] <= 3.0])


def _steps_earn_more(places: Indices, archive: Archive) -> bool:
    """Whether what came between the model's proposals, at ``places``, gained more than they, each."""
    first = int(places.min())
    gains = archive.gains(len(archive) - first, archive.F.max(axis=0)).hypervolume
    own = np.zeros(len(gains), dtype=np.bool_)
    own[places - first] = True
    return bool(not own.all() and gains[~own].mean() > gains[own].mean())


def centre(archive: Archive) -> Array:
    """The front's best compromise (d,): the smallest worst loss, in the box of all evaluations."""
    best, worst = archive.F.min(axis=0), archive.F.max(axis=0)
    N = (archive.front - best) / np.where(worst > best, worst - best, 1.0)
    balanced = np.argmin(N.max(axis=1) + 0.05 * N.sum(axis=1))
    return np.asarray(archive.U[archive.front_indices[balanced]])


def extended(forecasts: History, U: Array, expected: Posterior) -> History:
    """The forecasts of all local steps with those for the new ones, (b, 2 m): mean and variance."""
    m = forecasts.features.shape[1] // 2
    features = np.concatenate([expected.mean[:, :m], expected.variance[:, :m]], axis=1)
    return forecasts.extended(U, features, np.zeros(len(U)))


def inflation(forecasts: History, archive: Archive) -> float:
    """By how much the variances of earlier local forecasts were too small; at least 1.

    The mean square of their z-scores, of all objectives, with ten more of size one; at most 25.
    """
    rows, places = forecasts.matched(archive.U)
    mean, variance = np.split(forecasts.features[rows], 2, axis=1)
    tiny = np.finfo(np.float64).tiny
    squares = np.square(archive.F[places] - mean) / np.maximum(variance, tiny)
    return float(np.clip((squares.sum() + 10.0) / (squares.size + 10.0), 1.0, 25.0))


def box(point: Array, radius: float) -> tuple[Array, Array]:
    """The ends (d,), (d,) of the trust region within the unit cube."""
    return np.maximum(point - radius, 0.0), np.minimum(point + radius, 1.0)


def chosen(
    model: FittedExactGP,
    local: Archive,
    archive: Archive,
    front: Array,
    q: int,
    *,
    rng: np.random.Generator,
) -> Array:
    """q different points (q, d) of the trust region: by the mean and by draws, in turn over rounds.

    Each has the largest hypervolume gain over ``front`` (k, m) and the points before it, if its
    constraints hold; where nothing gains, the smallest :func:`neuropareto.screening.margin`.
    """
    V = np.concatenate([descents(model, local, rng=rng), rng.random((max(300, q), local.d))])
    mean, draws = model.posterior(V).mean, model.samples(V, q, rng=rng)
    m, worst = archive.m, archive.F.max(axis=0)
    free = np.ones(len(V), dtype=np.bool_)
    rows: list[int] = []
    for i in range(q):
        belief = draws[i] if (len(archive) + i) % 2 else mean
        gain = pareto.improvement(belief[:, :m], front, worst) * (belief[:, m:] <= 0).all(axis=1)
        score = gain if gain[free].max() > 0 else -margin(belief[:, :m], archive)
        rows.append(int(np.argmax(np.where(free, score, -np.inf))))
        free[rows[-1]] = False
        front = np.concatenate([front, mean[rows[-1:], :m]])
    return V[rows]


def descents(
    model: FittedExactGP, local: Archive, *, rng: np.random.Generator, starts: int = 60
) -> Array:
    """Points on the way down the mean, (n, d): each start follows a goal of its own."""
    goals = Goals.of(local, starts, rng=rng)
    V = np.clip(local.U[goals.nearest(local.outputs)], 0.0, 1.0)
    paths = []
    for step in range(40):
        F, slopes = model.mean_and_gradient(V)
        downhill = np.einsum("bm,bmd->bd", goals.slopes(F), slopes[:, : local.m])
        size = np.abs(downhill).max(axis=1, keepdims=True)
        V = np.clip(V - 0.05 * downhill / np.where(size > 0, size, 1.0), 0.0, 1.0)
        if step % 10 == 9:
            paths.append(V)
    return np.concatenate(paths)
