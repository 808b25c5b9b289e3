"""The output warp: objectives that grow by orders of magnitude become nearly additive.

z = (log(v + a) - centre) / spread with v = (y - min y) / std y >= 0; a -> infinity is the identity
up to scale. Centre and spread are those of the warped data, so z is standardised for every a.
Notation: y (n,) one objective, a = e^output_warp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values

# The largest exponent on the way back: far above anything seen, far below overflow.
_CEILING = 12.0
# The largest log a: at this end of the box the warp is as good as none.
_LINEAR = 5.0


def warp_parameters(free: bool = True) -> Parameters:
    """output_warp (log a); where it is not ``free`` it stays at the linear end."""
    start, low = (1.0, -3.0) if free else (_LINEAR, _LINEAR)
    return {"output_warp": Parameter.alike(1, start, low, _LINEAR, Normal(2.0))}


@dataclass(frozen=True)
class Units:
    """The affine part: v = (y - low) / spread; ``constant`` where the data do not vary."""

    low: float
    spread: float
    constant: bool

    @classmethod
    def of(cls, y: Array) -> Units:
        """The units of the values ``y`` (n,)."""
        low, spread = float(y.min()), float(y.std())
        # Differences below the rounding of the values themselves are not information.
        constant = not spread > 1e-12 * max(abs(float(y.mean())), 1e-150)
        return cls(low, 1e-9 * max(1.0, abs(low)) if constant else spread, constant)

    def scaled(self, y: Array) -> Tensor:
        """v (n,); zeros where the data do not vary."""
        if self.constant:
            return torch.zeros(len(y), dtype=torch.float64)
        return torch.tensor((np.asarray(y) - self.low) / self.spread)


def standardised(P: Values, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """z (n,), the log Jacobian sum_i log dz_i/dv_i, and the centre and spread of log(v + a)."""
    t = torch.log(v + torch.exp(P["output_warp"]))
    centre = t.mean()
    spread = ((t - centre).square().mean() + 1e-18).sqrt()
    jacobian = -t.sum() - len(v) * torch.log(spread)
    return (t - centre) / spread, jacobian, centre, spread


@dataclass(frozen=True)
class Inverse:
    """The way back from z to the user's units, with the data's centre and spread fixed."""

    units: Units
    a: float
    centre: float
    spread: float

    @classmethod
    def of(cls, P: Values, v: Tensor, units: Units) -> Inverse:
        """The inverse of the warp that the values ``v`` (n,) define."""
        _, _, centre, spread = standardised(P, v)
        return cls(units, float(torch.exp(P["output_warp"])), float(centre), float(spread))

    def value(self, z: Tensor) -> Tensor:
        """y = low + unit (e^{spread z + centre} - a)."""
        return self.units.low + self.units.spread * (torch.exp(self._exponent(z)) - self.a)

    def slope(self, z: Tensor) -> Tensor:
        """dy / dz."""
        return self.units.spread * self.spread * torch.exp(self._exponent(z))

    def deviation(self, z: Tensor, deviation: Tensor) -> Tensor:
        """Half the distance between the images of z plus and minus one deviation."""
        reach = (self.spread * deviation).clamp(max=5.0)
        return self.units.spread * torch.exp(self._exponent(z)) * torch.sinh(reach)

    def _exponent(self, z: Tensor) -> Tensor:
        return (self.spread * z + self.centre).clamp(max=_CEILING)
