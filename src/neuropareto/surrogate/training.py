"""Training of the deep GP: natural gradients for q, Adam for the rest, early stopping.

One epoch is one pass over the training points in minibatches. A round (a fit) is bounded: at most
``epochs`` epochs, fewer when the bound has stopped growing or validation NLPD has stopped falling.
The held-out fold rotates from round to round and is absorbed in the last epochs, so that no
evaluation is wasted. Paper: Algorithm "NeuroPareto", training protocol; Eq. elbo.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.stack import Ahead, Stack, State, Trace
from neuropareto.surrogate.variational import natural_step


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a round trains.

    ``epochs`` bounds a warm round (paper: 50), ``first_epochs`` a fit from scratch; ``steps``
    bounds the minibatches of any round, so that the cost of a round does not grow with n.
    ``plateau`` is the growth of the bound an epoch below which training stops (paper: 0.1 %),
    ``patience`` the epochs without better validation NLPD, ``settle`` the epochs in which
    only posteriors move, at the beginning and, on all points, at the end, ``check``
    the epochs between looks at the held-out points. ``rate`` is Adam's, ``step`` that of the
    natural gradient.
    """

    epochs: int = 50
    first_epochs: int = 60
    steps: int = 60
    batch: int = 512
    samples: int = 2
    rate: float = 0.02
    step: float = 0.3
    plateau: float = 1e-3
    patience: int = 12
    settle: int = 2
    check: int = 3
    held_out: float = 0.2
    penalty: float = 1.0


@dataclass
class Progress:
    """What a round of training left behind."""

    state: State
    elbo: list[float] = field(default_factory=list)
    nlpd: list[float] = field(default_factory=list)
    validation_elbo: float = math.nan
    stopped: str = ""
    failures: int = 0


