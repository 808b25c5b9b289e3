"""The complexity-reduced deep Gaussian process surrogate.

Layer 1 is a sparse variational GP with shared inducing points, layers >= 2 use random features;
both have neural means, the observation noise depends on the point. A round starts warm from the
last one's parameters, posteriors and inducing points and trains for a bounded number of epochs.
Notation: U (n, d), F (n, m); inside X in [-1, 1] and standardised Y.
Paper: section "Complexity reduced Deep Gaussian Process surrogates" and its appendix on the
decomposition of uncertainty; Eqs. gp_layer to elbo, gp_variance to hetero_noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.deep_start import shallow, start_state, telling_features
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.feature_layer import FeatureLayer
from neuropareto.surrogate.features import Features, RandomFourier
from neuropareto.surrogate.kernels import Matern52, Stationary, Structured
from neuropareto.surrogate.mean import NeuralMean
from neuropareto.surrogate.noise import Heteroscedastic, Noise
from neuropareto.surrogate.refresh import refreshed
from neuropareto.surrogate.scaling import Scale, array, centred, check_data
from neuropareto.surrogate.sparse_layer import SparseLayer
from neuropareto.surrogate.stack import Stack, State
from neuropareto.surrogate.training import Progress, Schedule, Trainer

_CHUNK = 64


@dataclass(frozen=True)
class DeepGP:
    """Spec of the deep GP; see the module. ``layers=1`` is the shallow variant of the paper.

    ``latents`` shared latent functions besides one an objective; ``inducing`` points to start
    with, doubled up to ``most_inducing`` when the validation bound of a round lies more than
    ``doubling`` (paper: 2 %) below that of the round before; a refit from scratch when it lies
    more than ``refit`` below and the last one is ``refit_gap`` rounds old. Shares are of
    max(1, |bound|) nats a point, since the bound itself may be near zero. ``draws`` base draws
    make a posterior. ``iterations`` and ``points`` bound the shallow fit that a cold start uses.
    """

    layers: int = 2
    latents: int = 6
    inducing: int = 256
    most_inducing: int = 512
    features: Features = RandomFourier()
    kernel: Stationary = Matern52()
    mean: NeuralMean = NeuralMean()
    noise: Noise = Heteroscedastic()
    schedule: Schedule = Schedule()
    doubling: float = 0.02
    refit: float = 0.25
    refit_gap: int = 3
    iterations: int = 75
    points: int = 400
    draws: int = 8
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.layers < 1 or self.inducing < 1 or self.latents < 1:
            raise ValueError(
                f"A deep GP needs at least one layer, latent function and inducing point, got "
                f"layers={self.layers}, latents={self.latents}, inducing={self.inducing}."
            )
        if self.draws % 2 or self.draws < 2 or self.schedule.samples % 2:
            raise ValueError(
                f"Samples come in opposite pairs, so their number must be even, got "
                f"draws={self.draws}, samples={self.schedule.samples}; add one."
            )

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedDeepGP:
        """One round on ``U`` (n, d), ``F`` (n, m), warm if ``warm`` fits the data.

        Raises ValueError for bad shapes, NumericalFailure if not even a cold start works.
        """
        U, F = check_data(U, F)
        generator = torch.Generator().manual_seed(torch_seed(rng))
        data = _Data(U, F, torch.device(self.device), rng, generator)
        last = _recalled(warm, data, self)
        if last is None:
            return self._finished(data, self._cold(data, rounds=0))
        try:
            done = self._warm(data, last)
        except NumericalFailure as failure:
            return self._finished(data, self._cold(data, last.rounds + 1), str(failure))
        loss = last.validation - done.validation
        unit = max(1.0, abs(last.validation))
        if loss > self.refit * unit and done.age >= self.refit_gap:
            again = self._cold(data, done.rounds)
            return self._finished(data, max(done, again, key=lambda r: r.validation))
        if loss > self.doubling * unit:
            done = replace(done, inducing=min(2 * done.inducing, self.most_inducing))
        return self._finished(data, done)

    @property
    def stack(self) -> Stack:
        """The shape of the layers."""
        return Stack(
            SparseLayer(Structured(self.kernel, self.mean)),
            FeatureLayer(self.features, self.mean),
            self.noise,
            self.layers,
        )

    def _cold(self, data: _Data, rounds: int) -> _Round:
        scale = Scale.of(data.F)
        X, Y = data.tensors(scale)
        few = torch.as_tensor(even_subsample(len(X), self.points), device=X.device)
        columns = telling_features(X, Y, self.latents) if self.layers > 1 else []
        fit = shallow(self.stack, X[few], Y[few], columns, self.iterations, data.generator)
        state = start_state(
            self.stack, X[few], Y[few], fit, self.inducing, data.rng, data.generator
        )
        trainer = Trainer(self.stack, self.schedule, X, Y, rounds, 0, data.generator)
        progress = trainer.run(state, self.schedule.first_epochs)
        return _Round.after(progress, scale, rounds, 0, self.inducing, "cold")

    def _warm(self, data: _Data, last: _Round) -> _Round:
        X, Y = data.tensors(last.scale)
        state = refreshed(self.stack, last.state, X, last.inducing, data.rng)
        rounds, age = last.rounds + 1, last.age + 1
        trainer = Trainer(self.stack, self.schedule, X, Y, rounds, age, data.generator)
        progress = trainer.run(state, self.schedule.epochs)
        return _Round.after(progress, last.scale, rounds, age, last.inducing, "warm")

    def _finished(self, data: _Data, done: _Round, failure: str = "") -> FittedDeepGP:
        state = {k: v.detach() for k, v in done.state.items()}
        base = self.stack.base(state, self.draws, 1, data.generator)
        return FittedDeepGP(self.stack, replace(done, state=state), base, failure)


@dataclass(frozen=True)
class _Data:
    U: Array
    F: Array
    device: torch.device
    rng: np.random.Generator
    generator: torch.Generator

    def tensors(self, scale: Scale) -> tuple[Tensor, Tensor]:
        Y = torch.as_tensor(scale.standardised(self.F), device=self.device)
        return centred(self.U, self.device), Y


@dataclass(frozen=True)
class _Round:
    """What one round hands to the next."""

    state: State
    scale: Scale
    rounds: int
    age: int
    inducing: int
    validation: float
    notes: dict[str, object]

    @classmethod
    def after(
        cls, progress: Progress, scale: Scale, rounds: int, age: int, inducing: int, start: str
    ) -> _Round:
        notes: dict[str, object] = {
            "model": "deep_gp",
            "start": start,
            "rounds": rounds,
            "epochs": len(progress.elbo),
            "stopped": progress.stopped,
            "elbo": progress.elbo[-1] if progress.elbo else None,
            "nlpd": min(progress.nlpd),
            "validation_elbo": progress.validation_elbo,
            "inducing": len(progress.state["x.Z"]),
            "failures": progress.failures,
        }
        return cls(progress.state, scale, rounds, age, inducing, progress.validation_elbo, notes)


def _recalled(warm: Memory | None, data: _Data, spec: DeepGP) -> _Round | None:
    """The last round, or None if ``warm`` is absent, broken, or of another shape or scale."""
    if warm is None or "meta" not in warm:
        return None
    names = [k for k in warm if k not in ("meta", "centre", "spread")]
    m, d = data.F.shape[1], data.U.shape[1]
    rounds, age, inducing, validation, layers, anchors = (float(v) for v in warm["meta"])
    fits = (
        (layers, anchors) == (spec.layers, _features_key(spec))
        and warm["x.Z"].shape[1] == d
        and warm["centre"].shape == (m,)
        and all(np.isfinite(warm[k]).all() for k in names)
    )
    scale = Scale(np.asarray(warm["centre"]), np.asarray(warm["spread"]))
    # On a scale that has become far too narrow the old parameters mean nothing.
    if not fits or np.abs(scale.standardised(data.F)).max() > 1e3 or not math.isfinite(validation):
        return None
    state = {
        k: torch.as_tensor(np.array(warm[k], dtype=np.float64), device=data.device) for k in names
    }
    return _Round(state, scale, int(rounds), int(age), int(inducing), validation, {})


def _features_key(spec: DeepGP) -> float:
    return float(spec.features.anchors)


class FittedDeepGP:
    """A trained stack with fixed base draws: a pure function of the points."""

    def __init__(self, stack: Stack, done: _Round, base: list[Tensor], failure: str) -> None:
        self._stack, self._round, self._base, self._failure = stack, done, base, failure
        with torch.no_grad():
            self._factors = stack.factors(done.state)

    @property
    def _device(self) -> torch.device:
        return self._round.state["x.Z"].device

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        trace = self._stack.trace(self._round.state, self._factors, X, self._base)
        return trace.moments()

    @torch.no_grad()
    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (n, d), moments over the stack's samples."""
        parts = [self._moments(X) for X in torch.split(centred(U, self._device), _CHUNK)]
        mean, epistemic, aleatoric = (torch.cat(p) for p in zip(*parts, strict=True))
        return self._round.scale.posterior(mean, epistemic, aleatoric)

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u, (len(U), m, d)."""
        parts = [self._gradient(X) for X in torch.split(centred(U, self._device), _CHUNK)]
        return self._round.scale.gradient(torch.cat(parts))

    def _gradient(self, X: Tensor) -> Tensor:
        X = X.detach().requires_grad_()
        mean = self._moments(X)[0]
        m = mean.shape[1]
        picks = torch.eye(m, dtype=mean.dtype, device=mean.device)[:, None, :].expand(
            m, *mean.shape
        )
        (G,) = torch.autograd.grad(mean, X, picks, is_grads_batched=True)
        return G.transpose(0, 1)

    @torch.no_grad()
    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, (n, len(U), m)."""
        X = centred(U, self._device)
        generator = torch.Generator(self._device).manual_seed(torch_seed(rng))
        chunk = max(1, 2048 // len(X))
        parts = [
            self._stack.paths(self._round.state, self._factors, X, min(chunk, n - at), generator)
            for at in range(0, n, chunk)
        ]
        return self._round.scale.draws(torch.cat(parts))

    @property
    def warm(self) -> Memory:
        """Parameters, posteriors, inducing points, scales and the counters of the schedule."""
        r = self._round
        anchors = len(r.state.get("2.Z", ()))
        meta = [r.rounds, r.age, r.inducing, r.validation, self._stack.depth, anchors]
        arrays = {k: array(v) for k, v in r.state.items()}
        return {
            **arrays,
            "centre": r.scale.centre,
            "spread": r.scale.spread,
            "meta": np.array(meta),
        }

    @property
    def notes(self) -> dict[str, object]:
        """Epochs, bounds, reason of stopping, number of inducing points, rung if one was needed."""
        rung = "from scratch" if self._failure else str(self._round.notes["stopped"])
        return {**self._round.notes, "failure": self._failure, "rung": rung}
