"""The efficient dropout network (Guo, Wang, Gao, Jin, Ding, Chai 2022): a surrogate with spread.

d inputs, dropout 0.2, 40 ReLU units, dropout 0.5, 40 tanh units, m linear outputs; dropout acts in
training and in prediction, and many passes give mean and deviation of the predictions.
Notation: X (n, d) and Y (n, m) on [-1, 1], S passes. The gradient is written out: at this size an
automatic one costs several times as much as the arithmetic, and a run takes 600,000 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from neuropareto.memory import Memory
from neuropareto.space import Array

Single: TypeAlias = npt.NDArray[np.float32]
_NAMES = ("W1", "b1", "W2", "b2", "W3", "b3")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class DropoutNetwork:
    """Spec: widths, dropout rates, plain SGD with weight decay, steps of a first and a later fit."""

    hidden: int = 40
    drop_input: float = 0.2
    drop_hidden: float = 0.5
    rate: float = 0.01
    decay: float = 1e-5
    first_steps: int = 80_000
    later_steps: int = 8_000
    passes: int = 100

    def fit(
        self, X: Array, Y: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedDropoutNetwork:
        """A network of Y (n, m) at X (n, d), trained on from ``warm`` where its shapes fit."""
        shapes = self._shapes(X.shape[1], Y.shape[1])
        known = warm is not None and all(
            k in warm and warm[k].shape == s for k, s in zip(_NAMES, shapes, strict=True)
        )
        if known and warm is not None:
            weights = [np.array(warm[k], dtype=np.float32, order="C") for k in _NAMES]
            steps = self.later_steps
        else:
            weights, steps = self._fresh(X.shape[1], Y.shape[1], rng), self.first_steps
        self._trained(weights, X.astype(np.float32), Y.astype(np.float32), steps, rng)
        return FittedDropoutNetwork(self, weights)

    def _shapes(self, d: int, m: int) -> list[tuple[int, ...]]:
        h = self.hidden
        return [(d, h), (h,), (h, h), (h,), (h, m), (m,)]

    def _fresh(self, d: int, m: int, rng: np.random.Generator) -> list[Single]:
        """Weights with variance 1 / fan-in; the first bias slightly positive, others random."""
        h = self.hidden
        drawn = [
            rng.normal(size=(d, h)) / np.sqrt(d),
            np.full(h, 0.1 / np.sqrt(h)),
            rng.normal(size=(h, h)) / np.sqrt(h),
            rng.normal(size=h) / np.sqrt(h),
            rng.normal(size=(h, m)) / np.sqrt(h),
            rng.normal(size=m) / np.sqrt(m),
        ]
        return [np.asarray(w, dtype=np.float32) for w in drawn]

    def _trained(
        self, weights: list[Single], X: Single, Y: Single, steps: int, rng: np.random.Generator
    ) -> None:
        """Change ``weights`` by SGD on batches of d points drawn with replacement."""
        d, size = X.shape[1], X.shape[1]
        chunk = max(1, _CHUNK // (size * (d + self.hidden)))
        for start in range(0, steps, chunk):
            n = min(chunk, steps - start)
            rows = rng.integers(len(X), size=(n, size))
            inputs = X[rows] * kept((n, size, d), self.drop_input, rng)
            masks = kept((n, size, self.hidden), self.drop_hidden, rng)
            for A, mask, T in zip(inputs, masks, Y[rows], strict=True):
                for w, g in zip(weights, gradient(weights, A, mask, T), strict=True):
                    g += np.float32(self.decay) * w
                    g *= np.float32(self.rate)
                    w -= g


class FittedDropoutNetwork:
    """A trained network with dropout still at work."""

    def __init__(self, spec: DropoutNetwork, weights: list[Single]) -> None:
        self._spec, self._weights = spec, weights

    def predict(self, X: Array, *, rng: np.random.Generator) -> tuple[Array, Array]:
        """Mean and standard deviation of S passes at X (n, d), both (n, m)."""
        spec, (W1, b1, W2, b2, W3, b3) = self._spec, self._weights
        shape = (spec.passes, len(X))
        A = X.astype(np.float32) * kept((*shape, X.shape[1]), spec.drop_input, rng)
        H = np.maximum(A.reshape(-1, X.shape[1]) @ W1 + b1, 0.0)
        H *= kept(H.shape, spec.drop_hidden, rng)
        out = (np.tanh(H @ W2 + b2) @ W3 + b3).reshape(*shape, -1).astype(np.float64)
        return np.asarray(out.mean(axis=0)), np.asarray(out.std(axis=0))

    @property
    def warm(self) -> Memory:
        """The weights, from which a later fit goes on."""
        return dict(zip(_NAMES, self._weights, strict=True))


def kept(shape: tuple[int, ...], p: float, rng: np.random.Generator) -> Single:
    """Inverted dropout: 0 with probability p, otherwise 1 / (1 - p)."""
    return (rng.random(shape, dtype=np.float32) >= p) * np.float32(1.0 / (1.0 - p))


def gradient(weights: list[Single], A: Single, mask: Single, T: Single) -> list[Single]:
    """Gradient of mean_i ||output_i - T_i||^2 / 2 for masked inputs A (n, d), mask (n, hidden)."""
    W1, b1, W2, b2, W3, b3 = weights
    H = A @ W1
    H += b1
    mask = mask * (H > 0)
    H *= mask
    Z = H @ W2
    Z += b2
    np.tanh(Z, out=Z)
    E = Z @ W3
    E += b3
    E -= T
    E *= np.float32(1.0 / len(A))
    dZ = E @ W3.T
    dZ *= 1.0 - Z * Z
    dH = dZ @ W2.T
    dH *= mask
    return [A.T @ dH, dH.sum(axis=0), H.T @ dZ, dZ.sum(axis=0), Z.T @ E, E.sum(axis=0)]
