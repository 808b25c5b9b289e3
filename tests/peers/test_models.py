from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor

from neuropareto import Optimizer
from neuropareto.algorithms import algorithm
from neuropareto.archive import Archive
from neuropareto.space import Array
from neuropareto.testing.algorithm import conflicting, example_archive

with warnings.catch_warnings():  # linear_operator uses what torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from neuropareto.peers.models import (
        front_rows,
        held_reference,
        independent_gps,
        maximised,
        start_points,
    )


def data(n: int = 25, d: int = 4, m: int = 2) -> tuple[Array, Array]:
    U = np.random.default_rng(n).random((n, d))
    return U, conflicting(U, m)


def test_the_model_predicts_and_its_units_are_the_users() -> None:
    U, F = data(60)
    gps = independent_gps(U, 1e6 * F - 3e7)
    V = np.random.default_rng(1).random((30, 4))
    error = (gps.mean(V) - gps.scaled(1e6 * conflicting(V, 2) - 3e7)).abs().mean()
    assert float(error) < 0.1
    assert torch.allclose(gps.mean(V), independent_gps(U, F).mean(V), atol=1e-4)


def test_believed_points_keep_the_mean_and_end_the_doubt() -> None:
    gps = independent_gps(*data())
    new = np.full((1, 4), 0.9)
    believed = gps.believing(new)
    V = np.random.default_rng(2).random((10, 4))
    assert torch.allclose(believed.mean(V), gps.mean(V), atol=1e-3)
    variance = [g.model.posterior(torch.tensor(new)).variance.max() for g in (gps, believed)]
    assert float(variance[1]) < 0.5 * float(variance[0])


def test_failed_points_are_expected_to_be_bad() -> None:
    gps = independent_gps(*data())
    best = gps.U[gps.Z.sum(dim=1).argmax()].numpy()[None] + 0.01
    assert (gps.warned(best).mean(best) < gps.mean(best) - 0.1).all()


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        independent_gps(np.zeros((1, 2)), np.zeros((1, 2)))


def bowl(X: Tensor) -> Tensor:
    return -(X - 0.3).square().sum(dim=(-2, -1))


def test_maximised_finds_the_top_of_a_bowl_and_never_loses_its_start() -> None:
    starts = np.random.default_rng(0).random((20, 2, 3))
    found, value = maximised(bowl, starts, restarts=3, iterations=30)
    assert found == pytest.approx(np.full((2, 3), 0.3), abs=1e-3)
    assert value == pytest.approx(0.0, abs=1e-5)
    exact = np.full((1, 2, 3), 0.3)
    kept, top = maximised(bowl, np.concatenate([exact, starts]), restarts=2, iterations=3)
    assert np.array_equal(kept, exact[0]) and top == 0.0


def test_starts_lie_in_the_cube_and_half_of_them_near_the_best() -> None:
    best = np.zeros((2, 60))
    U = start_points(best, 80, rng=np.random.default_rng(0))
    assert U.shape == (80, 60) and (U >= 0).all() and (U <= 1).all()
    assert U[:20].max() < 0.01
    moved = (U[20:40] > 0).sum(axis=1)
    assert 12 < moved.mean() < 28 and U[20:40].max() < 0.6
    assert U[40:].mean() == pytest.approx(0.5, abs=0.05)
    assert start_points(best[:0], 4, rng=np.random.default_rng(0)).shape == (4, 60)


@pytest.mark.parametrize(("m", "most"), [(3, 200), (4, 40), (5, 12)])
def test_the_front_for_boxes_is_bounded_and_part_of_the_front(m: int, most: int) -> None:
    archive = example_archive(200, 6, m)
    rows = front_rows(archive)
    assert len(rows) == min(most, len(archive.front))
    assert np.isin(rows, archive.front_indices).all()


def test_the_reference_point_never_shrinks() -> None:
    wide = Archive.of(np.eye(2), np.array([[0.0, 10.0], [10.0, 0.0]]))
    first = held_reference(wide, None)
    assert first == pytest.approx([11.0, 11.0])
    narrow = wide.extended(np.full((1, 2), 0.5), np.array([[-1.0, -1.0]]))
    assert narrow.reference_point[0] < 5
    assert held_reference(narrow, {"reference": first}) == pytest.approx(first)
    assert held_reference(wide, {"reference": np.zeros(2)}) == pytest.approx(first)
    assert held_reference(wide, {"reference": np.zeros(3)}) == pytest.approx(first)


@pytest.mark.parametrize("name", ["gp-hv", "egbo"])
def test_criteria_of_hypervolume_refuse_a_single_objective(name: str) -> None:
    optimizer = Optimizer([(0, 1)] * 2, 1, algorithm(name), seed=0, n_initial=4)
    batch = optimizer.ask(4)
    optimizer.tell(batch, batch.X[:, :1])
    with pytest.raises(ValueError, match="needs two or more objectives"):
        optimizer.ask(1)
