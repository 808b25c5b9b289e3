from __future__ import annotations

import numpy as np

from neuropareto.archive import Archive, Indices
from neuropareto.candidates import Pool
from neuropareto.classifier import RankBelief
from neuropareto.screening import KeepAll, TwoStage, feasibility, margin, promise
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior
from neuropareto.testing.algorithm import conflicting, example_archive


class Doubtful:
    """Knows the means exactly and doubts the points whose first coordinate is above one half."""

    warm: dict[str, Array] = {}  # noqa: RUF012
    notes: dict[str, object] = {}  # noqa: RUF012

    def posterior(self, U: Array) -> Posterior:
        F = conflicting(U, 2)
        return Posterior(F, np.where(U[:, :1] > 0.5, 100.0, 0.0) * np.ones((1, 2)), 0 * F)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.repeat(conflicting(U, 2)[None], n, axis=0)

    def mean_gradient(self, U: Array) -> Array:
        return np.zeros((len(U), 2, U.shape[1]))


def pool(n: int, d: int) -> Pool:
    return Pool(np.random.default_rng(0).random((n, d)), np.full(n, "test"))


def believed(p_top: Array) -> RankBelief:
    P = np.zeros((len(p_top), 5))
    P[:, 0], P[:, 4] = p_top, 1 - p_top
    return RankBelief(P, np.zeros(len(P)), np.ones(len(P), dtype=np.int64))


def test_the_classifier_cuts_first() -> None:
    candidates, archive = pool(200, 4), example_archive(40, 4, 2)
    p = np.linspace(0, 1, 200)
    rows = TwoStage(n_screen=50, k=20, proxy=None).shortlist(
        candidates, believed(p), archive, Doubtful(), rng=np.random.default_rng(0)
    )
    assert len(rows) == 20 and rows.min() >= 150


def test_the_penalty_ranks_doubtful_candidates_down() -> None:
    candidates, archive = pool(200, 4), example_archive(40, 4, 2)
    belief = believed(np.full(200, 0.5))

    def doubtful_share(penalty: float) -> float:
        screening = TwoStage(n_screen=200, k=40, penalty=penalty, proxy=None)
        rows = screening.shortlist(
            candidates, belief, archive, Doubtful(), rng=np.random.default_rng(0)
        )
        return float((candidates.U[rows, 0] > 0.5).mean())

    assert doubtful_share(0.0) > 0.2 and doubtful_share(0.5) == 0.0


def test_hopeful_candidates_come_behind_the_others() -> None:
    """A pessimist drops all doubtful candidates; the hopeful ones are the best of these."""
    candidates, archive = pool(200, 4), example_archive(40, 4, 2)
    belief = believed(np.full(200, 0.5))

    def rows(hopeful: int) -> Indices:
        screening = TwoStage(n_screen=200, k=40, penalty=0.5, hopeful=hopeful, proxy=None)
        return screening.shortlist(
            candidates, belief, archive, Doubtful(), rng=np.random.default_rng(0)
        )

    plain, wider = rows(0), rows(15)
    assert wider[:40].tolist() == plain.tolist() and len(set(wider.tolist())) == 55
    assert (candidates.U[wider[40:], 0] > 0.5).all()
    assert len(rows(1000)) == 200, "what there is, once"


def test_the_default_proxy_is_fitted_to_the_archive() -> None:
    candidates, archive = pool(300, 4), example_archive(60, 4, 2)
    rows = TwoStage(k=30).shortlist(
        candidates, believed(np.full(300, 0.5)), archive, Doubtful(), rng=np.random.default_rng(0)
    )
    truth = margin(conflicting(candidates.U, 2), archive)
    assert truth[rows].mean() < np.quantile(truth, 0.3), "the proxy keeps good candidates"


def test_keep_all_keeps_all() -> None:
    candidates, archive = pool(7, 4), example_archive(40, 4, 2)
    rows = KeepAll().shortlist(
        candidates, believed(np.ones(7)), archive, Doubtful(), rng=np.random.default_rng(0)
    )
    assert rows.tolist() == list(range(7))


def test_margin_is_the_way_to_the_front() -> None:
    archive = Archive.of(np.zeros((2, 1)), np.array([[0.0, 1.0], [1.0, 0.0]]))
    F = np.array([[0.0, 1.0], [0.5, 1.5], [2.0, 2.0], [0.4, 0.4], [-0.5, 2.0]])
    assert np.allclose(margin(F, archive), [0.0, 0.5, 2.0 - 0.0 - 1.0, -0.6, -0.5])


def test_margin_in_blocks_equals_margin_at_once() -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.random(300))
    archive = Archive.of(np.zeros((300, 1)), np.stack([t, 1 - t], axis=1))
    F = rng.random((50, 2)) * 1.5
    extent = np.ptp(archive.front, axis=0)
    direct = ((F[:, None] - archive.front[None]) / extent).min(axis=2).max(axis=1)
    assert np.allclose(margin(F, archive), direct)


def test_promise_prefers_low_ranks() -> None:
    order = promise(believed(np.array([0.1, 0.9, 0.5]))).argsort()
    assert order.tolist() == [0, 2, 1]


class Limiting(Doubtful):
    """Two objectives and a constraint that holds where the second coordinate is below one half."""

    def posterior(self, U: Array) -> Posterior:
        mean = np.hstack([conflicting(U, 2), U[:, 1:2] - 0.5])
        return Posterior(mean, np.full_like(mean, 1e-12), np.zeros_like(mean))


def test_candidates_that_are_not_feasible_come_last() -> None:
    candidates, open_ = pool(200, 4), example_archive(60, 4, 2)
    archive = Archive.of(open_.U, open_.F, open_.U[:, 1:2] - 0.5)
    belief = believed(np.full(200, 0.5))
    for screening in (TwoStage(n_screen=200, k=60, proxy=None), TwoStage(n_screen=200, k=60)):
        rows = screening.shortlist(
            candidates, belief, archive, Limiting(), rng=np.random.default_rng(0)
        )
        assert (candidates.U[rows, 1] < 0.5).mean() > 0.9
    sure = feasibility(Limiting().posterior(candidates.U), 2)
    np.testing.assert_allclose(sure, candidates.U[:, 1] < 0.5, atol=1e-9)
    assert (feasibility(Doubtful().posterior(candidates.U), 2) == 1.0).all()
