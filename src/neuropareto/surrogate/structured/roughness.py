"""Which variable alone makes a quantity go up and down: a score test for every variable at once.

A model that fits the noise of all variables leaves nothing unexplained, so no restart looks for the
one variable that explains everything (ZDT6: f_1 is six hills over u_1). The test asks the data, not
the model. Notation: e (n,) a quantity at n points U (n, d); waves k, faster than any polynomial of
the kernel can follow.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from neuropareto.surrogate.structured.points import DEGREE

_WAVES = torch.arange(DEGREE + 1, 31, dtype=torch.float64)
# The spectrum of a Gaussian kernel of length 0.03: three to eight hills over the range are seen best.
_SPECTRUM = torch.exp(-0.5 * (0.03 * math.pi * _WAVES).square())


def roughness(e: Tensor, U: Tensor) -> Tensor:
    """How evident it is that e goes up and down with each variable, in standard deviations; (d,).

    S_i = sum_k w_k (c_ik^2 - 1) / sqrt(2 sum_k w_k^2), where c_ik is sqrt(n) times the correlation
    of e with cos(pi k u_i), a standard normal for noise, and w the spectrum of a rough kernel: the
    score of that kernel's amplitude at zero, standardised.
    """
    waves = torch.cos(math.pi * _WAVES * U[:, :, None])
    waves = waves - waves.mean(0)
    # A variable that never moved has no waves; its correlations are 0.
    size = waves.square().sum(0).sqrt().clamp_min(1e-9)
    centred = e - e.mean()
    deviation = centred.square().mean().sqrt().clamp_min(1e-300)
    c = torch.einsum("n,ndk->dk", centred / deviation, waves) / size
    return (c.square() - 1.0) @ _SPECTRUM / (2.0 * _SPECTRUM.square().sum()).sqrt()
