from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from neuropareto.archive import Archive
from neuropareto.candidates import Candidates, Pool
from neuropareto.classifier import RankBelief
from neuropareto.goals import Goals, proper_nadir
from neuropareto.memory import Memory
from neuropareto.moves import (
    Descents,
    GradientMoves,
    Profiled,
    ProfileJumps,
    Slides,
    descended,
    profiled,
    refined,
)
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.ladder import Rung
from neuropareto.surrogate.structured import Modulators, StructuredGP
from neuropareto.surrogate.structured.training import TIGHT, Effort


@dataclass(frozen=True, eq=False)
class Known:
    """A surrogate that knows f_j = sum_i h(u_i - goal_ji) exactly, with h a rugged bowl."""

    goals: Array
    noise: float = 1e-6
    evidence: float = 3.0

    def _curve(self, R: Array) -> Array:
        return np.asarray(R**2 - 0.02 * np.cos(30.0 * np.pi * R))

    def posterior(self, U: Array) -> Posterior:
        F = self._curve(U[:, None] - self.goals).sum(axis=2)
        return Posterior(F, np.full_like(F, 1e-12), np.full_like(F, self.noise**2))

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.repeat(self.posterior(U).mean[None], n, axis=0)

    def mean_gradient(self, U: Array) -> Array:
        R = U[:, None] - self.goals
        return np.asarray(2.0 * R + 0.6 * np.pi * np.sin(30.0 * np.pi * R))

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        return self.posterior(U).mean, self.mean_gradient(U)

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        curves = self._curve(grid - self.goals[:, :, None])
        return np.asarray(np.einsum("bm,mdg->bdg", weights, curves))

    @property
    def modulators(self) -> tuple[Modulators, ...]:
        one = np.ones(1)
        return tuple(Modulators((0,), one, one, one) for _ in self.goals)

    @property
    def signal(self) -> Array:
        return np.full(len(self.goals), self.evidence)

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class Plain:
    """A surrogate with nothing but the contract."""

    def posterior(self, U: Array) -> Posterior:
        zero = np.zeros((len(U), 2))
        return Posterior(zero, zero + 1.0, zero + 1.0)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.zeros((n, len(U), 2))

    def mean_gradient(self, U: Array) -> Array:
        return np.zeros((len(U), 2, U.shape[1]))

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class Nothing:
    """A source without candidates."""

    def generate(
        self, archive: Archive, belief: RankBelief, model: object, *, rng: np.random.Generator
    ) -> Pool:
        return Pool(np.empty((0, archive.d)), np.empty(0, dtype=np.str_))


