"""Exact Gaussian processes, one an output, for the peers that ask BoTorch for their criterion.

Model, priors and bounds are those of BoTorch's ``SingleTaskGP``: constant mean, RBF kernel with a
length scale a variable and the dimension-scaled prior, learned noise, standardised outputs. Fit and
prediction are written out: GPyTorch took 25 ms of processor time for one likelihood (300 points)
and hundreds of them a fit. BoTorch's criteria see the result as a model (`posterior.py`).
Notation: U (n, d) in the unit cube, F (n, o) outputs in their units, Z = -(F - centre) / spread
(larger is better, as BoTorch wants it), l (o, d) length scales, K (o, n, n).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from linear_operator.utils.warnings import NumericalWarning
from scipy.special import ndtr, ndtri
from torch import Tensor

from neuropareto import pareto
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.posterior import ExactGPs
from neuropareto.peers.posterior_mode import fitted
from neuropareto.peers.seeding import seeded
from neuropareto.space import Array

Criterion = Callable[[Tensor], Tensor]

# Above three objectives the boxes of a front grow with a power of its size: fewer points then.
_MOST_FRONT = {4: 40}
_MOST_FRONT_ABOVE = 12


@dataclass(frozen=True, eq=False)
class GPs:
    """Fitted processes: ``model`` predicts Z (larger is better) on the unit cube.

    ``U`` (n, d) and ``Z`` (n, o) are what it is conditioned on, ``hyper`` (o, d + 2) its parameters.
    """

    model: ExactGPs
    U: Tensor
    Z: Tensor
    centre: Array
    spread: Array
    hyper: Array

    def scaled(self, F: Array) -> Tensor:
        """Outputs (n, o) or their first columns in the model's units, Z = -(F - centre) / spread."""
        m = F.shape[-1]
        return torch.tensor(-(F - self.centre[:m]) / self.spread[:m])

    def mean(self, U: Array) -> Tensor:
        """Posterior mean of Z at ``U``, (n, o)."""
        with torch.no_grad():
            mean: Tensor = self.model.posterior(torch.tensor(np.array(U))).mean
        return mean

    def told(self, U: Array, Z: Tensor) -> GPs:
        """These processes with more data and the same hyper-parameters."""
        if not len(U):
            return self
        X, values = torch.cat([self.U, torch.tensor(np.array(U))]), torch.cat([self.Z, Z])
        return GPs(
            ExactGPs(X, values, self.hyper), X, values, self.centre, self.spread, self.hyper
        )

    def believing(self, U: Array) -> GPs:
        """As if points ``U`` had come out at their posterior mean (the Kriging believer)."""
        return self.told(U, self.mean(U)) if len(U) else self

    def warned(self, failed: Array) -> GPs:
        """As if the ``failed`` points had come out as the worst values known."""
        return self.told(failed, self.Z.min(dim=0).values.expand(len(failed), -1))


@contextmanager
def repeatable(rng: np.random.Generator) -> Iterator[None]:
    """Within the block BoTorch draws from ``rng``, and adds jitter without a warning.

    Candidates beside known points make covariances singular to rounding; jitter is the remedy.
    """
    with seeded(rng), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def independent_gps(U: Array, F: Array, *, iterations: int = 75) -> GPs:
    """GPs of the outputs ``F`` (n, o) at ``U`` (n, d), hyper-parameters of largest posterior.

    ValueError for fewer than two points.
    """
    if len(U) < 2 or len(U) != len(F):
        raise ValueError(
            f"A GP needs the same number, at least two, of points and values, got {len(U)} and "
            f"{len(F)}; propose random points until there are two."
        )
    centre, spread = F.mean(axis=0), F.std(axis=0, ddof=1)
    # Differences below the rounding of the values themselves are not information.
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-150), spread, 1.0)
    Z = -(F - centre) / spread
    hyper = np.stack([fitted(U, z, iterations=iterations) for z in Z.T])
    X, values = torch.tensor(np.array(U)), torch.tensor(Z)
    return GPs(ExactGPs(X, values, hyper), X, values, centre, spread, hyper)