@dataclass(frozen=True)
class Trainer:
    """One round of training of a stack on X (n, d), Y (n, m), all on the unit scale.

    ``rounds`` counts earlier fits: it chooses the held-out fold and unfreezes the noise.
    """

    stack: Stack
    schedule: Schedule
    X: Tensor
    Y: Tensor
    rounds: int
    generator: torch.Generator

    def run(self, state: State, epochs: int) -> Progress:
        """Train for at most ``epochs`` epochs and return the best state seen, all data absorbed.

        Before the first look at the held-out points the posteriors forget them, which they may
        know from the start or from earlier rounds; otherwise any training would look harmful.
        """
        seen, held = self.folds()
        progress = Progress(dict(state))
        if epochs == 0:
            progress.nlpd.append(self.nlpd(state, held))
            progress.validation_elbo = self.validation_elbo(state, held, len(seen))
            return progress
        self._settle(progress, seen)
        self._climb(progress, seen, held, epochs)
        progress.validation_elbo = self.validation_elbo(progress.state, held, len(seen))
        everything = torch.arange(len(self.X), device=self.X.device)
        self._settle(progress, everything)
        return progress

    def folds(self) -> tuple[Tensor, Tensor]:
        """Indices of training and held-out points; the latter rotate with the round."""
        n = len(self.X)
        parts = max(2, round(1.0 / self.schedule.held_out))
        index = torch.arange(n, device=self.X.device)
        if n < 2 * parts:
            return index, index
        held = index % parts == self.rounds % parts
        return index[~held], index[held]

    def _climb(self, progress: Progress, seen: Tensor, held: Tensor, epochs: int) -> None:
        schedule = self.schedule
        names = self.stack.trainable(progress.state, self.rounds)
        optimizer = _Adam(names, schedule.rate)
        settled = current = dict(progress.state)
        best, steps, since = math.inf, 0, 0
        for epoch in range(epochs + 1):
            last = epoch == epochs or steps >= schedule.steps
            if last or epoch % schedule.check == 0:
                progress.nlpd.append(self.nlpd(settled, held))
                if progress.nlpd[-1] < best:
                    best, progress.state, since = progress.nlpd[-1], settled, epoch
            progress.stopped = self._reason(progress, epoch - since)
            if progress.stopped or last:
                break
            total, batches = 0.0, self._batches(seen)
            for batch in batches:
                try:
                    settled, current, value = self.step(current, optimizer, batch, len(seen))
                    total += value / len(batches)
                except NumericalFailure:
                    progress.failures += 1
                    settled = current = dict(progress.state)
                    optimizer = _Adam(names, optimizer.rate / 4.0)
                steps += 1
            progress.elbo.append(total)
        progress.stopped = progress.stopped or "epochs"

    def _reason(self, progress: Progress, waited: int) -> str:
        """Why training should stop now; empty if it should not."""
        if progress.failures > 3:
            return "last good parameters"
        if waited >= self.schedule.patience:
            return "validation"
        return "plateau" if _flat(progress.elbo, self.schedule.plateau) else ""

    def _settle(self, progress: Progress, index: Tensor) -> None:
        """Let the posteriors, and only they, adapt to the points of ``index``."""
        current = dict(progress.state)
        try:
            for _ in range(self.schedule.settle):
                for batch in self._batches(index):
                    _, current, _ = self.step(current, _Adam([], 0.0), batch, len(index))
        except NumericalFailure:
            progress.failures += 1
            return
        progress.state = current

    def _batches(self, index: Tensor) -> tuple[Tensor, ...]:
        if len(index) <= self.schedule.batch:
            return (index,)
        order = torch.randperm(len(index), generator=self.generator).to(index.device)
        return torch.tensor_split(index[order], math.ceil(len(index) / self.schedule.batch))

    def step(
        self, state: State, optimizer: _Adam, batch: Tensor, n: int
    ) -> tuple[State, State, float]:
        """One minibatch: the output's optimal posterior, then a gradient step of the rest.

        Returns the state at that optimum, the state after the gradient step, and the bound. The
        gradient is taken at the optimum, so it is that of the collapsed bound. The latent
        functions' posteriors take a natural step, the parameters an Adam step.
        """
        # Two leaves are always there: without them a marginal has no gradient to step along.
        names = dict.fromkeys([*optimizer.names, *(["1.bias", "1.log_noise"] * self._deep)])
        leaves = {k: state[k].detach().requires_grad_() for k in names}
        live = {**state, **leaves}
        weight = n / len(batch)
        ahead = self._ahead(live, batch)
        q = self._output_posterior(state, ahead, batch, weight)
        trace = ahead.trace(*q)
        likelihood = weight * trace.expected_log_likelihood(self.Y[batch]).sum()
        settled = {**state, "out.q_mean": q[0], "out.q_factor": q[1]}
        elbo = float(likelihood.detach() - self.stack.divergence(settled))
        if not math.isfinite(elbo):
            raise NumericalFailure("The evidence lower bound is not finite.")
        if not leaves:
            return settled, settled, elbo
        value = likelihood + self.stack.log_prior(live, self.schedule.penalty * n)
        inner = [t for h in trace.latents.values() for t in (h.centre, h.variance)]
        grads = torch.autograd.grad(value, [*leaves.values(), *inner])
        new = optimizer.updated(settled, dict(zip(leaves, grads, strict=False)))
        of_latents = iter(grads[len(leaves) :])
        for name, h in trace.latents.items():
            slope, by_variance = next(of_latents), next(of_latents)
            mean, factor, A = state[f"{name}.q_mean"], state[f"{name}.q_factor"], h.A.detach()
            curvature = (-2.0 * by_variance).clamp_min(0.0)
            pull = slope + curvature * (mean[..., None, :] @ A)[..., 0, :]
            moved = natural_step(mean, factor, A, pull, curvature, self.schedule.step)
            new[f"{name}.q_mean"], new[f"{name}.q_factor"] = moved
        return settled, new, elbo

    @torch.no_grad()
    def _output_posterior(
        self, state: State, ahead: Ahead, batch: Tensor, weight: float
    ) -> tuple[Tensor, Tensor]:
        """q of the output given the batch: the exact optimum if the batch is all there is."""
        samples = ahead.output.centre.shape[-1] // len(batch)
        precision = (weight / samples * torch.exp(-ahead.log_noise.T)).repeat(1, samples)
        pull = precision * (self.Y[batch].T.repeat(1, samples) - ahead.output.centre)
        mean, factor = state["out.q_mean"], state["out.q_factor"]
        step = 1.0 if weight == 1.0 else self.schedule.step
        return natural_step(mean, factor, ahead.output.A, pull, precision, step)

    @property
    def _deep(self) -> bool:
        return self.stack.depth > 1

    def _ahead(self, state: State, batch: Tensor) -> Ahead:
        base = self.stack.base(state, self.schedule.samples, len(batch), self.generator)
        factors = self.stack.factors(state)
        return self.stack.ahead(state, factors, self.X[batch], base, torch.float32)

    @torch.no_grad()
    def nlpd(self, state: State, held: Tensor) -> float:
        """Mean negative log predictive density of the held-out points; infinite if it fails."""
        try:
            mean, epistemic, aleatoric = self._quiet(state, held).moments()
        except NumericalFailure:
            return math.inf
        variance = epistemic + aleatoric
        square = (self.Y[held] - mean).square() / variance
        value = float(0.5 * (torch.log(2.0 * math.pi * variance) + square).mean())
        return value if math.isfinite(value) else math.inf

    @torch.no_grad()
    def validation_elbo(self, state: State, held: Tensor, n: int) -> float:
        """The bound for each held-out point: its log predictive density minus KL / n.

        Eq. elbo has E_q[log p(y | f)] in place of the predictive density; on held-out points of a
        nearly exact simulator that term is variance / noise and drowns everything else.
        """
        density = -self.nlpd(state, held) * self.Y.shape[1]
        return density - float(self.stack.divergence(state)) / n

    def _quiet(self, state: State, index: Tensor) -> Trace:
        """A pass whose base draws are always the same, so that states can be compared."""
        fixed = torch.Generator().manual_seed(0)
        base = self.stack.base(state, self.schedule.samples, len(index), fixed)
        return self.stack.trace(state, self.stack.factors(state), self.X[index], base)


