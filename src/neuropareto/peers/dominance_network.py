"""The pairwise dominance network of CDM-PSL (after theta-DEA-DP, Yuan and Banzhaf 2022).

Two decision vectors side by side go in; out come three classes: the first dominates, neither does,
the second dominates. Both orders of a pair are asked and the more confident answer counts.
Notation: ``U`` (n, d) points, ``Z`` (n, m) objectives, D (n, n) dominance in {-1, 0, 1}.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from neuropareto.archive import Indices
from neuropareto.peers.dense import Adam, Dense, Floats
from neuropareto.space import Array

_HIDDEN, _BATCH = (200, 200, 200), 32
_STILL = [0.0] * len(_HIDDEN)  # no shifts of the hidden layers
Relations: TypeAlias = npt.NDArray[np.int64]


def relations(Z: Array) -> Relations:
    """D_ij = 1 if row i dominates row j, -1 if j dominates i, otherwise 0."""
    below = (Z[:, None, :] <= Z[None]).all(axis=2)
    return np.asarray(below.astype(np.int64) - below.T, dtype=np.int64)


def dominance_order(
    U: Array, D: Relations, asked: Array, *, epochs: int, pairs: int, rng: np.random.Generator
) -> Indices:
    """The rows of ``asked`` (k, d), least dominated first, by a network trained on U and D.

    Sorted by how often a row is predicted to be dominated by another one, then by the mean
    confidence of its answers, higher first.
    """
    network = trained(U.astype(np.float32), D, epochs=epochs, pairs=pairs, rng=rng)
    answer, confidence = answers(network, asked.astype(np.float32))
    return np.lexsort((-confidence.mean(axis=0), (answer == 1).sum(axis=0)))


def answers(network: Dense, x: Floats) -> tuple[Relations, Floats]:
    """Predicted dominance (k, k) in {-1, 0, 1} of row over column, and its probability."""
    k = len(x)
    i, j = np.divmod(np.arange(k * k), k)
    scores = network.forward(np.concatenate([x[i], x[j]], axis=1), _STILL)[-1]
    there = _softmax(scores).reshape(k, k, 3)
    back = there.transpose(1, 0, 2)[:, :, ::-1]
    sure = there.max(axis=2) >= back.max(axis=2)
    best = np.where(sure[:, :, None], there, back)
    answer = best.argmax(axis=2) - 1
    np.fill_diagonal(answer, 0)
    return answer, best.max(axis=2)


def trained(
    x: Floats, D: Relations, *, epochs: int, pairs: int, rng: np.random.Generator
) -> Dense:
    """The network after Adam on class-weighted cross-entropy, ``pairs`` random pairs an epoch."""
    network = Dense((2 * x.shape[1], *_HIDDEN, 3), [], rng)
    adam = Adam(network, decay=1e-5)
    count = np.bincount((D + 1).reshape(-1), minlength=3)
    weight = (count.sum() / (3.0 * np.maximum(count, 1))).astype(np.float32)
    for _ in range(epochs):
        i, j = rng.integers(len(x), size=(2, min(pairs, len(x) ** 2)))
        inputs, classes = np.concatenate([x[i], x[j]], axis=1), D[i, j] + 1
        for first in range(0, len(i), _BATCH):
            theirs = classes[first : first + _BATCH]
            values = network.forward(inputs[first : first + _BATCH], _STILL)
            slope = _softmax(values[-1])
            slope[np.arange(len(theirs)), theirs] -= 1.0
            share = weight[theirs]
            network.backward(values, slope * (share / share.sum())[:, None])
            adam.step()
    return network


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
