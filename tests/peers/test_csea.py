from __future__ import annotations

import math

import numpy as np
import pytest

from neuropareto import Optimizer, pareto
from neuropareto.archive import Archive
from neuropareto.peers import csea
from neuropareto.peers.csea import CSEA, Network, not_worse, split, trusted
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, example_archive

NONE = np.empty((0, 6))


def zdt1(X: Array) -> Array:
    g = 1 + 9 * X[:, 1:].mean(axis=1)
    return np.stack([X[:, 0], g * (1 - np.sqrt(X[:, 0] / g))], axis=1)


@pytest.mark.parametrize("peer", [CSEA(epochs=10, predictions=200), CSEA(8, 3, 60, epochs=5)])
def test_the_algorithm_exam(peer: CSEA) -> None:
    check_algorithm(peer)


def test_labels_by_hand() -> None:
    R = np.array([[0.0, 2.0], [2.0, 0.0]])
    F = np.array([[1.0, 1.0], [3.0, 3.0], [0.0, 3.0], [2.5, 1.0], [0.0, 2.0]])
    none, free = np.zeros(5), np.zeros(2)
    # (2.5, 1) is worse than (2, 0) everywhere; (0, 3) equals (0, 2) in one objective.
    assert not_worse(F, R, none, free).tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert not_worse(F, R, np.array([0.1, 0, 0, 0, 0]), free)[0] == 0.0
    assert not_worse(F, R, none, np.ones(2)).tolist() == [1.0] * 5


def test_three_quarters_of_either_kind_train() -> None:
    label = np.repeat([1.0, 0.0], [5, 13])
    train, test = split(label, np.random.default_rng(0))
    assert sorted([*train, *test]) == list(range(18))
    assert (label[train] == 1).sum() == 4 and (label[train] == 0).sum() == 10


@pytest.mark.parametrize(
    ("p0", "p1", "share", "mode"),
    [
        (0.39, 0.99, 0.5, "good"),  # sure about the good, whatever else
        (0.60, 0.20, 0.5, "good"),  # t = 0.25: right about the bad, not hopeless about the good
        (0.60, 0.30, 0.5, "random"),  # wrong often enough about both
        (0.80, 0.10, 0.5, "random"),  # calls everything bad
        (0.60, 0.80, 0.5, "bad"),  # wrong about the bad: search the other way
        (0.60, 0.80, 0.2, "random"),  # t = 0.1 asks for more certainty in being wrong
        (0.60, 0.95, 0.2, "bad"),
        (0.60, 0.95, 0.8, "bad"),  # the rule is symmetric in the share
        (math.nan, 0.10, 0.5, "random"),  # no held-out good point: nothing is known about them
        (math.nan, 0.90, 0.5, "bad"),
        (0.10, math.nan, 1.0, "good"),
        (0.50, math.nan, 1.0, "random"),
    ],
)
def test_the_errors_decide_whom_to_trust(p0: float, p1: float, share: float, mode: str) -> None:
    assert trusted(p0, p1, share) == mode


def ramp(sign: float) -> Network:
    """An output that rises (or falls) with the first of six variables."""
    A = np.zeros((6, 1))
    A[0] = 1.0
    return Network(A, np.zeros(1), np.array([sign * 40.0]), -sign * 20.0)


@pytest.mark.parametrize(("mode", "low", "high"), [("good", 0.55, 1.0), ("bad", 0.0, 0.45)])
def test_a_search_follows_the_outputs_in_the_trusted_direction(
    mode: str, low: float, high: float
) -> None:
    rng = np.random.default_rng(1)
    P, R = rng.random((20, 6)), rng.random((6, 6)) * [0.2, 1, 1, 1, 1, 1] + [0.4, 0, 0, 0, 0, 0]
    peer = CSEA()
    brood = peer._searched(P, R, ramp(1.0), mode, rng)
    assert brood.shape == (12, 6), "six extreme children mate with six references"
    points, wanted = csea._ordered(brood, ramp(1.0), mode, rng)
    sure = points[:wanted, 0]
    assert wanted >= 1 and ((sure >= low) & (sure <= high)).all()
    outputs = ramp(1.0)(points)
    expected = int((outputs > 0.9).sum() if mode == "good" else (outputs < 0.1).sum())
    assert wanted == max(1, expected)


def test_without_trust_one_child_is_taken_at_random() -> None:
    rng = np.random.default_rng(2)
    brood = CSEA()._searched(rng.random((20, 6)), rng.random((6, 6)), ramp(1.0), "random", rng)
    assert len(brood) == 26, "no search: the children of population and references"
    first = {csea._ordered(brood, ramp(1.0), "random", np.random.default_rng(s))[0][0, 0]
             for s in range(20)}  # fmt: skip
    assert len(first) > 5
    assert csea._ordered(brood, ramp(1.0), "random", rng)[1] == 1


def test_the_network_learns_a_half_space() -> None:
    rng = np.random.default_rng(3)
    U, new = rng.random((120, 8)), rng.random((400, 8))
    label = (U[:, 0] + U[:, 1] > 1.0).astype(np.float64)
    network = CSEA()._trained(U, label, np.random.default_rng(4))
    right = (network(new) > 0.5) == (new[:, 0] + new[:, 1] > 1.0)
    assert right.mean() > 0.85


def test_sure_points_wait_their_turn_and_the_run_beats_random_search() -> None:
    """Asked one by one, all sure points of a round come before the network is fitted again."""
    o = Optimizer([(0, 1)] * 12, 2, CSEA(predictions=600), seed=5, n_initial=40)
    batch = o.ask(40)
    o.tell(batch, zdt1(batch.X))
    waiting, most = 0, 0
    for _ in range(36):
        batch = o.ask(1)
        assert o.memory is not None
        if waiting:
            assert o.notes[-1]["mode"] == "queue" and len(o.memory["queue"]) == waiting - 1
        else:
            assert o.notes[-1]["mode"] in ("good", "bad", "random")
            assert len(o.memory["queue"]) <= 11
        waiting = len(o.memory["queue"])
        most = max(most, waiting)
        o.tell(batch, zdt1(batch.X))
    assert most > 0
    random = zdt1(np.random.default_rng(0).random((76, 12)))
    reference = np.array([1.1, 7.0])
    assert pareto.hypervolume(o.F, reference) > 1.2 * pareto.hypervolume(random, reference)


def test_any_number_of_different_points_comes_back() -> None:
    archive = example_archive(30, 6, 2)
    for q in (1, 13, 50, 90):
        got = CSEA(epochs=5, predictions=100).propose(
            archive, q, pending=NONE, memory=None, rng=Streams(1, 1)
        )
        assert got.U.shape == (q, 6) and len(np.unique(got.U, axis=0)) == q


def test_one_kind_of_label_is_enough() -> None:
    """A front without dominated points has no zeros; the round goes on."""
    x = np.linspace(0.0, 1.0, 20)
    archive = Archive.of(np.random.default_rng(6).random((20, 6)), np.stack([x, 1 - x], 1))
    got = CSEA(epochs=5, predictions=100).propose(
        archive, 3, pending=NONE, memory=None, rng=Streams(1, 1)
    )
    assert got.U.shape == (3, 6) and got.notes["errors"][1] is None


def test_parents_that_breed_nothing_new_do_not_stop_a_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csea, "platemo_sbx", lambda parents, **_: parents)
    got = CSEA(epochs=5, predictions=100).propose(
        example_archive(12, 6, 2), 5, pending=NONE, memory=None, rng=Streams(1, 1)
    )
    assert len(np.unique(got.U, axis=0)) == 5
