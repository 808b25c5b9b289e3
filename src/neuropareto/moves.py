"""Moves that need to see inside a surrogate: descents, jumps along coordinate profiles, and slides.

Generators of candidates for models whose mean is, with a few modulating variables held, a sum
of one-dimensional curves (:class:`Profiled`); with any other model they offer nothing. Grids have a
random offset, so no place of the cube is favoured; its ends are reached only where a refinement
or a descent is clipped. Paper: section "Rank conditioned candidate generation" names no operators.
Constraints are outputs like any other, which descents keep on their feasible side (decision D-68).
Notation: U (b, d) points, W (b, m) directions of the simplex, H (b, d, g) profiles on a grid (g,).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from neuropareto.archive import Archive
from neuropareto.candidates import Candidates, Pool, joined
from neuropareto.classifier import RankBelief
from neuropareto.goals import Goals
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted


class Modulating(Protocol):
    """The modulating variables of one objective, strongest first."""

    @property
    def index(self) -> tuple[int, ...]:
        """Columns of the unit cube, (k,)."""
        ...

    @property
    def strength(self) -> Array:
        """How much each multiplies the others' effect, (k,)."""
        ...

    def placed(self, T: Array) -> Array:
        """Values (n, k) of these variables that are ``T`` (n, k) on their warped scales."""
        ...


@runtime_checkable
class Profiled(Fitted, Protocol):
    """A fitted surrogate that also shows its one-dimensional profiles and its modulators."""

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        """The curves (b, d, g) of sum_j weights_bj f_j along each variable around each point."""
        ...

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """The mean (b, m) and its gradient (b, m, d)."""
        ...

    @property
    def modulators(self) -> tuple[Modulating, ...]:
        """The modulating variables of each objective."""
        ...

    @property
    def signal(self) -> Array:
        """The evidence against pure noise, in nats for each row and objective, (m,)."""
        ...


@runtime_checkable
class Wrapping(Protocol):
    """A fitted surrogate around another one, such as a rung of the ladder."""

    @property
    def model(self) -> Fitted:
        """The surrogate inside."""
        ...


def profiled(model: Fitted) -> Profiled | None:
    """The :class:`Profiled` surrogate in ``model``, or None if there is none."""
    while isinstance(model, Wrapping) and not isinstance(model, Profiled):
        model = model.model
    return model if isinstance(model, Profiled) else None


# A descent back to the feasible side may have to leave the valley that a jump has chosen.
_REPAIR = 0.02
# Below this evidence, nats for each row, a model may have fitted noise.
LEAST_SIGNAL = 0.25


@dataclass(frozen=True, eq=False)
class Launch:
    """Where b descents begin: ``U`` (b, d), from evaluated points ``origin`` (b, d), under ``goals``.

    Each takes ``steps`` projected Adam steps with a ``rate`` that falls to nearly zero.
    """

    origin: Array
    U: Array
    goals: Goals
    steps: int
    rate: float
    operator: str


class Launcher(Protocol):
    """What gives descents their start."""

    def launch(self, archive: Archive, model: Profiled, *, rng: np.random.Generator) -> Launch:
        """Points to descend from, given at least four evaluations."""
        ...


