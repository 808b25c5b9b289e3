from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import pareto
from neuropareto.peers.ar_moea import (
    References,
    adjusted_distance,
    igd_ns,
    selected,
    spread_by_angle,
    without_each,
)
from neuropareto.peers.edn_armoea import EDNARMOEA, Evolved, diverse, infill, tournament
from neuropareto.peers.edn_network import DropoutNetwork, gradient, kept
from neuropareto.problems.fronts import simplex_lattice
from neuropareto.randomness import Streams
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

SMALL = EDNARMOEA(
    population=12, generations=3, network=DropoutNetwork(first_steps=60, later_steps=20, passes=10)
)


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL)


def test_it_proposes_any_number_of_points() -> None:
    archive = example_archive(30, 4, 3)
    for q in (1, 7, 50):
        U = SMALL.propose(archive, q, pending=np.empty((0, 4)), memory=None, rng=Streams(0, 1)).U
        assert len(np.unique(U, axis=0)) == q


# -- the indicator


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 8))
def test_igd_ns_without_each_member_is_the_indicator_of_the_smaller_set(
    seed: int, n: int, r: int
) -> None:
    D = np.random.default_rng(seed).random((n, r))
    expected = [igd_ns(np.delete(D, p, axis=0)) for p in range(n)]
    assert np.allclose(without_each(D), expected)


def test_igd_ns_charges_a_member_that_is_nearest_to_nothing() -> None:
    D = np.array([[1.0, 4.0], [5.0, 2.0], [3.0, 6.0]])
    assert igd_ns(D) == pytest.approx(1.0 + 2.0 + 3.0)
    assert igd_ns(D[:2]) == pytest.approx(3.0)


def test_reference_points_move_along_their_rays() -> None:
    """The point (3, 4) is nearest to the ray (1, 0): its foot there is (3, 0)."""
    D = adjusted_distance(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 9.0]]))
    assert np.allclose(D, [[4.0, 3.0]])
    F = np.array([[1.0, 0.1], [10.0, 5.0]])
    D = adjusted_distance(F, np.array([[1.0, 0.0]]))
    assert np.allclose(D[:, 0], [0.1, math.hypot(9.0, 5.0)])


def test_selection_keeps_whole_ranks_and_the_members_near_references() -> None:
    R = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    front = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.95, 0.02], [0.02, 0.95]])
    assert selected(np.concatenate([front, front + 1.0]), R, 3).tolist() == [0, 1, 2]
    assert set(range(5)) <= set(selected(np.concatenate([front, front + 1.0]), R, 7).tolist())


def test_angles_are_spread_greedily() -> None:
    angle = np.radians([0.0, 1.0, 45.0, 89.0, 90.0])
    F = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.array([[1.0], [5], [2], [3], [9]])
    chosen = np.array([True, False, False, False, False])
    assert np.flatnonzero(spread_by_angle(F, chosen, 2)).tolist() == [0, 4]
    assert np.flatnonzero(spread_by_angle(F, chosen, 3)).tolist() == [0, 2, 4]
    assert spread_by_angle(F, chosen, 99).all()


# -- adaptive reference points


def test_references_on_a_regular_front_are_the_lattice() -> None:
    W = np.maximum(simplex_lattice(10, 2), 1e-6)
    made = References.first(W / W.sum(axis=1, keepdims=True), W)
    assert made.valid == 1.0
    rays = made.R / made.R.sum(axis=1, keepdims=True)
    assert np.allclose(np.sort(rays[:, 0]), np.sort(W[:, 0]), atol=1e-4)


