"""EGBO: evolution-guided Bayesian optimisation.

Low, Mekki-Berrada, Gupta, Ostudin, Xie, Vissol-Gaudin, Lim, Li, Ong, Khan, Hippalgaonkar (npj
Computational Materials 10, 2024). Two sources of candidates: q points that maximise the noisy
expected hypervolume improvement (qNEHVI) jointly by gradients, and one brood of U-NSGA-III bred
from the evaluated points. All are scored one by one by the same criterion; the best q are
evaluated. By default qNEHVI in logarithm (Ament et al. 2023). Constraints are modelled and bred for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import (
    qLogNoisyExpectedHypervolumeImprovement as Gain,
)
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from pymoo.algorithms.moo.unsga3 import UNSGA3
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.util.ref_dirs import get_reference_directions
from torch import Tensor

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.peers.compilation import guarded
from neuropareto.peers.models import (
    Criterion,
    GPs,
    front_rows,
    held_reference,
    independent_gps,
    limits,
    maximised,
    repeatable,
    several,
    start_points,
)
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class EGBO:
    """EGBO: ``brood`` children a round, ``samples`` draws, ``starts`` and steps of the gradients.

    ``joint`` points are optimised together (the cost is 2^joint); the next group counts the earlier
    ones as pending. The published code has joint = batch.
    """

    batch: int = 8
    brood: int = 256
    samples: int = 64
    starts: int = 256
    iterations: int = 100
    joint: int = 4
    fit_iterations: int = 75

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """The q best of the gradients' points and the brood, by qLogNEHVI of each alone."""
        several(archive, "EGBO")
        draws = rng("egbo")
        if len(archive) < 4:
            return Proposal(np.asarray(draws.random((q, archive.d)), dtype=np.float64))
        began = time.perf_counter()
        gps = independent_gps(archive.U, archive.outputs, iterations=self.fit_iterations)
        gps = gps.warned(archive.failed)
        reference = held_reference(archive, memory)
        fitted = time.perf_counter()
        with repeatable(rng("egbo-torch")):
            gain = self._gain(gps, archive, gps.scaled(reference), draws)
            refined = self._refined(gain, archive, q, pending, draws)
            searched = time.perf_counter()
            children = offspring(
                archive, max(self.brood, 2 * q), self.batch, rng=rng("egbo-brood")
            )
            bred = time.perf_counter()
            pool = fresh(
                np.concatenate([refined, children]),
                np.concatenate([archive.U, pending, archive.failed]),
            )
            _count(gain, pending)
            score = _scores(gain, pool)
        short = max(0, q - len(pool))  # copies left too few: the rest is random
        best = np.argsort(-score, kind="stable")[:q]
        U = np.concatenate([pool[best], draws.random((short, archive.d))])
        seconds = {
            "surrogate": fitted - began,
            "gradients": searched - fitted,
            "candidates": bred - searched,
            "selection": time.perf_counter() - bred,
        }
        by_gradient = (pool[best][:, None, :] == refined[None]).all(axis=2).any(axis=1)
        notes = {"stage_seconds": seconds, "from_gradients": int(by_gradient.sum())}
        return Proposal(U, memory={"reference": reference}, notes=notes)

    def _refined(
        self, gain: Gain, archive: Archive, q: int, pending: Array, rng: np.random.Generator
    ) -> Array:
        """q points that maximise the criterion by gradients, in joint groups, (q, d)."""
        found = np.empty((0, archive.d))
        near = archive.U[archive.front_indices]
        while len(found) < q:
            size = min(self.joint, q - len(found))
            starts = start_points(near, self.starts * size, rng=rng)
            starts = rng.permutation(starts).reshape(self.starts, size, archive.d)
            _count(gain, np.concatenate([pending, found]))
            best, _ = maximised(gain, starts, restarts=1, iterations=self.iterations)
            found = np.concatenate([found, best])
        return found

    def _gain(
        self, gps: GPs, archive: Archive, reference: Tensor, rng: np.random.Generator
    ) -> Gain:
        """qLogNEHVI over the evaluated points; above three objectives over part of their front."""
        rows = front_rows(archive) if archive.m > 3 else np.arange(len(archive))
        baseline = archive.U[rows if len(rows) else slice(None)]
        with guarded():
            return Gain(
                model=gps.model,
                ref_point=reference,
                X_baseline=torch.tensor(np.array(baseline)),
                sampler=SobolQMCNormalSampler(
                    torch.Size([self.samples]), seed=int(rng.integers(2**31))
                ),
                objective=IdentityMCMultiOutputObjective(outcomes=list(range(archive.m))),
                constraints=limits(gps, archive.m),
                prune_baseline=True,
            )


def offspring(archive: Archive, n: int, directions: int, *, rng: np.random.Generator) -> Array:
    """n children of the evaluated points by one generation of U-NSGA-III, (n, d) or fewer.

    Niching tournament over reference directions, SBX (eta 30, every pair), polynomial mutation
    (eta 20); feasible points win over infeasible ones.
    """
    d, m, c = archive.d, archive.m, archive.c
    box = Problem(n_var=d, n_obj=m, n_ieq_constr=c, xl=np.zeros(d), xu=np.ones(d))
    evolution = UNSGA3(reference_directions(m, directions).copy(), pop_size=n)
    evolution.setup(box, seed=int(rng.integers(2**31)), verbose=False)
    parents = Population.new(X=np.array(archive.U), F=np.array(archive.F), G=np.array(archive.G))
    for parent in parents:
        parent.evaluated = {"F", "G", "H"}
    evolution.tell(infills=parents)
    return np.clip(np.asarray(evolution.ask().get("X"), dtype=np.float64), 0.0, 1.0)


@lru_cache(maxsize=32)
def reference_directions(m: int, n: int) -> Array:
    """n directions (n, m) spread by Riesz energy; at least m, so that every objective has one."""
    found = np.asarray(get_reference_directions("energy", m, max(n, m), seed=1), dtype=np.float64)
    found.setflags(write=False)
    return found


def fresh(U: Array, known: Array) -> Array:
    """Rows of ``U`` that repeat neither each other nor a known point, in order."""
    together = np.concatenate([known, U])
    _, first = np.unique(together, axis=0, return_index=True)
    return np.asarray(together[np.sort(first[first >= len(known)])])


def _count(gain: Gain, waiting: Array) -> None:
    """Let the criterion count ``waiting`` points (p, d) as arrived; none where p = 0."""
    gain.set_X_pending(torch.tensor(waiting) if len(waiting) else None)


def _scores(criterion: Criterion, U: Array) -> Array:
    """The criterion of each row alone, (n,)."""
    with torch.no_grad():
        value = criterion(torch.tensor(U)[:, None, :])
    return np.asarray(np.nan_to_num(value.numpy(), nan=-np.inf), dtype=np.float64)
