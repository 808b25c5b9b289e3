"""The three errors of a round and its deficit, measured against the truth.

Appendix "Per-iteration approximation terms". Notation: S_t the shortlist, q points a batch, z the
reference point, f truth, f^ the surrogate's mean. An oracle knows the truth of every candidate and
takes q of them greedily; Delta HV*_t is what it gains from the pool. Paper: Eqs. eps_gp, eps_class,
eps_acq of the sketch are the same terms as eps_gp_app, eps_class_app, eps_acq_app of the appendix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto import pareto
from neuropareto.analysis.observation import ObservedRound
from neuropareto.space import Array


@dataclass(frozen=True)
class RoundErrors:
    """What one round lost, and where.

    ``surrogate`` is eps_gp, ``classifier`` eps_class, ``acquisition`` eps_acq; ``misranked`` the
    probability in eps_class, ``l1`` and ``worst`` the mean and largest ||f - f^||_1 over S_t and
    ``squared`` the mean of ||f - f^||_2^2, the left side of Eq. dgp_mse summed over objectives.
    ``oracle`` is Delta HV*_t over the pool, ``realised`` the gain of what was evaluated.
    """

    surrogate: float
    classifier: float
    acquisition: float
    misranked: float
    l1: float
    worst: float
    squared: float
    oracle: float
    realised: float

    @property
    def total(self) -> float:
        """eps_total(t) = eps_class + eps_gp + eps_acq. Paper: Eq. eps_total_def_app."""
        return self.surrogate + self.classifier + self.acquisition

    @property
    def deficit(self) -> float:
        """delta_t = Delta HV*_t - Delta HV_t, what the oracle gains more. Paper: Eq. delta_def.

        Negative where exploration has moved the batch to better places than the pool had.
        """
        return self.oracle - self.realised

    @property
    def covered(self) -> bool:
        """Whether delta_t <= eps_total(t) in this round.

        Paper: Eqs. per_step_decomp, per_step_compact, lemma_perstep_app (there in expectation).
        """
        return self.deficit <= self.total + 1e-12

    @property
    def amplification(self) -> float:
        """The C_hv with which eps_gp = C_hv sqrt(E ||f - f^||_2^2) holds; at most L_H sqrt(m).

        Paper: Eq. gp_to_hv (also surrogate_sqrt_bound); 0 for a surrogate without error.
        """
        return self.surrogate / float(np.sqrt(self.squared)) if self.squared > 0 else 0.0


def round_errors(
    observed: ObservedRound, reference: Array, *, sensitivity: float, loss: float
) -> RoundErrors:
    """The errors of one round, with L_H = ``sensitivity`` and H_max = ``loss``.

    eps_gp = L_H E_{S_t} ||f - f^||_1, eps_class = H_max P(a top-q candidate is mis-ranked) (see
    :func:`misranked`), eps_acq = Delta HV* - Delta HV^acq, both over the shortlist, so that what
    the screening loses is left to the other two terms.
    Paper: Eqs. eps_gp_app, eps_class_app, eps_acq_app.
    """
    error = observed.shortlist - observed.mean
    l1 = np.abs(error).sum(axis=1)
    wrong = misranked(observed, reference)
    front, q = observed.front, len(observed.chosen)
    chosen = batch_gain(observed.choice, front, reference)
    short = max(oracle_gain(observed.shortlist, front, reference, q), chosen)
    return RoundErrors(
        surrogate=sensitivity * float(l1.mean()),
        classifier=loss * wrong,
        acquisition=short - chosen,
        misranked=wrong,
        l1=float(l1.mean()),
        worst=float(l1.max()),
        squared=float((error**2).sum(axis=1).mean()),
        oracle=max(oracle_gain(observed.pool, front, reference, q), short),
        realised=batch_gain(observed.evaluated, front, reference),
    )


def batch_gain(F: Array, front: Array, reference: Array) -> float:
    """HV(front + F) - HV(front) for a batch F (q, m)."""
    before = pareto.hypervolume(front, reference)
    return max(pareto.hypervolume(np.vstack([front, F]), reference) - before, 0.0)


def oracle_gain(F: Array, front: Array, reference: Array, q: int) -> float:
    """What q candidates of F (n, m), taken greedily with the truth known, add together."""
    rows = pareto.greedy_improvement(F, front, reference, min(q, len(F)))
    return batch_gain(F[rows], front, reference)


def misranked(observed: ObservedRound, reference: Array) -> float:
    """The share of the top-q candidates of the pool about which the classifier is wrong.

    The top q are those with the largest true gain; ties are broken by how few archive points
    dominate them. The classifier is wrong about one if "most probably class 1" disagrees with
    "no archive point dominates it". Paper: the probability in Eq. eps_class_app, with r = q.
    """
    gains = pareto.improvement(observed.pool, observed.front, reference)
    gaps = observed.pool[:, None, :] - observed.front[None]
    behind = np.asarray((gaps >= 0).all(axis=2) & (gaps > 0).any(axis=2))
    top = np.lexsort((behind.sum(axis=1), -gains))[: len(observed.chosen)]
    said = observed.probability[top].argmax(axis=1) == 0
    return float(np.mean(said == behind[top].any(axis=1)))
