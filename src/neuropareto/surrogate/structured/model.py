"""The structured Gaussian process as a Surrogate: spec, fitted model, what it offers to a search.

One GP for each objective on its own warped scale; see ``kernel.py`` for the covariance. The mean in
the user's units is the image of the latent mean (the median of f), which one far-off uncertainty
cannot blow up. Notation: U (b, d) points asked about, m objectives.
Paper: the place of Eq. mean_fn and the output layer; the structure itself is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.scaling import array, check_data
from neuropareto.surrogate.structured import training
from neuropareto.surrogate.structured.conditioned import Conditioned, posterior
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.modulation import unwarped
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.recalibration import Online, Recalibration
from neuropareto.surrogate.structured.record import Record
from neuropareto.surrogate.structured.restarts import unexplained
from neuropareto.surrogate.structured.training import Due, Effort, Hints, Trained, Variant
from neuropareto.surrogate.structured.warp import Units


@dataclass(frozen=True)
class StructuredGP:
    """Spec: few modulators times additive curves, plus interactions, by evidence; see the module.

    ``few`` are the beliefs tried for up to two outputs, ``many`` for more (where products of
    modulators are natural); a later one is tried only while the leave-one-out log density stays
    under ``satisfied`` and taken if it is higher by ``margin``. Hyper-parameters see ``rows``
    evaluations, the posterior conditions on ``points``: the latest half, the rest spread evenly.
    A model whose last ten forecasts were off by more than ``doubt`` standard deviations (median)
    meets a rival trained from nothing whenever a full rescan is due, and the higher density stays
    (decision D-71).
    """

    few: tuple[Variant, ...] = (training.TIGHT, training.SPARSE)
    many: tuple[Variant, ...] = (training.TIGHT_PRODUCT, training.SPARSE_PRODUCT)
    satisfied: float = 2.0
    margin: float = 0.1
    doubt: float = 3.0
    effort: Effort = Effort()
    recalibration: Recalibration = Online()
    rows: int = 400
    points: int = 1000

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedStructuredGP:
        """Fit m GPs to ``U`` (n, d), ``F`` (n, m), n >= 2; ValueError, NumericalFailure."""
        U, F = check_data(U, F)
        record = Record.recalled(warm, U, F, self.variants)
        old = record.trained if record is not None else None
        scores = np.empty((0, F.shape[1])) if record is None else record.scores(U, F, self.points)
        due = self.effort.due(len(U), None if record is None else record.looked)
        wrong = doubtful(scores, self.doubt)
        models: list[Trained] = []
        for j in range(F.shape[1]):
            hints = Hints.of((*models, *(old or ())[j + 1 :]))
            start = None if old is None else old[j]
            model = self._trained(U, F[:, j], F.shape[1], start, hints, due, bool(wrong[j]))
            models.append(model)
        factors = np.array([self.recalibration.factor(z) for z in scores.T])
        conditioned = tuple(_conditioned(t, U, F[:, j], self.points) for j, t in enumerate(models))
        covered = None if record is None else record.coverage(U, F, self.points)
        kept = Record.of(U, F, tuple(models), factors, scores, due.looked, self.variants)
        signal = np.array([self._signal(t, U, F[:, j]) for j, t in enumerate(models)])
        return FittedStructuredGP(conditioned, factors, signal, kept, covered)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All beliefs that a fit may end with."""
        return self.few + self.many

    def _signal(self, model: Trained, U: Array, y: Array) -> float:
        seen = even_subsample(len(U), self.rows)
        units = Units.of(y[seen])
        if units.constant:
            return 0.0
        X = Points.of(torch.tensor(U[seen]))
        v = units.scaled(y[seen])
        return Evidence(model.kernel, X, v, model.variant.warped).advantage(model.P)

    def _trained(
        self,
        U: Array,
        y: Array,
        m: int,
        old: Trained | None,
        hints: Hints,
        due: Due,
        doubted: bool,
    ) -> Trained:
        seen = even_subsample(len(U), self.rows)
        X, y = Points.of(torch.tensor(U[seen])), y[seen]
        # An output that was constant so far has no modulators yet: nothing to start from.
        started = old is not None and (
            old.kernel.modulation.J or not self.effort.modulators or Units.of(y).constant
        )
        variants = self.few if m <= 2 else self.many
        if old is None or not started:
            return self._afresh(variants, X, y, hints)
        if not due.steps:
            return old
        kept = training.retrained(old, X, y, hints, self.effort, rescan=due.rescan)
        if not doubted or not due.rescan or Units.of(y).constant:
            return kept
        rival = self._afresh(variants, X, y, hints)
        return rival if _density(rival, X, y) > _density(kept, X, y) else kept

    def _afresh(self, variants: tuple[Variant, ...], X: Points, y: Array, hints: Hints) -> Trained:
        best = training.trained(variants[0], X, y, hints, self.effort)
        for variant in variants[1:]:
            highest = _density(best, X, y)
            if highest > self.satisfied:
                break
            other = training.trained(variant, X, y, hints, self.effort)
            if _density(other, X, y) > highest + self.margin:
                best = other
        return training.located(best, X, y, hints, self.effort)


def doubtful(scores: Array, limit: float) -> npt.NDArray[np.bool_]:
    """Whether the last forecasts of each output were off by more than ``limit`` deviations, (m,).

    By the median |z| of the last ten (fewer if there are no more); ``scores`` are |z| (b, m).
    """
    if not len(scores):
        return np.zeros(scores.shape[1], dtype=np.bool_)
    return np.asarray(np.median(scores[-10:], axis=0) > limit)


