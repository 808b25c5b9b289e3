from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.exploration import (
    ByStructure,
    Exploration,
    Neighbours,
    Scatter,
    Unmoved,
    neighbours,
    spread,
)
from neuropareto.goals import reference_beyond
from neuropareto.memory import Memory
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, NumericalFailure
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.structured import StructuredGP

CENTRE = 0.5
WIDTHS = Neighbours().widths


class Sure:
    """f = (u_1, 1 - u_1) + squared distance from the centre; draws differ by ``doubt``."""

    def __init__(self, doubt: float = 0.0, limit: float | None = None) -> None:
        self.doubt, self.limit = doubt, limit

    def mean(self, U: Array) -> Array:
        away = np.square(U - CENTRE).sum(axis=1)
        columns = [U[:, 0] + away, 1.0 - U[:, 0] + away]
        if self.limit is not None:
            columns.append(np.abs(U[:, 1] - CENTRE) - self.limit)
        return np.stack(columns, axis=1)

    def posterior(self, U: Array) -> Posterior:
        mean = self.mean(U)
        return Posterior(mean, np.full_like(mean, self.doubt**2), np.zeros_like(mean))

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """The mean tilted by a random slope of size ``doubt`` in every variable and draw."""
        tilt = self.doubt * rng.standard_normal((n, U.shape[1]))
        return np.asarray(self.mean(U) + ((U - CENTRE) @ tilt.T).T[:, :, None])

    def mean_gradient(self, U: Array) -> Array:
        raise NotImplementedError

    @property
    def warm(self) -> Memory:
        return {}

    @property
    def notes(self) -> dict[str, object]:
        return {}


def archive(d: int = 4) -> Archive:
    U = np.random.default_rng(0).random((30, d))
    return Archive.of(U, Sure().mean(U))


RULES = {"draws": Neighbours, "scatter": Scatter}


@pytest.fixture(params=RULES)
def rule(request: pytest.FixtureRequest) -> type[Neighbours] | type[Scatter]:
    return RULES[request.param]


def moved(batch: Array, model: Sure, rule: Exploration) -> Array:
    known = archive(batch.shape[1])
    return rule.moved(batch, known, model, pending=np.empty((0, 2)), rng=np.random.default_rng(0))


def steps(batch: Array, model: Sure, rule: Exploration) -> Array:
    return np.asarray(np.abs(moved(batch, model, rule) - batch).max(axis=1))


BEST = np.column_stack([np.linspace(0.1, 0.9, 10), np.full((10, 3), CENTRE)])


def test_unmoved_returns_the_batch() -> None:
    same = Unmoved().moved(
        BEST, archive(), Sure(), pending=np.empty((0, 2)), rng=np.random.default_rng(0)
    )
    assert same is BEST


def test_half_of_the_batch_moves_where_the_surrogate_is_unsure(
    rule: type[Neighbours] | type[Scatter],
) -> None:
    # The point itself competes, so one or the other may stay.
    half = np.flatnonzero(steps(BEST, Sure(doubt=0.3), rule(share=0.5)))
    assert 4 <= len(half) <= 5 and len(set(half % 2)) == 1
    assert (steps(BEST, Sure(doubt=0.3), rule(share=1.0)) > 0).sum() >= 8
    assert (steps(BEST, Sure(doubt=0.3), rule(share=0.0)) > 0).sum() == 0


def test_steps_grow_with_the_doubt_and_vanish_with_it(
    rule: type[Neighbours] | type[Scatter],
) -> None:
    sizes = [
        steps(BEST, Sure(doubt=doubt), rule(share=1.0)).mean() for doubt in (0.0, 0.01, 0.1, 0.5)
    ]
    assert sizes[0] < 0.02
    assert sizes[1] < sizes[2] < sizes[3]


def test_the_batch_spreads_across_the_front(rule: type[Neighbours] | type[Scatter]) -> None:
    after = moved(BEST, Sure(doubt=0.2), rule(share=1.0))
    assert BEST[:, 1:].std() == 0.0
    assert after[:, 1:].std() > 0.01


def test_constraints_may_hold_at_the_new_places(rule: type[Neighbours] | type[Scatter]) -> None:
    batch = BEST.copy()
    batch[:, 2:] += 0.2
    tight = moved(batch, Sure(doubt=0.005, limit=0.005), rule(share=1.0))
    free = moved(batch, Sure(doubt=0.005), rule(share=1.0))
    assert np.abs(free[:, 1] - CENTRE).max() > 0.01 >= np.abs(tight[:, 1] - CENTRE).max()


def test_pending_points_count_as_part_of_the_front(rule: type[Neighbours] | type[Scatter]) -> None:
    """Where a pending point dominates everything near, no neighbour gains and all stay."""
    at = archive()
    stay = rule(share=1.0).moved(
        BEST, at, Sure(doubt=0.01), pending=np.array([[-1.0, -1.0]]), rng=np.random.default_rng(0)
    )
    assert np.array_equal(stay, BEST)


class Broken(Sure):
    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        raise NumericalFailure("no factor")


class Wild(Sure):
    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.full((n, len(U), 2), np.inf)


@pytest.mark.parametrize("model", [Broken(), Wild()])
def test_a_surrogate_that_cannot_be_drawn_from_moves_nothing(model: Sure) -> None:
    assert np.array_equal(moved(BEST, model, Neighbours(share=1.0)), BEST)