@dataclass(frozen=True)
class Descents:
    """Descents along the surrogate's gradient from all launchers' points, in one batch.

    Moves that promise less than the noise are dropped. With constraints a second, shorter descent
    follows, whose margin is as wide as the model is unsure about them where the first one ended.
    """

    launchers: tuple[Launcher, ...]

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """The ends of all paths; nothing for fewer than four evaluations or a plain model."""
        inside = profiled(model)
        if len(archive) < 4 or inside is None:
            return Pool(np.empty((0, archive.d)), np.empty(0, dtype=np.str_))
        streams = rng.spawn(len(self.launchers))
        launches = [
            launcher.launch(archive, inside, rng=stream)
            for launcher, stream in zip(self.launchers, streams, strict=True)
        ]
        U = np.concatenate([one.U for one in launches])
        goals = Goals.joined([one.goals for one in launches])
        size = [len(one.U) for one in launches]
        steps = np.repeat([one.steps for one in launches], size)
        rate = np.repeat([one.rate for one in launches], size)
        operator = np.repeat([one.operator for one in launches], size)
        U = descended(U, goals, inside, steps, rate)
        if archive.c:
            goals = _cautious(U, goals, inside, rng)
            U = descended(U, goals, inside, steps // 2, np.maximum(rate, _REPAIR))
        kept = _promising(np.concatenate([one.origin for one in launches]), U, goals, inside)
        return Pool(U[kept], operator[kept])


@dataclass(frozen=True)
class ProfileJumps:
    """Every variable jumps to the lowest place of its own profile; then a short descent.

    From the best evaluated point under each goal: the profiles of the weighted objectives on a grid
    of ``grid`` places with a random offset, the lowest place of each refined by a parabola; ``times``
    times. This is what makes a multimodal model searchable: a descent stays in its valley. Half of
    the points keep their strong modulators, which decide where on the front a point lies.
    Constraints that bind at the start have a price of their own in each sum: see :func:`_prices`.
    """

    starts: int = 40
    grid: int = 300
    times: int = 2
    steps: int = 60
    rate: float = 0.005

    def launch(self, archive: Archive, model: Profiled, *, rng: np.random.Generator) -> Launch:
        """``starts`` points after their jumps."""
        goals = Goals.of(archive, self.starts, rng=rng)
        rows = goals.nearest(archive.outputs)
        origin = archive.U[rows]
        held = _held(model, archive.m, origin.shape, rng)
        places = (np.arange(self.grid) + rng.random()) / self.grid
        prices = _prices(archive.G[rows] / goals.scale, rng) / goals.scale
        weights = np.concatenate([1.0 / (goals.W * goals.extent), prices], axis=1)
        U = origin
        for _ in range(self.times):
            H = model.profiles(U, weights, places)
            U = np.where(held, U, refined(H, places))
        return Launch(origin, U, goals, self.steps, self.rate, "jump")


@dataclass(frozen=True)
class GradientMoves:
    """From the best evaluated point under each goal, moved a little by ``jitter``."""

    starts: int = 40
    steps: int = 80
    rate: float = 0.03
    jitter: float = 0.02

    def launch(self, archive: Archive, model: Profiled, *, rng: np.random.Generator) -> Launch:
        """``starts`` points beside evaluated ones."""
        goals = Goals.of(archive, self.starts, rng=rng)
        origin = archive.U[goals.nearest(archive.outputs)]
        U = np.clip(origin + self.jitter * rng.standard_normal(origin.shape), 0.0, 1.0)
        return Launch(origin, U, goals, self.steps, self.rate, "gradient")


@dataclass(frozen=True)
class Slides:
    """The pool of ``source``, and copies of good points with their modulators drawn anew.

    Modulators decide where along the front a point lies, so this spreads what the other moves
    found. Of each objective the ``top`` strongest, if they are strong; each changes with probability
    0.6 (1 if it is the only one): uniformly, uniformly on its warped scale, or by a small step.
    """

    source: Candidates
    size: int = 1500
    top: int = 2

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """The source's pool first; no copies for a plain model or one without modulators."""
        pool = self.source.generate(archive, belief, model, rng=rng)
        inside = profiled(model)
        if inside is None or not len(archive):
            return pool
        sets = [m for m in inside.modulators[: archive.m] if len(m.index)]
        parents = np.concatenate([pool.U, archive.U[archive.front_indices]])
        if not sets or not len(parents):
            return pool
        U = parents[rng.integers(len(parents), size=self.size)]
        columns = sorted({j for m in sets for j in _strong(m)[: self.top]})
        for j in columns:
            owners = [m for m in sets if j in m.index]
            owner = owners[int(rng.integers(len(owners)))]
            new = _drawn_anew(U[:, j], owner, owner.index.index(j), rng)
            change = rng.random(self.size) < (1.0 if len(columns) == 1 else 0.6)
            U[:, j] = np.where(change, new, U[:, j])
        return joined([pool, Pool(U, np.full(len(U), "slide"))])


def refined(H: Array, places: Array) -> Array:
    """The place of the lowest value of each profile (b, d, g), refined by a parabola, (b, d).

    The parabola goes through the lowest place and its neighbours (at an end of the grid: the three
    last). Where it has no minimum near, the lowest place stays, or, at an end, the move goes on
    downhill until the box clips it.
    """
    last = len(places) - 1
    lowest = H.argmin(axis=2)
    middle = np.clip(lowest, 1, last - 1)
    left, centre, right = (
        np.take_along_axis(H, (middle + o)[..., None], axis=2)[..., 0] for o in (-1, 0, 1)
    )
    step = places[1] - places[0]
    slope, bend = (right - left) / 2.0, left + right - 2.0 * centre
    curved = bend > 1e-12 * (np.abs(left) + np.abs(right) + np.abs(centre) + 1e-300)
    newton = places[middle] - step * slope / np.where(curved, bend, 1.0)
    at_end = lowest != middle
    reach = np.where(at_end, 3.0, 1.0) * step
    near = curved & (np.abs(newton - places[middle]) <= reach)
    outward = np.where(lowest == 0, -np.inf, np.inf)
    otherwise = np.where(at_end, outward, places[lowest])
    return np.asarray(np.clip(np.where(near, newton, otherwise), 0.0, 1.0))


def descended(
    U: Array, goals: Goals, model: Profiled, steps: npt.NDArray[np.int64], rate: Array
) -> Array:
    """The best point on the path of projected Adam from each row of U under its goal, (b, d).

    Row i takes ``steps[i]`` steps, which begin at ``rate[i]``; finished rows are not asked again.
    """
    here, best, reached = U.copy(), U.copy(), np.full(len(U), np.inf)
    momentum, size = np.zeros_like(U), np.zeros_like(U)
    for t in range(1, int(steps.max(initial=0)) + 2):
        on = steps + 1 >= t  # one more question than steps: the last place counts too
        part = goals.part(on)
        F, G = model.mean_and_gradient(here[on])
        values = part.values(F)
        better = np.flatnonzero(on)[values < reached[on]]
        best[better], reached[on] = here[better], np.minimum(values, reached[on])
        m = part.W.shape[1]
        slope = _unit(np.einsum("bm,bmd->bd", part.slopes(F), G[:, :m]))
        if F.shape[1] > m:  # what does not hold pulls twice as hard as the goal
            broken = (part.excess(F) > 0) / part.scale
            slope = _unit(slope + 2.0 * _unit(np.einsum("bc,bcd->bd", broken, G[:, m:])))
        momentum[on] = 0.9 * momentum[on] + 0.1 * slope
        size[on] = 0.999 * size[on] + 0.001 * slope**2
        step = (momentum[on] / (1 - 0.9**t)) / (np.sqrt(size[on] / (1 - 0.999**t)) + 1e-8)
        share = (t - 1) / np.maximum(steps[on], 1)
        pace = rate[on] * (0.5 * (1.0 + np.cos(np.pi * share)) + 0.02)
        here[on] = np.clip(here[on] - pace[:, None] * step, 0.0, 1.0)
    return best


def _unit(slope: Array) -> Array:
    """Each row over its largest magnitude; rows of zeros stay."""
    norm = np.abs(slope).max(axis=1, keepdims=True)
    return np.asarray(slope / np.where(norm > 0, norm, 1.0))


def _cautious(U: Array, goals: Goals, model: Profiled, rng: np.random.Generator) -> Goals:
    """The goals with margins of 0 to 2 standard deviations of each constraint at U (b, d)."""
    spread = np.sqrt(model.posterior(U).variance[:, goals.W.shape[1] :])
    return replace(goals, margin=rng.uniform(0.0, 2.0, size=(len(U), 1)) * spread / goals.scale)


def _prices(G: Array, rng: np.random.Generator) -> Array:
    """What constraints with scaled values G (b, c) at the start cost in a weighted sum, (b, c).

    Multipliers of a Lagrangian are not known, so those that bind or nearly do get random ones over
    two decades, each row its own; the others are free.
    """
    price = np.exp(rng.uniform(np.log(0.1), np.log(10.0), size=G.shape))
    return np.asarray(np.where(G > -0.25, price, 0.0))


def _promising(start: Array, U: Array, goals: Goals, model: Profiled) -> npt.NDArray[np.bool_]:
    """Whether a move is backed by signal and promises more than one evaluation's noise, (b,).

    The binding objective, or a constraint that did not hold, must be known better than pure noise
    would be. Without this, a model of noise would send every variable to the end of a meaningless
    slope.
    """
    here, there = model.posterior(start), model.posterior(U)
    slopes = goals.slopes(there.mean)
    m = slopes.shape[1]
    noise = (slopes * np.sqrt(there.aleatoric[:, :m])).sum(axis=1)
    gain = goals.values(here.mean) - goals.values(there.mean)
    known = model.signal[:m][slopes.argmax(axis=1)] >= LEAST_SIGNAL
    known |= (goals.excess(here.mean) * (model.signal[m:] >= LEAST_SIGNAL) > 0).any(axis=1)
    return np.asarray(known & (gain > noise))


def _held(
    model: Profiled, m: int, shape: tuple[int, ...], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Which variables of which points do not jump: strong modulators, in half of the points."""
    held = np.zeros(shape, dtype=np.bool_)
    rows = rng.random(shape[0]) < 0.5
    for modulators in model.modulators[:m]:
        for j in _strong(modulators):
            held[rows, j] = True
    return held


def _strong(modulators: Modulating) -> list[int]:
    """The modulators with at least a tenth of the strength of the strongest."""
    least = 0.1 * modulators.strength.max(initial=0.0)
    pairs = zip(modulators.index, modulators.strength, strict=True)
    return [j for j, strength in pairs if strength >= least]


def _drawn_anew(x: Array, owner: Modulating, k: int, rng: np.random.Generator) -> Array:
    """New values for one modulator: uniform (20 %), uniform when warped (30 %), near (50 %)."""
    n = len(x)
    warped = owner.placed(np.repeat(rng.random((n, 1)), len(owner.index), axis=1))[:, k]
    kind = rng.random(n)
    width = np.where(kind < 0.8, 0.05, 0.005)
    near = np.clip(x + width * rng.standard_normal(n), 0.0, 1.0)
    return np.asarray(np.where(kind < 0.2, rng.random(n), np.where(kind < 0.5, warped, near)))