def start_points(best: Array, n: int, *, rng: np.random.Generator) -> Array:
    """n points to start a search from, (n, d): half uniform, half near rows of ``best`` (k, d).

    Of the near ones, half move every variable by about 0.001 and half move about 20 variables (all
    if there are fewer) by about 0.1, normal cut off at the cube: BoTorch's sampling around the best.
    """
    d = best.shape[1]
    near = n // 2 if len(best) else 0
    U = rng.random((n, d))
    if near:
        centre = best[rng.integers(len(best), size=near)]
        fine = np.arange(near)[:, None] < near // 2
        moved = fine | (rng.random((near, d)) < min(1.0, 20.0 / d))
        sigma = np.where(fine, 1e-3, 1e-1)
        low, high = ndtr(-centre / sigma), ndtr((1.0 - centre) / sigma)
        step = ndtri(low + (high - low) * rng.random((near, d)))
        U[:near] = np.where(moved, np.clip(centre + sigma * step, 0.0, 1.0), centre)
    return U


def maximised(
    criterion: Criterion, starts: Array, *, restarts: int, iterations: int
) -> tuple[Array, float]:
    """The best set of points found by L-BFGS-B from the best of ``starts``, and its value.

    ``starts`` (r, q, d) are scored at once; the ``restarts`` best, all different, are improved side
    by side. The result, (q, d), is at least as good as the best start.
    """
    raw = torch.tensor(np.array(starts))
    with torch.no_grad():
        parts = torch.split(raw, max(1, 512 // raw.shape[1]))
        values = torch.cat([criterion(part) for part in parts])
    values = torch.nan_to_num(values, nan=-math.inf)
    first = raw[torch.argsort(values, descending=True, stable=True)[:restarts]]
    found, scores = _climbed(criterion, first, iterations)
    scores = torch.nan_to_num(scores.detach(), nan=-math.inf)
    best = int(scores.argmax())
    if scores[best] < values.max():
        return np.array(first[0].numpy()), float(values.max())
    return np.clip(np.array(found[best].detach().numpy()), 0.0, 1.0), float(scores[best])


def _climbed(criterion: Criterion, first: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """Every start (r, q, d) after L-BFGS-B, and the values (r,).

    A line search that breaks down leaves the best point so far, which is all that is asked; BoTorch
    warns of it past any filter, so its warning is caught here and all others are passed on.
    """
    search: Any = gen_candidates_scipy  # it declares less than it accepts: any function will do
    with warnings.catch_warnings(record=True) as caught:
        found, scores = search(
            first, criterion, lower_bounds=0.0, upper_bounds=1.0, options={"maxiter": iterations}
        )
    for w in caught:
        if not issubclass(w.category, OptimizationWarning):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return found, scores


def limits(gps: GPs, m: int) -> list[Criterion] | None:
    """The outputs after the first m as BoTorch constraints, <= 0 where feasible; None if none.

    G <= 0 reads Z >= z0 with z0 the scaled zero.
    """
    if len(gps.centre) == m:
        return None
    zero = gps.scaled(np.zeros(len(gps.centre)))
    return [lambda Z, j=j: zero[j] - Z[..., j] for j in range(m, len(zero))]  # type: ignore[misc]


def several(archive: Archive, name: str) -> None:
    """Refuse a single objective: a hypervolume criterion has no front to add to."""
    if archive.m < 2:
        raise ValueError(f"{name} needs two or more objectives, got 1; GP-EI takes one, too.")


def held_reference(archive: Archive, memory: Memory | None) -> Array:
    """The reference point (m,): inferred from the first front, afterwards only ever wider.

    Worst values of the front plus a tenth of its extent (BoTorch's rule). Taken anew each round it
    would shrink with a front that has gathered in one place, and the search could not leave it.
    """
    now = archive.reference_point
    held = None if memory is None else memory.get("reference")
    return now if held is None or held.shape != now.shape else np.maximum(held, now)


def front_rows(archive: Archive) -> Indices:
    """Rows of the front, (k,): all of it up to three objectives, else those that span most.

    With four objectives 40 points, above that 12, chosen greedily by hypervolume: the boxes that the
    criteria are summed over grow with a power of the front's size.
    """
    most = len(archive) if archive.m < 4 else _MOST_FRONT.get(archive.m, _MOST_FRONT_ABOVE)
    front = archive.front
    if len(front) <= most:
        return archive.front_indices
    rows = pareto.greedy_improvement(front, front[:0], archive.reference_point, most)
    return np.asarray(archive.front_indices[np.sort(rows)])
