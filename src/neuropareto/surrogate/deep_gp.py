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
from typing import Any

import numpy as np
import numpy.typing as npt
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

    ``latents`` shared latent functions feed the last layer; ``inducing`` points to start with are
    doubled up to ``most_inducing`` when the validation bound of a round lies more than
    ``doubling`` (paper: 2 %) below that of the round before; a refit from scratch when it lies
    more than ``refit`` below and the last one is ``refit_gap`` rounds old. Shares are of
    max(1, |bound|) nats a point, since the bound itself may be near zero. ``draws`` base draws
    make a posterior. ``iterations`` and ``points`` bound the shallow fit that a cold start uses.
    A fit from scratch may train for ``schedule.first_epochs``.
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
    refit: float = 0.5
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
        if _outgrown(last.scale, F):
            return self._finished(data, self._cold(data, last.rounds + 1), "the scale has changed")
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
        few = torch.tensor(even_subsample(len(X), self.points), device=X.device)
        columns = telling_features(X, Y, self.latents) if self.layers > 1 else []
        fit = shallow(self.stack, X[few], Y[few], columns, self.iterations, data.generator)
        state = start_state(
            self.stack, X[few], Y[few], fit, self.inducing, data.rng, data.generator
        )
        trainer = Trainer(self.stack, self.schedule, X, Y, rounds, data.generator)
        progress = trainer.run(state, self.schedule.first_epochs)
        return _Round.after(progress, scale, rounds, 0, self.inducing, "cold")

    def _warm(self, data: _Data, last: _Round) -> _Round:
        X, Y = data.tensors(last.scale)
        state = refreshed(self.stack, last.state, X, last.inducing, data.rng)
        rounds, age = last.rounds + 1, last.age + 1
        trainer = Trainer(self.stack, self.schedule, X, Y, rounds, data.generator)
        progress = trainer.run(state, self.schedule.epochs)
        return _Round.after(progress, last.scale, rounds, age, last.inducing, "warm")

    def _finished(self, data: _Data, done: _Round, restarted: str = "") -> FittedDeepGP:
        state = {k: v.detach() for k, v in done.state.items()}
        base = self.stack.base(state, self.draws, 1, data.generator)
        notes = {**done.notes, "restarted": restarted}
        return FittedDeepGP(self.stack, replace(done, state=state, notes=notes), base)


@dataclass(frozen=True)
class _Data:
    U: Array
    F: Array
    device: torch.device
    rng: np.random.Generator
    generator: torch.Generator

    def tensors(self, scale: Scale) -> tuple[Tensor, Tensor]:
        Y = torch.tensor(scale.standardised(self.F), device=self.device)
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
            "elbo": _number(progress.elbo[-1]) if progress.elbo else None,
            "nlpd": _number(min(progress.nlpd)),
            "validation_elbo": _number(progress.validation_elbo),
            "inducing": len(progress.state["x.Z"]),
            "setbacks": progress.failures,
        }
        return cls(progress.state, scale, rounds, age, inducing, progress.validation_elbo, notes)


def _recalled(warm: Memory | None, data: _Data, spec: DeepGP) -> _Round | None:
    """The last round, or None if ``warm`` is absent, broken or made for something else."""
    if warm is None or "meta" not in warm or not _compatible(warm, data, spec):
        return None
    rounds, age, inducing, validation, _ = (float(v) for v in warm["meta"])
    state = {
        k: torch.tensor(np.array(v, dtype=np.float64, order="C"), device=data.device)
        for k, v in warm.items()
        if "." in k
    }
    scale = Scale(np.asarray(warm["centre"]), np.asarray(warm["spread"]))
    return _Round(state, scale, int(rounds), int(age), int(inducing), validation, {})


def _compatible(warm: Memory, data: _Data, spec: DeepGP) -> bool:
    """Whether ``warm`` is finite and has the names and shapes that ``spec`` gives its parameters."""
    m, d = data.F.shape[1], data.U.shape[1]
    if any(not np.isfinite(v).all() for v in warm.values()) or warm["meta"][-1] != spec.layers:
        return False
    idle = torch.Generator()
    width = len(warm["1.q_mean"]) if spec.layers > 1 else 0
    inputs = 2 * d + 2 + spec.mean.hidden + width
    net = spec.mean.start(d, idle, data.device)
    noise = spec.noise.start(inputs, torch.zeros(m, dtype=torch.float64), idle)
    shapes = {f"x.{k}": v.shape for k, v in net.items()}
    shapes |= {f"noise.{k}": v.shape for k, v in noise.items()}
    shapes["x.log_lengthscale"] = torch.Size((m, d))
    if spec.layers > 1:
        shapes[f"{spec.layers}.fixed"] = spec.features.fixed(width, idle).shape
    same_noise = {k for k in warm if k.startswith("noise.")} == {f"noise.{k}" for k in noise}
    return same_noise and all(k in warm and warm[k].shape == v for k, v in shapes.items())


def _outgrown(scale: Scale, F: Array) -> bool:
    """Whether the objectives now spread so differently that parameters of ``scale`` mislead."""
    ratio = Scale.of(F).spread / scale.spread
    return bool((np.abs(np.log(ratio)) > math.log(5.0)).any())


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


class FittedDeepGP:
    """A trained stack with fixed base draws: a pure function of the points."""

    def __init__(self, stack: Stack, done: _Round, base: list[Tensor]) -> None:
        self._stack, self._round, self._base = stack, done, base
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
        chunk = max(1, 2048 // max(1, len(X)))
        parts = [
            self._stack.paths(self._round.state, self._factors, X, min(chunk, n - at), generator)
            for at in range(0, n, chunk)
        ]
        return self._round.scale.draws(torch.cat(parts))

    @property
    def warm(self) -> Memory:
        """Parameters, posteriors, inducing points, scales and the counters of the schedule."""
        r = self._round
        # Single precision is enough for the large factors, which the next round renews first.
        arrays: dict[str, npt.NDArray[Any]] = {
            k: array(v).astype(np.float32) if k.endswith("q_factor") else array(v)
            for k, v in r.state.items()
        }
        meta = np.array([r.rounds, r.age, r.inducing, r.validation, self._stack.depth])
        return {**arrays, "centre": r.scale.centre, "spread": r.scale.spread, "meta": meta}

    @property
    def notes(self) -> dict[str, object]:
        """Start, epochs, bounds, why training stopped ("last good parameters" after repeated
        setbacks), number of inducing points, and why a warm start was given up, if it was.
        """
        return dict(self._round.notes)
