from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuropareto.memory import Memory
from neuropareto.problems.dtlz import dtlz
from neuropareto.problems.sparse import sparse
from neuropareto.space import Array, Space
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.structured import (
    FittedStructuredGP,
    StructuredGP,
    Uncalibrated,
    training,
)
from neuropareto.surrogate.structured.model import doubtful
from neuropareto.surrogate.structured.placing import gathered
from neuropareto.surrogate.structured.recalibration import Online
from neuropareto.surrogate.structured.record import Record
from neuropareto.surrogate.structured.training import (
    SPARSE,
    TIGHT,
    TIGHT_PRODUCT,
    Effort,
    Rough,
)

QUICK = StructuredGP(
    few=(TIGHT,), many=(TIGHT_PRODUCT,), effort=Effort(additive=6, modulated=6, last=10, warm=4)
)


def uniform(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, d))


def fitted(
    spec: StructuredGP, U: Array, F: Array, warm: Memory | None = None
) -> FittedStructuredGP:
    return spec.fit(U, F, warm=warm, rng=np.random.default_rng(1))


def bilinear(U: Array) -> Array:
    """shape(u_0) (1 + g(u)) with the optimum of g away from the middle."""
    goal = 0.2 + 0.6 * np.linspace(0.0, 1.0, U.shape[1] - 1)
    g = 4.0 * ((U[:, 1:] - goal) ** 2).sum(axis=1)
    angle = 0.5 * np.pi * U[:, :1]
    return np.asarray((1.0 + g[:, None]) * np.hstack([np.cos(angle), np.sin(angle)]))


@pytest.fixture(scope="module")
def planted() -> tuple[Array, Array, FittedStructuredGP]:
    U = uniform(80, 12)
    return U, bilinear(U), fitted(StructuredGP(few=(TIGHT,)), U, bilinear(U))


def test_bilinear_structure_extrapolates_to_the_optimum(
    planted: tuple[Array, Array, FittedStructuredGP],
) -> None:
    _, F, model = planted
    front = 0.05 + 0.9 * uniform(30, 12, 5)
    front[:, 1:] = 0.2 + 0.6 * np.linspace(0.0, 1.0, 11)
    truth = bilinear(front)
    nothing_seen = np.linalg.norm(F, axis=1).min()
    assert nothing_seen > 1.5 * np.linalg.norm(truth, axis=1).max()
    errors = np.abs(model.posterior(front).mean - truth)
    assert np.median(errors) < 0.05 and errors.max() < 0.4
    assert all(m.index[0] == 0 for m in model.modulators)


def test_gradients_are_those_of_finite_differences(
    planted: tuple[Array, Array, FittedStructuredGP],
) -> None:
    _, _, model = planted
    V = uniform(3, 12, 6)
    mean, gradient = model.mean_and_gradient(V)
    np.testing.assert_allclose(mean, model.posterior(V).mean, rtol=1e-9)
    np.testing.assert_array_equal(gradient, model.mean_gradient(V))
    for i in range(12):
        step = 1e-5 * np.eye(12)[i]
        slope = (model.posterior(V + step).mean - model.posterior(V - step).mean) / 2e-5
        np.testing.assert_allclose(gradient[:, :, i], slope, rtol=1e-4, atol=1e-4)


