"""A small denoising diffusion model of decision vectors (Ho, Jain, Abbeel 2020), as in CDM-PSL.

Forward: x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) e with abar_t = prod_{s <= t} (1 - beta_s). A
network learns e from (x_t, t); backwards from x ~ N(0, I), t = T-1 .. 0,
mean = (x - beta_t e(x, t) / sqrt(1 - abar_t)) / sqrt(1 - beta_t), x = mean + sqrt(beta_t) z.
A guide shifts each mean. Notation: x (n, d) float32, t (n,) steps, beta and abar (T,).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuropareto.archive import Indices
from neuropareto.peers.dense import Adam, Dense, Floats

Guide: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The variance ``beta`` added at each step and the share ``alpha_bar`` of x_0 that is left."""

    beta: Floats
    alpha_bar: Floats

    @classmethod
    def sigmoid(cls, steps: int, low: float = 1e-5, high: float = 0.05) -> Schedule:
        """beta_t = low + (high - low) / (1 + exp(-s_t)), s_t from -6 to 6 in equal steps."""
        beta = low + (high - low) / (1.0 + np.exp(-np.linspace(-6.0, 6.0, steps)))
        return cls(beta.astype(np.float32), np.cumprod(1.0 - beta).astype(np.float32))

    def noised(self, x: Floats, t: Indices, noise: Floats) -> Floats:
        """x_t of x_0 = ``x`` with the standard normal ``noise``, (n, d)."""
        left = self.alpha_bar[t][:, None]
        return np.asarray(np.sqrt(left) * x + np.sqrt(1.0 - left) * noise, dtype=np.float32)


class Denoiser:
    """e(x, t): d - h - h - d with ReLU; a learned vector of the step joins each hidden layer."""

    def __init__(self, d: int, hidden: int, steps: int, rng: np.random.Generator) -> None:
        self.network = Dense((d, hidden, hidden, d), [(steps, hidden)] * 2, rng)
        self.d, self._steps = d, np.arange(steps)

    def __call__(self, x: Floats, t: Indices) -> Floats:
        """The predicted noise in x (n, d) at steps t (n,)."""
        return self._values(x, t)[-1]

    def loss(self, x: Floats, t: Indices, noise: Floats) -> float:
        """Mean squared error of the predicted noise; its gradient is left in the network."""
        values = self._values(x, t)
        gap = values[-1] - noise
        slopes = self.network.backward(values, gap * np.float32(2.0 / gap.size))
        at = (self._steps[:, None] == t).astype(np.float32)
        for gradient, slope in zip(self.network.table_gradients, slopes, strict=True):
            np.matmul(at, slope, out=gradient)
        return float(np.square(gap).mean())

    def _values(self, x: Floats, t: Indices) -> list[Floats]:
        return self.network.forward(x, [table[t] for table in self.network.tables])


def trained(
    x: Floats, schedule: Schedule, *, hidden: int, epochs: int, rng: np.random.Generator
) -> Denoiser:
    """A denoiser of the rows of x (n, d): least squares on the noise, Adam, gradients of norm <= 1.

    Each epoch is one step on all rows. Steps come in pairs t and T-1-t, so that early and late
    ones are seen equally often.
    """
    n, steps = len(x), len(schedule.beta)
    denoiser = Denoiser(x.shape[1], hidden, steps, rng)
    adam = Adam(denoiser.network, longest=1.0)
    for _ in range(epochs):
        half = rng.integers(steps, size=n - n // 2)
        t = np.concatenate([half, steps - 1 - half])[:n]
        noise = rng.standard_normal(x.shape, dtype=np.float32)
        denoiser.loss(schedule.noised(x, t, noise), t, noise)
        adam.step()
    return denoiser


def unguided(x: Floats) -> Floats:
    """The guide that leads nowhere."""
    return np.zeros_like(x)


def sampled(
    denoiser: Denoiser,
    schedule: Schedule,
    n: int,
    *,
    guide: Guide,
    scale: float,
    rng: np.random.Generator,
) -> Floats:
    """n rows (n, d), each mean shifted by -scale (1 - abar_t) guide(mean).

    The guide returns for each row the direction in which what is to be minimised grows.
    """
    x: Floats = rng.standard_normal((n, denoiser.d), dtype=np.float32)
    for t in reversed(range(len(schedule.beta))):
        beta, noisy = float(schedule.beta[t]), 1.0 - float(schedule.alpha_bar[t])
        noise = denoiser(x, np.full(n, t))
        mean: Floats = np.asarray(
            (x - beta / noisy**0.5 * noise) / (1.0 - beta) ** 0.5, dtype=np.float32
        )
        x = np.asarray(mean - scale * noisy * guide(mean), dtype=np.float32)
        if t > 0:
            x += np.float32(beta**0.5) * rng.standard_normal(x.shape, dtype=np.float32)
    return x
