"""Choosing MORBO's batch: one Thompson sample a point, hypervolume shared by all trust regions.

Step 4 of the authors' loop (Daulton, Eriksson, Balandat, Bakshy, UAI 2022, Sec. 3). Each place of
the batch goes to the candidate, over all regions, whose sampled value adds most hypervolume to the
front and to the sampled values of the points chosen before it in the same region.
Notation: n evaluations, m objectives, o outputs (objectives, then constraints), k front points, r
candidates a region, q places. Objectives are standardised over the archive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.archive import Archive, Indices
from neuropareto.hypervolume import contributions, improvement
from neuropareto.peers.local_gp import Box, Paths
from neuropareto.peers.trust_regions import Mask, inside, perturbed
from neuropareto.randomness import Streams
from neuropareto.space import Array

BY_VIOLATION, BY_WEIGHTS, BY_HYPERVOLUME = 1, 2, 3


@dataclass(frozen=True)
class World:
    """Step 1: standardised objectives (n, m) and outputs (n, o), front rows, contributions (k,)."""

    Z: Array
    outputs: Array
    feasible: Mask
    front: Indices
    contribution: Array
    reference: Array

    @property
    def known(self) -> Array:
        """Objectives of the feasible front, (k, m)."""
        return np.asarray(self.Z[self.front[self.feasible[self.front]]])


def world_of(archive: Archive) -> World:
    """What all regions share: the archive in standard units, its front and what each point adds."""
    F, scale = archive.F, _spread(archive.F)
    middle = F.mean(axis=0)
    Z = (F - middle) / scale
    reference = (archive.reference_point - middle) / scale
    front = archive.front_indices
    if len(front):
        contribution = contributions(Z[front], reference)
    else:  # nothing feasible: the least violating points stand in for a front
        front = np.argsort(archive.violation, kind="stable")[:20]
        contribution = -archive.violation[front]
    outputs = np.hstack([Z, archive.G / _spread(archive.G)])
    return World(Z, outputs, archive.violation == 0, front, contribution, reference)


def _spread(Y: Array) -> Array:
    spread = Y.std(axis=0)
    return np.where(spread > 1e-12 * np.abs(Y).max(axis=0, initial=0.0), spread, 1.0)


@dataclass(frozen=True)
class Search:
    """Where a region looks: perturbed front points, r anew for every ``share`` points."""

    parents: Array
    region: Box
    n: int
    probability: float
    share: int
    rng: np.random.Generator

    def candidates(self) -> Array:
        """r fresh candidates, (r, d)."""
        return perturbed(self.parents, self.region, self.n, self.probability, rng=self.rng)


class Sampler:
    """One region while a batch is chosen: its sample functions, candidates and chosen points."""

    def __init__(
        self, region: int, centre: Array, length: float, search: Search, paths: Paths
    ) -> None:
        self.region, self._centre, self._length = region, centre, length
        self._search, self._paths = search, paths
        self._taken: list[Array] = []  # sampled values (q, o) of chosen points inside the region
        self._C, self._values = np.empty(0), np.empty(0)

    def note(self, points: Array) -> None:
        """Remember chosen points: their values count from now on, and none is chosen twice."""
        near = points[inside(points, self._centre, self._length)]
        if len(near):
            self._taken.extend(self._paths(near))
        for point in near if len(self._C) else ():
            self._values[(point == self._C).all(axis=1)] = np.inf

    def best(self, slot: int, world: World, rng: np.random.Generator) -> Offer:
        """The best candidate under sample function ``slot``.

        By hypervolume improvement; where nothing improves, by a random linear scalarisation; where
        nothing is feasible, by violation.
        """
        m, share = len(world.reference), self._search.share
        if slot % share == 0:
            self._C = self._search.candidates()
            self._values = self._paths.some(slice(slot, slot + share))(self._C)
        C, Y = self._C, self._values[:, slot % share]
        violation = np.maximum(Y[:, m:], 0.0).sum(axis=1)
        rows = np.flatnonzero((violation == 0) & np.isfinite(Y[:, 0]))
        if not len(rows):
            at = int(np.argmin(violation))
            return Offer(BY_VIOLATION, -float(violation[at]), C[at])
        taken = np.array([values[slot] for values in self._taken]).reshape(-1, Y.shape[1])
        taken = taken[(taken[:, m:] <= 0).all(axis=1), :m]
        score = improvement(Y[rows, :m], np.vstack([world.known, taken]), world.reference)
        rule = BY_HYPERVOLUME
        if score.max() <= 0:
            rule, score = BY_WEIGHTS, -Y[rows, :m] @ rng.dirichlet(np.ones(m))
        at = int(np.argmax(score))
        return Offer(rule, float(score[at]), C[rows[at]])


@dataclass(frozen=True)
class Offer:
    """A region's candidate for one place of the batch; a higher rule goes before any score."""

    rule: int
    score: float
    point: Array


def greedy(
    samplers: list[Sampler], world: World, waiting: Array, n: int, rng: Streams
) -> tuple[Array, Indices, Indices]:
    """Step 4: n points one after the other, each the best over all regions under a new sample."""
    generator, d = rng("selection"), waiting.shape[1]
    for sampler in samplers:
        sampler.note(waiting)
    chosen, owner, rules = np.empty((n, d)), np.empty(n, np.int64), np.empty(n, np.int64)
    for slot in range(n):
        offers = [sampler.best(slot, world, generator) for sampler in samplers]
        winner = max(range(len(offers)), key=lambda i: (offers[i].rule, offers[i].score))
        chosen[slot], rules[slot] = offers[winner].point, offers[winner].rule
        owner[slot] = samplers[winner].region
        for sampler in samplers:
            sampler.note(chosen[slot : slot + 1])
    return chosen, owner, rules
