"""Two beliefs about how many variables matter, as priors of the variables' weights w (d,).

Notation: x (d,) the parameter behind the weights; sum w is about 1 under both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import HalfCauchy, Normal, Parameter


class Weights(Protocol):
    """How much each variable counts."""

    @property
    def name(self) -> str:
        """A word for notes."""
        ...

    def parameter(self, d: int) -> Parameter:
        """The parameter x behind the weights."""
        ...

    def of(self, x: Tensor) -> Tensor:
        """w (d,)."""
        ...


@dataclass(frozen=True)
class Tight:
    """All variables matter about alike: w = e^x / d, x ~ N(0, width^2)."""

    width: float = 1.0
    name: str = "tight"

    def parameter(self, d: int) -> Parameter:
        """x (d,), normal."""
        return Parameter.alike(d, 0.0, -8.0, 6.0, Normal(self.width))

    def of(self, x: Tensor) -> Tensor:
        """e^x / d."""
        return torch.exp(x) / len(x)


@dataclass(frozen=True)
class Sparse:
    """Few variables matter: w = softmax(x) with a half-Cauchy on e^x."""

    name: str = "sparse"

    def parameter(self, d: int) -> Parameter:
        """x (d,), heavy-tailed."""
        return Parameter.alike(d, 0.0, -6.0, 11.0, HalfCauchy())

    def of(self, x: Tensor) -> Tensor:
        """softmax(x)."""
        return torch.softmax(x, dim=0)
