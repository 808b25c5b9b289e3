"""Layers l >= 2: from w latent functions to b outputs, the kernel by features (see ``features``).

f_o(h) = w_o^T phi(h) + b_o + s_o g_o(h / scale_o): every output weighs the shared latent
functions in its own way, by lengthscales in the kernel and by weights in the neural mean.
Notation: H (s, n, w), s Monte-Carlo samples of n points; rows p = s n; anchors Z (a, w) in
latent space, shared by the outputs; coordinates r = a + w + hidden: those of g_o, then the
weights w_o themselves. Paper: Eqs. gp_layer and mean_fn for l >= 2, with randomized features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import cholesky
from neuropareto.surrogate.features import Features, Projection, RandomFourier
from neuropareto.surrogate.mean import NeuralMean, Params
from neuropareto.surrogate.variational import Coordinates, block_diagonal


@dataclass(frozen=True)
class FeatureLayer:
    """The layer's shape. Parameters: ``Z`` (a, w), ``fixed``, ``log_scale`` (b, w),
    ``log_variance`` (b,), ``log_weights`` (b, 2), ``identity`` (b, w), the known part of the
    mean, ``bias`` (b,) and those of the neural mean.
    """

    features: Features = RandomFourier()
    mean: NeuralMean = NeuralMean()

    def rank(self, p: Params) -> int:
        """r, the number of coordinates of an output."""
        return len(p["Z"]) + p["Z"].shape[-1] + len(p["hidden_bias"])

    def projection(self, p: Params) -> Projection:
        """The kernel with its anchors factorised, in double precision."""
        return self.features.projection(_scaled(p, p["Z"]), p["fixed"])

    def coordinates(
        self, p: Params, projection: Projection, H: Tensor, dtype: torch.dtype
    ) -> Coordinates:
        """Mean, coordinates and unexplained variance at the rows of H (s, n, w).

        ``dtype`` is that of the products with the features, by far the largest ones.
        """
        rows = H.reshape(-1, H.shape[-1])
        psi, rest = projection.split(_scaled(p, rows).to(dtype))
        level = torch.exp(p["log_variance"])[:, None]
        own = level.sqrt()[..., None] * psi.transpose(-1, -2).to(H.dtype)
        A = torch.cat([own, self._weighted(p, rows).transpose(-1, -2)], dim=-2)
        centre = p["identity"] @ rows.T + p["bias"][:, None]
        return Coordinates(centre, A, level * rest.to(H.dtype))

    def _weighted(self, p: Params, H: Tensor) -> Tensor:
        """phi(h) = (h, hidden units) times the prior deviations of its weights, (b, ..., w + h)."""
        phi = torch.cat([H, self.mean.hidden_units(p, H)], dim=-1)
        repeats = torch.tensor([H.shape[-1], len(p["hidden_bias"])], device=H.device)
        deviation = torch.exp(0.5 * p["log_weights"]).repeat_interleave(repeats, dim=-1)
        return phi * deviation.reshape(len(deviation), *[1] * (H.dim() - 1), -1)

    def paths(
        self,
        p: Params,
        projection: Projection,
        H: Tensor,
        whitened: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Joint function values (b, s, n) at H (s, n, w) given coordinates (b, s, r)."""
        anchored, weights = whitened[..., : len(p["Z"])], whitened[..., len(p["Z"]) :]
        level = torch.exp(0.5 * p["log_variance"])[:, None, None]
        drawn = level * projection.paths(_scaled(p, H), anchored, generator)
        mean = (self._weighted(p, H) @ weights[..., None])[..., 0]
        known: Tensor = (H @ p["identity"].T + p["bias"]).permute(2, 0, 1)
        return known + mean + drawn

    def transfer(self, p: Params, Z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Old coordinates of anchors ``Z`` (a', w), what they leave open, the new factor.

        The arguments of ``variational.moved``, (b, r, r') and (b, r', r'); the weights of the
        mean stay what they are, and the level of the kernel cancels.
        """
        old, scaled = self.projection(p), _scaled(p, Z)
        psi, _ = old.split(scaled)
        prior = old.prior(scaled)
        open_ = prior - psi @ psi.transpose(-1, -2)
        weights = self.rank(p) - len(p["Z"])
        same = torch.eye(weights, dtype=Z.dtype, device=Z.device).repeat(len(psi), 1, 1)
        return (
            block_diagonal(psi.transpose(-1, -2), same),
            block_diagonal(open_, torch.zeros_like(same)),
            block_diagonal(cholesky(prior, 1e-6), same),
        )


def _scaled(p: Params, H: Tensor) -> Tensor:
    """h / scale_o for every output: (..., w) -> (b, ..., w)."""
    inverse = torch.exp(-p["log_scale"])
    return H * inverse.reshape(len(inverse), *[1] * (H.dim() - 1), -1)
