from __future__ import annotations

import numpy as np
import pytest

from neuropareto.memory import Memory
from neuropareto.moves import profiled
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP
from neuropareto.surrogate.hedged import FittedHedged, Hedged, earned
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured.training import TIGHT, Effort
from neuropareto.testing.surrogate import check_surrogate, stored

QUICK = Hedged(
    StructuredGP(
        few=(TIGHT,), many=(TIGHT,), effort=Effort(additive=6, modulated=6, last=10, warm=4)
    ),
    ExactGP(iterations=15),
)


def fitted(U: Array, F: Array, warm: Memory | None = None) -> FittedHedged:
    return QUICK.fit(U, F, warm=warm, rng=np.random.default_rng(0))


def rows(y: float, s: float, e: float, n: int = 40) -> Array:
    return np.tile(np.array([y, s, e])[None, :, None], (n, 1, 1))


def test_the_share_goes_to_the_better_forecaster() -> None:
    assert earned(np.empty((0, 3, 2)), 5.0).tolist() == [0.0, 0.0]
    assert earned(rows(1.0, 1.0, 3.0), 5.0).tolist() == [0.0]
    assert earned(rows(3.0, 1.0, 3.0), 0.0) == pytest.approx([1.0])
    assert earned(rows(2.0, 1.0, 3.0), 0.0) == pytest.approx([0.5])
    assert earned(rows(-1.0, 1.0, 3.0), 0.0).tolist() == [0.0], "never beyond the two"
    assert 0.7 < earned(rows(3.0, 1.0, 3.0), 5.0)[0] < 1.0, "the structure is given some rows"


def test_the_share_knows_no_units_and_no_single_row_decides() -> None:
    some = np.concatenate([rows(2.0, 1.0, 3.0, 20), rows(2e9, 1e9, 1e9 - 1.0, 1)])
    assert earned(some, 5.0)[0] == pytest.approx(earned(some[:20], 5.0)[0], abs=0.02)
    assert earned(1e6 * some, 5.0) == pytest.approx(earned(some, 5.0))


@pytest.mark.slow
def test_the_surrogate_exam() -> None:
    check_surrogate(QUICK)


def test_without_experience_it_is_the_structure() -> None:
    U = np.random.default_rng(0).random((20, 3))
    F = np.stack([U.sum(axis=1), (U**2).sum(axis=1)], axis=1)
    model = fitted(U, F)
    assert model.share.tolist() == [0.0, 0.0] and profiled(model) is model
    V = np.random.default_rng(1).random((5, 3))
    assert np.array_equal(model.posterior(V).mean, model.structure.posterior(V).mean)
    assert np.array_equal(model.mean_gradient(V), model.structure.mean_gradient(V))


def test_shares_are_learnt_from_arrivals_and_kept_in_memory() -> None:
    """An oblique valley needs the smooth model; a sum of curves does not."""
    rng = np.random.default_rng(2)
    U = rng.random((110, 5))
    across = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    oblique = np.exp(-8.0 * ((U - 0.5) @ across[:, 0]) ** 2) * np.cos(6 * (U - 0.5) @ across[:, 1])
    F = np.stack([oblique, np.sin(3 * U).sum(axis=1)], axis=1)
    memory, model = None, None
    for n in (80, 90, 100, 110):
        model = fitted(U[:n], F[:n], memory)
        memory = stored(model.warm)
    assert model is not None and len(model.forecasts) == 30
    assert model.share[0] > 0.15 > model.share[1]
    y, s, e = model.forecasts[:, :, 0].T
    mixed = (1 - model.share[0]) * s + model.share[0] * e
    assert np.mean((y - mixed) ** 2) < np.mean((y - s) ** 2)
    V = rng.random((6, 5))
    first, second, both = (m.posterior(V) for m in (model.structure, model.smooth, model))
    assert both.mean == pytest.approx((1 - model.share) * first.mean + model.share * second.mean)
    assert (both.epistemic >= np.minimum(first.epistemic, second.epistemic)).all()


def test_other_data_begin_anew() -> None:
    rng = np.random.default_rng(3)
    U = rng.random((24, 3))
    F = np.stack([U.sum(axis=1), (U**2).sum(axis=1)], axis=1)
    warm = fitted(U[:20], F[:20]).warm
    assert len(fitted(U, F, warm).forecasts) == 4
    assert len(fitted(U, F + 1.0, warm).forecasts) == 0
    assert len(fitted(rng.random((24, 4)), F, warm).forecasts) == 0
    assert len(fitted(U, F[:, :1], warm).forecasts) == 0
