"""A second opinion: part of a batch comes from another model, as much as such points have earned.

The structured surrogate extrapolates boldly, which is right where variables act one by one and costly
where they do not: on a rotated quadratic its modulators are fitted noise, and neither evidence nor
leave-one-out density says so. What becomes of its proposals does. A plain Gaussian process, with moves
of its own, therefore proposes a part of each batch: the larger the more hypervolume its points have
gained lately and the better it has forecast all of them. Ours, decision D-80; the paper has one model.
Notation: q the batch, n evaluations, m objectives, d variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuropareto.acquisition import History, Utility
from neuropareto.archive import Archive, Indices
from neuropareto.assessment import assessed
from neuropareto.candidates import Candidates, RankConditioned, Several, SurrogateDescent
from neuropareto.classifier import FittedClassifier
from neuropareto.exploration import Exploration, Neighbours, spread
from neuropareto.moves import LEAST_SIGNAL
from neuropareto.past import Past
from neuropareto.selection import Composite, MeanGain, Selection, gathered, split
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, NumericalFailure
from neuropareto.surrogate.contract import Fitted, Surrogate
from neuropareto.viability import Learnt, Viability

# No row of a batch.
NOBODY: Indices = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SharedBatch:
    """A batch ``U`` (q, d); ``second`` are the rows of it that are the second model's.

    ``kept`` is what the second model remembers of all points since it is asked: their places, what it
    expected there, (b, m), and 1 where it proposed them itself.
    """

    U: Array
    second: Indices
    kept: History


class Second(Protocol):
    """Who else proposes points of a batch."""

    def joined(
        self,
        U: Array,
        kept: History,
        past: Past,
        archive: Archive,
        model: Fitted,
        ranks: FittedClassifier,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> SharedBatch:
        """The first model's batch ``U`` (q, d), some of its points replaced; see :class:`SharedBatch`.

        ``kept`` is that of the last round, ``model`` the first model, ``past`` what it has proposed.
        """
        ...


@dataclass(frozen=True)
class Alone:
    """Nobody."""

    def joined(
        self,
        U: Array,
        kept: History,
        past: Past,
        archive: Archive,
        model: Fitted,
        ranks: FittedClassifier,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> SharedBatch:
        """The batch as it is."""
        return SharedBatch(U, NOBODY, kept)


@dataclass(frozen=True)
class SecondOpinion:
    """A plain GP, searched by descents along its mean and by variation, for a share of each batch.

    The share is b^2 v / (a^2 (1 - v) + b^2 v), at most ``most``. There a and b are the mean hypervolume
    gains of the first and the second model's points among the last ``recent``, with a made-up one of
    average gain for each (a = b where nothing was gained), and v is the second model's :func:`weight`
    in a mixture of both forecasts. A first model that explains all outputs with a leave-one-out log
    density above ``satisfied`` is not doubted, unless it was before; nor is one whose structure leaves
    less than ``leftover`` of every output's variance unexplained (decision D-85). And where it finds
    nothing but noise there is no second opinion either: its descents would go to the ends of
    meaningless slopes.
    """

    surrogate: Surrogate = ExactGP()
    candidates: Candidates = Several((SurrogateDescent(), RankConditioned(size=500)))
    selection: Selection = Composite(hypervolume=0.0, diversity=0.0, information=0.0)
    exploration: Exploration = Neighbours()
    viability: Viability = Learnt()
    recent: int = 30
    start: float = 0.3
    most: float = 0.7
    inertia: float = 5.0
    satisfied: float = 2.0
    leftover: float = 5e-3

    def joined(
        self,
        U: Array,
        kept: History,
        past: Past,
        archive: Archive,
        model: Fitted,
        ranks: FittedClassifier,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> SharedBatch:
        """The batch with points of the plain GP; as it is if that cannot be fitted."""
        first = assessed(model)
        if first is None or first.signal.min() < LEAST_SIGNAL:
            return SharedBatch(U, NOBODY, kept)
        if first.unexplained.max() < self.leftover:
            return SharedBatch(U, NOBODY, kept)
        if not len(kept) and first.density.min() > self.satisfied:
            return SharedBatch(U, NOBODY, kept)
        streams = rng.spawn(4)
        try:
            plain = self.surrogate.fit(archive.U, archive.outputs, warm=None, rng=streams[0])
        except NumericalFailure:
            return SharedBatch(U, NOBODY, kept)
        second = spread(len(U), self.share(kept, past, archive), rng.random())
        if len(second):
            search, seen = self.viability.guarded(plain, archive, rng=streams[1])
            rest = np.concatenate([pending, np.delete(U, second, axis=0)])
            found = self._found(len(second), archive, seen, search, ranks, rest, streams[2:])
            second = second[: len(found)]  # fewer where there are not as many candidates
            U = U.copy()
            U[second] = found
        expected = plain.posterior(U).mean[:, : archive.m]
        own = np.isin(np.arange(len(U)), second).astype(np.float64)
        return SharedBatch(U, second, kept.extended(U, expected, own))

    def share(self, kept: History, past: Past, archive: Archive) -> float:
        """The second model's part of the next batch, between 0 and ``most``."""
        rows, places = kept.matched(archive.U)
        its, those = past.history.matched(archive.U)
        both = np.intersect1d(places, those)[-self.recent :]
        if not len(both):
            return self._odds(1.0, self.start)
        own, other = rows[np.isin(places, both)], its[np.isin(those, both)]
        said = past.history.features[other, : archive.m]
        forecasts = np.stack([archive.F[both], said, kept.features[own]], axis=1)
        spread_out = archive.F.std(axis=0)
        scale = np.where(spread_out > 0, spread_out, 1.0)
        v = weight(forecasts, scale, self.inertia, self.start)
        gains = archive.gains(len(archive) - both[0], archive.F.max(axis=0)).hypervolume
        gains = gains[both - len(archive)]
        second = kept.estimate[own] > 0.0
        if not gains.any():
            return self._odds(1.0, v)
        made_up = gains.mean()
        a, b = ((gains[who].sum() + made_up) / (who.sum() + 1.0) for who in (~second, second))
        return self._odds(float(b / a), v)

    def _odds(self, gain: float, v: float) -> float:
        """The share for ``gain`` times the first model's and a weight v of the forecasts."""
        return min(gain**2 * v / (1.0 - v + gain**2 * v), self.most)

    def _found(
        self,
        k: int,
        archive: Archive,
        seen: Archive,
        search: Fitted,
        ranks: FittedClassifier,
        rest: Array,
        streams: list[np.random.Generator],
    ) -> Array:
        """k points (k, d) that the plain GP, as ``search``, thinks best beside the ``rest``."""
        pool = self.candidates.generate(seen, ranks.predict(archive.U), search, rng=streams[0])
        pool = pool.apart_from(np.concatenate([archive.U, rest, archive.failed]))
        believed = search.posterior(np.concatenate([pool.U, rest]))
        posterior, feasible, waiting = split(believed, len(pool), archive.m)
        gain = MeanGain().gain(posterior, archive, rng=streams[1])
        everyone, nothing = np.arange(len(pool)), np.zeros(len(pool))
        signals = gathered(posterior, ranks.predict(pool.U), everyone, gain, (0.0, 0.0))
        rows = self.selection.choose(
            signals, Utility(nothing, nothing), archive, k, pending=waiting, feasibility=feasible
        )
        return self.exploration.moved(pool.U[rows], seen, search, pending=waiting, rng=streams[1])


def weight(forecasts: Array, scale: Array, inertia: float, start: float) -> float:
    """The second forecaster's weight v in [0, 1]: least squares with ``inertia`` rows for ``start``.

    ``forecasts`` (n, 3, m) are outcome y, first s and second e, ``scale`` (m,) the objectives' units. v
    minimises sum_i |y_i - (1 - v) s_i - v e_i|^2 / c_i + inertia (v - start)^2, with
    c_i = |y_i - s_i|^2 + |e_i - s_i|^2: a row counts by how it divides its error between the two, not
    by its size, and an objective by its part of the row's error.
    """
    y, s, e = np.moveaxis(forecasts / scale, 1, 0)
    apart = np.square(e - s).sum(axis=1)
    size = np.maximum(np.square(y - s).sum(axis=1) + apart, 1e-300)
    above = (((y - s) * (e - s)).sum(axis=1) / size).sum() + inertia * start
    return float(np.clip(above / ((apart / size).sum() + inertia), 0.0, 1.0))
