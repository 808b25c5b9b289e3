"""GP-HV: one Gaussian process an objective, batches by expected hypervolume improvement.

qEHVI (Daulton, Balandat, Bakshy 2020): alpha(x_1..x_q) = (1 / N) sum_t HVI(f_t(x_1), .., f_t(x_q)),
the hypervolume that N posterior draws f_t add to the front, summed over boxes k and, by inclusion
and exclusion, over subsets of the batch; maximised with exact gradients, greedily point by point.
By default its logarithm (Ament et al. 2023), whose maximiser is the same and whose gradients do not
vanish. Constraints are modelled too and weigh each draw by its feasibility.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.monte_carlo import qExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.exceptions.warnings import NumericsWarning
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import (
    FastNondominatedPartitioning,
)
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

CRITERIA: Mapping[str, Any] = {
    "qLogEHVI": qLogExpectedHypervolumeImprovement,
    "qEHVI": qExpectedHypervolumeImprovement,
}


@dataclass(frozen=True)
class GPHV:
    """qEHVI: ``criterion`` one of CRITERIA, ``samples`` draws, the search's starts and steps.

    Inclusion and exclusion cost 2^``joint``: after that many points they count as evaluated at
    their posterior mean and a new group begins.
    """

    batch: int = 5
    criterion: str = "qLogEHVI"
    samples: int = 64
    starts: int = 128
    restarts: int = 4
    iterations: int = 50
    joint: int = 3
    fit_iterations: int = 75

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise ValueError(
                f"criterion must be one of {', '.join(CRITERIA)}, got {self.criterion!r}."
            )

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points, each the one that adds most expected hypervolume to those before it."""
        several(archive, "GP-HV")
        draws = rng("gp-hv")
        if len(archive) < 4:
            return Proposal(np.asarray(draws.random((q, archive.d)), dtype=np.float64))
        began = time.perf_counter()
        gps = independent_gps(archive.U, archive.outputs, iterations=self.fit_iterations)
        gps = gps.warned(archive.failed)
        fitted = time.perf_counter()
        front = gps.scaled(archive.F[front_rows(archive)])
        reference = held_reference(archive, memory)
        z = gps.scaled(reference)
        near = archive.U[archive.front_indices]
        waiting, chosen, values = pending, np.empty((0, archive.d)), []
        with repeatable(rng("gp-hv-torch")):
            for first in range(0, q, self.joint):
                front = torch.cat([front, gps.mean(waiting)[:, : archive.m]])
                gps = gps.believing(waiting)
                waiting = np.empty((0, archive.d))
                for _ in range(min(self.joint, q - first)):
                    starts = start_points(near, self.starts, rng=draws)[:, None, :]
                    u, value = maximised(
                        self._gain(gps, front, z, waiting, draws),
                        starts,
                        restarts=self.restarts,
                        iterations=self.iterations,
                    )
                    waiting = np.concatenate([waiting, u])
                    values.append(value)
                chosen = np.concatenate([chosen, waiting])
        seconds = {"surrogate": fitted - began, "selection": time.perf_counter() - fitted}
        notes = {"stage_seconds": seconds, "front": len(front), "values": values}
        return Proposal(chosen, memory={"reference": reference}, notes=notes)

    def _gain(
        self,
        gps: GPs,
        front: Tensor,
        reference: Tensor,
        waiting: Array,
        rng: np.random.Generator,
    ) -> Criterion:
        """The criterion of one more point beside the ``waiting`` ones of its group."""
        m = len(reference)
        with guarded(), warnings.catch_warnings():
            # BoTorch advises the logarithm wherever it is not used.
            warnings.simplefilter("ignore", NumericsWarning)
            criterion: Criterion = CRITERIA[self.criterion](
                model=gps.model,
                ref_point=reference,
                partitioning=FastNondominatedPartitioning(reference, Y=front),
                sampler=sobol(self.samples, rng),
                objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
                constraints=limits(gps, m),
                X_pending=torch.tensor(waiting) if len(waiting) else None,
            )
        return criterion


def sobol(samples: int, rng: np.random.Generator) -> SobolQMCNormalSampler:
    """Quasi-random normal draws, scrambled by a seed from ``rng``."""
    return SobolQMCNormalSampler(torch.Size([samples]), seed=int(rng.integers(2**31)))
