from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from neuropareto import pareto
from neuropareto.acquisition.contract import Signals, Utility
from neuropareto.archive import Archive
from neuropareto.classifier import RankBelief
from neuropareto.selection import (
    Composite,
    Daring,
    ExpectedGain,
    MeanGain,
    Planned,
    gathered,
    scaled,
    split,
    stalled,
    turns,
)
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior

ARCHIVE = Archive.of(np.zeros((2, 1)), np.array([[0.0, 1.0], [1.0, 0.0]]))


def certain(mean: Array) -> Posterior:
    return Posterior(mean, np.zeros_like(mean), np.zeros_like(mean))


def signals(
    mean: Array, *, information: Array | None = None, epistemic: Array | None = None
) -> Signals:
    n = len(mean)
    own = MeanGain().gain(certain(mean), ARCHIVE, rng=np.random.default_rng(0))
    return Signals(
        mean=mean, aleatoric=np.zeros_like(mean),
        probability=np.full((n, 5), 0.2), estimate=own, window_mean=0.0, window_std=0.0,
        information=np.zeros(n) if information is None else information,
        epistemic=np.zeros_like(mean) if epistemic is None else epistemic,
    )  # fmt: skip


def dared(
    s: Signals, q: int, archive: Archive = ARCHIVE, feasibility: Array | None = None,
    share: float = 0.25,
) -> list[int]:  # fmt: skip
    rows = Daring(share=share, patience=1.0).choose(
        s, nothing(len(s)), archive, q, pending=np.empty((0, 2)),
        feasibility=np.ones(len(s)) if feasibility is None else feasibility,
    )  # fmt: skip
    return [int(r) for r in rows]


def nothing(n: int) -> Utility:
    return Utility(np.zeros(n), np.zeros(n))


def choose(s: Signals, q: int, *, pending: Array | None = None, **weights: float) -> list[int]:
    rows = Composite(**weights).choose(
        s, nothing(len(s)), ARCHIVE, q,
        pending=np.empty((0, 2)) if pending is None else pending, feasibility=np.ones(len(s)),
    )  # fmt: skip
    return [int(r) for r in rows]


def test_without_uncertainty_the_expected_gain_is_the_gain_of_the_mean() -> None:
    mean = np.random.default_rng(0).random((30, 2))
    rng = np.random.default_rng(1)
    direct = pareto.improvement(mean, ARCHIVE.front, ARCHIVE.reference_point)
    assert np.allclose(ExpectedGain().gain(certain(mean), ARCHIVE, rng=rng), direct)


def test_expected_gain_approaches_the_closed_form() -> None:
    """One objective, a front of one point f*: E[(f* - f)+] is the expected improvement."""
    archive = Archive.of(np.zeros((2, 1)), np.array([[1.0], [3.0]]))
    mean, std = np.array([[0.5], [1.5]]), np.array([[0.4], [0.7]])
    posterior = Posterior(mean, std**2, np.zeros_like(mean))
    z = (1.0 - mean) / std
    expected = ((1.0 - mean) * norm.cdf(z) + std * norm.pdf(z)).ravel()
    found = ExpectedGain(samples=40_000).gain(posterior, archive, rng=np.random.default_rng(0))
    assert np.allclose(found, expected, rtol=0.03)


def test_the_first_choice_gains_most_and_a_batch_does_not_repeat_itself() -> None:
    mean = np.array([[0.3, 0.3], [0.301, 0.301], [0.1, 0.6], [0.6, 0.1], [2.0, 2.0]])
    assert choose(signals(mean), 3)[0] == 0
    assert set(choose(signals(mean), 3)) == {0, 2, 3}


def test_pending_points_count_as_taken() -> None:
    mean = np.array([[0.3, 0.3], [0.1, 0.6], [0.6, 0.1]])
    assert choose(signals(mean), 1) == [0]
    assert choose(signals(mean), 1, pending=np.array([[0.29, 0.29]]))[0] in (1, 2)


def test_without_any_gain_the_nearest_to_the_front_comes_first() -> None:
    mean = np.array([[5.0, 5.0], [1.2, 1.2], [3.0, 3.0]])
    assert choose(signals(mean), 3) == [1, 2, 0]