class _Adam:
    """Adam (Kingma and Ba 2015) as a map from states to states, for the parameters it names."""

    def __init__(self, names: list[str], rate: float) -> None:
        self.names, self.rate, self._count = names, rate, 0
        self._first: State = {}
        self._second: State = {}

    def updated(self, state: State, grads: State) -> State:
        """The state after one ascent step."""
        self._count += 1
        new = dict(state)
        for k in self.names:
            g = grads[k]
            first = 0.9 * self._first.get(k, torch.zeros_like(g)) + 0.1 * g
            second = 0.99 * self._second.get(k, torch.zeros_like(g)) + 0.01 * g * g
            self._first[k], self._second[k] = first, second
            slope = first / (1.0 - 0.9**self._count)
            size = (second / (1.0 - 0.99**self._count)).sqrt() + 1e-8
            new[k] = state[k] + self.rate * _pace(k) * slope / size
        return new


def _pace(name: str) -> float:
    """The hidden units of the means learn slowly: they have more parameters than points."""
    hidden = name.endswith((".hidden", ".hidden_bias")) and not name.startswith("noise.")
    return 0.1 if hidden else 1.0


def _flat(elbo: list[float], plateau: float) -> bool:
    """Whether the bound grows by less than the share ``plateau`` an epoch.

    Judged by its means over the last five epochs and the five before, since it is sampled.
    """
    if len(elbo) < 10:
        return False
    before, after = float(np.mean(elbo[-10:-5])), float(np.mean(elbo[-5:]))
    return after - before < 5.0 * plateau * abs(before)
