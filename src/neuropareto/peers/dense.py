"""Small dense ReLU networks and Adam in plain arrays, for thousands of steps on a few rows.

With some 50 rows of 30 numbers a framework's bookkeeping costs several times the arithmetic, so
the gradient is written out here; torch's is its oracle in tests. All parameters live in one vector
``theta``, of which the matrices are views, so that Adam and clipping are a few operations.
Notation: x (n, d) float32; layer l maps h_l to h_{l+1}; shift_l (n, h_{l+1}) joins a hidden layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Dense:
    """h_{l+1} = relu(h_l W_l + b_l + shift_l), the last layer without relu.

    ``tables`` are further learned matrices, such as embeddings, that live in the same vector.
    """

    def __init__(
        self, sizes: Sequence[int], tables: Sequence[tuple[int, int]], rng: np.random.Generator
    ) -> None:
        pairs = list(pairwise(sizes))
        self._shapes: list[tuple[int, ...]] = [*pairs, *((b,) for _, b in pairs), *tables]
        self._layers = len(pairs)
        self.theta = np.zeros(sum(int(np.prod(s)) for s in self._shapes), dtype=np.float32)
        self.gradient = np.zeros_like(self.theta)
        self._p, self._g = self._views(self.theta), self._views(self.gradient)
        for l, (a, _) in enumerate(pairs):
            for view in (self._p[l], self._p[self._layers + l]):
                view[...] = rng.uniform(-(a**-0.5), a**-0.5, view.shape)
        for table in self.tables:
            table[...] = rng.standard_normal(table.shape)

    def _views(self, flat: Floats) -> list[Floats]:
        ends = np.cumsum([int(np.prod(s)) for s in self._shapes])
        parts = np.split(flat, ends[:-1])
        return [part.reshape(s) for part, s in zip(parts, self._shapes, strict=True)]

    @property
    def tables(self) -> list[Floats]:
        """The further matrices, as views."""
        return self._p[2 * self._layers :]

    @property
    def table_gradients(self) -> list[Floats]:
        """Where their gradients belong."""
        return self._g[2 * self._layers :]

    def forward(self, x: Floats, shifts: Sequence[Floats | float]) -> list[Floats]:
        """All layers' values, x first and the output last; one shift for each hidden layer."""
        values = [x]
        for l in range(self._layers):
            h = values[-1] @ self._p[l]
            h += self._p[self._layers + l]
            if l < self._layers - 1:
                h += shifts[l]
                np.maximum(h, 0.0, out=h)
            values.append(h)
        return values

    def backward(self, values: Sequence[Floats], slope: Floats) -> list[Floats]:
        """Write the gradient given d loss / d output; returns d loss / d shift of each layer."""
        slopes: list[Floats] = []
        for l in reversed(range(self._layers)):
            np.matmul(values[l].T, slope, out=self._g[l])
            slope.sum(axis=0, out=self._g[self._layers + l])
            if l:
                slope = slope @ self._p[l].T
                slope *= values[l] > 0
                slopes.append(slope)
        return slopes[::-1]


class Adam:
    """Adam (Kingma and Ba 2015) on one vector, with optional weight decay and gradient clipping."""

    def __init__(
        self, network: Dense, *, rate: float = 1e-3, decay: float = 0.0, longest: float = np.inf
    ) -> None:
        self._network, self._rate, self._decay, self._longest = network, rate, decay, longest
        self._m, self._v = np.zeros_like(network.theta), np.zeros_like(network.theta)
        self._t = 0

    def step(self) -> None:
        """One step down the network's present gradient, shortened to the longest allowed norm."""
        theta, g = self._network.theta, self._network.gradient
        norm = float(np.sqrt(g @ g))
        if norm > self._longest:
            g *= np.float32(self._longest / norm)
        if self._decay:
            g += np.float32(self._decay) * theta
        self._t += 1
        self._m += np.float32(0.1) * (g - self._m)
        self._v += np.float32(0.001) * (g * g - self._v)
        scale = np.sqrt(self._v)
        scale *= np.float32(1.0 / np.sqrt(1.0 - 0.999**self._t))
        scale += np.float32(1e-8)
        theta -= np.float32(self._rate / (1.0 - 0.9**self._t)) * self._m / scale
