from __future__ import annotations

import numpy as np
import torch

from neuropareto.peers.dense import Adam, Dense, Floats
from neuropareto.peers.diffusion import Denoiser, Schedule, sampled, trained, unguided


def test_the_schedule_is_the_published_one() -> None:
    schedule = Schedule.sigmoid(25)
    middle = 1e-5 + 0.5 * (0.05 - 1e-5)
    assert np.isclose(schedule.beta[12], middle) and (np.diff(schedule.beta) > 0).all()
    assert np.isclose(schedule.alpha_bar[2], np.prod(1.0 - schedule.beta[:3]))


def test_forward_noise_has_the_closed_form_variance() -> None:
    schedule, rng = Schedule.sigmoid(25), np.random.default_rng(0)
    x = np.full((40_000, 1), 0.7, dtype=np.float32)
    for t in (0, 12, 24):
        noise = rng.standard_normal(x.shape, dtype=np.float32)
        y = schedule.noised(x, np.full(len(x), t), noise)
        left = float(schedule.alpha_bar[t])
        assert np.isclose(y.mean(), 0.7 * left**0.5, atol=0.02)
        assert np.isclose(y.var(), 1.0 - left, rtol=0.03)
    # The same by adding the steps' noise one after another.
    z = x.copy()
    for beta in schedule.beta:
        z = np.sqrt(1.0 - beta) * z + np.sqrt(beta) * rng.standard_normal(x.shape)
    assert np.isclose(z.var(), 1.0 - float(schedule.alpha_bar[-1]), rtol=0.03)


def test_the_gradient_is_torchs() -> None:
    rng = np.random.default_rng(0)
    denoiser = Denoiser(3, 7, 5, rng)
    x, noise = (rng.standard_normal((6, 3), dtype=np.float32) for _ in range(2))
    t = rng.integers(5, size=6)
    value = denoiser.loss(x, t, noise)
    theta = torch.tensor(denoiser.network.theta, requires_grad=True)
    sizes = [21, 49, 21, 7, 7, 3, 35, 35]
    W1, W2, W3, b1, b2, b3, E1, E2 = torch.split(theta, sizes)
    h = torch.relu(torch.tensor(x) @ W1.reshape(3, 7) + b1 + E1.reshape(5, 7)[t])
    h = torch.relu(h @ W2.reshape(7, 7) + b2 + E2.reshape(5, 7)[t])
    loss = (h @ W3.reshape(7, 3) + b3 - torch.tensor(noise)).square().mean()
    (gradient,) = torch.autograd.grad(loss, theta)
    assert np.isclose(value, float(loss.detach()), rtol=1e-5)
    assert np.allclose(denoiser.network.gradient, gradient.numpy(), atol=1e-6)


def test_adam_is_torchs() -> None:
    rng = np.random.default_rng(0)
    network = Dense((4, 5, 2), [], rng)
    theta = torch.tensor(network.theta, requires_grad=True)
    ours = Adam(network, decay=1e-2, longest=1.0)
    theirs = torch.optim.Adam([theta], lr=1e-3, weight_decay=1e-2)
    for scale in (0.1, 30.0, 1.0, 0.01):
        gradient = (scale * rng.standard_normal(len(network.theta))).astype(np.float32)
        network.gradient[:] = gradient
        theta.grad = torch.tensor(gradient)
        torch.nn.utils.clip_grad_norm_([theta], 1.0)
        ours.step()
        theirs.step()
    assert np.allclose(network.theta, theta.detach().numpy(), atol=1e-6)


def two_towers(n: int) -> Floats:
    """Half of the mass at (-1, 1), half at (1, -1): mean 0, variance 1, correlation -1."""
    side = np.repeat([-1.0, 1.0], n // 2)[:, None]
    return np.asarray(side * [1.0, -1.0], dtype=np.float32)


def test_denoising_recovers_a_known_distribution() -> None:
    rng, schedule = np.random.default_rng(0), Schedule.sigmoid(25)
    denoiser = trained(two_towers(64), schedule, hidden=64, epochs=1500, rng=rng)
    x = sampled(denoiser, schedule, 1000, guide=unguided, scale=0.0, rng=rng)
    near = np.abs(np.abs(x) - 1.0).max(axis=1) < 0.3
    assert near.mean() > 0.6
    # From a standard normal start the two coordinates are independent; denoised, they are not.
    assert (x[:, 0] * x[:, 1]).mean() < -0.6 * x[:, 0].std() * x[:, 1].std()
    assert abs(x[near, 0].mean()) < 0.25


def test_a_guide_moves_the_samples_down() -> None:
    rng, schedule = np.random.default_rng(0), Schedule.sigmoid(10)
    denoiser = trained(two_towers(32), schedule, hidden=16, epochs=50, rng=rng)

    def uphill(x: Floats) -> Floats:
        return np.asarray(np.ones_like(x) * [1.0, 0.0], dtype=np.float32)

    free, led = (
        sampled(
            denoiser, schedule, 50, guide=g, scale=0.1, rng=np.random.default_rng(1)
        )
        for g in (unguided, uphill)
    )  # fmt: skip
    assert (led[:, 0] < free[:, 0]).all()
