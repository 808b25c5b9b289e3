from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from neuropareto import NeuroPareto, minimize, problem
from neuropareto.archive import Archive
from neuropareto.moves import Profiled
from neuropareto.screening import feasibility
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, NumericalFailure
from neuropareto.surrogate.contract import Fitted
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured.training import TIGHT, Effort
from neuropareto.testing.algorithm import conflicting
from neuropareto.viability import Learnt, Unguarded

D = 6
QUICK = StructuredGP(few=(TIGHT,), effort=Effort(additive=4, modulated=4, last=6))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


Flags = npt.NDArray[np.bool_]


def crashing(U: Array) -> Flags:
    return np.asarray(U.mean(axis=1) > 0.55)


def archive_of(n: int, fails: Flags | None = None, constraint: bool = False) -> Archive:
    U = rng(1).random((n, D))
    fails = crashing(U) if fails is None else fails
    kept = U[~fails]
    G = kept[:, :1] - 0.9 if constraint else None
    return Archive.of(kept, conflicting(kept, 2), G, U[fails])


def fitted(spec: StructuredGP | ExactGP, archive: Archive) -> Fitted:
    return spec.fit(archive.U, archive.outputs, warm=None, rng=rng())


@pytest.mark.parametrize("constraint", [False, True])
def test_failures_become_the_last_constraint(constraint: bool) -> None:
    archive = archive_of(120, constraint=constraint)
    model = fitted(QUICK, archive)
    search, seen = Learnt().guarded(model, archive, rng=rng())
    c = 1 + constraint
    assert seen.c == c and (seen.G[:, -1] == -1).all() and seen.m == 2
    np.testing.assert_array_equal(seen.front_indices, archive.front_indices)
    U = rng(5).random((400, D))
    both, alone = search.posterior(U), model.posterior(U)
    for name in ("mean", "epistemic", "aleatoric"):
        assert getattr(both, name).shape == (400, 2 + c)
        np.testing.assert_array_equal(getattr(both, name)[:, :-1], getattr(alone, name))
    clear = np.abs(U.mean(axis=1) - 0.55) > 0.06
    told = both.mean[:, -1] > 0
    assert (told == crashing(U))[clear].mean() > 0.95
    assert search.samples(U[:5], 3, rng=rng()).shape == (3, 5, 2 + c)
    assert search.warm.keys() == model.warm.keys()


def test_slopes_and_profiles_are_those_of_the_joined_mean() -> None:
    archive = archive_of(80)
    search, _ = Learnt().guarded(fitted(QUICK, archive), archive, rng=rng())
    assert isinstance(search, Profiled)
    U = 0.1 + 0.8 * rng(2).random((4, D))
    mean, slope = search.mean_and_gradient(U)
    np.testing.assert_allclose(mean, search.posterior(U).mean, rtol=1e-9)
    np.testing.assert_array_equal(slope, search.mean_gradient(U))
    for i in range(D):
        step = 1e-5 * np.eye(D)[i]
        numeric = (search.posterior(U + step).mean - search.posterior(U - step).mean) / 2e-5
        np.testing.assert_allclose(slope[:, :, i], numeric, rtol=1e-4, atol=1e-6)
    grid = np.linspace(0, 1, 7)
    weights = np.array([[1.0, 2.0, 3.0]]).repeat(4, axis=0)
    assert search.profiles(U, weights, grid).shape == (4, D, 7)
    part = search.profiles(U, weights * [1, 1, 0], grid) + search.profiles(
        U, weights * [0, 0, 1], grid
    )
    np.testing.assert_allclose(search.profiles(U, weights, grid), part, atol=1e-9)
    assert len(search.modulators) == len(search.signal) == 3


def test_a_plain_surrogate_is_guarded_too() -> None:
    archive = archive_of(60)
    search, _ = Learnt().guarded(fitted(ExactGP(), archive), archive, rng=rng())
    assert not isinstance(search, Profiled)
    assert search.posterior(archive.U[:3]).mean.shape == (3, 3)
    assert search.mean_gradient(archive.U[:3]).shape == (3, 3, D)


def test_few_failures_and_the_paper_change_nothing() -> None:
    two = np.arange(40) < 2
    archive = archive_of(40, two)
    model = fitted(QUICK, archive)
    assert Learnt().guarded(model, archive, rng=rng()) == (model, archive)
    many = archive_of(40)
    assert Unguarded().guarded(model, many, rng=rng()) == (model, many)
    assert NeuroPareto.paper().viability == Unguarded()


def test_labels_that_cannot_be_fitted_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(40)
    model = fitted(QUICK, archive)

    def broken(*_: object, **__: object) -> None:
        raise NumericalFailure("no factor")

    monkeypatch.setattr(StructuredGP, "fit", broken)
    assert Learnt().guarded(model, archive, rng=rng()) == (model, archive)


def test_failures_without_a_place_have_next_to_no_effect() -> None:
    archive = archive_of(150, rng(3).random(150) < 0.15)
    search, seen = Learnt().guarded(fitted(QUICK, archive), archive, rng=rng())
    chance = feasibility(search.posterior(rng(4).random((500, D))), seen.m)
    assert np.quantile(chance, 0.05) > 0.6 * chance.max()


def test_a_search_learns_where_the_simulator_fails() -> None:
    """The optimum, 0.5 in the distance variables, lies where every evaluation fails."""
    sphere = problem("dtlz2", 10, 2)

    attempts: list[bool] = []

    def simulate(x: Array) -> Array:
        attempts.append(bool(x[1:].mean() <= 0.45))
        if not attempts[-1]:
            raise RuntimeError("diverged")
        return np.asarray(sphere(x[None])).ravel()

    result = minimize(
        simulate, [(0, 1)] * 10, n_objectives=2, budget=90, n_initial=50, batch=10, seed=0,
        progress=False,
    )  # fmt: skip
    started = sum(attempts[:50])
    assert started < 25 and sum(attempts[50:]) > 20, (started, sum(attempts[50:]))
    radius = 1.0 + 9 * 0.05**2
    norms = np.linalg.norm(result.front.F, axis=1)
    assert norms.min() >= radius - 1e-9 and np.median(norms) < radius + 0.03
