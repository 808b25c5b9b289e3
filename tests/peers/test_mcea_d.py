from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from neuropareto import Optimizer, pareto
from neuropareto.archive import Archive
from neuropareto.peers import mcea_d
from neuropareto.peers.mcea_d import MCEAD, assigned, chebyshev, neighbourhoods, positives
from neuropareto.problems.fronts import simplex_lattice
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm


def bowls(X: Array) -> Array:
    return np.stack([((X - 0.3) ** 2).sum(axis=1), ((X - 0.7) ** 2).sum(axis=1)], axis=1)


@pytest.mark.parametrize("peer", [MCEAD(), MCEAD(subproblems=6, p_neighbours=0.0)])
def test_the_algorithm_exam(peer: MCEAD) -> None:
    check_algorithm(peer)


def test_chebyshev_values_by_hand() -> None:
    F = np.array([[0.0, 40.0], [2.0, 0.0], [1.0, 20.0]])
    W = np.array([[0.5, 0.5], [0.9, 0.1]])
    expected = np.array([[0.5, 0.1], [0.5, 0.9], [0.25, 0.45]])
    np.testing.assert_allclose(chebyshev(F, W, np.zeros(3)), expected)
    np.testing.assert_allclose(chebyshev(1e6 * F - 5e7, W, np.zeros(3)), expected, rtol=1e-9)


def test_infeasible_rows_follow_in_the_order_of_violation() -> None:
    F = np.random.default_rng(0).random((6, 2))
    violation = np.array([0.0, 3.0, 0.0, 1e-9, 3.0, 0.2])
    V = chebyshev(F, simplex_lattice(5, 2), violation)
    for a in range(6):
        for b in range(6):
            if violation[a] < violation[b]:
                assert (V[a] < V[b]).all()


def test_neighbours_are_the_nearest_weights_with_the_weight_itself_first() -> None:
    near = neighbourhoods(simplex_lattice(50, 2), 5)
    np.testing.assert_array_equal(near[:, 0], np.arange(50))
    assert set(near[20].tolist()) == {18, 19, 20, 21, 22}
    assert set(near[0].tolist()) == {0, 1, 2, 3, 4}


def test_positives_are_the_best_of_each_neighbour_not_taken_yet() -> None:
    V = np.array([[0.1, 0.1], [0.2, 0.3], [0.3, 0.2], [0.9, 0.9]])
    assert positives(V, np.array([0, 1])).tolist() == [0, 2]
    assert positives(V, np.array([1, 0])).tolist() == [0, 1]


def test_a_first_population_repeats_no_point_while_there_are_enough() -> None:
    V = np.random.default_rng(1).random((30, 12))
    population = assigned(V, np.random.default_rng(2))
    assert len(set(population.tolist())) == 12
    few = assigned(V[:5], np.random.default_rng(2))
    assert np.bincount(few, minlength=5).min() == 2 and np.bincount(few).max() == 3


def test_each_sub_problem_has_its_own_classifier() -> None:
    """The two extreme sub-problems order the optima of f1 and f2 in opposite ways."""
    rng = np.random.default_rng(3)
    U = np.concatenate([0.3 + 0.02 * rng.random((8, 2)), 0.7 + 0.02 * rng.random((8, 2))])
    U = np.concatenate([U, rng.random((30, 2)) * [0.2, 1.0] + [0.4, 0.0]])
    F, W = bowls(U), np.maximum(simplex_lattice(50, 2), 1e-6)
    V, near = chebyshev(F, W, np.zeros(len(U))), neighbourhoods(W, 5)
    at = np.array([[0.31, 0.31], [0.71, 0.71]])
    peer = MCEAD(gamma=50.0)
    first, last = (peer._scores(U, at, positives(V, near[i])) for i in (0, 49))
    heavy = int(np.argmax(W[0]))  # the objective that the first weight cares about
    assert first[heavy] > first[1 - heavy] and last[1 - heavy] > last[heavy]


def test_the_kernel_is_the_published_one() -> None:
    """exp(-2 d^2): a machine's score is a weighted sum of that kernel and a constant."""
    rng = np.random.default_rng(4)
    U, trials = rng.random((20, 3)), rng.random((9, 3))
    score = MCEAD()._scores(U, trials, np.arange(4))
    basis = np.column_stack([RBF(length_scale=0.5)(trials, U), np.ones(9)])
    rest = score - basis @ np.linalg.lstsq(basis, score, rcond=None)[0]
    np.testing.assert_allclose(rest, 0.0, atol=1e-9)
    more = rng.random((60, 3))
    wide = np.column_stack([RBF(length_scale=0.5)(more, U), np.ones(60)])
    other = np.column_stack([RBF(length_scale=0.7)(more, U), np.ones(60)])
    score = MCEAD()._scores(U, more, np.arange(4))
    residual = [score - A @ np.linalg.lstsq(A, score, rcond=None)[0] for A in (wide, other)]
    assert np.abs(residual[0]).max() < 1e-8 < 1e-4 < np.abs(residual[1]).max()


