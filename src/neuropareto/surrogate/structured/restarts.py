"""Discrete restarts: what gradient steps on the evidence cannot reach, tried value by value.

Each function scans a few changes of the hyper-parameters by evidence and starts L-BFGS from the
best. Amplitudes are tied to the variance that the present model leaves unexplained: with a wrong
amplitude even the right frequency is rejected. Notation: P hyper-parameters, r the log of the
unexplained variance e^noise + e^residual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from neuropareto.surrogate.structured.corners import Corners
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.parameters import Values, vector
from neuropareto.surrogate.structured.waves import FREQUENCIES

OUTPUT_WARPS = (-1.0, 1.0, 3.0, 5.0)
ROUGH_SHAPES = (
    (0.04, None),
    (0.08, None),
    (0.15, None),
    (0.15, (2.3, 0.0)),
    (0.2, (4.0, 0.0)),
    (0.15, (0.0, 2.3)),
    (0.2, (0.0, 4.0)),
)
FREQUENCY_GRID = np.arange(FREQUENCIES[0], 26.0, 0.5)


def unexplained(P: Values) -> float:
    """The variance of z that is left to noise and residual."""
    return float(torch.exp(P["noise"]) + torch.exp(P["residual"]))


def output_warp(evidence: Evidence, P: Values) -> Values:
    """The best start of the output warp: what ``a`` means changes when the minimum moves."""
    shifts = [P["output_warp"], *(vector((a,)) for a in OUTPUT_WARPS)]
    losses = evidence.scan(P, [{"output_warp": a} for a in shifts])
    return P | {"output_warp": shifts[int(np.argmin(losses))]}


def rough_modulator(evidence: Evidence, P: Values, steps: int = 15) -> Values:
    """Let one modulator be rough or strongly warped, if the evidence gains more than 2 nats.

    From a smooth modulator L-BFGS stays where everything rough is noise.
    """
    level = math.log(unexplained(P) + 1e-6)
    quieter = {"noise": P["noise"] - 2.0, "residual": P["residual"] - 2.0}
    changes: list[Values] = []
    for j in range(len(P["rough"])):
        for length, shape in ROUGH_SHAPES:
            for amplitude in (level, level + 2.0):
                change = dict(quieter)
                change["rough"] = _replaced(P["rough"], j, amplitude - float(P["constant"]))
                change["rough_length"] = vector((math.log(length),))
                if shape is not None:
                    change["warp_a"] = _replaced(P["warp_a"], j, shape[0])
                    change["warp_b"] = _replaced(P["warp_b"], j, shape[1])
                changes.append(change)
    base = evidence.loss(P)
    losses = evidence.scan(P, changes)
    best = int(np.argmin(losses))
    if not losses[best] < base - 2.0:
        return P
    return evidence.improved(evidence.table.start(P | changes[best]), steps)[0]


def frequency(
    evidence: Evidence, P: Values, hints: Sequence[float], full: bool, steps: int = 20
) -> tuple[Evidence, Values]:
    """Add periodic curves (or move their frequency) if the evidence says so.

    A ``full`` scan covers 2.5 to 25.5 periods (slower waves are what polynomials are for) and is
    believed if its best value stands out by more than 6 nats from the median; otherwise only
    ``hints`` (frequencies of other objectives) are tried. Either way ``steps`` of L-BFGS from there
    must gain more than 4 nats over the start.
    """
    grid = np.concatenate([FREQUENCY_GRID if full else np.empty(0), np.asarray(hints)])
    if not len(grid):
        return evidence, P
    waved = replace(evidence, kernel=evidence.kernel.with_waves())
    known = waved.table.start(P)
    level = math.log(unexplained(P) + 1e-6)
    off = vector((-9.0,))
    quieter = {"noise": P["noise"] - 1.5, "residual": P["residual"] - 1.5}
    pairs = ((vector((level - 1.5,)), off), (off, vector((level,))))
    found: tuple[float, Values] | None = None
    for own, common in pairs:
        waves = {"wave": own, "common_wave": common}
        changes = [quieter | waves | {"frequency": vector((math.log(f),))} for f in grid]
        losses = np.array(waved.scan(known, changes))
        best = int(losses.argmin())
        outstanding = float(np.median(losses) - losses[best]) if full else math.inf
        # A scan that is lowest at its slow end has found a trend, not a frequency.
        trend = full and best == 0
        if not trend and outstanding > 6.0 and (found is None or losses[best] < found[0]):
            found = (float(losses[best]), changes[best])
    if found is None:
        return evidence, P
    lowest = vector((level - 3.0,))
    change = found[1] | {k: torch.maximum(found[1][k], lowest) for k in ("wave", "common_wave")}
    better, loss = waved.improved(waved.table.start(known | change), steps)
    trend = float(torch.exp(better["frequency"])) < 1.02 * FREQUENCIES[0]
    return (evidence, P) if trend or not loss < evidence.loss(P) - 4.0 else (waved, better)


def corners(
    evidence: Evidence, P: Values, term: Corners, steps: int = 15
) -> tuple[Evidence, Values]:
    """Let curves have corners, if ``steps`` of L-BFGS with them gain 2 nats over those without.

    Where they are refused nothing changes: the steps without them are forgotten, too.
    """
    sharp = replace(evidence, kernel=evidence.kernel.with_corners(term))
    level = math.log(unexplained(P) + 1e-6)
    quieter = {"noise": P["noise"] - 1.0, "residual": P["residual"] - 1.0}
    changes = [quieter | {"corner": vector((level + more,))} for more in (-2.0, 0.0, 2.0)]
    known = sharp.table.start(P)
    best = int(np.argmin(sharp.scan(known, changes)))
    better, loss = sharp.improved(sharp.table.start(known | changes[best]), steps)
    _, without = evidence.improved(P, steps)
    return (sharp, better) if loss < without - 2.0 else (evidence, P)


def _replaced(x: Tensor, j: int, value: float) -> Tensor:
    changed = x.clone()
    changed[j] = value
    return changed
