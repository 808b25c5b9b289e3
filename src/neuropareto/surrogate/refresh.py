"""Inducing points and anchors follow the archive from round to round; posteriors go with them.

The points found so far gather where the optimum is, and a layer without anchors there could not
learn anything new. k-means starts from the last round's points, and each posterior is carried
over: its mean and covariance at the new anchors become its parameters.
Paper: "warm start variational parameters and inducing locations from previous iterations".
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuropareto.surrogate.deep_start import centres, latent_anchors, latent_inducing
from neuropareto.surrogate.scaling import array
from neuropareto.surrogate.stack import Stack, State, section
from neuropareto.surrogate.variational import block_diagonal, marginal, moved


@torch.no_grad()
def refreshed(
    stack: Stack, state: State, X: Tensor, inducing: int, rng: np.random.Generator
) -> State:
    """``state`` with at most ``inducing`` inducing points and all anchors fitted to X (n, d)."""
    Z = torch.tensor(centres(array(X), inducing, rng, start=array(state["x.Z"]))).to(X)
    new = {**state, "x.Z": Z}
    output = stack.sparse.transfer(section(state, "x"), Z)
    if stack.depth > 1:
        few = latent_inducing(inducing)
        new["1.Z"] = torch.tensor(centres(array(X), few, rng, start=array(state["1.Z"]))).to(X)
        carried = stack.sparse.transfer(section(state, "1"), new["1.Z"])
        width = len(state["1.q_mean"])
        spread_out = (t.expand(width, -1, -1) for t in carried)
        _move(new, "1", *spread_out)
        p = section(new, "1")
        part = stack.sparse.coordinates(p, stack.sparse.factor(p), X)
        H = marginal(part, p["q_mean"], p["q_factor"]).centre.T
        for l in range(2, stack.depth + 1):
            p = section(state, str(l))
            anchors = latent_anchors(H, p["log_scale"], stack.deeper.features.anchors, rng)
            carried = stack.deeper.transfer(p, anchors)
            new[f"{l}.Z"] = anchors
            if l < stack.depth:
                _move(new, str(l), *carried)
                p = section(new, str(l))
                part = stack.deeper.coordinates(p, stack.deeper.projection(p), H[None], H.dtype)
                H = marginal(part, p["q_mean"], p["q_factor"]).centre.T
        A, open_, L = (block_diagonal(a, b) for a, b in zip(output, carried, strict=True))
        output = (A, open_, L)
    _move(new, "out", *output)
    return new


def _move(state: State, name: str, A: Tensor, open_: Tensor, L: Tensor) -> None:
    q = moved(state[f"{name}.q_mean"], state[f"{name}.q_factor"], A, open_, L)
    state[f"{name}.q_mean"], state[f"{name}.q_factor"] = q
