"""Hyper-parameters by name: where each starts, in which box it stays, which prior it has.

Values are mappings from names to float64 vectors; nearly all are logarithms. A :class:`Table`
joins the parameters of all terms of a kernel and maps values to the flat vector that L-BFGS sees.
Notation: x (p,) one parameter's vector, theta the flat vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuropareto.space import Array

Values: TypeAlias = "dict[str, Tensor]"


class Density(Protocol):
    """A prior as a penalty: minus its log density up to a constant."""

    def penalty(self, x: Tensor, start: Tensor) -> Tensor:
        """The penalty (scalar) of a parameter's vector."""
        ...


@dataclass(frozen=True)
class Normal:
    """N(start, width^2) for each entry."""

    width: float

    def penalty(self, x: Tensor, start: Tensor) -> Tensor:
        """sum ((x - start) / width)^2 / 2."""
        return 0.5 * ((x - start) / self.width).square().sum()


@dataclass(frozen=True)
class HalfCauchy:
    """A half-Cauchy on exp(x): log(2 cosh x), quadratic near 0 and linear in the tails.

    A variable that matters a lot, x = 7, costs 7 nats; under a unit normal it would cost 25.
    """

    def penalty(self, x: Tensor, start: Tensor) -> Tensor:
        """sum log(2 cosh(x - start))."""
        far = (x - start).abs()
        return (far + torch.log1p(torch.exp(-2.0 * far))).sum()


@dataclass(frozen=True)
class SparseScale:
    """N(start, width^2) on x and an exponential with rate one on exp(x): few large scales."""

    width: float

    def penalty(self, x: Tensor, start: Tensor) -> Tensor:
        """sum ((x - start) / width)^2 / 2 + sum exp(x)."""
        return Normal(self.width).penalty(x, start) + torch.exp(x).sum()


@dataclass(frozen=True)
class Free:
    """No prior: all values in the box are alike."""

    def penalty(self, x: Tensor, start: Tensor) -> Tensor:
        """Nothing."""
        return x.new_zeros(())


@dataclass(frozen=True)
class Parameter:
    """One named vector: ``start`` values, the box [low, high], the prior around the start.

    One that is kept ``apart`` is not moved together with all others, only by who asks for it.
    """

    start: tuple[float, ...]
    low: float
    high: float
    prior: Density
    apart: bool = False

    @classmethod
    def alike(cls, size: int, start: float, low: float, high: float, prior: Density) -> Parameter:
        """``size`` entries with the same start."""
        return cls((start,) * size, low, high, prior)


Parameters: TypeAlias = "dict[str, Parameter]"


class Table:
    """All parameters of a model, in a fixed order."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = dict(parameters)
        self._sizes = [len(p.start) for p in self.parameters.values()]
        self._starts = {k: vector(p.start) for k, p in self.parameters.items()}
        normal = {k: p.prior for k, p in self.parameters.items() if isinstance(p.prior, Normal)}
        self._normal = list(normal)
        self._means = torch.cat([self._starts[k] for k in normal])
        self._widths = torch.cat(
            [torch.full_like(self._starts[k], prior.width) for k, prior in normal.items()]
        )
        self.together = frozenset(k for k, p in self.parameters.items() if not p.apart)
        rows = list(zip(self.parameters.values(), self._sizes, strict=True))
        self.low: Array = np.concatenate([np.full(s, p.low) for p, s in rows])
        self.high: Array = np.concatenate([np.full(s, p.high) for p, s in rows])

    def start(self, known: Mapping[str, Tensor] | None = None) -> Values:
        """Starting values; those in ``known`` with the right size are taken over, boxed in."""
        values = {}
        for name, parameter in self.parameters.items():
            value = self._starts[name]
            given = (known or {}).get(name)
            if given is not None and given.shape == value.shape and torch.isfinite(given).all():
                value = given
            values[name] = value.detach().clone().clamp(parameter.low, parameter.high)
        return values

    def flat(self, values: Mapping[str, Tensor]) -> Array:
        """The flat vector of ``values``, inside the box."""
        theta = torch.cat([values[k].detach() for k in self.parameters]).numpy()
        return np.asarray(np.clip(theta, self.low, self.high))

    def mask(self, names: Collection[str]) -> npt.NDArray[np.bool_]:
        """Which entries of the flat vector belong to parameters among ``names``."""
        flags = [name in names for name in self.parameters]
        return np.repeat(np.array(flags, dtype=np.bool_), self._sizes)

    def split(self, theta: Tensor) -> Values:
        """The named parts of a flat vector."""
        return dict(zip(self.parameters, torch.split(theta, self._sizes), strict=True))

    def penalty(self, values: Mapping[str, Tensor]) -> Tensor:
        """Minus the log prior density, up to a constant (scalar)."""
        # Most priors are normal; one step for all of them instead of many small ones.
        normal = torch.cat([values[k] for k in self._normal])
        total = 0.5 * ((normal - self._means) / self._widths).square().sum()
        for name, parameter in self.parameters.items():
            if not isinstance(parameter.prior, Normal):
                total = total + parameter.prior.penalty(values[name], self._starts[name])
        return total


def vector(entries: tuple[float, ...] | Array) -> Tensor:
    """A float64 tensor of its own."""
    return torch.tensor(np.asarray(entries, dtype=np.float64))
