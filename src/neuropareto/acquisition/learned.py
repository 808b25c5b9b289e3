"""The learned acquisition (section "History aware lightweight acquisition network").

Notation: b remembered proposals, f features, H hidden units, E networks side by side: one for each
block of the trust's test and, last, the one that scores. Before there are enough proposals the
score is the surrogate's own hypervolume estimate; afterwards it is the blend
(1 - w) estimate + w network, where w is what :mod:`neuropareto.acquisition.trust` measured, so a
useless network leaves the estimate as it was. Swappable: ``trust``, ``loss``, ``training``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from neuropareto.acquisition.contract import Signals, Utility
from neuropareto.acquisition.history import normalised, running_magnitude
from neuropareto.acquisition.trust import EarnedTrust, Rows, Trust
from neuropareto.adam import AdamW
from neuropareto.archive import Gains
from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array

Parameters = dict[str, Tensor]


class Loss(Protocol):
    """What an error of the prediction costs."""

    def __call__(self, residual: Tensor) -> Tensor:
        """The cost of each residual, elementwise."""
        ...


@dataclass(frozen=True)
class Squared:
    """The squared error of Eq. acq_loss."""

    def __call__(self, residual: Tensor) -> Tensor:
        """r^2."""
        return residual.square()


@dataclass(frozen=True)
class Huber:
    """Squared up to ``delta``, linear beyond: r^2 or delta (2 |r| - delta)."""

    delta: float = 1.0

    def __call__(self, residual: Tensor) -> Tensor:
        """The Huber loss, scaled to agree with the squared error near 0."""
        size = residual.abs()
        return torch.where(
            size <= self.delta, residual.square(), self.delta * (2 * size - self.delta)
        )


@dataclass(frozen=True)
class OnlineTraining:
    """Adam on mini-batches of at most ``batch`` rows; ``decay`` is lambda, R the sum of squares."""

    steps: int = 150
    rate: float = 1e-2
    decay: float = 3e-3
    batch: int = 256

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or self.rate <= 0 or self.decay < 0:
            raise ValueError(
                f"OnlineTraining needs steps and batch >= 1, rate > 0 and decay >= 0, got {self}."
            )


@dataclass(frozen=True)
class LearnedAcquisition:
    """A shallow network a_psi: features -> (hypervolume gain, diversity gain), blended by trust.

    Loss: mean of (s_HV - dHV)^2 + ``diversity_weight`` (s_div - ddiv)^2, plus lambda R(psi), with
    both targets divided by their running magnitude. Paper: Eqs. acq_map, acq_loss (the second),
    div_norm. ``memory`` is the factor of the running magnitude.
    """

    width: int = 32
    diversity_weight: float = 0.5
    loss: Loss = Squared()
    training: OnlineTraining = OnlineTraining()
    trust: Trust = EarnedTrust()
    memory: float = 0.9
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.width < 1 or self.diversity_weight < 0 or not 0 <= self.memory < 1:
            raise ValueError(
                f"LearnedAcquisition needs width >= 1, diversity_weight >= 0 and 0 <= memory < 1, "
                f"got {self.width}, {self.diversity_weight} and {self.memory}."
            )

    def fit(
        self,
        features: Array,
        estimate: Array,
        gains: Gains,
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> FittedLearned:
        """Fit to b past proposals, oldest first; b may be 0.

        ``features`` (b, f) and ``estimate`` (b,) as of the proposals, ``gains`` (b,) as observed.
        Rows with a value that is not finite are left out. Raises ValueError on wrong shapes.
        """
        X, estimate, gains = _finite(features, estimate, gains)
        b = len(X)
        if b < max(self.trust.n_min, 2):
            notes = {"n": b, "weight": 0.0, "weight_diversity": 0.0}
            return FittedLearned(_silent, 0.0, 0.0, 1.0, warm or {}, notes)
        generator = torch.Generator().manual_seed(torch_seed(rng))
        scale = Scale.of(X)
        Y = np.stack(
            [normalised(gains.hypervolume, self.memory), normalised(gains.diversity, self.memory)],
            axis=1,
        )
        blocks = self.trust.tested(b)
        visible = np.ones((len(blocks) + 1, b))
        for net, rows in enumerate(blocks):
            visible[net, rows[0] :] = 0.0
        P = self._trained(scale(X), Y, visible, warm, generator)
        final = {name: value[-1:] for name, value in P.items()}
        forecast = _forecast(P, scale(X), blocks)
        weight = self.trust.weight(blocks, forecast[:, 0], gains.hypervolume, estimate)
        weight_diversity = self.trust.weight(blocks, forecast[:, 1], gains.diversity, np.zeros(b))
        # The network counts in average gains; the average estimate brings it to the estimate's unit.
        unit = running_magnitude(estimate, self.memory)[-1]
        unit = unit if unit > 0 else running_magnitude(gains.hypervolume, self.memory)[-1]
        return FittedLearned(
            network=Network(final, scale),
            weight=weight,
            weight_diversity=weight_diversity,
            unit=float(unit) if unit > 0 else 1.0,
            warm={name: value[0].cpu().numpy() for name, value in final.items()},
            notes={"n": b, "weight": weight, "weight_diversity": weight_diversity},
        )

    def _trained(
        self,
        X: Array,
        Y: Array,
        visible: Array,
        warm: Memory | None,
        generator: torch.Generator,
    ) -> Parameters:
        """Parameters of E networks; network e learns from the rows where ``visible`` (E, b) is 1."""
        x, y, seen = (torch.from_numpy(a).to(self.device) for a in (X, Y, visible))
        P = _initial(len(seen), X.shape[1], self.width, generator)
        # Only the last network may start warm: the others must not have met the rows they predict.
        known = _recalled(warm, P)
        for name, value in known.items():
            P[name][-1] = value
        P = {name: value.to(self.device).requires_grad_() for name, value in P.items()}
        optimiser = AdamW(P, self.training.rate, {})
        cost = torch.tensor([1.0, self.diversity_weight], dtype=torch.float64, device=self.device)
        b, batch = len(x), self.training.batch
        for _ in range(self.training.steps):
            rows = torch.arange(b)
            if b > batch:
                rows = torch.randperm(b, generator=generator)[:batch]
            error = (self.loss(_outputs(P, x[rows]) - y[rows]) * cost).sum(dim=-1)
            share = seen[:, rows] / seen[:, rows].sum(dim=1, keepdim=True).clamp_min(1.0)
            size = P["W1"].square().sum() + P["W2"].square().sum()
            optimiser.step((share * error).sum() + self.training.decay * size)
        return {name: value.detach() for name, value in P.items()}


@dataclass(frozen=True, eq=False)
class FittedLearned:
    """A fitted :class:`LearnedAcquisition`.

    hypervolume = (1 - w) estimate + w unit s_HV, diversity = w_div s_div. With both weights 0 it
    is the surrogate's estimate, and no opinion on diversity.
    """

    network: Callable[[Array], Array] = field(repr=False)
    weight: float
    weight_diversity: float
    unit: float
    warm: Memory = field(repr=False)
    notes: Mapping[str, Any]

    def score(self, signals: Signals) -> Utility:
        """The utility of each candidate."""
        output = self.network(signals.features())
        return Utility(
            (1.0 - self.weight) * signals.estimate + self.weight * self.unit * output[:, 0],
            self.weight_diversity * output[:, 1],
        )


@dataclass(frozen=True, eq=False)
class Scale:
    """Robust standardisation: arsinh((x - median) / spread), (n, f) -> (n, f).

    The spread is the interquartile range over that of a normal variable, or the standard deviation
    where that is 0. A feature that never varied in the history is 0 for every candidate: nothing
    was learnt about it.
    """

    centre: Array
    spread: Array

    @classmethod
    def of(cls, X: Array) -> Scale:
        """The scale of remembered features (b, f)."""
        low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
        spread = (high - low) / 1.349
        spread = np.where(spread > 0, spread, X.std(axis=0))
        # Equal numbers may have a standard deviation of rounding size.
        tiny = 1e-12 * np.abs(X).max(axis=0)
        return cls(centre, np.where(spread > tiny, spread, np.inf))

    def __call__(self, X: Array) -> Array:
        """Standardised features."""
        return np.asarray(np.arcsinh((X - self.centre) / self.spread))


@dataclass(frozen=True, eq=False)
class Network:
    """The scoring network a_psi with the scale of its inputs. Paper: Eq. acq_map."""

    parameters: Parameters
    scale: Scale

    def __call__(self, features: Array) -> Array:
        """(n, f) -> (n, 2): hypervolume and diversity gain in units of the average gain."""
        x = torch.from_numpy(self.scale(features)).to(self.parameters["b2"].device)
        with torch.no_grad():
            return np.asarray(_outputs(self.parameters, x)[0].cpu().numpy())


def _silent(features: Array) -> Array:
    return np.zeros((len(features), 2))


def _initial(nets: int, f: int, width: int, generator: torch.Generator) -> Parameters:
    W1 = torch.randn((1, width, f), generator=generator, dtype=torch.float64) / f**0.5
    return {
        "W1": W1.repeat(nets, 1, 1),
        "b1": torch.zeros((nets, width), dtype=torch.float64),
        "W2": torch.zeros((nets, 2, width), dtype=torch.float64),
        "b2": torch.zeros((nets, 2), dtype=torch.float64),
    }


def _recalled(warm: Memory | None, P: Parameters) -> Parameters:
    if warm is None or any(name not in warm for name in P):
        return {}
    if any(warm[name].shape != value.shape[1:] for name, value in P.items()):
        return {}
    found = {name: np.array(warm[name], dtype=np.float64) for name in P}
    if not all(np.isfinite(value).all() for value in found.values()):
        return {}
    return {name: torch.from_numpy(value) for name, value in found.items()}


def _outputs(P: Parameters, X: Tensor) -> Tensor:
    """W2 tanh(W1 x + b1) + b2 for E networks, (n, f) -> (E, n, 2)."""
    return torch.tanh(X @ P["W1"].mT + P["b1"][:, None]) @ P["W2"].mT + P["b2"][:, None]


def _forecast(P: Parameters, X: Array, blocks: list[Rows]) -> Array:
    """What the network of each block says of its rows, (b, 2); 0 elsewhere."""
    with torch.no_grad():
        output = _outputs(P, torch.from_numpy(X).to(P["b2"].device)).cpu().numpy()
    forecast = np.zeros((len(X), 2))
    for net, rows in enumerate(blocks):
        forecast[rows] = output[net, rows]
    return forecast


def _finite(features: Array, estimate: Array, gains: Gains) -> tuple[Array, Array, Gains]:
    b = len(features)
    shapes = (estimate.shape, gains.hypervolume.shape, gains.diversity.shape)
    if features.ndim != 2 or set(shapes) != {(b,)}:
        raise ValueError(
            f"An acquisition needs features (b, f), estimate (b,) and gains (b,), got "
            f"{features.shape} and {shapes}."
        )
    columns = np.column_stack([features, estimate, gains.hypervolume, gains.diversity])
    good = np.isfinite(columns).all(axis=1)
    return features[good], estimate[good], Gains(gains.hypervolume[good], gains.diversity[good])
