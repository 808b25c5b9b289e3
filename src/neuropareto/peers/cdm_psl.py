"""CDM-PSL (Li, Di, Lu, Qian, Wang, Yang, Tang, Zhou 2025): a diffusion model of the Pareto set.

The best evaluated points train a small diffusion model; new points are drawn from it freely and
with guidance down the gradients of Gaussian-process confidence bounds, weighted by information
entropy; a batch is picked greedily by hypervolume. If progress stalls, SBX takes turns with it.
Source: arXiv 2405.08674 and its official code, with that code's slips repaired (docs/peers.md).
Notation: ``U`` (n, d) archive, ``Z`` (n, m) standardised objectives, LCB = mu - kappa sigma.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory, joined, part
from neuropareto.peers.diffusion import Schedule, sampled, trained, unguided
from neuropareto.peers.dominance_network import dominance_order, relations
from neuropareto.peers.lcb import Bounds, fitted
from neuropareto.peers.operators import platemo_sbx
from neuropareto.peers.spea2 import selected
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.variation import polynomial_mutation

_FEWEST = 4  # below this there are no two points to learn from
_APART = 1e-8  # a candidate this near to a known point repeats it


@dataclass(frozen=True)
class CDMPSL:
    """CDM-PSL with its published settings, but 1000 free and 300 guided samples a round."""

    batch: int = 5
    kappa: float = 0.1
    steps: int = 25
    hidden: int = 128
    epochs: int = 4000
    free: int = 1000
    guided: int = 300
    guidance: float = 0.1
    network_epochs: int = 20
    network_pairs: int = 2000
    gp_iterations: int = 50
    window: int = 3
    stall: float = 0.05
    patience: int = 2

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points, greedily by the hypervolume of their confidence bounds."""
        uniform = np.asarray(rng("cdm-psl-random").random((q, archive.d)))
        if len(archive) < _FEWEST:
            return Proposal(uniform)
        clock = [time.perf_counter()]
        switch = Switch.of(part(memory, "switch")).after(archive, self)
        Z = _standardised(archive.F)
        try:
            bounds = fitted(
                archive.U, Z, kappa=self.kappa, iterations=self.gp_iterations,
                warm=part(memory, "gp"),
            )  # fmt: skip
        except NumericalFailure:
            return Proposal(uniform, memory=joined({"switch": switch.memory}))
        clock.append(time.perf_counter())
        elite = self._elite(archive, Z, rng("cdm-psl-elite"))
        clock.append(time.perf_counter())
        breed = self._denoised if switch.diffusion else self._crossed
        X = breed(elite, bounds, max(1, q // 100), rng("cdm-psl-candidates"))
        clock.append(time.perf_counter())
        known = np.concatenate([archive.U, archive.failed, pending])
        X = X[cdist(X, known).min(axis=1) > _APART]
        _, first = np.unique(X, axis=0, return_index=True)
        X = X[np.sort(first)]
        front = Z[archive.ranks == 1]
        chosen = _chosen(X, front, bounds, q, pending)
        clock.append(time.perf_counter())
        names = ("surrogate", "elite", "candidates", "selection")
        notes = {
            "stage_seconds": dict(zip(names, np.diff(clock).tolist(), strict=True)),
            "operator": "diffusion" if switch.diffusion else "sbx",
            "candidates": len(X),
            "elite": len(elite),
        }
        kept = joined({"switch": switch.memory, "gp": bounds.warm})
        return Proposal(np.concatenate([chosen, uniform[len(chosen) :]]), memory=kept, notes=notes)

    def _elite(self, archive: Archive, Z: Array, rng: np.random.Generator) -> Array:
        """Steps 2 to 4: a ninth of the archive, an even number of points, least dominated first.

        The source knows no constraints; here an infeasible point comes after every feasible one.
        """
        bad = archive.violation > 0
        penalty = np.where(bad, float(len(Z)) ** 2 * (1.0 + archive.ranks), 0.0)
        third = selected(Z, max(2, len(Z) // 3), penalty)
        order = dominance_order(
            archive.U, relations(Z), archive.U[third],
            epochs=self.network_epochs, pairs=self.network_pairs, rng=rng,
        )  # fmt: skip
        return np.asarray(archive.U[third[order[: max(2, len(third) // 3 // 2 * 2)]]])

    def _denoised(
        self, elite: Array, bounds: Bounds, times: int, rng: np.random.Generator
    ) -> Array:
        """Steps 4 to 7: free and guided samples of the diffusion model of the elite, mutated."""
        schedule = Schedule.sigmoid(self.steps)
        x = augmented(elite, rng).astype(np.float32)
        denoiser = trained(x, schedule, hidden=self.hidden, epochs=self.epochs, rng=rng)
        free = sampled(denoiser, schedule, self.free * times, guide=unguided, scale=0.0, rng=rng)
        led = sampled(
            denoiser, schedule, self.guided * times, guide=bounds.weighted_gradient,
            scale=self.guidance, rng=rng,
        )  # fmt: skip
        X = np.concatenate([free, led]).astype(np.float64).clip(0.0, 1.0)
        return polynomial_mutation(X, eta=20.0, p_variable=1.0 / X.shape[1], rng=rng)

    def _crossed(
        self, elite: Array, bounds: Bounds, times: int, rng: np.random.Generator
    ) -> Array:
        """The other operator of step 8: SBX (index 15) among the elite, mutated."""
        repeats = -(-times * (self.free + self.guided) // len(elite))
        parents = rng.permuted(np.repeat(np.arange(len(elite))[None], repeats, axis=0), axis=1)
        pairs = parents.reshape(repeats, 2, -1).transpose(1, 0, 2).reshape(-1)
        return platemo_sbx(elite[pairs], rng=rng, eta_crossover=15.0)


@dataclass(frozen=True)
class Switch:
    """Which operator has its turn, how many rounds it had, and the latest hypervolumes.

    Step 8: each round appends the hypervolume; once ``window`` are known and the operator had
    ``patience`` rounds, a change below ``stall`` against the mean of those before toggles it.
    """

    diffusion: bool = True
    since: int = 0
    seen: int = 0
    volumes: tuple[float, ...] = ()

    @classmethod
    def of(cls, memory: Memory | None) -> Switch:
        """The switch that ``memory`` describes; a new one without memory."""
        if memory is None:
            return cls()
        diffusion, since, seen = (int(v) for v in memory["state"])
        return cls(bool(diffusion), since, seen, tuple(memory["volumes"].tolist()))

    @property
    def memory(self) -> Memory:
        """The switch as arrays."""
        state = np.array([self.diffusion, self.since, self.seen], dtype=np.int64)
        return {"state": state, "volumes": np.array(self.volumes, dtype=np.float64)}

    def after(self, archive: Archive, spec: CDMPSL) -> Switch:
        """The switch once ``archive`` is known; unchanged if nothing arrived since the last round."""
        n = len(archive)
        if self.seen == 0 or self.seen > n:  # the start design is no round
            return Switch(seen=n)
        if self.seen == n:
            return self
        moved = self.told(stage_volume(archive.F[archive.ranks == 1]), spec)
        return Switch(moved.diffusion, moved.since, n, moved.volumes)

    def told(self, volume: float, spec: CDMPSL) -> Switch:
        """The switch after one more round that ended with this hypervolume."""
        volumes = (*self.volumes, volume)[-spec.window :]
        if len(volumes) < spec.window:
            return Switch(self.diffusion, self.since, self.seen, volumes)
        if self.since < spec.patience:
            return Switch(self.diffusion, self.since + 1, self.seen, volumes)
        before = sum(volumes[:-1]) / (spec.window - 1)
        if abs(volumes[-1] - before) < spec.stall * before or volumes[-1] == before:
            return Switch(not self.diffusion, 0, self.seen, volumes)
        return Switch(self.diffusion, self.since, self.seen, volumes)


def stage_volume(front: Array) -> float:
    """Hypervolume of a front, reference 1.1 times its 95 % quantiles counted from its minimum."""
    low = front.min(axis=0)
    reference = low + 1.1 * (np.quantile(front, 0.95, axis=0) - low)
    return pareto.hypervolume(front, reference)


def augmented(elite: Array, rng: np.random.Generator) -> Array:
    """Step 4: 6 n rows from n: themselves, two noisy copies and 3 n points between two of them."""
    n = len(elite)
    blurred = elite + rng.uniform(-0.05, 0.05, elite.shape)
    noisy = elite + rng.normal(0.0, 0.05, elite.shape)
    a, b = rng.integers(n, size=(2, 3 * n))
    share = rng.random((3 * n, 1))
    between = share * elite[a] + (1.0 - share) * elite[b]
    return np.asarray(np.concatenate([elite, blurred, between, noisy]).clip(0.0, 1.0))


def _standardised(F: Array) -> Array:
    scale = F.std(axis=0)
    return np.asarray((F - F.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def _chosen(X: Array, front: Array, bounds: Bounds, q: int, pending: Array) -> Array:
    """Step 7: up to q rows of X, greedily by hypervolume; pending points count as there already."""
    if not len(X):
        return X
    values = bounds.values(X)
    reference = np.concatenate([front, values]).max(axis=0)
    rows = pareto.greedy_improvement(
        values, front, reference, min(q, len(X)), pending=bounds.values(pending)
    )
    return np.asarray(X[rows])
