"""Observation noise: input-dependent, sigma^2(x) = exp(s_psi(phi(x))), or the same everywhere.

phi(x) (n, q) are the features of the neural mean beside the means of the latent functions; s_psi
is a network with one hidden layer, frozen but for its level for the first rounds, so that it
cannot explain away signal before the mean and the latent functions have settled.
Paper: Eq. hetero_noise; "Avoiding surrogate fatigue": staged unfreezing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from neuropareto.surrogate.mean import Params

# Variance of the noise on the unit scale below which a simulator counts as exact.
FLOOR = math.log(1e-6)


class Noise(Protocol):
    """How the variance of the observation noise depends on the point."""

    def start(
        self, inputs: int, log_level: Tensor, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Parameters that give the log variances ``log_level`` (m,) everywhere."""
        ...

    def log_variance(self, p: Params, phi: Tensor) -> Tensor:
        """log sigma^2 (n, m) at features phi (n, inputs)."""
        ...

    def log_prior(self, p: Params) -> Tensor:
        """Log density of the network's parameters, up to a constant."""
        ...

    def trainable(self, rounds: int) -> tuple[str, ...]:
        """Names of the parameters that may move after ``rounds`` earlier fits."""
        ...


@dataclass(frozen=True)
class Homoscedastic:
    """One variance for each objective: the null object of Eq. hetero_noise."""

    def start(
        self, inputs: int, log_level: Tensor, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """The level alone."""
        return {"bias": log_level.clone()}

    def log_variance(self, p: Params, phi: Tensor) -> Tensor:
        """The same row for every point."""
        return _floored(p["bias"]).expand(len(phi), -1)

    def log_prior(self, p: Params) -> Tensor:
        """There is no network."""
        return p["bias"].new_zeros(())

    def trainable(self, rounds: int) -> tuple[str, ...]:
        """The level, always."""
        return ("bias",)


@dataclass(frozen=True)
class Heteroscedastic:
    """sigma^2(x) = exp(v^T tanh(P phi(x) + c) + b), frozen but for b for ``frozen_rounds`` fits."""

    hidden: int = 16
    frozen_rounds: int = 2

    def start(
        self, inputs: int, log_level: Tensor, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Random hidden units; zero weights, so that the noise starts equal everywhere."""
        draw = torch.randn(self.hidden, inputs + 1, generator=generator, dtype=torch.float64)
        draw = draw.to(log_level.device)
        return {
            "bias": log_level.clone(),
            "hidden": draw[:, :-1] / math.sqrt(max(1, inputs)),
            "hidden_bias": draw[:, -1],
            "weights": log_level.new_zeros(len(log_level), self.hidden),
        }

    def log_variance(self, p: Params, phi: Tensor) -> Tensor:
        """s_psi(phi(x)) (n, m), kept above the floor."""
        hidden = torch.tanh(phi @ p["hidden"].T + p["hidden_bias"])
        return _floored(hidden @ p["weights"].T + p["bias"])

    def log_prior(self, p: Params) -> Tensor:
        """Normal: as they start for the hidden units, standard for the weights."""
        inputs = p["hidden"].shape[-1]
        square = inputs * p["hidden"].square().sum() + p["hidden_bias"].square().sum()
        return -0.5 * (square + p["weights"].square().sum())

    def trainable(self, rounds: int) -> tuple[str, ...]:
        """The level; after ``frozen_rounds`` fits the network too."""
        if rounds < self.frozen_rounds:
            return ("bias",)
        return ("bias", "hidden", "hidden_bias", "weights")


def _floored(s: Tensor) -> Tensor:
    return FLOOR + softplus(s - FLOOR)