def test_each_signal_counts_with_its_weight() -> None:
    mean = np.tile([[0.3, 0.3]], (3, 1))
    s = signals(mean, information=np.array([0.0, 1.0, 0.5]))
    assert choose(s, 1, information=0.1) == [1]
    assert choose(s, 1, information=0.0) == [0]
    by_diversity = Composite(diversity=1.0).choose(
        s, Utility(np.zeros(3), np.array([0.0, 0.0, 9.0])), ARCHIVE, 1,
        pending=np.empty((0, 2)), feasibility=np.ones(3),
    )  # fmt: skip
    assert by_diversity.tolist() == [2]


def test_infeasible_candidates_are_passed_over() -> None:
    mean = np.array([[0.2, 0.2], [0.5, 0.5]])
    rows = Composite().choose(
        signals(mean), nothing(2), ARCHIVE, 1,
        pending=np.empty((0, 2)), feasibility=np.array([0.01, 1.0]),
    )  # fmt: skip
    assert rows.tolist() == [1]


def test_a_short_shortlist_gives_what_it_has() -> None:
    assert len(choose(signals(np.array([[0.2, 0.2]])), 5)) == 1


# Four safe candidates and two that look bad; the last of them nobody knows much about.
MEAN = np.array([[0.3, 0.3], [0.1, 0.6], [0.6, 0.1], [0.2, 0.45], [2.0, 2.0], [2.0, 2.0]])
UNSURE = np.zeros((6, 2))
UNSURE[5] = 9.0


def test_a_daring_choice_takes_one_that_may_be_good_where_the_mean_is_bad() -> None:
    s = signals(MEAN, epistemic=UNSURE)
    assert choose(s, 4) == choose(signals(MEAN), 4), "the inner choice looks at means only"
    assert dared(s, 4)[:3] == choose(s, 4)[:3] and dared(s, 4)[3] == 5


def test_where_all_is_certain_a_daring_choice_gains_as_much_as_any() -> None:
    rows, plain = dared(signals(MEAN), 4), choose(signals(MEAN), 4)
    assert rows[:3] == plain[:3]
    front = np.concatenate([ARCHIVE.front, MEAN[rows[:3]]])
    gain = pareto.improvement(MEAN, front, np.array([1.1, 1.1]))
    assert gain[rows[3]] == pytest.approx(np.delete(gain, rows[:3]).max())


def test_the_inner_choice_sees_the_first_candidates_only() -> None:
    """Those behind are there for daring: the other signals must not bring them into a batch."""
    s = signals(MEAN, information=np.array([0.0, 0.0, 0.0, 0.0, 99.0, 0.0]))

    def rows(first: int) -> list[int]:
        chosen = Daring(Composite(information=9.0), first=first, share=0.0).choose(
            s, nothing(6), ARCHIVE, 3, pending=np.empty((0, 2)), feasibility=np.ones(6)
        )
        return [int(r) for r in chosen]

    assert 4 in rows(6) and 4 not in rows(4)
    assert len(rows(1)) == 3, "a whole batch, whatever is first"


def test_a_daring_choice_does_not_break_constraints_it_knows() -> None:
    feasible = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e-9])
    assert 5 not in dared(signals(MEAN, epistemic=UNSURE), 4, feasibility=feasible)


def test_nobody_dares_while_the_search_gets_on() -> None:
    """A front that steps ahead by a tenth of the box, and one that steps along its own sliver."""
    start = np.column_stack([np.linspace(1.0, 0.0, 30), np.linspace(0.0, 1.0, 30)])
    ahead = np.concatenate([start, 0.4 + 0.0 * start[:20]])
    sliver = np.column_stack([np.full(20, 0.0), 1.0 - 1e-6 * np.arange(20)])
    behind = np.concatenate([start, sliver])
    assert not stalled(Archive.of(np.zeros((50, 1)), ahead), 0.01)
    assert stalled(Archive.of(np.zeros((50, 1)), behind), 0.01)
    assert stalled(Archive.of(np.zeros((50, 1)), ahead, np.ones((50, 1))), 0.01), (
        "nothing feasible"
    )
    s = signals(MEAN, epistemic=UNSURE)
    progress = Archive.of(np.zeros((50, 1)), ahead)
    empty, sure = np.empty((0, 2)), np.ones(6)
    rows = Daring(share=1.0).choose(s, nothing(6), progress, 4, pending=empty, feasibility=sure)
    assert 5 not in rows