def test_references_gather_where_an_irregular_front_is() -> None:
    """A front that fills a fifth of the directions leaves most lattice vectors invalid."""
    W = np.maximum(simplex_lattice(20, 2), 1e-6)
    first = np.linspace(0.45, 0.55, 60)
    F = np.stack([first, 1.0 - first], axis=1)
    corners = References.first(np.array([[0.0, 1.0], [1.0, 0.0]]), W)
    made = corners.updated(F, W)
    assert made.valid < 0.6 and len(made.R) == len(W)
    share = made.R[:, 0] / made.R.sum(axis=1)
    assert ((share > 0.4) & (share < 0.6)).mean() > 0.5
    assert (made.ideal == 0.0).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_references_are_bounded_and_the_ideal_point_never_rises(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    W = np.maximum(simplex_lattice(15, m), 1e-6)
    made = References.first(rng.random((20, m)), W)
    for _ in range(3):
        F = rng.random((20, m))
        after = made.updated(F, W)
        assert (after.ideal <= made.ideal).all() and (after.ideal <= F.min(axis=0)).all()
        assert len(after.R) <= len(W) and len(after.A) <= 3 * len(W)
        assert 0.0 < after.valid <= 1.0
        assert pareto.nondominated(after.A).all()
        made = after.ranging(F)


# -- infill


def test_the_switch_rule() -> None:
    assert diverse(0.8, 0.76, 0.05)
    assert not diverse(0.8, 0.7, 0.05)
    assert diverse(0.5, 0.9, 0.05)


def _found() -> Evolved:
    F = np.array([[0.0, 5.0], [0.1, 5.2], [5.0, 0.0], [5.1, 0.2], [2.5, 2.5], [2.4, 2.4]])
    std = np.array([1.0, 9.0, 1.0, 9.0, 1.0, 9.0])[:, None] * np.ones((1, 2))
    return Evolved(np.arange(12.0).reshape(6, 2) / 12, F, std, 1.0, 1.0)


def test_infill_takes_the_nearest_or_the_most_uncertain_of_each_cluster() -> None:
    found, none = _found(), np.empty((0, 2))
    near = infill(found, none, 3, True, np.random.default_rng(0))
    assert {tuple(u) for u in near} == {tuple(found.U[i]) for i in (0, 2, 5)}
    unsure = infill(found, none, 3, False, np.random.default_rng(0))
    assert {tuple(u) for u in unsure} == {tuple(found.U[i]) for i in (1, 3, 5)}


def test_infill_passes_over_known_points_and_fills_up() -> None:
    found = _found()
    U = infill(found, found.U[[0, 5]], 8, True, np.random.default_rng(0))
    assert len(U) == 8
    listed = {tuple(u) for u in U}
    assert len(listed) == 8 and not listed & {tuple(found.U[0]), tuple(found.U[5])}
    assert {tuple(found.U[i]) for i in (1, 2, 3, 4)} <= listed


def test_tournaments_prefer_members_whose_loss_costs_more() -> None:
    wins = tournament(np.array([0.0, 1.0]), 4000, np.random.default_rng(0))
    assert wins.mean() == pytest.approx(0.75, abs=0.04)


def test_the_training_set_holds_all_new_points_and_is_bounded() -> None:
    archive = example_archive(40, 3, 2)
    algorithm = EDNARMOEA(training=15)
    rows = algorithm._training(archive, {"seen": np.array([33])})
    assert len(rows) == 15 and np.isin(np.arange(33, 40), rows).all()
    rows = algorithm._training(archive, None)
    assert len(rows) == 15 and np.isin(np.arange(37, 40), rows).all()


# -- the network


def test_the_written_gradient_is_torchs() -> None:
    rng = np.random.default_rng(0)
    spec = DropoutNetwork(hidden=6)
    weights = [w.astype(np.float64) for w in spec._fresh(4, 2, rng)]
    A, mask, T = rng.normal(size=(5, 4)), kept((5, 6), 0.5, rng), rng.normal(size=(5, 2))
    W1, b1, W2, b2, W3, b3 = tensors = [torch.tensor(w, requires_grad=True) for w in weights]
    H = torch.relu(torch.tensor(A) @ W1 + b1) * torch.tensor(mask)
    out = torch.tanh(H @ W2 + b2) @ W3 + b3
    loss = 0.5 * (out - torch.tensor(T)).square().sum(1).mean()
    theirs = torch.autograd.grad(loss, tensors)
    ours = gradient(weights, A, mask, T)  # type: ignore[arg-type]
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(a, b.numpy(), atol=1e-6)


def test_dropout_keeps_the_mean_and_drops_the_share() -> None:
    mask = kept((200_000,), 0.2, np.random.default_rng(0))
    assert (mask == 0).mean() == pytest.approx(0.2, abs=0.01)
    assert mask.mean() == pytest.approx(1.0, abs=0.01)


def test_the_network_learns_and_warm_training_goes_on() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 5))
    Y = np.stack([X[:, 0], -X[:, 1]], axis=1)
    spec = DropoutNetwork(rate=0.05, first_steps=1500, later_steps=1500)
    fitted = spec.fit(X, Y, warm=None, rng=rng)

    def error(model: object, m: int = 2) -> float:
        mean, std = model.predict(X, rng=np.random.default_rng(1))  # type: ignore[attr-defined]
        assert mean.shape == std.shape == (60, m) and (std > 0).all()
        return float(((mean - Y) ** 2).mean())

    first = error(fitted)
    assert first < 0.7 * float(Y.var())
    before = {k: v.copy() for k, v in fitted.warm.items()}
    later = spec.fit(X, Y, warm=fitted.warm, rng=rng)
    assert error(later) < first
    assert all(np.array_equal(before[k], v) for k, v in fitted.warm.items())
    other = spec.fit(X, Y[:, :1], warm=fitted.warm, rng=rng)  # does not fit: starts anew
    assert other.warm["W3"].shape == (40, 1)


def test_without_dropout_all_passes_agree() -> None:
    U = np.random.default_rng(0).random((20, 3))
    spec = DropoutNetwork(drop_input=0.0, drop_hidden=0.0, first_steps=50, passes=5)
    model = spec.fit(U, conflicting(U, 2), warm=None, rng=np.random.default_rng(0))
    assert np.allclose(model.predict(U, rng=np.random.default_rng(1))[1], 0.0, atol=1e-6)
