"""The Bayesian rank classifier (section "Bayesian rank classifier with complexity controls").

Notation: n points, d variables, H hidden units, K rank classes (1 = non-dominated, K = worst), S
passes. ``RankClassifier`` is the spec, ``fit`` gives a pure function from points to a
``RankBelief``: the dropout masks of all passes are drawn in ``fit``, so every candidate meets the
same sampled networks. Swappable parts: ``dropout`` (``AdaptiveDropout``, ``NoDropout``),
``calibration`` (``Temperature``, ``MatrixScaling``, ``Uncalibrated``) and ``training``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuropareto import rank_network as network
from neuropareto.calibration import (
    Calibration,
    MatrixScaling,
    Scaling,
    Temperature,
    Uncalibrated,
    ece,
    tempered,
)
from neuropareto.dropout import (
    AdaptiveDropout,
    Counts,
    Dropout,
    NoDropout,
    disagreement,
    gain,
    information_gain,
    masks,
    plogp,
)
from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.rank_network import Parameters, Training
from neuropareto.space import Array

__all__ = [
    "AdaptiveDropout",
    "Classifier",
    "FittedClassifier",
    "FittedRankClassifier",
    "MatrixScaling",
    "NoDropout",
    "RankBelief",
    "RankClassifier",
    "Temperature",
    "Training",
    "Uncalibrated",
    "Uninformed",
    "bounded_k",
    "information_gain",
]

# Rows per block of passes: keeps the (rows, S, H) activations inside the processor's cache.
_ROWS = 512
_CACHED_ARRAYS = 4


@dataclass(frozen=True)
class RankBelief:
    """What the classifier believes about n points.

    ``probability`` (n, K) is the mean over passes (Eq. mean_prob), ``epistemic`` (n,) the
    information gain in nats (Eq. epistemic_clf_corrected), ``passes`` (n,) how many passes each
    point got (Eq. adaptive_s_rule).
    """

    probability: Array
    epistemic: Array
    passes: Counts


class FittedClassifier(Protocol):
    """A fitted rank classifier: a pure function of the points it is asked about."""

    def predict(self, U: Array) -> RankBelief:
        """The belief about points ``U`` (n, d) of the unit cube."""
        ...

    @property
    def warm(self) -> Memory:
        """What a later ``fit`` may start from: named arrays."""
        ...

    @property
    def notes(self) -> Mapping[str, Any]:
        """JSON diagnostics of the fit."""
        ...


class Classifier(Protocol):
    """A frozen spec that can be fitted to points and their rank classes."""

    @property
    def k(self) -> int:
        """The number of rank classes K."""
        ...

    def fit(
        self,
        U: Array,
        labels: npt.NDArray[np.int64],
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> FittedClassifier:
        """Fit to points ``U`` (n, d) with classes ``labels`` (n,) in 1..K."""
        ...


@dataclass(frozen=True)
class RankClassifier:
    """The paper's classifier: a network of one dropout layer, calibrated on held-out logits.

    h1 = LN(ReLU(W1 x + b1)), h2 = Dropout_p(h1), h3 = LN(ReLU(W2 h2 + b2)), z = W3 h3 + b3.
    Paper: Eqs. h1, h2, h3, z, temp_softmax, mean_prob, epistemic_clf_corrected. Classes may be
    absent from the labels; ``k`` should respect :func:`bounded_k`.
    """

    k: int = 5
    width: int = 64
    dropout: Dropout = AdaptiveDropout()
    calibration: Calibration = Temperature()
    training: Training = Training()
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.k < 2 or self.width < 1:
            raise ValueError(
                f"RankClassifier needs k >= 2 and width >= 1, got {self.k} and {self.width}."
            )

    def fit(
        self,
        U: Array,
        labels: npt.NDArray[np.int64],
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> FittedRankClassifier:
        """Fit to points ``U`` (n, d) with classes ``labels`` (n,) in 1..K, n >= 1.

        ``warm`` of another shape (more variables, other K) is ignored. Raises ValueError on wrong
        shapes, labels outside 1..K or values that are not finite.
        """
        U, labels = _checked(U, labels, self.k)
        generator = torch.Generator().manual_seed(torch_seed(rng))
        size = (self.training.folds + 1, U.shape[1], self.width, self.k)
        fresh = network.initial(*size, generator)
        drawn = masks(self.dropout, self.width, generator).to(self.device)
        known = network.recalled(warm, *size)
        start = {name: value.to(self.device) for name, value in (known or fresh).items()}
        data = network.lesson(
            U,
            labels,
            self.k,
            folds=self.training.folds,
            dropout=self.dropout.p,
            device=self.device,
        )
        steps = self.training.steps if known is None else self.training.warm_steps
        P, step, loss = network.trained(start, data, self.training, steps, generator)
        logits = network.held_out(P, data, drawn).double().cpu().numpy()
        seen = labels[data.held.cpu().numpy()]
        scaling = self.calibration.scaling(logits, seen)
        notes: dict[str, Any] = {
            "n": len(U),
            "classes": np.bincount(labels, minlength=self.k + 1)[1:].tolist(),
            "warm": known is not None,
            "steps": step,
            "temperature": scaling.temperature,
            "held_out": len(seen),
        }
        if len(seen):
            belief = tempered(scaling.applied(logits), 1.0).mean(axis=1)
            notes["held_out_loss"] = loss
            notes["held_out_ece"] = ece(belief, seen)
            notes["held_out_accuracy"] = float(np.mean(belief.argmax(axis=1) + 1 == seen))
        final = {name: value[-1:] for name, value in P.items()}
        final["b3"] = final["b3"] - data.class_weight.log()
        kept = {name: value.cpu().numpy() for name, value in P.items()}
        return FittedRankClassifier(self.dropout, final, drawn, scaling, kept, notes)


@dataclass(frozen=True)
class Uninformed:
    """The classifier that learns nothing: every class is equally probable everywhere."""

    k: int = 5

    def fit(
        self,
        U: Array,
        labels: npt.NDArray[np.int64],
        *,
        warm: Memory | None,
        rng: np.random.Generator,
    ) -> FittedUninformed:
        """Nothing to fit."""
        return FittedUninformed(self.k)


@dataclass(frozen=True)
class FittedUninformed:
    """See :class:`Uninformed`."""

    k: int

    def predict(self, U: Array) -> RankBelief:
        """Uniform probabilities and no information to gain."""
        n = len(U)
        return RankBelief(np.full((n, self.k), 1.0 / self.k), np.zeros(n), np.zeros(n, np.int64))

    @property
    def warm(self) -> Memory:
        """Nothing."""
        return {}

    @property
    def notes(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}


@dataclass(frozen=True, eq=False)
class FittedRankClassifier:
    """A fitted :class:`RankClassifier`; the last few beliefs are kept for repeated arrays."""

    dropout: Dropout
    parameters: Parameters = field(repr=False)
    masks: Tensor = field(repr=False)
    scaling: Scaling
    warm: Memory = field(repr=False)
    notes: Mapping[str, Any]
    _cache: dict[bytes, RankBelief] = field(default_factory=dict, repr=False)

    @property
    def temperature(self) -> float:
        """The temperature T of Eq. temp_softmax, or the average one of an affine scaling."""
        return self.scaling.temperature

    def predict(self, U: Array) -> RankBelief:
        """The belief about points ``U`` (n, d) of the unit cube; arrays are read-only.

        Raises ValueError if ``U`` has another number of variables than the fit.
        """
        d = self.parameters["W1"].shape[2]
        U = np.ascontiguousarray(U, dtype=np.float64)
        if U.ndim != 2 or U.shape[1] != d:
            raise ValueError(
                f"Points must have shape (n, {d}) as in the fit, got {U.shape}; reshape them."
            )
        key = hashlib.blake2b(U.data, digest_size=16).digest() + len(U).to_bytes(8, "little")
        belief = self._cache.get(key)
        if belief is None:
            blocks = [self._believed(U[i : i + _ROWS]) for i in range(0, max(len(U), 1), _ROWS)]
            belief = RankBelief(
                probability=_readonly(np.concatenate([b.probability for b in blocks])),
                epistemic=_readonly(np.concatenate([b.epistemic for b in blocks])),
                passes=_readonly(np.concatenate([b.passes for b in blocks])),
            )
            if len(self._cache) >= _CACHED_ARRAYS:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[key] = belief
        return belief

    @torch.inference_mode()
    def _believed(self, U: Array) -> RankBelief:
        P, s0, s_max = self.parameters, self.dropout.s0, self.dropout.s_max
        h1 = network.first_hidden(P, network.standardised(U).to(self.masks.device))[0]
        first = self._passes(h1, 0, s0)
        passes = self.dropout.passes(disagreement(first))
        total, order = first.sum(axis=1), plogp(first).sum(axis=1)
        # Blocks of s0 passes: whoever is still active takes part in a whole block, because counts
        # are multiples of s0 or s_max itself.
        for start in range(s0, s_max, s0):
            active = np.flatnonzero(passes > start)
            if not len(active):
                break
            more = self._passes(h1[torch.from_numpy(active)], start, min(start + s0, s_max))
            total[active] += more.sum(axis=1)
            order[active] += plogp(more).sum(axis=1)
        probability = total / passes[:, None]
        return RankBelief(probability, gain(probability, order / passes), passes)

    def _passes(self, H1: Tensor, first: int, last: int) -> Array:
        """Tempered probabilities of passes first..last-1, (rows, passes, K)."""
        P, block = self.parameters, self.masks[first:last]
        # Dropping units of h1 equals dropping columns of W2: one product serves all passes.
        thinned = (P["W2"] * block[:, None, :]).flatten(0, 1)
        x = torch.relu((H1 @ thinned.mT).view(len(H1), *block.shape) + P["b2"])
        h3 = torch.nn.functional.layer_norm(x, x.shape[-1:], P["g2"][0], P["c2"][0])
        z = self.scaling.applied((h3 @ P["W3"][0].mT + P["b3"]).double().cpu().numpy())
        return np.asarray(torch.softmax(torch.from_numpy(z), dim=-1).numpy())


def bounded_k(k: int, budget: int, n_min: int = 15) -> int:
    """The number of rank classes a budget can feed: min(k, floor(budget / n_min)), at least 2.

    Paper: Eq. K_rule_of_thumb; the paper finds n_min of 10 to 20 useful.
    """
    if k < 2 or n_min < 1:
        raise ValueError(f"Rank classes need k >= 2 and n_min >= 1, got {k} and {n_min}.")
    return max(2, min(k, budget // n_min))


def _readonly(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def _checked(U: Array, labels: npt.NDArray[np.int64], k: int) -> tuple[Array, Counts]:
    U, labels = np.asarray(U, dtype=np.float64), np.asarray(labels)
    if U.ndim != 2 or len(U) == 0 or labels.shape != (len(U),):
        raise ValueError(
            f"A rank classifier needs points (n, d) and labels (n,) with n >= 1, got shapes "
            f"{U.shape} and {labels.shape}."
        )
    if not np.isfinite(U).all():
        raise ValueError("Points must be finite numbers, got NaN or inf; drop those rows.")
    if labels.dtype.kind not in "iu" or labels.min() < 1 or labels.max() > k:
        raise ValueError(
            f"Labels must be integers in 1..{k}, got {labels.dtype} in {labels.min()}.."
            f"{labels.max()}; cut the ranks into k classes first."
        )
    return U, labels.astype(np.int64)
