"""The rank classifier's network and its training (section "Architecture and forward pass").

Notation: E networks trained side by side, n points, d variables, H hidden units, K classes. All
parameters carry a leading axis E and every step is one batched computation: the network of each
cross-validation fold comes along with the final one (the last) at little extra cost. A fold's
network never sees the rows held out from it, so held-out logits cost no evaluation. The inputs are
unit-cube points, centred and scaled to unit variance.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuropareto.adam import AdamW
from neuropareto.memory import Memory
from neuropareto.space import Array

Parameters = dict[str, Tensor]

_TEMPERATURES = torch.tensor([2.0 ** (i / 2) for i in range(-4, 9)])[:, None, None]


@dataclass(frozen=True)
class Training:
    """How the classifier is trained: AdamW on the class-weighted cross-entropy.

    At most ``steps`` steps from scratch or ``warm_steps`` from a warm start, on at most ``batch``
    rows each. Every ``check`` steps the held-out loss of the ``folds`` folds is measured; the best
    parameters are kept, and training ends after ``patience`` checks without a better one. With
    ``folds=0`` nothing is held out and all steps are taken.
    """

    steps: int = 120
    warm_steps: int = 40
    rate: float = 5e-3
    decay: float = 0.3
    batch: int = 512
    folds: int = 3
    check: int = 10
    patience: int = 3

    def __post_init__(self) -> None:
        if min(self.steps, self.warm_steps, self.batch, self.check, self.patience) < 1:
            raise ValueError("Training needs steps, warm_steps, batch, check and patience >= 1.")
        if self.rate <= 0 or self.decay < 0 or self.folds < 0 or self.folds == 1:
            raise ValueError(
                f"Training needs rate > 0, decay >= 0 and folds of 0 or at least 2, got "
                f"{self.rate}, {self.decay} and {self.folds}."
            )


@dataclass(frozen=True, eq=False)
class Lesson:
    """What the E networks learn from: points, classes and which network may see which row.

    ``X`` (n, d), ``y`` (n,) in 0..K-1, ``visible`` (E, n) of 0 and 1, ``class_weight`` (K,),
    ``dropout`` the probability of Eq. h2. ``home`` (n,) is the network a row is held out from;
    ``held`` are the rows for which that network has something to learn from.
    """

    X: Tensor
    y: Tensor
    visible: Tensor
    home: Tensor
    held: Tensor
    class_weight: Tensor
    dropout: float


def lesson(
    U: Array, labels: npt.NDArray[np.int64], k: int, *, folds: int, dropout: float, device: str
) -> Lesson:
    """The lesson of ``folds`` fold networks and, last, the final one.

    The fold of a row is a hash of its coordinates: it stays the same from round to round, so a
    fold's network may be warm-started without having met the rows now held out from it.
    """
    n = len(U)
    rows = np.ascontiguousarray(U)
    fold = np.array([zlib.crc32(row.tobytes()) % max(folds, 1) for row in rows], dtype=np.int64)
    visible = np.ones((folds + 1, n))
    if folds:
        visible[fold, np.arange(n)] = 0.0
        taught = visible.sum(axis=1)[fold] > 0
    else:
        taught = np.zeros(n, dtype=bool)
    y = np.asarray(labels, dtype=np.int64) - 1
    return Lesson(
        X=standardised(U).to(device),
        y=torch.from_numpy(y).to(device),
        visible=torch.from_numpy(visible).float().to(device),
        home=torch.from_numpy(fold).to(device),
        held=torch.from_numpy(np.flatnonzero(taught)).to(device),
        class_weight=torch.from_numpy(class_weights(y, k)).float().to(device),
        dropout=dropout,
    )


def class_weights(y: npt.NDArray[np.int64], k: int) -> Array:
    """Weights w_k = sqrt((n + K) / (K (n_k + 1))), (K,): rare classes count more, absent ones mildly.

    ``y`` (n,) in 0..K-1. A network trained with them estimates p(k | x) w_k up to a constant, so
    log w_k is subtracted from its logits afterwards and probabilities stay those of the archive.
    """
    count = np.bincount(y, minlength=k)
    return np.asarray(np.sqrt((len(y) + k) / (k * (count + 1.0))))


def standardised(U: Array) -> Tensor:
    """Points of the unit cube with the mean and variance of a uniform variable taken out."""
    return torch.from_numpy(np.ascontiguousarray((U - 0.5) * np.sqrt(12.0), dtype=np.float32))


def shapes(nets: int, d: int, width: int, k: int) -> dict[str, tuple[int, ...]]:
    """The name and shape of each parameter: weights W, biases b, LayerNorm scales g and shifts c."""
    hidden = {name: (nets, width) for name in ("b1", "g1", "c1", "b2", "g2", "c2")}
    weights = {"W1": (nets, width, d), "W2": (nets, width, width), "W3": (nets, k, width)}
    return {**weights, **hidden, "b3": (nets, k)}


def initial(nets: int, d: int, width: int, k: int, generator: torch.Generator) -> Parameters:
    """Fresh parameters, the same for all E networks so that folds differ only in their rows."""
    parameters: Parameters = {}
    for name, shape in shapes(nets, d, width, k).items():
        one = (1, *shape[1:])
        if name.startswith("W"):
            gain = 0.01 if name == "W3" else 2.0
            value = torch.randn(one, generator=generator) * (gain / shape[2]) ** 0.5
        else:
            value = torch.full(one, 1.0 if name.startswith("g") else 0.0)
        parameters[name] = value.repeat(nets, *[1] * (len(shape) - 1))
    return parameters


def recalled(warm: Memory | None, nets: int, d: int, width: int, k: int) -> Parameters | None:
    """The parameters in ``warm``, or None if they are missing, of another shape or not finite."""
    expected = shapes(nets, d, width, k)
    if warm is None or any(name not in warm for name in expected):
        return None
    if any(warm[name].shape != shape for name, shape in expected.items()):
        return None
    found = {name: np.array(warm[name], dtype=np.float32) for name in expected}
    if not all(np.isfinite(value).all() for value in found.values()):
        return None
    return {name: torch.from_numpy(value) for name, value in found.items()}


def first_hidden(P: Parameters, X: Tensor) -> Tensor:
    """h1 = LayerNorm(ReLU(W1 x + b1)). Paper: Eq. h1. (n, d) or (E, n, d) -> (E, n, H)."""
    return _normed(torch.relu(X @ P["W1"].mT + P["b1"][:, None]), P["g1"], P["c1"])


def logits_after(P: Parameters, H2: Tensor) -> Tensor:
    """z = W3 LayerNorm(ReLU(W2 h2 + b2)) + b3. Paper: Eqs. h3, z. (E, n, H) -> (E, n, K)."""
    h3 = _normed(torch.relu(H2 @ P["W2"].mT + P["b2"][:, None]), P["g2"], P["c2"])
    return h3 @ P["W3"].mT + P["b3"][:, None]


def held_out(P: Parameters, data: Lesson, masks: Tensor) -> Tensor:
    """Logits of each held-out row under the network that never saw it, (rows, S, K).

    ``masks`` (S, H) are dropout multipliers; log class weights are already subtracted.
    """
    home = data.home[data.held]
    z = torch.empty((len(home), len(masks), P["b3"].shape[1]), device=data.X.device)
    for fold in range(len(P["b3"]) - 1):
        mine = home == fold
        own = {name: value[fold : fold + 1] for name, value in P.items()}
        h1 = first_hidden(own, data.X[data.held[mine]])[0]
        passes = logits_after(own, (h1[:, None] * masks).flatten(0, 1)[None])[0]
        z[mine] = passes.view(len(h1), *z.shape[1:])
    return z - data.class_weight.log()


def trained(
    P: Parameters, data: Lesson, spec: Training, steps: int, generator: torch.Generator
) -> tuple[Parameters, int, float]:
    """The best parameters met in at most ``steps`` steps, the step they came from, their loss.

    Best is the lowest held-out loss; if nothing is held out, the last finite parameters.
    """
    P = {name: value.clone().requires_grad_() for name, value in P.items()}
    decay = {name: spec.decay for name in P if name.startswith("W")}
    optimiser = AdamW(P, spec.rate, decay)
    best, best_step, best_loss, misses = _copied(P), 0, _held_out_loss(P, data), 0
    for step in range(1, steps + 1):
        optimiser.step(_loss(P, data, spec.batch, generator))
        if step % spec.check and step != steps:
            continue
        if not all(bool(torch.isfinite(value).all()) for value in P.values()):
            break
        now = _held_out_loss(P, data)
        # Without held-out rows the loss is a constant 0 and the later parameters win.
        if now < best_loss or not len(data.held):
            best, best_step, best_loss, misses = _copied(P), step, now, 0
            continue
        misses += 1
        if misses >= spec.patience:
            break
    return best, best_step, best_loss


def _loss(P: Parameters, data: Lesson, batch: int, generator: torch.Generator) -> Tensor:
    n = len(data.X)
    rows = torch.arange(n) if n <= batch else torch.randperm(n, generator=generator)[:batch]
    X, y, device = data.X[rows], data.y[rows], data.X.device
    h1 = first_hidden(P, X)
    keep = 1.0 - data.dropout
    draws = torch.rand(h1.shape, generator=generator).to(device)
    z = logits_after(P, h1 * (draws < keep) / keep)
    weight = data.visible[:, rows] * data.class_weight[y]
    surprise = torch.logsumexp(z, dim=-1) - z.gather(-1, y.expand(len(z), -1)[..., None])[..., 0]
    # A sum over networks: their gradients do not mix. A network that sees no row stands still.
    return ((weight * surprise).sum(dim=1) / weight.sum(dim=1).clamp_min(1e-9)).sum()


def _held_out_loss(P: Parameters, data: Lesson) -> float:
    """Held-out cross-entropy at the best of a few temperatures.

    A temperature is fitted after training anyway; without it, training would stop as soon as the
    network is sure of itself, long before it has learnt what it can.
    """
    if not len(data.held):
        return 0.0
    with torch.no_grad():
        z = logits_after(P, first_hidden(P, data.X))[data.home[data.held], data.held]
        cooled = (z - data.class_weight.log()) / _TEMPERATURES.to(z.device)
        chosen = cooled.gather(-1, data.y[data.held].expand(len(cooled), -1)[..., None])[..., 0]
        return float((torch.logsumexp(cooled, dim=-1) - chosen).mean(dim=1).min())


def _normed(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    width = x.shape[-1]
    return torch.nn.functional.layer_norm(x, (width,)) * scale[:, None] + shift[:, None]


def _copied(P: Parameters) -> Parameters:
    return {name: value.detach().clone() for name, value in P.items()}
