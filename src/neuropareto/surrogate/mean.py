"""Neural mean functions: m(x) = w^T phi(x) + b with phi(x) = (path(x), tanh(V x + c)).

``path`` is a linear (residual) path around the hidden units, so that the mean can never express
less than a linear model. The weights w ~ N(0, t) are integrated out wherever they act, so the
mean's uncertainty counts as epistemic: a hundred slopes estimated from two hundred points are
anything but known, and as point estimates they overfit. V, c and b are learned.
Paper: Eq. mean_fn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Params = Mapping[str, Tensor]


@dataclass(frozen=True)
class NeuralMean:
    """phi with ``hidden`` tanh units besides its linear path; ``hidden=0`` leaves the path only.

    Parameters: ``hidden`` (h, inputs), V of the formula, and ``hidden_bias`` (h,), its c.
    """

    hidden: int = 16

    def start(
        self, inputs: int, generator: torch.Generator, device: torch.device
    ) -> dict[str, Tensor]:
        """Random hidden units."""
        draw = torch.randn(self.hidden, inputs + 1, generator=generator, dtype=torch.float64)
        draw = draw.to(device)
        return {"hidden": draw[:, :-1] / math.sqrt(inputs), "hidden_bias": draw[:, -1]}

    def hidden_units(self, p: Params, X: Tensor) -> Tensor:
        """tanh(V x + c) / sqrt(h), (..., n, h): together of about unit variance."""
        units = torch.tanh(X @ p["hidden"].T + p["hidden_bias"])
        return units * (1.0 / math.sqrt(max(1, self.hidden)))

    def log_prior(self, p: Params) -> Tensor:
        """Log density of V and c, up to a constant, under the distribution they start from."""
        inputs = p["hidden"].shape[-1]
        return -0.5 * (inputs * p["hidden"].square().sum() + p["hidden_bias"].square().sum())
