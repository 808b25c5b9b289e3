"""Where the deep GP starts: a shallow GP with the same parts, fitted by its marginal likelihood.

y_o = c_o + g_o(x) + s_o r_o(B_o h(x)) + e: a structured GP in x plus one in a few latent functions
h that are read off the data: the two sums over all variables and the most telling single
variables. Both posteriors are known in closed form and become q of the first and the last layer,
so that training starts where a good exact GP ends. From zero, fifty epochs would not get there.
Notation: X (n, d), Y (n, m), E selected structure features, w = m + E latent functions.
Paper: "inducing locations are initialized by k-means"; the rest of the start is left open.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.evidence import Hyper, log_evidence, log_normal, maximise
from neuropareto.surrogate.kernels import (
    RBF,
    log_lengthscale_prior,
    scaled_distance,
    structure,
    typical_log_lengthscale,
)
from neuropareto.surrogate.mean import Params
from neuropareto.surrogate.noise import FLOOR
from neuropareto.surrogate.scaling import array
from neuropareto.surrogate.stack import SHRINKAGE, Stack, State
from neuropareto.surrogate.variational import natural_step, prior

_BOUNDS = {
    "log_lengthscale": (-7.0, 12.0),
    "log_variance": (-14.0, 6.0),
    "log_structure": (-14.0, 6.0),
    "log_noise": (FLOOR, 2.0),
    "constant": (-20.0, 20.0),
    "log_scale": (-4.0, 7.0),
    "log_level": (-10.0, 5.0),
}


def centres(X: Array, k: int, rng: np.random.Generator, start: Array | None = None) -> Array:
    """At most k centres of the rows of ``X`` by k-means, warm from ``start`` if it is given."""
    distinct = np.unique(X, axis=0)
    seed = int(rng.integers(2**31 - 1))
    if len(distinct) <= k:
        return distinct
    if start is not None:
        fresh = distinct[rng.permutation(len(distinct))[: max(0, k - len(start))]]
        start = np.concatenate([start[:k], fresh])
    with warnings.catch_warnings():
        # Nearly coinciding points make fewer clusters than asked for: no harm to inducing points.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(
            k,
            init="k-means++" if start is None else start,
            n_init=1,
            max_iter=20,
            random_state=seed,
        ).fit(X)
    return np.asarray(means.cluster_centers_, dtype=np.float64)


def latent_inducing(inducing: int) -> int:
    """How many inducing points the latent functions have: far smoother, a quarter is enough."""
    return max(1, inducing // 4)


def telling_features(X: Tensor, Y: Tensor, count: int) -> list[int]:
    """Columns of ``structure``(x) that start the shared latent functions, at most ``count``.

    The two sums come first, then single variables chosen one after the other by how much of any
    objective a cubic in them alone explains beyond those chosen before.
    """
    d = X.shape[1]
    powers = torch.stack([X, 1.5 * X.square(), 2.5 * X**3 - 1.5 * X])
    powers = powers - powers.mean(1, keepdim=True)
    powers = powers / powers.norm(dim=1, keepdim=True).clamp_min(1e-9)
    residual = Y - Y.mean(0)
    total = residual.square().sum(0).clamp_min(1e-12)
    sums = [2 * d, 2 * d + 1][:count] if d > 1 else []
    chosen: list[int] = []
    for _ in range(min(count - len(sums), d)):
        explained = torch.einsum("knd,nm->kdm", powers, residual).square().sum(0)
        gain = (explained / total).amax(-1)
        gain[chosen] = -1.0
        best = int(gain.argmax())
        chosen.append(best)
        Q, _ = torch.linalg.qr(powers[:, :, best].T)
        residual = residual - Q @ (Q.T @ residual)
    return ([2 * d, 2 * d + 1] if d > 1 else [])[:count] + chosen


@dataclass(frozen=True)
class ShallowFit:
    """The fitted shallow GP: its hyper-parameters, those of its neural mean, selected columns."""

    hyper: Hyper
    net: State
    columns: list[int]


def shallow(
    stack: Stack,
    X: Tensor,
    Y: Tensor,
    columns: list[int],
    iterations: int,
    generator: torch.Generator,
) -> ShallowFit:
    """Maximise the evidence of the shallow GP for all objectives at once."""
    m, d = Y.shape[1], X.shape[1]
    net = stack.sparse.kernel.mean.start(d, generator, X.device)
    start: Hyper = {
        "log_lengthscale": X.new_full((m, d), typical_log_lengthscale(d) - 1.5),
        "log_variance": X.new_full((m,), -1.0),
        "log_structure": X.new_full((m, 5), -2.0),
        "log_noise": X.new_full((m,), -4.0),
        "constant": X.new_zeros(m),
    }
    if columns:
        start["log_scale"] = X.new_full((m, len(columns)), math.log(3.0))
        start["log_level"] = X.new_full((m,), -1.0)
    H = selected(X, columns)

    def matrix(hyper: Hyper) -> Tensor:
        C = stack.sparse.kernel.covariance(hyper | net, X, X) + torch.diag_embed(
            torch.exp(hyper["log_noise"])[:, None].expand(m, len(X))
        )
        if columns:
            near = RBF().correlation(scaled_distance(H, H, hyper["log_scale"]))
            C = C + torch.exp(hyper["log_level"])[:, None, None] * near
        return C

    def objective(hyper: Hyper) -> Tensor:
        density = log_lengthscale_prior(hyper["log_lengthscale"], SHRINKAGE)
        density = density + log_normal(hyper["log_variance"], -1.0, 2.0)
        density = density + log_normal(hyper["log_structure"], -3.0, 2.0)
        density = density + log_normal(hyper["log_noise"], -4.0, 2.0)
        if columns:
            density = density + log_normal(hyper["log_scale"], 1.5, 1.0)
            density = density + log_normal(hyper["log_level"], 0.0, 2.0)
        return log_evidence(matrix(hyper), Y.T - hyper["constant"][:, None]).sum() + density

    return ShallowFit(maximise(objective, start, _BOUNDS, iterations), net, columns)


def selected(X: Tensor, columns: list[int]) -> Tensor:
    """The selected structure features (..., n, E), each of unit variance."""
    return structure(X) @ _selector(X, columns).T


def _selector(X: Tensor, columns: list[int]) -> Tensor:
    """The matrix (E, 2 d + 2) that picks and scales the selected columns."""
    d = X.shape[-1]
    picked = X.new_zeros(len(columns), 2 * d + 2)
    for row, column in enumerate(columns):
        picked[row, column] = 1.0 if column >= 2 * d else math.sqrt(d)
    return picked


def start_state(
    stack: Stack,
    X: Tensor,
    Y: Tensor,
    fit: ShallowFit,
    inducing: int,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> State:
    """The state of the whole stack whose prediction is that of the shallow fit."""
    m, d = Y.shape[1], X.shape[1]
    Z = torch.tensor(centres(array(X), inducing, rng), device=X.device)
    own = {k: fit.hyper[k] for k in ("log_lengthscale", "log_variance", "log_structure")}
    own |= {"bias": fit.hyper["constant"], "path": X.new_zeros(m, 2 * d + 2)} | fit.net
    state = _named("x", own | {"Z": Z})
    width = len(fit.columns)
    if stack.depth > 1:
        state |= _named(
            "1", _first_layer(stack, X, fit, latent_inducing(inducing), rng, generator)
        )
        for l in range(2, stack.depth):
            state |= _named(str(l), _middle_layer(stack, width, X, generator))
        state |= _named(str(stack.depth), _last_layer(stack, X, fit, rng, generator))
    inputs = 2 * d + 2 + stack.sparse.kernel.mean.hidden + (width if stack.depth > 1 else 0)
    level = fit.hyper["log_noise"]
    state |= _named("noise", stack.noise.start(inputs, level, generator))
    return state | _named("out", _conditioned(stack, state, X, Y, level, generator))


def _first_layer(
    stack: Stack,
    X: Tensor,
    fit: ShallowFit,
    inducing: int,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> State:
    """Latent functions that start as features of x, with a GP around them below the noise.

    Whatever that GP adds reaches the objectives multiplied by the slopes of the last layer.
    """
    width = len(fit.columns)
    Z = torch.tensor(centres(array(X), inducing, rng), device=X.device)
    quiet = (fit.hyper["log_noise"].min() - math.log(10.0)).clamp(max=math.log(1e-3))
    q_mean, q_factor = prior(width, len(Z), X.device)
    return {
        "Z": Z,
        "log_lengthscale": fit.hyper["log_lengthscale"].mean(0, keepdim=True),
        "log_variance": quiet[None],
        "log_structure": quiet.expand(1, 5).clone(),
        "log_noise": (quiet - math.log(1e3)).expand(width).clone(),
        "q_mean": q_mean,
        "q_factor": q_factor,
        "path": _selector(X, fit.columns),
        "bias": X.new_zeros(width),
        **stack.sparse.kernel.mean.start(X.shape[1], generator, X.device),
    }


def _middle_layer(stack: Stack, width: int, X: Tensor, generator: torch.Generator) -> State:
    """A layer that starts as the identity with a faint GP around it."""
    eye = torch.eye(width, dtype=torch.float64, device=X.device)
    p = {
        "Z": torch.randn(stack.deeper.features.anchors, width, generator=generator).to(eye),
        "fixed": stack.deeper.features.fixed(width, generator).to(eye),
        "log_scale": X.new_full((width, width), 1.5),
        "log_variance": X.new_full((width,), -12.0),
        "log_weights": X.new_full((width, 2), -12.0),
        "log_noise": X.new_full((width,), -20.0),
        "identity": eye,
        "bias": X.new_zeros(width),
        **stack.deeper.mean.start(width, generator, X.device),
    }
    p["q_mean"], p["q_factor"] = prior(width, stack.deeper.rank(p), X.device)
    return p


def _last_layer(
    stack: Stack,
    X: Tensor,
    fit: ShallowFit,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> State:
    log_scale = fit.hyper["log_scale"]
    m, width = log_scale.shape
    H, anchors = selected(X, fit.columns), stack.deeper.features.anchors
    return {
        "Z": latent_anchors(H, log_scale, anchors, rng),
        "fixed": stack.deeper.features.fixed(width, generator).to(X),
        "log_scale": log_scale,
        "log_variance": fit.hyper["log_level"],
        "log_weights": X.new_full((m, 2), -6.0),
        "identity": X.new_zeros(m, width),
        "bias": X.new_zeros(m),
        **stack.deeper.mean.start(width, generator, X.device),
    }


def _conditioned(
    stack: Stack, state: State, X: Tensor, Y: Tensor, level: Tensor, generator: torch.Generator
) -> State:
    """The output's posterior given the data: the optimum for the starting parameters."""
    m, n = Y.shape[1], len(X)
    base = [t[:1] * 0.0 for t in stack.base(state, 2, 1, generator)]
    at = stack.ahead(state, stack.factors(state), X, base, torch.float64).output
    precision = torch.exp(-level)[:, None].expand(m, n)
    mean, factor = prior(m, at.A.shape[1], X.device)
    pull = precision * (Y.T - at.centre)
    mean, factor = natural_step(mean, factor, at.A, pull, precision, 1.0)
    return {"q_mean": mean, "q_factor": factor}


def latent_anchors(H: Tensor, log_scale: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """k-means centres (r, w) of H (n, w), distances weighed by how the outputs use each column."""
    weight = array(torch.exp(-log_scale).square().mean(0).sqrt())
    found = centres(array(H) * weight, k, rng) / weight
    return torch.tensor(found, device=H.device)


def _named(name: str, p: Params) -> State:
    return {f"{name}.{k}": v for k, v in p.items()}
