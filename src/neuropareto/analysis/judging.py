"""Which configuration of a pilot is best: gains, predictions of fresh points, held-out ranks.

Notation: t trials, p distinct evaluated pilot points, m objectives. Three figures order the trials:
the hypervolume its own point added to the start archive; the negative log predictive density (NLPD)
of its surrogate, fitted to the start archive, at all pilot points; its classifier's held-out loss.
The order is the average of the three ranks. The validation signal costs no evaluation: the best
configuration's surrogate, fitted to four fifths of the start archive, predicts the last fifth; the
signal is the rank correlation of prediction and truth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, spearmanr

from neuropareto import pareto
from neuropareto.analysis.knobs import KNOBS, Configuration
from neuropareto.analysis.tuned import Evidence
from neuropareto.archive import Archive
from neuropareto.neuropareto import NeuroPareto
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.study.spec import describe
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate


@dataclass(frozen=True, eq=False)
class Trial:
    """One configuration's proposal ``u`` (d,) and what came of it.

    F (m,) has the sense of minimisation and is None if the evaluation failed; ``loss`` is the
    classifier's held-out loss, if it has one.
    """

    configuration: Configuration
    stage: str
    u: Array
    F: Array | None
    loss: float | None
    feasible: bool = True


@dataclass(frozen=True, eq=False)
class Verdict:
    """The trials in order, best first, with the figures behind it; each array (t,).

    ``noise`` is the share of the objectives' variance that the
    best configuration's surrogate takes for noise.
    """

    trials: tuple[Trial, ...]
    gain: Array
    nlpd: Array
    loss: Array
    score: Array
    noise: float

    @property
    def best(self) -> Configuration:
        """The first in the order."""
        return self.trials[0].configuration

    def evidence(self, pipeline: NeuroPareto) -> tuple[Evidence, ...]:
        """One row a trial; figures that a trial lacks are left out."""
        columns = {
            "mean rank": self.score, "gain": self.gain, "NLPD": self.nlpd,
            "classifier loss": self.loss,
        }  # fmt: skip
        return tuple(
            Evidence(
                i + 1, trial.configuration.said(pipeline), trial.stage,
                trial.configuration.values,
                {k: float(v[i]) for k, v in columns.items() if np.isfinite(v[i])},
            )
            for i, trial in enumerate(self.trials)
        )  # fmt: skip

    def idle(self, pipeline: NeuroPareto) -> tuple[str, ...]:
        """Knobs that were turned alone at least once and never changed the proposal."""
        usual = {name: knob.read(pipeline) for name, knob in KNOBS.items()}
        moved: dict[str, bool] = {}
        base = [t for t in self.trials if all(v == usual[k] for k, v in t.configuration.settings)]
        for trial in self.trials if base else ():
            turned = [k for k, v in trial.configuration.settings if v != usual[k]]
            if len(turned) == 1:
                differs = not np.array_equal(trial.u, base[0].u)
                moved[turned[0]] = moved.get(turned[0], False) or differs
        return tuple(name for name, did in moved.items() if not did)


def judged(
    trials: Sequence[Trial],
    archive: Archive,
    pipeline: NeuroPareto,
    *,
    models: dict[str, Fitted],
    rng: Streams,
) -> Verdict:
    """Put the trials in order; ties go to the earlier one, so that prior evidence counts.

    ``models`` keeps surrogates fitted to this archive for the next call; give an empty one first.
    """
    fresh = _fresh(trials)
    scale = np.maximum(archive.F.std(axis=0), 1e-300)
    U = np.array([trial.u for trial in fresh]).reshape(-1, archive.d)
    posteriors = []
    for trial in trials:
        model = _fitted(trial.configuration.algorithm(pipeline).surrogate, archive, models, rng)
        posteriors.append(_objectives(model.posterior(U), archive.m))
    gain = np.array([_gain(trial, archive) for trial in trials])
    nlpd = np.array([_nlpd(p, fresh, scale) for p in posteriors])
    loss = np.array([np.nan if t.loss is None else t.loss for t in trials], dtype=np.float64)
    score = np.mean([_ranks(-gain), _ranks(nlpd), _ranks(loss)], axis=0)
    order = np.argsort(score, kind="stable")
    best = posteriors[int(order[0])]
    noise = np.median(best.aleatoric / scale**2) if len(best.aleatoric) else 0.0
    return Verdict(
        tuple(trials[i] for i in order), gain[order], nlpd[order], loss[order], score[order],
        float(noise),
    )  # fmt: skip


def validation_signal(
    configuration: Configuration, archive: Archive, pipeline: NeuroPareto, *, rng: Streams
) -> float:
    """How well a configuration's surrogate orders a held-out fifth of the archive, -1 to 1."""
    held = np.arange(archive.n) % 5 == 4
    surrogate = configuration.algorithm(pipeline).surrogate
    model = surrogate.fit(archive.U[~held], archive.outputs[~held], warm=None, rng=rng("held-out"))
    predicted = model.posterior(archive.U[held]).mean[:, : archive.m]
    return rank_correlation(predicted, archive.F[held])


