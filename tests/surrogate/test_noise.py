from __future__ import annotations

import pytest
import torch

from neuropareto.surrogate.noise import FLOOR, Heteroscedastic, Homoscedastic, Noise

PHI = torch.randn(20, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LEVEL = torch.tensor([-3.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize("noise", [Homoscedastic(), Heteroscedastic()], ids=["same", "varying"])
def test_noise_starts_at_its_level_everywhere(noise: Noise) -> None:
    p = noise.start(5, LEVEL, torch.Generator().manual_seed(0))
    assert torch.allclose(noise.log_variance(p, PHI), LEVEL.expand(20, 2), atol=1e-4)


@pytest.mark.parametrize("noise", [Homoscedastic(), Heteroscedastic()], ids=["same", "varying"])
def test_noise_never_falls_below_its_floor(noise: Noise) -> None:
    p = noise.start(5, torch.full((2,), -100.0, dtype=torch.float64), torch.Generator())
    assert (noise.log_variance(p, PHI) >= FLOOR).all()


def test_the_network_is_the_formula() -> None:
    noise = Heteroscedastic(hidden=3)
    p = noise.start(5, LEVEL, torch.Generator().manual_seed(0))
    p["weights"] = torch.randn(2, 3, generator=torch.Generator().manual_seed(1)).double()
    s = torch.tanh(PHI @ p["hidden"].T + p["hidden_bias"]) @ p["weights"].T + p["bias"]
    assert torch.allclose(noise.log_variance(p, PHI), s, atol=1e-3)
    assert noise.log_variance(p, PHI).std(0).min() > 0.1


def test_the_network_is_unfrozen_after_its_rounds() -> None:
    noise = Heteroscedastic(frozen_rounds=2)
    assert noise.trainable(0) == noise.trainable(1) == ("bias",)
    assert set(noise.trainable(2)) == set(noise.start(5, LEVEL, torch.Generator()))
    assert Homoscedastic().trainable(99) == ("bias",)
