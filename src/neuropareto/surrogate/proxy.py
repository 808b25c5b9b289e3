"""Cheap proxies for screening thousands of candidates: Bayesian linear models.

``LinearProxy`` is linear and quadratic in every variable and in their sums; ``FourierProxy`` adds
random Fourier features of all variables and of the most telling ones. Both obey the surrogate's
contract. Notation: X (n, d) in [-1, 1], Phi (n, f) features in groups.
Paper: section "Two stage surrogate evaluation" (RFF proxies, linearized surrogates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.bayesian_linear import FittedLinear, Joined, regress
from neuropareto.surrogate.deep_start import selected, telling_features
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.features import fourier_features
from neuropareto.surrogate.kernels import RBF, Stationary, structure
from neuropareto.surrogate.scaling import Scale, centred, check_data

_POINTS = 1000


@dataclass(frozen=True)
class LinearProxy:
    """Bayesian ridge on u and its squares, each also pooled over all variables.

    The four groups' prior variances and the noise maximise the evidence in ``iterations`` steps.
    """

    iterations: int = 40
    device: str = "cpu"

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedLinear:
        """Fit to ``U`` (n, d), ``F`` (n, m); ValueError for bad shapes."""
        U, F = check_data(U, F)
        kept = even_subsample(len(U), _POINTS)
        data = U[kept], F[kept]
        phi, device = _Structure(U.shape[1]), torch.device(self.device)
        return regress(phi, data, Scale.of(data[1]), warm, self.iterations, device)


@dataclass(frozen=True)
class FourierProxy:
    """Bayesian linear regression on random Fourier features, with a linear path beside them.

    A third of the ``features`` each see all variables, the ``telling`` most telling variables, and
    the single most telling one; the prior variances of all groups are learned.
    """

    features: int = 1023
    telling: int = 4
    kernel: Stationary = RBF()
    iterations: int = 40
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.features < 6 or self.telling < 1:
            raise ValueError(
                f"A Fourier proxy needs at least 6 features and 1 telling feature, got "
                f"features={self.features}, telling={self.telling}; raise them."
            )

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedLinear:
        """Fit to ``U`` (n, d), ``F`` (n, m); ValueError for bad shapes."""
        U, F = check_data(U, F)
        kept = even_subsample(len(U), _POINTS)
        data = U[kept], F[kept]
        scale, device = Scale.of(data[1]), torch.device(self.device)
        X = centred(data[0], device)
        Y = torch.tensor(scale.standardised(data[1]), device=device)
        columns = telling_features(X, Y, self.telling + 2)[-self.telling :]
        generator = torch.Generator().manual_seed(torch_seed(rng))
        half, d = self.features // 6, U.shape[1]

        def drawn(width: int, lengthscale: float) -> Tensor:
            frequencies = self.kernel.frequencies(half, width, generator).to(device)
            return frequencies / lengthscale

        phi = Joined(
            (
                _Structure(d),
                _Fourier(drawn(d, 2.0 * math.sqrt(d)), None),
                _Fourier(drawn(len(columns), 4.0), tuple(columns)),
                _Fourier(drawn(1, 1.0), tuple(columns[:1])),
            )
        )
        return regress(phi, data, scale, warm, self.iterations, device)


@dataclass(frozen=True)
class _Structure:
    d: int

    @property
    def sizes(self) -> list[int]:
        return [self.d, self.d, 1, 1]

    def __call__(self, X: Tensor) -> Tensor:
        return structure(X)


@dataclass(frozen=True)
class _Fourier:
    frequencies: Tensor
    columns: tuple[int, ...] | None

    @property
    def sizes(self) -> list[int]:
        return [2 * len(self.frequencies)]

    def __call__(self, X: Tensor) -> Tensor:
        seen = X if self.columns is None else selected(X, list(self.columns))
        return fourier_features(seen, self.frequencies)