class Undefined(Sure):
    def posterior(self, U: Array) -> Posterior:
        known = super().posterior(U)
        return Posterior(known.mean, np.full_like(known.mean, np.nan), known.aleatoric)


def test_a_surrogate_that_does_not_know_its_doubt_moves_nothing() -> None:
    assert np.array_equal(moved(BEST, Undefined(), Scatter(share=1.0)), BEST)


def test_a_point_moves_as_far_as_it_might_still_be_as_good() -> None:
    """One deviation better than its mean, the new place gains what was promised; beyond it, not."""
    model, at = Sure(doubt=0.02), archive()
    reference = reference_beyond(at, model.mean(BEST))
    rule = Scatter(share=0.2)
    after = rule.moved(BEST, at, model, pending=np.empty((0, 2)), rng=np.random.default_rng(3))
    rows = np.flatnonzero((after != BEST).any(axis=1))
    assert len(rows) == 2
    for i in rows:
        others = np.concatenate([at.front, np.delete(model.mean(BEST), i, axis=0)])

        def gain(F: Array, others: Array = others) -> float:
            return float(pareto.improvement(F, others, reference)[0])

        promised = gain(model.mean(BEST[i : i + 1]))
        here = after[i : i + 1]
        twice = BEST[i : i + 1] + 3.0 * (here - BEST[i : i + 1])
        assert gain(model.mean(here) - 0.02) >= promised > gain(model.mean(twice) - 0.02)


class Structured(Sure):
    def __init__(self, doubt: float, unexplained: list[float]) -> None:
        super().__init__(doubt)
        self.signal, self.density = np.array([2.0, 2.0]), np.array([3.0, 2.0])
        self.unexplained = np.array(unexplained)


@pytest.mark.parametrize(
    ("unexplained", "known"), [([1e-4, 4e-3], True), ([1e-4, 6e-3], False), ([1.0, 1.0], False)]
)
def test_batches_scatter_where_the_structure_explains_nearly_everything(
    unexplained: list[float], known: bool
) -> None:
    apart, near = Scatter(share=1.0), Unmoved()
    model = Structured(0.2, unexplained)
    after = moved(BEST, model, ByStructure(apart, near))
    assert np.array_equal(after, moved(BEST, model, apart if known else near))


def test_a_surrogate_without_structure_is_explored_nearby() -> None:
    rule = ByStructure(apart=Scatter(share=1.0), near=Unmoved())
    assert np.array_equal(moved(BEST, Sure(doubt=0.2), rule), BEST)


def test_with_constraints_batches_stay_near() -> None:
    at = archive()
    bound = Archive.of(at.U, at.F, np.full((len(at), 1), -1.0))
    rule = ByStructure(apart=Scatter(share=1.0), near=Unmoved())
    model = Structured(0.2, [1e-4, 1e-4])

    def after(known: Archive) -> Array:
        none = np.empty((0, 2))
        return rule.moved(BEST, known, model, pending=none, rng=np.random.default_rng(0))

    assert np.array_equal(after(bound), BEST) and not np.array_equal(after(at), BEST)


@given(st.integers(1, 40), st.floats(0.0, 1.0), st.floats(0.0, 1.0, exclude_max=True))
def test_the_share_is_kept_to_within_one(q: int, share: float, phase: float) -> None:
    rows = spread(q, share, phase)
    assert len(set(rows.tolist())) == len(rows)
    assert abs(len(rows) - share * q) < 1.0 + 1e-9
    assert ((rows >= 0) & (rows < q)).all()


def test_single_points_are_explored_half_of_the_time() -> None:
    phases = (np.arange(1000) + 0.5) / 1000
    assert sum(len(spread(1, 0.5, phase)) for phase in phases) == 500


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(0, 2**31))
def test_neighbours_stay_in_the_cube_and_reach_no_new_face(u: list[float], seed: int) -> None:
    point = np.array(u)
    V = neighbours(point, 64, (0.05, 0.6), rng=np.random.default_rng(seed))
    assert V.shape == (64, len(u))
    assert ((V >= 0.0) & (V <= 1.0)).all()
    inside = (point > 0.0) & (point < 1.0)
    assert not ((V == 0.0) | (V == 1.0))[:, inside].any()


def test_variables_at_their_ends_stay_there() -> None:
    V = neighbours(np.array([0.0, 0.5, 1.0]), 64, WIDTHS, rng=np.random.default_rng(0))
    assert (V[:, 0] == 0.0).all() and (V[:, 2] == 1.0).all() and V[:, 1].std() > 0.01


def test_neighbours_lie_evenly_around_their_point() -> None:
    V = neighbours(np.array([0.4]), 20_000, WIDTHS, rng=np.random.default_rng(0))
    assert abs((V < 0.4).mean() - 0.5) < 0.02


@pytest.mark.parametrize("surrogate", [StructuredGP(), ExactGP()])
def test_real_surrogates_are_explored_reproducibly(surrogate: StructuredGP | ExactGP) -> None:
    known = archive(5)
    model = surrogate.fit(known.U, known.F, warm=None, rng=np.random.default_rng(0))
    batch = known.U[known.front_indices][:4]

    def once(seed: int) -> Array:
        return Neighbours().moved(
            batch, known, model, pending=np.empty((0, 2)), rng=np.random.default_rng(seed)
        )

    assert np.array_equal(once(1), once(1))
    assert not np.array_equal(once(1), once(2))