GENERATORS: dict[str, Candidates] = {
    "jumps": Descents((ProfileJumps(starts=12, steps=10),)),
    "gradient": Descents((GradientMoves(starts=12, steps=20),)),
    "slides": Slides(Nothing(), size=200),
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def unsure(n: int) -> RankBelief:
    return RankBelief(np.full((n, 2), 0.5), np.zeros(n), np.zeros(n, dtype=np.int64))


def archive_of(model: Known, n: int = 60) -> Archive:
    U = rng(1).random((n, model.goals.shape[1]))
    return Archive.of(U, model.posterior(U).mean)


@pytest.fixture
def known() -> Known:
    return Known(rng(7).uniform(0.15, 0.85, (2, 8)))


@pytest.mark.parametrize("name", GENERATORS)
def test_pools_are_inside_the_cube_and_reproducible(name: str, known: Known) -> None:
    archive = archive_of(known)
    pools = [GENERATORS[name].generate(archive, unsure(60), known, rng=rng(3)) for _ in range(2)]
    assert len(pools[0]) > 0 and pools[0].U.shape == (len(pools[0]), 8)
    assert pools[0].U.min() >= 0.0 and pools[0].U.max() <= 1.0
    assert len(pools[0].operator) == len(pools[0])
    np.testing.assert_array_equal(pools[0].U, pools[1].U)


@pytest.mark.parametrize("name", GENERATORS)
def test_plain_models_and_tiny_archives_get_an_empty_pool(name: str, known: Known) -> None:
    assert isinstance(known, Profiled) and not isinstance(Plain(), Profiled)
    archive = archive_of(known)
    assert len(GENERATORS[name].generate(archive, unsure(60), Plain(), rng=rng())) == 0
    if name != "slides":
        few = Archive.of(archive.U[:3], archive.F[:3])
        assert len(GENERATORS[name].generate(few, unsure(3), known, rng=rng())) == 0


@pytest.mark.parametrize("name", GENERATORS)
def test_a_rung_of_the_ladder_is_seen_through(name: str, known: Known) -> None:
    archive = archive_of(known)
    rung = Rung(Rung(known, 0), 1)
    assert profiled(rung) is known and profiled(Rung(Plain(), 0)) is None
    plain = GENERATORS[name].generate(archive, unsure(60), known, rng=rng(3)).U
    through = GENERATORS[name].generate(archive, unsure(60), rung, rng=rng(3)).U
    np.testing.assert_array_equal(plain, through)


def test_jumps_find_the_deepest_valley_of_every_variable() -> None:
    goal = rng(2).uniform(0.15, 0.85, (1, 20))
    model = Known(np.vstack([goal, goal]))
    archive = archive_of(model)
    jumps = Descents((ProfileJumps(starts=6, steps=20),))
    pool = jumps.generate(archive, unsure(60), model, rng=rng(4))
    # Half of the rows hold their modulator, variable 0; all others must arrive.
    assert np.abs(pool.U - goal)[:, 1:].max() < 0.01
    plain = Descents((GradientMoves(starts=6, steps=80),))
    descent = plain.generate(archive, unsure(60), model, rng=rng(4))
    assert np.abs(descent.U - goal)[:, 1:].max() > 0.03


def test_descents_do_not_end_above_their_start(known: Known) -> None:
    archive = archive_of(known)
    goals = Goals.of(archive, 10, rng=rng(5))
    U = archive.U[goals.nearest(archive.F)]
    ended = descended(U, goals, known, np.full(10, 30), np.full(10, 0.02))
    before, after = (goals.values(known.posterior(V).mean) for V in (U, ended))
    assert (after <= before + 1e-12).all() and (after < before).mean() > 0.8


def test_descents_side_by_side_are_those_alone(known: Known) -> None:
    archive = archive_of(known)
    goals = Goals.of(archive, 6, rng=rng(5))
    U = archive.U[goals.nearest(archive.F)]
    steps, rate = np.array([3, 12, 0, 7, 12, 1]), np.array([0.02, 0.01, 0.03, 0.02, 0.01, 0.02])
    together = descended(U, goals, known, steps, rate)
    for i in range(6):
        one = np.arange(6) == i
        alone = descended(U[one], goals.part(one), known, steps[one], rate[one])
        np.testing.assert_allclose(together[one], alone, atol=1e-12)
    assert np.array_equal(together[2], U[2])


def test_goals_have_the_slopes_of_finite_differences(known: Known) -> None:
    archive = archive_of(known)
    goals = Goals.of(archive, 9, rng=rng(6))
    F = archive.F[:9]
    for j in range(2):
        step = 1e-7 * np.eye(2)[j]
        numeric = (goals.values(F + step) - goals.values(F - step)) / 2e-7
        np.testing.assert_allclose(goals.slopes(F)[:, j], numeric, rtol=1e-4, atol=1e-6)
    rows = goals.nearest(archive.F)
    chosen = goals.values(archive.F[rows])
    for i in range(60):
        assert (chosen <= goals.values(np.repeat(archive.F[i : i + 1], 9, axis=0)) + 1e-12).all()


@given(
    place=st.floats(0.02, 0.98),
    offset=st.floats(0.0, 1.0, exclude_max=True),
    curvature=st.floats(0.1, 50.0),
)
@settings(max_examples=60, deadline=None)
def test_a_refined_parabola_is_exact(place: float, offset: float, curvature: float) -> None:
    places = (np.arange(50) + offset) / 50
    H = (curvature * (places - place) ** 2)[None, None]
    assert refined(H, places)[0, 0] == pytest.approx(place, abs=1e-6)


def test_monotone_profiles_are_followed_until_the_box_ends() -> None:
    places = (np.arange(40) + 0.37) / 40
    H = np.stack([places, -places, np.sqrt(places), places * 0.0])[None]
    found = refined(H, places)[0]
    assert found[0] == 0.0 and found[1] == 1.0 and found[2] == 0.0
    assert 0.0 <= found[3] <= 1.0


def test_an_inner_optimum_is_not_pulled_to_the_end() -> None:
    places = (np.arange(40) + 0.37) / 40
    H = np.stack([np.abs(places - 0.6), np.abs(places - 0.02)])[None]
    found = refined(H, places)[0]
    assert found[0] == pytest.approx(0.6, abs=1 / 40) and found[1] == pytest.approx(
        0.02, abs=1 / 20
    )


def test_improper_tails_do_not_set_the_scale() -> None:
    angle = np.linspace(0.0, np.pi / 2, 30)
    front = np.column_stack([np.cos(angle), np.sin(angle)])
    tail = np.array([[10.0, -1e-9], [4.0, -1e-10], [0.0, 25.0]])
    np.testing.assert_allclose(proper_nadir(front), [1.0, 1.0])
    np.testing.assert_allclose(proper_nadir(np.vstack([front, tail])), [1.0, 1.0])
    convex = np.column_stack([angle**2, (angle[::-1]) ** 2])
    np.testing.assert_allclose(proper_nadir(convex), convex.max(axis=0))
    assert proper_nadir(np.array([[3.0, 4.0]])).tolist() == [3.0, 4.0]


def test_slides_change_only_strong_modulators(known: Known) -> None:
    archive = archive_of(known)
    pool = Slides(Nothing(), size=300).generate(archive, unsure(60), known, rng=rng(8))
    front = archive.U[archive.front_indices]
    distance = np.abs(pool.U[:, None, 1:] - front[None, :, 1:]).max(axis=2).min(axis=1)
    assert distance.max() == 0.0
    assert len(np.unique(pool.U[:, 0])) > 200
    assert set(pool.operator) == {"slide"}


def test_slides_keep_the_pool_of_their_source(known: Known) -> None:
    archive = archive_of(known)
    source = Descents((GradientMoves(starts=4, steps=5),))
    alone = source.generate(archive, unsure(60), known, rng=rng(9))
    both = Slides(source, size=50).generate(archive, unsure(60), known, rng=rng(9))
    np.testing.assert_array_equal(both.U[: len(alone)], alone.U)
    assert len(both) == len(alone) + 50


def test_moves_that_promise_less_than_the_noise_are_dropped() -> None:
    goals = rng(3).uniform(0.2, 0.8, (2, 4))
    for launcher in (ProfileJumps(starts=8, steps=5), GradientMoves(starts=8, steps=5)):
        for model in (Known(goals, noise=1e3), Known(goals, evidence=0.1)):
            pool = Descents((launcher,)).generate(archive_of(model), unsure(60), model, rng=rng(1))
            assert len(pool) == 0


def test_no_place_of_the_cube_is_favoured_on_pure_noise() -> None:
    U = rng(11).random((80, 10))
    F = rng(12).normal(size=(80, 2))
    spec = StructuredGP(few=(TIGHT,), effort=Effort(additive=15, modulated=15, last=25))
    model = spec.fit(U, F, warm=None, rng=rng())
    archive = Archive.of(U, F)
    source = Slides(GENERATORS["jumps"], size=400)
    pool = source.generate(archive, unsure(80), model, rng=rng(13)).U
    others = np.ones(10, dtype=bool)
    for m in model.modulators:
        others[list(m.index)] = False
    for values in (pool.ravel(), pool[:, others].ravel()):
        assert np.mean((values < 1e-3) | (values > 1 - 1e-3)) < 0.03
        assert np.mean(np.abs(values - 0.5) < 1e-3) < 0.02


def test_mirrored_models_give_mirrored_jumps(known: Known) -> None:
    archive = archive_of(known)
    turned = Known(1.0 - known.goals)
    mirrored = Archive.of(1.0 - archive.U, archive.F)
    jumps = ProfileJumps(starts=10, grid=400, times=1)
    a, b = (
        np.stack([jumps.launch(known_by, model, rng=rng(seed)).U for seed in range(5)])
        for known_by, model in ((archive, known), (mirrored, turned))
    )
    # Where two valleys are equally deep, the grid's offset decides.
    apart = np.abs(a - (1.0 - b)) > 0.01
    assert apart.mean() < 0.03


@dataclass(frozen=True, eq=False)
class Limited(Known):
    """A smooth bowl for each objective and, as a third output, sum_i u_i - limit <= 0."""

    limit: float = 3.0
    unsure: float = 1e-6

    def _curve(self, R: Array) -> Array:
        return np.asarray(R**2)

    def posterior(self, U: Array) -> Posterior:
        F = self._curve(U[:, None] - self.goals).sum(axis=2)
        mean = np.hstack([F, U.sum(axis=1, keepdims=True) - self.limit])
        epistemic = np.full_like(mean, 1e-12)
        epistemic[:, 2] = self.unsure**2
        return Posterior(mean, epistemic, np.full_like(mean, self.noise**2))

    def mean_gradient(self, U: Array) -> Array:
        slopes = 2.0 * (U[:, None] - self.goals)
        return np.concatenate([slopes, np.ones((len(U), 1, U.shape[1]))], axis=1)

    def profiles(self, U: Array, weights: Array, grid: Array) -> Array:
        curves = self._curve(grid - self.goals[:, :, None])
        line = np.broadcast_to(grid, (1, self.goals.shape[1], len(grid)))
        return np.asarray(np.einsum("bm,mdg->bdg", weights, np.concatenate([curves, line])))

    @property
    def signal(self) -> Array:
        return np.full(3, self.evidence)


def limited_archive(model: Limited, n: int = 60) -> Archive:
    U = rng(1).random((n, model.goals.shape[1]))
    Y = model.posterior(U).mean
    return Archive.of(U, Y[:, :2], Y[:, 2:])


BOTH = Descents((GradientMoves(), ProfileJumps()))


@pytest.mark.parametrize(("limit", "share"), [(3.0, 0.95), (1.0, 0.6)])
def test_descents_end_at_the_best_place_that_the_constraint_leaves(
    limit: float, share: float
) -> None:
    """With limit 3 a fifth of the archive is feasible, with limit 1 nothing is: a long way back."""
    model = Limited(rng(7).uniform(0.4, 0.85, (2, 8)), limit=limit)
    archive = limited_archive(model)
    feasible = archive.violation == 0
    assert feasible.mean() == pytest.approx(0.2, abs=0.1) if limit == 3.0 else not feasible.any()
    pool = BOTH.generate(archive, unsure(60), model, rng=rng(3))
    Y = model.posterior(pool.U).mean
    assert len(pool) >= 60 and (Y[:, 2] <= 1e-9).mean() > share
    for j in range(2):
        best = minimize(
            lambda u, j=j: ((u - model.goals[j]) ** 2).sum(), np.full(8, 0.1), bounds=[(0, 1)] * 8,
            constraints={"type": "ineq", "fun": lambda u: limit - u.sum()},
        )  # fmt: skip
        inside = Y[Y[:, 2] <= 1e-9, j]
        assert best.fun - 1e-6 <= inside.min() <= best.fun + 0.03


def test_descents_stay_as_far_from_a_constraint_as_the_model_is_unsure_of_it() -> None:
    sure, wary = (
        Limited(rng(7).uniform(0.4, 0.85, (2, 8)), limit=3.0, unsure=u) for u in (1e-6, 0.2)
    )
    left = [
        -model.posterior(BOTH.generate(limited_archive(model), unsure(60), model, rng=rng(3)).U)
        .mean[:, 2]
        for model in (sure, wary)
    ]  # fmt: skip
    assert np.median(left[0]) < 0.05 < 0.1 < np.median(left[1]) < 0.5


def test_a_goal_puts_being_feasible_before_being_good() -> None:
    U, F = rng(0).random((4, 2)), np.array([[0.0, 0.0], [5.0, 5.0], [1.0, 1.0], [2.0, 2.0]])
    archive = Archive.of(U, F, np.array([[0.5], [-0.1], [1.0], [0.0]]))
    goals = Goals.of(archive, 3, rng=rng(1))
    assert goals.nearest(archive.outputs).tolist() == [3, 3, 3]
    values = goals.values(archive.outputs[:3])
    assert values[1] < values[0] < values[2], "feasible, then nearly feasible"
    wary = replace(goals, margin=np.full((3, 1), 1.0))
    assert (wary.excess(archive.outputs[:3]) > 0).all()
    nothing = Archive.of(U, F, np.array([[0.5], [0.1], [1.0], [2.0]]))
    assert set(Goals.of(nothing, 3, rng=rng(1)).nearest(nothing.outputs).tolist()) == {1}
