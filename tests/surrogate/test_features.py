from __future__ import annotations

import numpy as np
import pytest
import torch

from neuropareto.surrogate.features import fourier_features
from neuropareto.surrogate.kernels import RBF, Matern52, squared_distance


@pytest.mark.parametrize("kernel", [RBF(), Matern52()])
def test_the_kernel_error_falls_with_the_root_of_the_number_of_features(
    kernel: RBF | Matern52,
) -> None:
    def error(features: int) -> float:
        found = []
        for seed in range(12):
            generator = torch.Generator().manual_seed(seed)
            X = torch.rand(30, 3, generator=generator, dtype=torch.float64) * 2 - 1
            Phi = fourier_features(X, kernel.frequencies(features // 2, 3, generator))
            K = kernel.correlation(squared_distance(X, X))
            found.append(float((Phi @ Phi.T - K).square().mean().sqrt()))
        return float(np.mean(found))

    small, large = error(64), error(64 * 64)
    assert large < 0.05
    assert small / large == pytest.approx(8.0, rel=0.35)
