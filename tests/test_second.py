from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuropareto import NeuroPareto, Optimizer, minimize, pareto
from neuropareto.acquisition import History
from neuropareto.archive import Archive
from neuropareto.candidates import Pool
from neuropareto.classifier import RankBelief
from neuropareto.exploration import Unmoved
from neuropareto.memory import Memory, part
from neuropareto.moves import Descents, GradientMoves, ProfileJumps, Slides
from neuropareto.past import Past
from neuropareto.second import Alone, SecondOpinion, SharedBatch, weight
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, NumericalFailure
from neuropareto.surrogate.contract import Fitted, Posterior

D = 4
K = 3
WIDTH = 3 * 2 + K + 2
NOBODY = np.empty((0, D))
NOTHING_KEPT = History.empty(D, 2)


def bowls(U: Array) -> Array:
    """Two bowls: around 0.3 and 0.6 in every variable."""
    return np.stack([np.square(U - 0.3).sum(axis=1), np.square(U - 0.6).sum(axis=1)], axis=1)


class First:
    """A first model that explains its data with a given density; nobody asks it anything else."""

    def __init__(self, density: float, signal: float = 1.0, unexplained: float = 0.02) -> None:
        self.density, self.signal = np.array([9.0, density]), np.array([2.0, signal])
        self.unexplained = np.array([1e-6, unexplained])

    def posterior(self, U: Array) -> Posterior:
        raise AssertionError

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        raise AssertionError

    def mean_gradient(self, U: Array) -> Array:
        raise AssertionError

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class Rung:
    """A model inside another one, as on the ladder."""

    model: Fitted

    def posterior(self, U: Array) -> Posterior:
        return self.model.posterior(U)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return self.model.samples(U, n, rng=rng)

    def mean_gradient(self, U: Array) -> Array:
        return self.model.mean_gradient(U)

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


class Even:
    """A classifier without an opinion."""

    def predict(self, U: Array) -> RankBelief:
        n = len(U)
        return RankBelief(np.full((n, K), 1.0 / K), np.zeros(n), np.zeros(n, dtype=np.int64))

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


@dataclass(frozen=True)
class Broken:
    """A surrogate that cannot be fitted."""

    def fit(self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator) -> Fitted:
        raise NumericalFailure("nothing to be done")


def design(n: int = 30) -> Archive:
    U = np.random.default_rng(0).random((n, D))
    return Archive.of(U, bowls(U))


def told(
    new: Array, F: Array, first: Array, second: Array, own: list[int]
) -> tuple[History, Past, Archive]:
    """An archive with ``new`` points of objectives F, forecast by both models; ``own`` are its own."""
    start = design()
    archive = Archive.of(np.concatenate([start.U, new]), np.concatenate([start.F, F]))
    features = np.concatenate([first, np.zeros((len(new), WIDTH - 2))], axis=1)
    flag = np.zeros(len(new))
    flag[own] = 1.0
    past = Past(History(new, features, np.zeros(len(new))))
    return History(new, second, flag), past, archive


def batch_of(
    q: int,
    opinion: SecondOpinion,
    density: float = 0.0,
    kept: History = NOTHING_KEPT,
    unexplained: float = 0.02,
) -> SharedBatch:
    U = np.random.default_rng(1).random((q, D))
    past = Past(History.empty(D, WIDTH))
    return opinion.joined(
        U, kept, past, design(), Rung(First(density, unexplained=unexplained)), Even(),
        pending=NOBODY, rng=np.random.default_rng(2),
    )  # fmt: skip


def test_a_part_of_a_batch_is_the_second_models() -> None:
    batch = batch_of(10, SecondOpinion())
    U = np.random.default_rng(1).random((10, D))
    own = np.isin(np.arange(10), batch.second)
    assert own.sum() == 3
    np.testing.assert_array_equal(batch.U[~own], U[~own])
    # Its points are better than any of the design: the bowls are easy for a plain GP.
    assert pareto.improvement(bowls(batch.U[own]), design().front, np.array([3.0, 3.0])).min() > 0
    np.testing.assert_array_equal(batch.kept.U, batch.U)
    np.testing.assert_array_equal(batch.kept.estimate, own)
    np.testing.assert_allclose(batch.kept.features, bowls(batch.U), atol=0.3)


def test_a_first_model_that_explains_everything_is_not_doubted() -> None:
    batch = batch_of(10, SecondOpinion(), density=2.1)
    assert len(batch.second) == 0 and len(batch.kept) == 0
    # Unless it has been before.
    U = np.random.default_rng(3).random((2, D))
    before = History(U, bowls(U), np.ones(2))
    assert batch_of(10, SecondOpinion(), density=2.1, kept=before).second.tolist() != []