def rank_correlation(predicted: Array, true: Array) -> float:
    """Spearman's correlation, averaged over objectives; (p, m) each, 0 for fewer than 3 points."""
    if len(true) < 3:
        return 0.0
    found = []
    for j in range(true.shape[1]):
        # A constant column has no ranks to agree with.
        flat = np.ptp(predicted[:, j]) == 0 or np.ptp(true[:, j]) == 0
        found.append(0.0 if flat else float(spearmanr(predicted[:, j], true[:, j]).statistic))
    return float(np.mean(found))


def _fresh(trials: Sequence[Trial]) -> list[Trial]:
    """Trials whose evaluation succeeded, each point once."""
    found: dict[bytes, Trial] = {}
    for trial in trials:
        if trial.F is not None:
            found.setdefault(trial.u.tobytes(), trial)
    return list(found.values())


def _values(fresh: Sequence[Trial], m: int) -> Array:
    return np.array([trial.F for trial in fresh], dtype=np.float64).reshape(-1, m)


def _fitted(
    surrogate: Surrogate, archive: Archive, models: dict[str, Fitted], rng: Streams
) -> Fitted:
    """The surrogate fitted to the archive; equal surrogates are fitted once."""
    key = json.dumps(describe(surrogate), sort_keys=True)
    if key not in models:
        models[key] = surrogate.fit(archive.U, archive.outputs, warm=None, rng=rng("surrogate"))
    return models[key]


def _objectives(posterior: Posterior, m: int) -> Posterior:
    """A posterior of objectives and constraints without the constraints."""
    parts = (posterior.mean, posterior.epistemic, posterior.aleatoric)
    return Posterior(*(part[:, :m] for part in parts))


def _gain(trial: Trial, archive: Archive) -> float:
    """Hypervolume that the trial's point adds, relative to the start archive's; 0 if infeasible."""
    if trial.F is None or not trial.feasible:
        return 0.0
    reference = archive.F.max(axis=0)
    before = pareto.hypervolume(archive.front, reference) if len(archive.front) else 0.0
    added = float(pareto.improvement(trial.F[None], archive.front, reference)[0])
    return added / before if before > 0 else added


def _nlpd(posterior: Posterior, fresh: Sequence[Trial], scale: Array) -> float:
    """Mean -log N(F; mean, variance) at the fresh points, objectives in units of ``scale``."""
    if not fresh:
        return float("nan")
    z = (_values(fresh, len(scale)) - posterior.mean) / scale
    v = np.maximum(posterior.variance / scale**2, 1e-12)
    return float(np.mean(0.5 * (np.log(2 * np.pi * v) + z**2 / v)))


def _ranks(values: Array) -> Array:
    """Ranks from 1, smallest first, ties shared; what is NaN shares the last places."""
    return np.asarray(rankdata(np.where(np.isnan(values), np.inf, values)), dtype=np.float64)
