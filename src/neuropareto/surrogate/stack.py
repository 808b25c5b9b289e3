"""The stack of layers: samples through it, its evidence lower bound, its predictive moments.

Layer 1 (section ``1``) makes w shared latent functions h of x; layers 2..L (``2`` ...) map them
on; the output adds a GP of x itself (``x``), one kernel an objective, and has one joint posterior
(``out``) over both parts, which would otherwise trade variance. With depth L = 1 only ``x`` is
left. A state is a flat mapping of tensors: ``x.Z``, ``1.q_mean``, ``2.log_scale``, ``noise.bias`` ...
Notation: s samples, n points, m objectives; h = centre + sqrt(variance) * base.
Paper: Eqs. elbo and deepgp_variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.evidence import log_normal
from neuropareto.surrogate.feature_layer import FeatureLayer
from neuropareto.surrogate.features import Projection
from neuropareto.surrogate.kernels import log_lengthscale_prior
from neuropareto.surrogate.mean import Params
from neuropareto.surrogate.noise import Heteroscedastic, Noise
from neuropareto.surrogate.sparse_layer import SparseLayer
from neuropareto.surrogate.variational import Coordinates, Marginal, divergence, draws, marginal

State = dict[str, Tensor]

# Rate of the prior that holds lengthscales together; weaker than in the exact GP, since here the
# structured part of the kernel explains what there only single lengthscales can.
SHRINKAGE = 1.5


def section(state: Params, name: str) -> State:
    """The parameters of one layer, without their prefix."""
    prefix = name + "."
    return {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}


def balanced_normals(s: int, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """s normal draws (s, *shape) in opposite pairs with unit second moment.

    Means of odd functions are then exact and means of squares too, so few samples suffice.
    """
    half = torch.randn((s // 2, *shape), generator=generator, dtype=torch.float64)
    half = half / half.square().mean(0, keepdim=True).sqrt().clamp_min(1e-6)
    return torch.cat([half, -half])


@dataclass(frozen=True)
class Factors:
    """What does not depend on the points asked about: the layers' kernels, factorised."""

    x: Tensor
    first: Tensor | None
    deeper: tuple[Projection, ...]


@dataclass(frozen=True)
class Ahead:
    """A pass up to the output's posterior: what that posterior will be applied to."""

    latents: dict[str, Marginal]
    output: Coordinates
    log_noise: Tensor

    def trace(self, mean: Tensor, factor: Tensor) -> Trace:
        """The pass completed with the output's posterior."""
        return Trace(self.latents, marginal(self.output, mean, factor), self.log_noise)