def test_draws_have_the_moments_of_the_posterior() -> None:
    U = uniform(25, 5)
    model = fitted(QUICK, U, bilinear(U))
    V = uniform(4, 5, 7)
    draws = model.samples(V, 4000, rng=np.random.default_rng(2))
    said = model.posterior(V)
    assert draws.shape == (4000, 4, 2)
    error = 5.0 * np.sqrt(said.epistemic / 4000) + 0.02 * np.sqrt(said.epistemic)
    assert (np.abs(np.median(draws, axis=0) - said.mean) < error).all()
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(said.epistemic), rtol=0.15)
    again = model.samples(V, 4000, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(draws, again)


def test_profiles_are_the_mean_along_one_variable(
    planted: tuple[Array, Array, FittedStructuredGP],
) -> None:
    _, _, model = planted
    u = uniform(1, 12, 8)
    grid = (np.arange(7) + 0.3) / 7
    H = model.profiles(u, np.array([[1.0, 0.0]]), grid)
    assert H.shape == (1, 12, 7)
    for i in (3, 7, 11):
        V = np.repeat(u, 7, axis=0)
        V[:, i] = grid
        along = model.posterior(V).mean[:, 0]
        # First order in the warp and without interactions: the same shape, not the same digits.
        moved, real = H[0, i] - H[0, i].mean(), along - along.mean()
        assert np.corrcoef(moved, real)[0, 1] > 0.95
        assert abs(int(moved.argmin()) - int(real.argmin())) <= 1


def test_a_frequency_is_found_by_evidence() -> None:
    U = uniform(90, 5)
    F = (np.cos(2 * np.pi * 7.0 * (U - 0.3)).sum(axis=1) + U.sum(axis=1))[:, None]
    model = fitted(StructuredGP(few=(TIGHT,)), U, F)
    V = uniform(60, 5, 9)
    truth = np.cos(2 * np.pi * 7.0 * (V - 0.3)).sum(axis=1) + V.sum(axis=1)
    assert model.notes["frequency"] == [pytest.approx(7.0, abs=0.05)]
    residual = ((model.posterior(V).mean[:, 0] - truth) ** 2).mean() / truth.var()
    assert residual < 0.05


def test_no_frequency_is_found_where_there_is_none() -> None:
    U = uniform(50, 5)
    model = fitted(QUICK, U, bilinear(U))
    assert model.notes["frequency"] == [None, None]


def corner(U: Array) -> Array:
    """A sum of parabolas with a corner at their lowest places, c_i between 0.2 and 0.8."""
    away = np.abs(U - np.linspace(0.2, 0.8, U.shape[1]))
    return np.asarray((2.0 * away**2 + 0.5 * away).sum(axis=1, keepdims=True))


def test_corners_are_found_by_evidence() -> None:
    U, V = uniform(160, 16), uniform(200, 16, 9)
    spec = StructuredGP(few=(TIGHT,), effort=Effort(modulators=0, places=False))
    smooth = replace(spec, effort=replace(spec.effort, corners=False))
    sharp, rounded = (fitted(s, U, corner(U)) for s in (spec, smooth))
    assert sharp.notes["corners"] == [True] and rounded.notes["corners"] == [False]
    errors = [np.square(m.posterior(V).mean - corner(V)).mean() for m in (sharp, rounded)]
    assert errors[0] < 0.5 * errors[1]
    # The lowest place of each curve is at its corner.
    grid = (np.arange(300) + 0.5) / 300
    lowest = grid[sharp.profiles(U[:1], np.ones((1, 1)), grid)[0].argmin(axis=1)]
    assert np.abs(lowest - np.linspace(0.2, 0.8, 16)).max() < 0.03


def test_corners_are_remembered() -> None:
    U = uniform(160, 16)
    spec = StructuredGP(few=(TIGHT,), effort=Effort(places=False))
    model = fitted(spec, U, corner(U))
    V = uniform(20, 16, 9)
    again = spec.fit(
        np.concatenate([U, V]), corner(np.concatenate([U, V])),
        warm=model.warm, rng=np.random.default_rng(1),
    )  # fmt: skip
    assert again.notes["corners"] == [True]
    assert again.notes["coverage"] is not None  # made of the recorded model's forecasts


def test_no_corner_is_found_where_there_is_none() -> None:
    U = uniform(50, 5)
    model = fitted(QUICK, U, bilinear(U))
    assert model.notes["corners"] == [False, False]


def test_memory_of_a_time_without_corners_or_places_is_understood() -> None:
    U = uniform(50, 5)
    model = fitted(QUICK, U, bilinear(U))
    for known in (2, 3):  # without corners, and without places
        old = {k: v[:known] if k.endswith("form") else v for k, v in model.warm.items()}
        assert [len(v) for k, v in old.items() if k.endswith("form")] == [known] * 2
        record = Record.recalled(old, U, bilinear(U), QUICK.variants)
        assert record is not None and record.n == 50


PLACES = np.random.default_rng(7).uniform(0.15, 0.85, 24)


def lawful(U: Array, places: Array = PLACES) -> Array:
    """One law, |u - c|^1.5 in each variable, another place in each."""
    return np.asarray((np.abs(U - places) ** 1.5).sum(axis=1, keepdims=True))


def test_one_law_with_a_place_for_each_variable_is_found() -> None:
    U, V = uniform(90, 24), uniform(300, 24, 9)
    spec = StructuredGP(few=(TIGHT,), effort=Effort(modulators=0, rough=Rough(satisfied=-9.0)))
    bare = replace(spec, effort=replace(spec.effort, places=False))
    placed, own = (fitted(s, U, lawful(U)) for s in (spec, bare))
    assert placed.notes["places"] == [True] and own.notes["places"] == [False]
    errors = [np.square(m.posterior(V).mean - lawful(V)).mean() for m in (placed, own)]
    assert errors[0] < 0.25 * errors[1]
    # What it says of its own errors holds: places are not taken for known.
    said = placed.posterior(V)
    z = np.abs(said.mean - lawful(V)) / np.sqrt(said.variance)
    assert (z < 1.645).mean() > 0.8
    grid = (np.arange(300) + 0.5) / 300
    lowest = grid[placed.profiles(U[:1], np.ones((1, 1)), grid)[0].argmin(axis=1)]
    assert np.abs(lowest - PLACES).mean() < 0.02


def test_a_law_is_remembered_and_its_places_move_with_new_data() -> None:
    U, V = uniform(90, 24), uniform(10, 24, 9)
    spec = StructuredGP(few=(TIGHT,), effort=Effort(modulators=0, rough=Rough(satisfied=-9.0)))
    model = fitted(spec, U, lawful(U))
    both = np.concatenate([U, V])
    again = fitted(spec, both, lawful(both), warm=model.warm)
    assert again.notes["places"] == [True]
    before, after = (m.warm["0/place"] for m in (model, again))
    assert before.shape == after.shape == (24,)
    assert np.abs(after - PLACES).mean() < 1.1 * np.abs(before - PLACES).mean()
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("true", [True, False])
def test_where_points_have_gathered_a_law_must_have_foreseen_the_latest(true: bool) -> None:
    """Dense enough it is either way: the rows before the last thirty do follow a law."""
    rng = np.random.default_rng(3)
    U = np.concatenate([uniform(80, 24), 0.5 + 0.1 * rng.normal(size=(30, 24)).clip(-2.0, 2.0)])
    spec = StructuredGP(few=(TIGHT,), effort=Effort(modulators=0, rough=Rough(satisfied=-9.0)))
    blind = replace(spec, effort=replace(spec.effort, places=False))
    F = lawful(U)
    if not true:
        F[80:] = lawful(U[80:], PLACES[::-1])
    assert fitted(spec, U[:80], F[:80]).notes["places"] == [True]
    assert fitted(spec, U, F).notes["places"] == [true]
    first = fitted(blind, U[:80], F[:80])
    assert fitted(spec, U, F, warm=first.warm).notes["places"] == [true]


@pytest.mark.parametrize(("n", "d"), [(40, 2), (100, 30), (200, 100), (90, 12)])
def test_a_design_is_not_gathered_and_a_search_is(n: int, d: int) -> None:
    rng = np.random.default_rng(4)
    design = Space.of([(0, 1)] * d).latin_hypercube(n, rng=rng)
    assert not gathered(design) and not gathered(uniform(n, d, 5))
    nearby = (design[:1] + 0.02 * rng.normal(size=(n // 5, d))).clip(0.0, 1.0)
    assert gathered(np.concatenate([design, nearby]))


def test_a_law_that_breaks_numerically_costs_the_law_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise NumericalFailure("no factor")

    monkeypatch.setattr(training, "placed", broken)
    U = uniform(90, 24)
    model = fitted(StructuredGP(few=(TIGHT,), effort=Effort(modulators=0)), U, lawful(U))
    assert model.notes["places"] == [False]


def test_a_law_has_no_favourite_side_and_no_favourite_middle() -> None:
    U, places = uniform(90, 24), np.random.default_rng(8).uniform(0.05, 0.45, 24)
    spec = StructuredGP(few=(TIGHT,), effort=Effort(modulators=0, rough=Rough(satisfied=-9.0)))
    left = fitted(spec, U, lawful(U, places))
    right = fitted(spec, 1.0 - U, lawful(U, places))
    assert left.notes["places"] == right.notes["places"] == [True]
    found = [left.warm["0/place"], 1.0 - right.warm["0/place"]]
    for c in found:
        assert abs((c - places).mean()) < 0.01
    np.testing.assert_allclose(found[0], found[1], atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_no_law_is_found_in_noise_or_where_curves_are_unlike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    U = uniform(80, 10, seed)
    shapes = np.stack([U**3, np.sin(9.0 * U), np.exp(-5.0 * U), (U - 0.3) ** 2], axis=2)
    unlike = np.einsum("ndk,dk->n", shapes, rng.normal(size=(10, 4)))
    F = np.stack([rng.normal(size=80), unlike], axis=1)
    assert fitted(QUICK, U, F).notes["places"] == [False, False]


@pytest.mark.slow
def test_the_sparse_belief_is_chosen_on_a_sparse_problem() -> None:
    task = sparse("sparse-quadratic", 80, seed=3)
    U = uniform(120, 80)
    F = np.asarray(task(U))[:, :1]
    spec = StructuredGP(few=(TIGHT, SPARSE), effort=Effort(additive=15, modulated=15, last=30))
    model = fitted(spec, U, F)
    assert model.notes["variant"] == ["sparse"]
    V = uniform(200, 80, 4)
    truth = np.asarray(task(V))[:, :1]
    tight = fitted(StructuredGP(few=(TIGHT,), effort=spec.effort), U, F)
    errors = [((m.posterior(V).mean - truth) ** 2).mean() for m in (model, tight)]
    assert errors[0] < 0.5 * errors[1]


def test_the_tight_belief_stays_on_a_dense_problem() -> None:
    U = uniform(80, 20)
    F = np.asarray(dtlz("dtlz2", 20, 2)(U))[:, :1]
    assert fitted(StructuredGP(), U, F).notes["variant"] == ["tight"]


def test_warm_memory_survives_storage_and_serves_the_next_fit() -> None:
    U = uniform(50, 6)
    F = bilinear(U)[:, :1]
    first = fitted(QUICK, U[:40], F[:40])
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {k.replace("/", "|"): v for k, v in first.warm.items()}
    np.savez(buffer, **arrays)
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as stored:
        warm: dict[str, Any] = {k.replace("|", "/"): stored[k] for k in stored.files}
    direct, reloaded = fitted(QUICK, U, F, first.warm), fitted(QUICK, U, F, warm)
    V = uniform(20, 6, 3)
    np.testing.assert_array_equal(direct.posterior(V).mean, reloaded.posterior(V).mean)
    assert reloaded.notes["coverage"] is not None and first.notes["coverage"] is None
    truth = bilinear(V)[:, :1]
    assert ((reloaded.posterior(V).mean - truth) ** 2).mean() < 0.05 * truth.var()


def test_memory_of_other_data_is_ignored() -> None:
    U = uniform(16, 3)
    F = bilinear(U)[:, :1]
    other = fitted(QUICK, uniform(10, 3, 9), bilinear(uniform(10, 3, 9))[:, :1]).warm
    wider = fitted(QUICK, uniform(10, 4), bilinear(uniform(10, 4))[:, :1]).warm
    more = fitted(QUICK, U, bilinear(U)).warm
    for warm in (other, wider, more, {"nonsense": np.zeros(3)}, {}):
        assert Record.recalled(warm, U, F, QUICK.variants) is None
    cold = fitted(QUICK, U, F).posterior(U).mean
    np.testing.assert_array_equal(fitted(QUICK, U, F, other).posterior(U).mean, cold)


def test_fits_are_reproducible_and_leave_global_generators_alone() -> None:
    U = uniform(20, 3)
    state = torch.random.get_rng_state()
    before: Any = np.random.get_state()  # noqa: NPY002
    a, b = (fitted(QUICK, U, bilinear(U)).posterior(U).mean for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert torch.equal(state, torch.random.get_rng_state())
    after: Any = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])


@pytest.mark.parametrize(("n", "d", "m"), [(2, 1, 1), (3, 2, 5), (10, 300, 2), (20, 3, 3)])
def test_any_shape_is_fitted(n: int, d: int, m: int) -> None:
    U = uniform(n, d)
    F = np.random.default_rng(3).normal(size=(n, m)) * 10.0 ** np.arange(m)
    model = fitted(QUICK, U, F)
    said = model.posterior(uniform(5, d, 4))
    for part in (said.mean, said.epistemic, said.aleatoric, said.variance):
        assert part.shape == (5, m) and np.isfinite(part).all()
    assert (said.epistemic > 0).all() and (said.aleatoric > 0).all()
    assert model.mean_gradient(U[:2]).shape == (2, m, d)
    again = fitted(QUICK, U, F, model.warm)
    assert again.notes["coverage"] is None


def test_constant_and_repeated_data_are_fitted() -> None:
    U = uniform(10, 3)
    F = np.column_stack([np.full(10, 7.5), U[:, 0]])
    model = fitted(QUICK, np.vstack([U, U]), np.vstack([F, F]))
    said = model.posterior(uniform(4, 3, 5))
    np.testing.assert_allclose(said.mean[:, 0], 7.5, atol=1e-6)
    assert (said.epistemic[:, 0] < 1e-10).all()
    again = fitted(QUICK, np.vstack([U, U, U]), np.vstack([F, F, F]), model.warm)
    np.testing.assert_allclose(again.posterior(U).mean[:, 0], 7.5, atol=1e-6)
    V = uniform(20, 3, 6)
    awake = fitted(QUICK, np.vstack([U, U, V]), np.vstack([F, F, bilinear(V)]), model.warm)
    assert len(awake.modulators[0].index) > 0


def test_large_archives_are_thinned() -> None:
    spec = StructuredGP(few=(TIGHT,), effort=QUICK.effort, rows=40, points=60)
    U = uniform(150, 4)
    model = fitted(spec, U, bilinear(U))
    later = fitted(spec, uniform(160, 4), bilinear(uniform(160, 4)), model.warm)
    assert later.notes["coverage"] is not None
    assert np.isfinite(later.posterior(U).mean).all()


def test_bad_data_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        fitted(QUICK, uniform(3, 2), np.full((3, 1), np.nan))
    with pytest.raises(ValueError, match="points"):
        fitted(QUICK, uniform(3, 2), np.zeros((4, 1)))


def test_scores_recalibrate_the_next_round() -> None:
    U = uniform(50, 4)
    F = bilinear(U)
    first = fitted(QUICK, U[:40], F[:40])
    surprise = F[40:] + np.array([50.0, 0.0])
    second = fitted(QUICK, U, np.vstack([F[:40], surprise]), first.warm)
    plain = StructuredGP(few=(TIGHT,), effort=QUICK.effort, recalibration=Uncalibrated())
    unscaled = fitted(plain, U, np.vstack([F[:40], surprise]), first.warm)
    inflation = np.asarray(second.notes["inflation"])
    assert inflation[0] == 30.0 and inflation[0] > inflation[1]
    ratio = second.posterior(U[:5]).epistemic / unscaled.posterior(U[:5]).epistemic
    np.testing.assert_allclose(ratio, np.broadcast_to(inflation**2, (5, 2)), rtol=1e-9)
    said = first.posterior(U[40:])
    inside = np.abs(said.mean - np.vstack([surprise])) <= 1.6448536 * np.sqrt(said.variance)
    assert second.notes["coverage"] == pytest.approx(inside.mean())


def test_a_model_whose_forecasts_fail_is_trained_again_from_nothing() -> None:
    """The start design hides one modulator; what arrives later shows it."""

    def truth(U: Array) -> Array:
        return np.asarray(
            np.exp(2.0 * U[:, 5:6]) * (1.0 + ((U[:, :5] - 0.3) ** 2).sum(1))[:, None]
        )

    hidden, open_ = uniform(50, 8), uniform(40, 8, 1)
    hidden[:, 5] = 0.5 + 0.001 * hidden[:, 5]
    U = np.concatenate([hidden, open_])
    due = replace(QUICK, effort=replace(QUICK.effort, corners=False, places=False))
    before = fitted(due, hidden, truth(hidden))
    assert 5 not in before.modulators[0].index
    V = uniform(50, 8, 2)

    def error(spec: StructuredGP) -> float:
        model = fitted(spec, U, truth(U), before.warm)
        return float(np.abs(model.posterior(V).mean - truth(V)).mean())

    later = replace(due, effort=replace(due.effort, rescan_after=50))
    trusting = replace(due, doubt=np.inf)
    assert error(due) < 0.5 * error(trusting)
    assert fitted(due, U, truth(U), before.warm).modulators[0].index[0] == 5
    assert error(later) == error(replace(later, doubt=np.inf)), "not in every round"


def test_a_model_whose_forecasts_hold_is_not_doubted() -> None:
    U = uniform(90, 12)
    before = fitted(QUICK, U[:80], bilinear(U[:80]))
    due = replace(QUICK, effort=replace(QUICK.effort, rescan_after=1))
    models = [
        fitted(spec, U, bilinear(U), before.warm) for spec in (due, replace(due, doubt=np.inf))
    ]
    V = uniform(5, 12, 3)
    np.testing.assert_array_equal(models[0].posterior(V).mean, models[1].posterior(V).mean)


def test_doubt_looks_at_the_median_of_the_last_ten_forecasts() -> None:
    old, new = np.full((10, 2), 9.0), np.column_stack([np.full(10, 0.5), np.full(10, 4.0)])
    new[:4, 0] = 99.0
    assert doubtful(np.concatenate([old, new]), 3.0).tolist() == [False, True]
    assert doubtful(np.concatenate([old, new[:1]]), 3.0).tolist() == [True, True]
    assert doubtful(np.empty((0, 2)), 3.0).tolist() == [False, False]


def test_the_factor_is_a_quantile_of_recent_scores() -> None:
    rule = Online()
    assert rule.factor(np.empty(0)) == 3.0
    normal = np.abs(np.random.default_rng(0).normal(size=4000))
    assert replace(rule, recent=4000).factor(normal) == pytest.approx(1.0, abs=0.05)
    late = np.concatenate([np.full(9000, 20.0), np.linspace(0.0, 2.0, 40)])
    assert rule.factor(late) == pytest.approx(2.0 * 36 / 39 / 1.645, abs=0.01)
    assert rule.factor(np.zeros(5)) == 0.1 and rule.factor(np.full(5, 1e9)) == 30.0
    assert Uncalibrated().factor(np.full(5, 3.0)) == 1.0


def test_scores_are_remembered_by_evaluations_whatever_the_size_of_batches() -> None:
    """A model that learnt one point at a time was recalibrated by four scores (D-89)."""
    U = uniform(60, 4)
    F = bilinear(U) + np.random.default_rng(5).normal(size=(60, 2))
    one = fitted(QUICK, U[:20], F[:20])
    for n in range(21, 61):
        one = fitted(QUICK, U[:n], F[:n], one.warm)
    ten = fitted(QUICK, U[:20], F[:20])
    for n in range(30, 61, 10):
        ten = fitted(QUICK, U[:n], F[:n], ten.warm)
    assert len(one.warm["scores"]) == len(ten.warm["scores"]) == 40
    ratio = np.asarray(one.notes["inflation"]) / np.asarray(ten.notes["inflation"])
    assert (np.abs(np.log(ratio)) < np.log(2.0)).all()


def test_hyper_parameters_are_trained_by_evaluations_whatever_the_size_of_batches() -> None:
    U = uniform(120, 4)
    F = bilinear(U)
    model = fitted(QUICK, U[:100], F[:100])
    values = [model.warm["0/weight"]]
    for n in range(101, 121):
        model = fitted(QUICK, U[:n], F[:n], model.warm)
        values.append(model.warm["0/weight"])
    changed = [n for n in range(1, 21) if not np.array_equal(values[n], values[n - 1])]
    assert changed == [5, 11, 17], "as soon as the data have grown by a twentieth"
    again = fitted(QUICK, U, F, model.warm)
    np.testing.assert_array_equal(again.warm["0/weight"], model.warm["0/weight"])
    known = fitted(QUICK, U[:100], F[:100])
    with_new = fitted(QUICK, U[:101], F[:101], known.warm)
    assert (
        with_new.posterior(U[100:101]).epistemic[0, 0]
        < known.posterior(U[100:101]).epistemic[0, 0]
    )


def test_memory_from_before_rounds_could_be_of_any_size_is_still_read() -> None:
    U = uniform(40, 4)
    F = bilinear(U)
    warm = dict(fitted(QUICK, U[:30], F[:30]).warm)
    warm["count"] = np.array([30, 4], dtype=np.int64)
    warm["batches"] = np.array([10], dtype=np.int64)
    warm["scores"] = np.ones((10, 2))
    assert Record.recalled(warm, U, F, QUICK.variants) is not None
    assert fitted(QUICK, U, F, warm).notes["coverage"] is not None


@pytest.mark.slow
def test_products_of_modulators_explain_products_better() -> None:
    def product(U: Array) -> Array:
        shape = np.cos(1.4 * U[:, 0]) * np.cos(1.4 * U[:, 1]) * np.cos(1.4 * U[:, 2])
        return np.asarray((shape * (1.0 + 3.0 * ((U[:, 3:] - 0.4) ** 2).sum(axis=1)))[:, None])

    U, V = uniform(160, 9), uniform(200, 9, 5)
    errors = []
    for variant in (TIGHT, TIGHT_PRODUCT):
        model = fitted(StructuredGP(few=(variant,)), U, product(U))
        errors.append(((model.posterior(V).mean - product(V)) ** 2).mean())
    assert errors[1] < 0.9 * errors[0]