def test_a_first_model_whose_structure_leaves_next_to_nothing_is_not_doubted() -> None:
    U = np.random.default_rng(3).random((2, D))
    before = History(U, bowls(U), np.ones(2))
    for unexplained, silent in ((4e-3, True), (6e-3, False)):
        batch = batch_of(10, SecondOpinion(), kept=before, unexplained=unexplained)
        assert (len(batch.second) == 0) == silent
        assert (len(batch.kept) == 2) == silent  # what it knew before stays


def test_where_the_first_model_finds_only_noise_nobody_is_asked() -> None:
    U, past = np.random.default_rng(1).random((10, D)), Past(History.empty(D, WIDTH))
    batch = SecondOpinion().joined(
        U, NOTHING_KEPT, past, design(), Rung(First(0.0, signal=0.2)), Even(),
        pending=NOBODY, rng=np.random.default_rng(2),
    )  # fmt: skip
    assert batch.U is U and len(batch.second) == 0 and len(batch.kept) == 0


def test_the_weight_of_a_forecaster() -> None:
    rng = np.random.default_rng(0)
    y, error = rng.standard_normal((40, 2)), rng.standard_normal((40, 2))
    units = np.ones(2)

    def of(s: Array, e: Array, inertia: float = 0.0) -> float:
        return weight(np.stack([y, s, e], axis=1), units, inertia, 0.4)

    assert of(y, y + error) == 0.0 and of(y + error, y) == 1.0
    assert of(y + error, y - error) == pytest.approx(0.5)
    assert of(y + error, y, inertia=1e9) == pytest.approx(0.4)
    # An objective that both know is not asked: the first errs by a billionth, the second by less.
    s, e = y.copy(), y + error
    s[:, 1], e[:, 1] = y[:, 1] + 1e-9 * error[:, 1], y[:, 1]
    assert of(s, e) == pytest.approx(0.0, abs=1e-6)
    assert weight(np.empty((0, 3, 2)), units, 5.0, 0.4) == 0.4


def test_without_a_usable_second_model_the_batch_stays() -> None:
    batch = batch_of(5, SecondOpinion(surrogate=Broken()))
    np.testing.assert_array_equal(batch.U, np.random.default_rng(1).random((5, D)))
    assert len(batch.second) == 0
    # A first model of unknown density is no structured one: the second would be the same again.
    same = Rung(ExactGP().fit(design().U, design().F, warm=None, rng=np.random.default_rng(0)))
    U = batch.U
    past = Past(History.empty(D, WIDTH))
    found = SecondOpinion().joined(
        U, NOTHING_KEPT, past, design(), same, Even(), pending=NOBODY, rng=np.random.default_rng(0)
    )
    assert len(found.second) == 0


@dataclass(frozen=True)
class One:
    """A generator with a single candidate."""

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        return Pool(np.full((1, D), 0.4), np.array(["one"]))


def test_with_fewer_candidates_than_places_the_first_model_keeps_the_rest() -> None:
    still = SecondOpinion(candidates=One(), exploration=Unmoved())
    batch = batch_of(10, still)
    assert len(batch.second) == 1
    np.testing.assert_array_equal(batch.U[batch.second], np.full((1, D), 0.4))


def test_single_points_take_turns() -> None:
    start, past = design(100), Past(History.empty(D, WIDTH))
    turns = []
    for n in range(60, 100):
        archive = Archive.of(start.U[:n], start.F[:n])
        batch = SecondOpinion().joined(
            start.U[n - 1 : n], NOTHING_KEPT, past, archive, Rung(First(0.0)), Even(),
            pending=NOBODY, rng=np.random.default_rng(n),
        )  # fmt: skip
        turns.append(len(batch.second))
    assert 4 <= sum(turns) <= 20 and max(turns) == 1


