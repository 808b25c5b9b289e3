"""GP-EI: one Gaussian process, expected improvement, several objectives by random weights.

EGO (Jones, Schonlau, Welch 1998) is for one objective; ParEGO (Knowles 2006) folds several into one
with a weight vector drawn anew for every point, fits EGO's process to it and maximises EGO's
criterion. EI(x) = (s* - mu) Phi(z) + sigma phi(z), z = (s* - mu) / sigma, in logarithm (Ament et al.
2023: the same maximiser, gradients that do not vanish). Constraints: EI times the probability of
being feasible (Schonlau, Welch, Jones 1998). Notation: w (m,) weights, s (n,) folded values.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from botorch.acquisition.analytic import (
    LogConstrainedExpectedImprovement,
    LogExpectedImprovement,
    LogProbabilityOfFeasibility,
)

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.peers.models import (
    Criterion,
    GPs,
    independent_gps,
    maximised,
    repeatable,
    start_points,
)
from neuropareto.randomness import Streams
from neuropareto.space import Array

# Rows of the archive with the best folded values that the search also starts around.
_NEAR = 10


@dataclass(frozen=True)
class GPEI:
    """ParEGO with BoTorch's GP and LogEI: ``rho`` of the fold, the search's starts and steps."""

    batch: int = 1
    rho: float = 0.05
    starts: int = 512
    restarts: int = 4
    iterations: int = 100
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
        """q points, each for a weight vector of its own, knowing of those before it."""
        draws = rng("gp-ei")
        if len(archive) < 4:
            return Proposal(np.asarray(draws.random((q, archive.d)), dtype=np.float64))
        seconds = {"surrogate": 0.0, "selection": 0.0}
        waiting, weights, values = pending, [], []
        with repeatable(rng("gp-ei-torch")):
            for _ in range(q):
                began = time.perf_counter()
                w = draws.dirichlet(np.ones(archive.m))
                s = folded(archive.F, w, self.rho)
                outputs = np.concatenate([s[:, None], archive.G], axis=1)
                gps = independent_gps(archive.U, outputs, iterations=self.fit_iterations)
                gps = gps.warned(archive.failed).believing(waiting)
                fitted = time.perf_counter()
                u, value = self._best(gps, archive, s, draws)
                waiting = np.concatenate([waiting, u])
                weights.append(w.tolist())
                values.append(value)
                seconds["surrogate"] += fitted - began
                seconds["selection"] += time.perf_counter() - fitted
        notes = {"stage_seconds": seconds, "weights": weights, "log_improvement": values}
        return Proposal(waiting[len(pending) :], notes=notes)

    def _best(
        self, gps: GPs, archive: Archive, s: Array, rng: np.random.Generator
    ) -> tuple[Array, float]:
        """The point (1, d) of largest (log) expected improvement, and its value."""
        order = np.lexsort((s, archive.violation))[:_NEAR]
        starts = start_points(archive.U[order], self.starts, rng=rng)[:, None, :]
        return maximised(
            improvement(gps, archive.violation, s),
            starts,
            restarts=self.restarts,
            iterations=self.iterations,
        )


def folded(F: Array, w: Array, rho: float) -> Array:
    """Augmented Chebyshev values s = max_j w_j f_j + rho sum_j w_j f_j, (n,).

    f are the objectives ``F`` (n, m) moved to [0, 1] over the archive; one without range adds 0.
    """
    extent = np.ptp(F, axis=0)
    weighted = w * (F - F.min(axis=0)) / np.where(extent > 0, extent, 1.0)
    return np.asarray(weighted.max(axis=1) + rho * weighted.sum(axis=1))


def improvement(gps: GPs, violation: Array, s: Array) -> Criterion:
    """log EI over the best feasible ``s`` (n,), with constraints plus log P(feasible).

    The first output of ``gps`` is s, the others are constraints. While nothing is feasible only the
    probability of being so counts.
    """
    feasible = violation == 0
    if len(gps.centre) == 1:
        best = float(gps.scaled(s.min(keepdims=True))[0])
        criterion: Criterion = LogExpectedImprovement(gps.model, best_f=best)
        return criterion
    zero = gps.scaled(np.zeros(len(gps.centre)))
    bounds: dict[int, tuple[float | None, float | None]] = {
        j: (float(zero[j]), None) for j in range(1, len(zero))
    }
    if not feasible.any():
        criterion = LogProbabilityOfFeasibility(gps.model, constraints=bounds)
        return criterion
    best = float(gps.scaled(s[feasible].min(keepdims=True))[0])
    criterion = LogConstrainedExpectedImprovement(
        gps.model, best_f=best, objective_index=0, constraints=bounds
    )
    return criterion