def test_single_proposals_dare_as_often_as_batches() -> None:
    s = signals(MEAN, epistemic=UNSURE)
    archives = [Archive.of(np.zeros((n, 1)), np.tile([[0.7, 0.7]], (n, 1))) for n in range(2, 42)]
    assert sum(dared(s, 1, archive, share=0.1) == [5] for archive in archives) == 4
    assert dared(s, 3, share=0.0) == choose(s, 3)


def planned(n: int, q: int, pending: int = 0) -> list[int]:
    """What is chosen, after n evaluations, of candidates whose greedy order is 0, 1, 2, ..."""
    archive = Archive.of(np.zeros((n, 1)), np.full((n, 2), 9.0))
    mean = np.linspace(1.0, 2.0, 30)[:, None] * np.ones(2)
    s = signals(mean)
    rows = Planned(Composite(hypervolume=0.0, diversity=0.0, information=0.0), plan=10).choose(
        s, nothing(30), archive, q, pending=np.full((pending, 2), 9.0), feasibility=np.ones(30)
    )
    return [int(r) for r in rows]


def test_ten_single_proposals_take_the_ten_places_of_a_plan() -> None:
    assert sorted(planned(n, 1)[0] for n in range(100, 110)) == list(range(10))


def test_half_a_batch_is_every_second_place_of_the_plan() -> None:
    assert sorted((planned(100, 5), planned(105, 5))) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


@pytest.mark.parametrize("q", [10, 12])
def test_a_whole_batch_is_the_inner_choice(q: int) -> None:
    assert planned(103, q) == list(range(q))


def test_points_under_evaluation_are_members_of_the_plan_already() -> None:
    assert {planned(n, 1, pending=7)[0] for n in range(100, 110)} == {0, 1, 2}
    assert planned(100, 1, pending=12) == [0]


@given(st.integers(0, 500), st.integers(1, 30), st.integers(1, 30))
def test_everybody_gets_a_turn(n: int, q: int, more: int) -> None:
    size = q + more
    rows = turns(n, q, size)
    assert len(rows) == len(set(rows.tolist())) == q
    assert q == 1 or np.ptp(np.diff(rows)) <= 1
    taken = np.bincount(np.concatenate([turns(n + i, q, size) for i in range(size)]))
    assert (taken == q).all() and len(taken) == size


def test_split_takes_constraints_and_pending_points_apart() -> None:
    mean = np.array([[1.0, 2.0, -1.0, 0.0], [7.0, 8.0, 0.0, 0.0]])
    posterior = Posterior(mean, np.full((2, 4), 0.75), np.full((2, 4), 0.25))
    objectives, feasible, waiting = split(posterior, 1, 2)
    assert objectives.mean.tolist() == [[1.0, 2.0]] and waiting.tolist() == [[7.0, 8.0]]
    assert feasible == pytest.approx([norm.cdf(1.0) * 0.5])
    assert split(certain(mean), 2, 4)[1].tolist() == [1.0, 1.0]


def test_gathered_joins_the_shortlist_with_its_beliefs() -> None:
    belief = RankBelief(np.eye(3), np.arange(3.0), np.ones(3, dtype=np.int64))
    short = np.array([2, 0])
    s = gathered(certain(np.zeros((2, 2))), belief, short, np.ones(2), (0.1, 0.2))
    assert s.information.tolist() == [2.0, 0.0] and s.probability.tolist() == [
        [0, 0, 1],
        [1, 0, 0],
    ]


def test_scaling() -> None:
    assert scaled(np.array([2.0, -4.0, 3.0])).tolist() == [0.5, -1.0, 0.75]
    assert scaled(np.zeros(3)).tolist() == [0, 0, 0] and len(scaled(np.empty(0))) == 0