@dataclass(frozen=True)
class Trace:
    """One pass: marginals of the latent functions by layer, those of the objectives at (s, n)
    rows, and the log variance of the noise (n, m).
    """

    latents: dict[str, Marginal]
    last: Marginal
    log_noise: Tensor

    def output(self) -> tuple[Tensor, Tensor]:
        """Centres and variances (m, s, n) of the objectives."""
        n = len(self.log_noise)
        return _by_sample(self.last.centre, n), _by_sample(self.last.variance, n)

    def moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, epistemic and aleatoric variance (n, m). Paper: Eqs. f_vec, ep_vec, al_vec."""
        centre, variance = self.output()
        mean = centre.mean(1)
        epistemic = variance.mean(1) + (centre - mean[:, None]).square().mean(1)
        return mean.T, epistemic.T, torch.exp(self.log_noise)

    def expected_log_likelihood(self, Y: Tensor) -> Tensor:
        """E_q[log p(y | f)] (n, m): exact over the output, sampled over the latent functions."""
        centre, variance = self.output()
        square = ((Y.T[:, None] - centre).square() + variance).mean(1).T
        precision = torch.exp(-self.log_noise)
        return -0.5 * (math.log(2.0 * math.pi) + self.log_noise + square * precision)


@dataclass(frozen=True)
class Stack:
    """The shape of a deep GP with ``depth`` layers."""

    sparse: SparseLayer = SparseLayer()
    deeper: FeatureLayer = FeatureLayer()
    noise: Noise = Heteroscedastic()
    depth: int = 2

    def factors(self, state: Params) -> Factors:
        """The layers' kernels, factorised."""
        later = (section(state, str(l)) for l in range(2, self.depth + 1))
        return Factors(
            self.sparse.factor(section(state, "x")),
            self.sparse.factor(section(state, "1")) if self.depth > 1 else None,
            tuple(self.deeper.projection(p) for p in later),
        )

    def trace(self, state: Params, factors: Factors, X: Tensor, base: Sequence[Tensor]) -> Trace:
        """Send X (n, d) through the stack with base draws (s, n or 1, w) for each layer l < L."""
        ahead = self.ahead(state, factors, X, base, torch.float64)
        return ahead.trace(state["out.q_mean"], state["out.q_factor"])

    def ahead(
        self,
        state: Params,
        factors: Factors,
        X: Tensor,
        base: Sequence[Tensor],
        dtype: torch.dtype,
    ) -> Ahead:
        """The same up to the output's posterior; feature products in ``dtype``."""
        latents: dict[str, Marginal] = {}
        p = section(state, "x")
        output = self.sparse.coordinates(p, factors.x, X)
        phi = [self.sparse.kernel.phi(p, X)]
        H: Tensor | None = None
        for l in range(1, self.depth):
            latents[str(l)] = self._latent(state, factors, l, X if H is None else H, dtype)
            H = _sampled(latents[str(l)], base[l - 1], len(X))
        if H is not None:
            # Detached: the latent functions must not bend to please the noise model.
            phi.append(latents["1"].centre.T.detach())
            p = section(state, str(self.depth))
            deep = self.deeper.coordinates(p, factors.deeper[-1], H, dtype)
            output = output.repeated(len(H)).plus(deep)
        noise = self.noise.log_variance(section(state, "noise"), torch.cat(phi, dim=-1))
        return Ahead(latents, output, noise)

    def _latent(
        self, state: Params, factors: Factors, l: int, inputs: Tensor, dtype: torch.dtype
    ) -> Marginal:
        """Marginals of the latent functions of layer l < L, the layer's noise included."""
        p = section(state, str(l))
        part = self.latent_coordinates(p, factors, l, inputs, dtype)
        noisy = Coordinates(part.centre, part.A, part.rest + torch.exp(p["log_noise"])[:, None])
        return marginal(noisy, p["q_mean"], p["q_factor"])

    def latent_coordinates(
        self, p: Params, factors: Factors, l: int, inputs: Tensor, dtype: torch.dtype
    ) -> Coordinates:
        """Coordinates of layer l < L at X (n, d) if l = 1, else at H (s, n, w)."""
        if l == 1 and factors.first is not None:
            return self.sparse.coordinates(p, factors.first, inputs)
        return self.deeper.coordinates(p, factors.deeper[l - 2], inputs, dtype)

    def paths(
        self, state: Params, factors: Factors, X: Tensor, s: int, generator: torch.Generator
    ) -> Tensor:
        """s joint draws (s, n, m) of the objectives at X (n, d): whole functions, layer by layer."""
        drawn = draws(state["out.q_mean"], state["out.q_factor"], s, generator)
        r = len(state["x.Z"])
        H: Tensor | None = None
        for l in range(1, self.depth):
            p = section(state, str(l))
            v = draws(p["q_mean"], p["q_factor"], s, generator)
            if H is None and factors.first is not None:
                values = self.sparse.paths(p, factors.first, X, v, generator)
            elif H is not None:
                values = self.deeper.paths(p, factors.deeper[l - 2], H, v, generator)
            shape, device = values.shape, values.device
            apart = torch.randn(shape, generator=generator, dtype=X.dtype, device=device)
            values = values + torch.exp(0.5 * p["log_noise"])[:, None, None] * apart
            H = values.permute(1, 2, 0)
        own = self.sparse.paths(section(state, "x"), factors.x, X, drawn[..., :r], generator)
        if H is not None:
            p = section(state, str(self.depth))
            own = own + self.deeper.paths(p, factors.deeper[-1], H, drawn[..., r:], generator)
        return own.permute(1, 2, 0)

    def base(self, state: Params, s: int, n: int, generator: torch.Generator) -> list[Tensor]:
        """Balanced base draws (s, n, w) for every layer but the last."""
        widths = [len(state[f"{l}.q_mean"]) for l in range(1, self.depth)]
        return [balanced_normals(s, (n, w), generator).to(state["x.Z"].device) for w in widths]

    def divergence(self, state: Params) -> Tensor:
        """The KL term of Eq. elbo, summed over the posteriors."""
        terms = [
            divergence(state[f"{l}.q_mean"], state[f"{l}.q_factor"])
            for l in [*map(str, range(1, self.depth)), "out"]
        ]
        return torch.stack(terms).sum()

    def trainable(self, state: Params, rounds: int) -> list[str]:
        """Names of the parameters that follow the gradient; the posteriors take natural steps."""
        sparse = ["log_lengthscale", "log_variance", "log_structure"]
        deep = ["log_scale", "log_variance", "log_weights"]
        mean = ["bias", "hidden", "hidden_bias"]
        names = [f"x.{k}" for k in sparse + mean]
        names += [f"1.{k}" for k in sparse + mean] if self.depth > 1 else []
        names += [f"{l}.{k}" for l in range(2, self.depth + 1) for k in deep + mean]
        names += [f"{l}.log_noise" for l in range(1, self.depth)]
        names += [f"noise.{k}" for k in self.noise.trainable(rounds)]
        return [k for k in names if state[k].numel()]

    def log_prior(self, state: Params, penalty: float) -> Tensor:
        """Log density of the parameters, up to a constant, minus the penalty on early noise.

        The penalty is ``penalty`` * sum_l (L - l) sum_j sigma_{l,j}^2: the earlier the layer, the
        dearer its noise, so that it cannot explain away signal that should stay epistemic.
        """
        total = log_normal(state["noise.bias"], -4.0, 2.0)
        for name in ["x", "1"] if self.depth > 1 else ["x"]:
            p = section(state, name)
            total = total + log_lengthscale_prior(p["log_lengthscale"], SHRINKAGE)
            total = total + log_normal(p["log_variance"], -1.0, 3.0)
            total = total + log_normal(p["log_structure"], -3.0, 3.0)
            total = total + self.sparse.kernel.mean.log_prior(p)
        for l in range(2, self.depth + 1):
            p = section(state, str(l))
            total = total + log_normal(p["log_scale"], 1.5, 1.0)
            total = total + log_normal(p["log_variance"], 0.0, 2.0)
            total = total + log_normal(p["log_weights"], -3.0, 3.0)
            total = total + self.deeper.mean.log_prior(p)
        for l in range(1, self.depth):
            total = total - penalty * (self.depth - l) * torch.exp(state[f"{l}.log_noise"]).sum()
        return total + self.noise.log_prior(section(state, "noise"))


def _sampled(layer: Marginal, base: Tensor, n: int) -> Tensor:
    """h (s, n, w) from a layer's marginals at 1 or s samples of n points."""
    centre = _by_sample(layer.centre, n).permute(1, 2, 0)
    variance = _by_sample(layer.variance, n).permute(1, 2, 0)
    return centre + variance.clamp_min(1e-14).sqrt() * base


def _by_sample(rows: Tensor, n: int) -> Tensor:
    """(b, s n) -> (b, s, n); of no points at all there is one sample."""
    return rows.reshape(len(rows), max(1, rows.shape[-1] // max(1, n)), n)