def scored(scores: list[float], monkeypatch: pytest.MonkeyPatch) -> int:
    """Which of three trials a visit evaluates if its classifier gives these scores."""
    archive = Archive.of(np.random.default_rng(5).random((20, 4)), bowls(np.eye(20, 4)))
    seen: list[Array] = []

    def remembered(self: MCEAD, U: Array, trials: Array, rows: Array) -> Array:
        seen.append(trials)
        return np.array(scores)

    monkeypatch.setattr(mcea_d.MCEAD, "_scores", remembered)
    peer = MCEAD(subproblems=10, attempts=3, p_neighbours=0.0)
    got = peer.propose(archive, 1, pending=np.empty((0, 4)), memory=None, rng=Streams(0, 1)).U[0]
    return int(np.flatnonzero((seen[0] == got).all(axis=1))[0])


def test_the_first_accepted_child_is_evaluated_or_the_best_of_the_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert scored([-1.0, 0.2, 0.9], monkeypatch) == 1
    assert scored([-1.0, -0.2, -0.9], monkeypatch) == 1
    assert scored([-0.3, -0.2, 0.1], monkeypatch) == 2


def test_an_arrival_replaces_at_most_two_that_are_no_better() -> None:
    o = Optimizer([(0, 1)] * 6, 2, MCEAD(subproblems=20), seed=1, n_initial=30)
    batch = o.ask(30)
    o.tell(batch, bowls(batch.X))
    W = np.maximum(simplex_lattice(20, 2), 1e-6)
    changed = 0
    batch = o.ask(1)
    for _ in range(25):
        assert o.memory is not None
        before, visit, wide = o.memory["population"], o.memory["visit"][-1], o.memory["wide"][-1]
        o.tell(batch, bowls(batch.X))
        batch = o.ask(1)
        assert o.memory is not None
        after, row = o.memory["population"], len(o.archive) - 1
        moved = np.flatnonzero(before != after)
        V = chebyshev(o.archive.F, W, np.zeros(row + 1))
        pool = np.arange(20) if wide else neighbourhoods(W, 2)[visit]
        no_better = pool[V[before[pool], pool] >= V[row, pool]]
        assert len(moved) == min(2, len(no_better)) and (after[moved] == row).all()
        assert np.isin(moved, no_better).all()
        changed += len(moved)
    assert changed > 0


def test_sub_problems_take_turns_even_if_memory_is_lost() -> None:
    archive = Archive.of(np.random.default_rng(6).random((12, 4)), bowls(np.eye(12, 4)))
    peer, pending = MCEAD(subproblems=10), np.random.default_rng(7).random((3, 4))
    got = peer.propose(archive, 7, pending=pending, memory=None, rng=Streams(0, 1))
    assert got.memory is not None
    assert got.memory["visit"].tolist() == [5, 6, 7, 8, 9, 0, 1]


def test_answers_find_their_visits_in_any_order_and_failures_are_forgotten() -> None:
    o = Optimizer([(0, 1)] * 6, 2, MCEAD(subproblems=10), seed=2, n_initial=20)
    batch = o.ask(20)
    o.tell(batch, bowls(batch.X))
    trials = list(o.ask(4))
    assert o.memory is not None
    visits = o.memory["visit"].tolist()
    o.fail([trials[1]], "simulated")
    o.tell([trials[3]], bowls(trials[3].x[None]))
    o.ask(1)
    assert o.memory is not None
    assert o.memory["visit"][:-1].tolist() == [visits[0], visits[2]]


def test_it_beats_random_search_on_a_sphere_pair() -> None:
    o = Optimizer([(0, 1)] * 20, 2, MCEAD(subproblems=20), seed=0, n_initial=40)
    for q in (40, *[1] * 100):
        batch = o.ask(q)
        o.tell(batch, bowls(batch.X))
    random = bowls(np.random.default_rng(0).random((140, 20)))
    reference = np.array([4.0, 4.0])
    assert pareto.hypervolume(o.F, reference) > 1.2 * pareto.hypervolume(random, reference)