def _density(model: Trained, X: Points, y: Array) -> float:
    return Conditioned.on(model.kernel, model.P, X, y).density


def _conditioned(model: Trained, U: Array, y: Array, points: int) -> Conditioned:
    kept = even_subsample(len(U), points)
    return Conditioned.on(model.kernel, model.P, Points.of(torch.tensor(U[kept])), y[kept])


@dataclass(frozen=True, eq=False)
class Modulators:
    """The modulating variables of one objective, strongest first, with their warps.

    ``index`` (k,), ``strength`` (k,), Kumaraswamy shapes ``a`` and ``b`` (k,).
    """

    index: tuple[int, ...]
    strength: Array
    a: Array
    b: Array

    def placed(self, T: Array) -> Array:
        """Variables (n, k) whose warped values are ``T`` (n, k)."""
        a, b = torch.tensor(self.a), torch.tensor(self.b)
        return array(unwarped(a, b, torch.tensor(T)))


class FittedStructuredGP:
    """A conditioned structured GP; a pure function."""

    def __init__(
        self,
        models: tuple[Conditioned, ...],
        factors: Array,
        signal: Array,
        record: Record,
        coverage: float | None,
    ) -> None:
        self._models, self._factors, self._record = models, factors, record
        self._signal, self._coverage = signal, coverage

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (b, d)."""
        return posterior(self._models, self._factors, U)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives in the user's units, (n, len(U), m)."""
        A = _points(U)
        generator = torch.Generator().manual_seed(torch_seed(rng))
        draws = np.empty((n, len(A), len(self._models)))
        with torch.no_grad():
            for j, model in enumerate(self._models):
                mean, covariance = model.joint(A)
                base = torch.randn(len(A), n, generator=generator, dtype=torch.float64)
                z = mean[:, None] + cholesky(covariance) @ base
                middle = model.inverse.value(mean)[:, None]
                # Recalibration acts in the user's units, where the z-scores were measured.
                spread = self._factors[j] * (model.inverse.value(z) - middle)
                draws[:, :, j] = (middle + spread).T.numpy()
        return draws

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u at ``U``, (len(U), m, d)."""
        return self.mean_and_gradient(U)[1]

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """The mean (b, m) and its gradient (b, m, d), together."""
        A = _points(U)
        means, gradients = [], []
        with torch.no_grad():
            for model in self._models:
                z, slope = model.mean_and_slope(A)
                means.append(array(model.inverse.value(z)))
                gradients.append(array(model.inverse.slope(z)[:, None] * slope))
        return np.stack(means, axis=1), np.stack(gradients, axis=1)

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        """All one-dimensional curves of sum_j weights_bj f_j around each point, (b, d, g).

        First order in each objective's warp and without interactions: with the modulators held,
        the latent mean is a sum of curves. ``weights`` (b, m), ``grid`` (g,); up to a constant.
        """
        A, G = _points(U), torch.tensor(grid)
        with torch.no_grad():
            total = torch.zeros(len(A), A.d, len(G), dtype=torch.float64)
            for j, model in enumerate(self._models):
                slope = model.inverse.slope(model.mean(A)) * torch.tensor(weights[:, j])
                total += slope[:, None, None] * model.curves(A, G)
        return array(total)

    @property
    def modulators(self) -> tuple[Modulators, ...]:
        """The modulating variables of each objective."""
        return tuple(_modulators(model) for model in self._models)

    @property
    def signal(self) -> Array:
        """The evidence against pure noise, in nats for each row and objective, (m,)."""
        return self._signal.copy()

    @property
    def density(self) -> Array:
        """The leave-one-out log density of each output, in nats for each row, (m,)."""
        return np.array([model.density for model in self._models])

    @property
    def unexplained(self) -> Array:
        """The share of each output's variance that is left to noise and residual, (m,)."""
        return np.array([unexplained(t.P) for t in self._record.trained])

    @property
    def warm(self) -> Memory:
        """Hyper-parameters, what they were fitted to, and the recent z-scores."""
        return self._record.memory

    @property
    def notes(self) -> dict[str, object]:
        """Per objective: belief, density, modulators, frequency, noise; coverage of the last batch."""
        trained = self._record.trained
        return {
            "model": "structured_gp",
            "variant": [t.variant.name for t in trained],
            "signal": self._signal.tolist(),
            "density": [model.density for model in self._models],
            "modulators": [list(m.index) for m in self.modulators],
            "frequency": [t.frequency for t in trained],
            "corners": [len(t.kernel.corners) > 0 for t in trained],
            "places": [len(t.kernel.places) > 0 for t in trained],
            "noise": [float(model.noise) for model in self._models],
            "residual": [float(torch.exp(t.P["residual"])) for t in trained],
            "output_warp": [float(t.P["output_warp"]) for t in trained],
            "inflation": self._factors.tolist(),
            "coverage": self._coverage,
        }


def _points(U: Array) -> Points:
    return Points.of(torch.tensor(np.asarray(U, dtype=np.float64)))


def _modulators(model: Conditioned) -> Modulators:
    J = model.kernel.modulation.J
    if not J:
        return Modulators((), np.empty(0), np.empty(0), np.empty(0))
    P = model.P
    strength = array(torch.exp(P["modulator"]) + torch.exp(P["rough"]))
    order = np.argsort(-strength, kind="stable")
    a, b = (array(torch.exp(P[k]))[order] for k in ("warp_a", "warp_b"))
    return Modulators(tuple(J[i] for i in order), strength[order], a, b)
