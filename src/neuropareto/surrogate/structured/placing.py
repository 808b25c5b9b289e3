"""How the places of a common law are found (``placed.py``), and whether there is one (decision D-93).

Places and hyper-parameters take turns. Places first jump, each variable's to where the residuals want
it, all others held, and descend together to where the evidence is highest; then hyper-parameters
descend, with places held and their uncertainty counted (Laplace's approximation). Both at once would
take the noise to zero: a hundred places can explain a hundred values. For the same reason not
evidence but leave-one-out density, with the uncertainty of places, says which of several starts is
best and whether the law is believed; where points have gathered it must have foreseen, too.
Notation: d variables, X n points, y (n,) one objective, c (d,) places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import solve_lower
from neuropareto.surrogate.structured import restarts
from neuropareto.surrogate.structured.additive import Own
from neuropareto.surrogate.structured.conditioned import Conditioned, posterior
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.parameters import Values
from neuropareto.surrogate.structured.placed import Placed, powers, shapes
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.warp import Units
from neuropareto.surrogate.structured.weights import Weights

_UNSURE, _SURE = Placed(unsure=True), Placed(unsure=False)
_PLACES = frozenset({"place"})
_GRID = torch.linspace(0.0, 1.0, 51, dtype=torch.float64)
_TRIED = torch.linspace(0.0, 1.0, 26, dtype=torch.float64)
_BELIEVED = 0.1  # how much denser a model with a law must be
_LATEST, _FORESEEN = 30, 1.0  # how many rows it must foresee better, and by how many nats each
_TURNS = 4  # after the first, which decides between starts
_STEPS = 15  # of hyper-parameters in a turn; places take 20
_WORTHWHILE = 1.0  # nats that a jump must gain


def placed(
    evidence: Evidence,
    P: Values,
    y: Array,
    weights: Weights,
    hints: Sequence[Tensor],
) -> tuple[Evidence, Values]:
    """The model with a common law if it is denser by 0.1; ``hints`` are other objectives' places.

    Where a search has gathered points leave-one-out density no longer tells a law from a coincidence.
    There the law is found without the latest thirty rows, and must foresee these better than a model
    without it, by a nat each.
    """
    U, n = evidence.X.U, len(y)
    doubted = gathered(U.numpy())
    n = n - min(_LATEST, n // 2) if doubted else n
    known = _first(evidence, y, n)
    base = known.improved(restarts.output_warp(known, P), _STEPS)[0] if doubted else P
    found = _found(known, base, y[:n], weights, hints)
    if found is None:
        return evidence, P
    law, Q = found
    if doubted:
        if _foreseen(law, Q, U, y) < _foreseen(known, base, U, y) + _FORESEEN:
            return evidence, P
        law = replace(evidence, kernel=law.kernel)
        Q = turned(law, restarts.output_warp(law, Q), y, _STEPS)
    denser = _density(law, Q, y) > _density(evidence, P, y) + _BELIEVED
    return (law, Q) if denser else (evidence, P)


def gathered(U: Array) -> bool:
    """Whether some of the points (n, d) lie closer together than those of a design would.

    By the distance to the nearest neighbour, its 10 % quantile, against 0.6 times that of as many
    uniform points.
    """
    uniform = np.random.default_rng(0).random(U.shape)
    return bool(_crowding(U) < 0.6 * _crowding(uniform))


def _crowding(U: Array) -> float:
    nearest = cKDTree(U).query(U, k=2)[0][:, 1]
    return float(np.quantile(nearest, 0.1))


def _found(
    evidence: Evidence, P: Values, y: Array, weights: Weights, hints: Sequence[Tensor]
) -> tuple[Evidence, Values] | None:
    """The densest model with a law that turns from several starts lead to, if it is denser at all.

    Corners of single curves, which explain a law's corners badly, make room for it.
    """
    before = _density(evidence, P, y)
    smooth = replace(evidence, kernel=replace(evidence.kernel, corners=()))
    start = smooth.improved(smooth.table.start(P), _STEPS)[0] if evidence.kernel.corners else P
    law = replace(smooth, kernel=smooth.kernel.with_places(_UNSURE))
    firsts = []
    for c in (*_starts(smooth, start, y, weights), *hints):
        Q = turned(law, _lawful(law, _begun(smooth, start, c), y, _STEPS), y, _STEPS)
        firsts.append((_density(law, Q, y), Q))
    density, found = max(firsts, key=lambda first: first[0])
    if density < before:
        return None
    for _ in range(_TURNS):
        found = turned(law, found, y, _STEPS)
    return law, found


def turned(evidence: Evidence, P: Values, y: Array, steps: int) -> Values:
    """One turn: places, the law at them, then ``steps`` for the hyper-parameters."""
    estimating = _estimating(evidence)
    Q, loss = estimating.improved(P, 20, _PLACES)
    jumped = _jumped(estimating, Q, y)
    if jumped is not None:
        other, lower = estimating.improved(Q | {"place": jumped}, 20, _PLACES)
        Q = other if lower < loss else Q
    return _lawful(evidence, P | {"place": Q["place"]}, y, steps)


def _begun(evidence: Evidence, P: Values, c: Tensor) -> Values:
    """The most likely of a few amplitudes of a law with places ``c``, beside or for the own curves."""
    estimating = _estimating(evidence)
    known = estimating.table.start(P)
    changes = [
        {"place": c, "placed": P["own"] + level, "own": P["own"] + own}
        for level in (-4.0, -2.0, 0.0, 2.0)
        for own in (0.0, -2.0)
    ]
    best = changes[int(np.argmin(estimating.scan(known, changes)))]
    return estimating.table.start(known | best)


def _lawful(evidence: Evidence, P: Values, y: Array, steps: int) -> Values:
    """``steps`` for the hyper-parameters, with the law as it is at the start."""
    estimating = _estimating(evidence)
    law = _SURE.law(P, _averaged(estimating, P, y), evidence.X)[0].flatten()
    return evidence.improved(P | {"law": law}, steps)[0]


def _jumped(estimating: Evidence, P: Values, y: Array) -> Tensor | None:
    """Places after jumps, one at a time, each the one that gains most; None if none gains a nat.

    With the law held, moving variable i from c_i to c adds r_i(c) (n,) to the mean; residuals C^-1 z
    then gain (z^T C^-1 r) - r^T C^-1 r / 2 nats, less what jumps made before have explained.
    """
    X, here = estimating.X, P["place"]
    model = Conditioned.on(estimating.kernel, P, X, y)
    mod = estimating.kernel.modulation.against(P, X)(X)[0]
    law = _SURE.law(P, mod * model.alpha, X)

    def values(c: Tensor) -> Tensor:
        return (shapes(X, c) * torch.einsum("nkl,dl->ndk", law, powers(c))).sum(-1)

    now = values(here)
    moved = torch.stack([now, *(values(c.expand(X.d)) for c in _TRIED)], dim=2) - now[..., None]
    n, d, g = moved.shape
    R = solve_lower(model.L, moved.reshape(n, d * g)).view(n, d, g)  # the first choice is to stay
    cost = 0.5 * R.square().sum(0)
    left = model.L.T @ model.alpha
    at, every = torch.zeros(d, dtype=torch.int64), torch.arange(d)
    for _ in range(3 * d):
        # What a variable has been moved by so far is taken back when it moves again.
        score = torch.einsum("n,ndg->dg", left, R) - cost
        score = score + torch.einsum("nd,ndg->dg", R[:, every, at], R)
        gain = score - score[every, at][:, None]
        i, k = divmod(int(gain.argmax()), g)
        if gain[i, k] < _WORTHWHILE:
            break
        left = left + R[:, i, at[i]] - R[:, i, k]
        at[i] = k
    if not bool(at.any()):
        return None
    return torch.where(at > 0, _TRIED[(at - 1).clamp_min(0)], here)


def _starts(evidence: Evidence, P: Values, y: Array, weights: Weights) -> tuple[Tensor, ...]:
    """Where places may be, (d,) each: each curve's lowest point, and its order among all curves.

    The order is that of the coefficient along which the curves differ most; it has no direction.
    """
    a = _averaged(evidence, P, y)
    lowest = _GRID[evidence.kernel.curves(P, a, evidence.X, _GRID)[0].argmin(1)]
    own = Own(weights).coefficients(P, a[0], evidence.X)
    sides, sizes, _ = torch.linalg.svd(own - own.mean(0), full_matrices=False)
    t = sides[:, 0] * sizes[0]
    t = 0.2 * (t / t.std().clamp_min(1e-12)).clamp(-2.5, 2.5)
    return lowest.clamp(0.05, 0.95), 0.5 + t, 0.5 - t


def _averaged(evidence: Evidence, P: Values, y: Array) -> Tensor:
    """Dual weights (1, n) of the additive part, averaged over the modulators' values in the data."""
    X = evidence.X
    mod = evidence.kernel.modulation.against(P, X)(X)[0]
    return (Conditioned.on(evidence.kernel, P, X, y).alpha * mod.mean(0))[None]


def _estimating(evidence: Evidence) -> Evidence:
    """The model with places as if they were known, for estimating them."""
    return replace(evidence, kernel=evidence.kernel.with_places(_SURE))


def _first(evidence: Evidence, y: Array, n: int) -> Evidence:
    """The same about the first ``n`` rows."""
    if n == len(y):
        return evidence
    v = Units.of(y[:n]).scaled(y[:n])
    return replace(evidence, X=Points.of(evidence.X.U[:n]), v=v)


def _foreseen(evidence: Evidence, P: Values, U: Tensor, y: Array) -> float:
    """Log density of the rows that the model has not seen, at the best inflation of its deviations."""
    n = len(evidence.v)
    model = Conditioned.on(evidence.kernel, P, evidence.X, y[:n])
    said = posterior((model,), np.ones(1), U[n:].numpy())
    deviation = np.sqrt(said.variance[:, 0])
    z = (y[n:] - said.mean[:, 0]) / deviation
    return float(-np.log(deviation).mean() - 0.5 * np.log(np.square(z).mean() + 1e-300))


def _density(evidence: Evidence, P: Values, y: Array) -> float:
    return Conditioned.on(evidence.kernel, P, evidence.X, y).density