def test_who_forecasts_better_and_gains_more_gets_more() -> None:
    rng = np.random.default_rng(5)
    new = rng.random((20, D))
    F = 10.0 + bowls(new)  # nobody gains anything
    wrong = F + rng.choice([-1.0, 1.0], size=F.shape)
    own = list(range(0, 20, 2))
    opinion = SecondOpinion()
    right_first = opinion.share(*told(new, F, F, wrong, own))
    right_second = opinion.share(*told(new, F, wrong, F, own))
    assert right_first < 0.15 < 0.6 < right_second
    # The same forecasts, but only one of the two has found anything better than the design.
    good = F.copy()
    good[own] -= 12.0
    theirs = opinion.share(*told(new, good, wrong, wrong, own))
    others = [i for i in range(20) if i not in own]
    assert theirs == opinion.most
    assert theirs > 5.0 * opinion.share(*told(new, good, wrong, wrong, others))


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_a_share_is_a_share(seed: int, b: int) -> None:
    rng = np.random.default_rng(seed)
    new, F = rng.random((b, D)), rng.standard_normal((b, 2)) * 10.0 ** rng.integers(-8, 8)
    own = [i for i in range(b) if rng.random() < 0.5]
    first, second = (F + rng.standard_normal((b, 2)) for _ in range(2))
    share = SecondOpinion().share(*told(new, F, first, second, own))
    assert 0.0 < share <= SecondOpinion().most


def test_before_anything_is_known_the_share_is_the_first_one() -> None:
    past = Past(History.empty(D, WIDTH))
    for start in (0.3, 0.5):
        assert SecondOpinion(start=start).share(NOTHING_KEPT, past, design()) == start
    assert SecondOpinion(start=0.9).share(NOTHING_KEPT, past, design()) == SecondOpinion().most


def coupled(d: int, seed: int) -> tuple[Array, Array, Array]:
    """Two ill-conditioned bowls on other axes: matrices (d, d) and centres."""
    rng = np.random.default_rng(seed)
    scales = np.sqrt(np.geomspace(1.0, 30.0, d))
    A, B = (np.linalg.qr(rng.standard_normal((d, d)))[0] * scales for _ in range(2))
    a = rng.uniform(0.2, 0.8, size=d)
    return A, B, a


def test_a_round_notes_and_remembers_the_second_opinion() -> None:
    A, B, a = coupled(8, 0)
    search = replace(
        NeuroPareto(),
        candidates=Slides(Descents((GradientMoves(8, 20), ProfileJumps(8))), size=50),
    )
    o = Optimizer([(0, 1)] * 8, 2, search, seed=0, n_initial=60)
    for n in (60, 10, 10):
        batch = o.ask(n)
        F = np.stack([np.square((batch.X - a) @ M).sum(axis=1) for M in (A, B)], axis=1)
        o.tell(batch, F + np.array([0.0, 0.1]))
    count = [note["operators"].count("second") for note in o.notes if "operators" in note]
    assert len(count) == 2 and all(0 <= k <= 10 for k in count) and count[0] > 0
    for note in o.notes[-2:]:
        pairs = zip(note["operators"], note["moved"], strict=True)
        assert all(moved == 0.0 for operator, moved in pairs if operator == "second")
    assert o.memory is not None
    kept = part(o.memory, "second")
    assert kept is not None and kept["estimate"].sum() == sum(count) and len(kept["U"]) == 20


def test_the_papers_pipeline_has_one_model() -> None:
    assert isinstance(NeuroPareto.paper().second, Alone)


@pytest.mark.slow
def test_a_coupled_quadratic_is_searched_better_with_a_second_opinion() -> None:
    ratios = []
    for seed in range(3):
        A, B, a = coupled(30, seed)
        b = np.clip(a + 0.15 * np.random.default_rng(seed + 50).standard_normal(30), 0.05, 0.95)

        def f(x: Array, A: Array = A, B: Array = B, a: Array = a, b: Array = b) -> list[float]:
            return [float(np.square((x - c) @ M).sum()) for M, c in ((A, a), (B, b))]

        volumes = []
        for second in (SecondOpinion(), Alone()):
            search = replace(NeuroPareto(), second=second)
            found = minimize(
                f, [(0, 1)] * 30, n_objectives=2, algorithm=search, budget=200, n_initial=100,
                seed=seed, progress=False,
            )  # fmt: skip
            volumes.append(pareto.hypervolume(found.F, np.array([10.0, 10.0])))
        ratios.append((100.0 - volumes[0]) / (100.0 - volumes[1]))
    assert np.median(ratios) < 0.9


def test_where_the_first_model_is_never_doubted_a_run_is_the_same_bit_for_bit() -> None:
    def points(second: Alone | SecondOpinion) -> Array:
        o = Optimizer([(0, 1)] * 6, 2, replace(NeuroPareto(), second=second), seed=1, n_initial=25)
        for n in (25, 5, 5):
            batch = o.ask(n)
            o.tell(batch, bowls(batch.X))
        return np.asarray(o.archive.U)

    np.testing.assert_array_equal(points(SecondOpinion(satisfied=-np.inf)), points(Alone()))
