"""The classifier exam: what every implementation of ``Classifier.fit`` and ``predict`` must do.

Shapes and ranges of the belief, determinism, purity, tiny and one-class data, absent classes, warm
starts that survive storage and may be useless, notes that are JSON, immutable inputs, untouched
global generators, and that something is learnt.
"""

from __future__ import annotations

import io
import json
import random

import numpy as np
import numpy.typing as npt
import torch

from neuropareto.classifier import Classifier, FittedClassifier, RankBelief
from neuropareto.memory import Memory
from neuropareto.space import Array

Labels = npt.NDArray[np.int64]


def layered(n: int, d: int, k: int, seed: int = 0) -> tuple[Array, Labels]:
    """n points whose class 1..k grows with their first coordinate; read-only."""
    U = np.random.default_rng([seed, n, d]).random((n, d))
    labels = 1 + np.minimum((U[:, 0] * k).astype(np.int64), k - 1)
    U.setflags(write=False)
    labels.setflags(write=False)
    return U, labels


def stored(memory: Memory) -> Memory:
    """``memory`` after a round trip through a file without pickle."""
    file = io.BytesIO()
    np.savez(file, **dict(memory))  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        return {name: read[name] for name in read.files}


def check_classifier(spec: Classifier) -> None:
    """Run the whole exam."""
    U, labels = layered(80, 4, spec.k)
    before = _global_states()
    fitted = _fitted(spec, U, labels)
    check_belief(fitted.predict(U), len(U), spec.k)
    assert _global_states() == before, "fit or predict touched a global generator"
    json.dumps(dict(fitted.notes), allow_nan=False)
    _check_purity(spec, fitted, U, labels)
    _check_warm(spec, fitted, U, labels)
    _check_scarce_data(spec)
    _check_learning(spec, fitted)


def check_belief(belief: RankBelief, n: int, k: int) -> None:
    """Shapes and ranges of one belief."""
    assert belief.probability.shape == (n, k), f"probability has {belief.probability.shape}"
    assert belief.epistemic.shape == (n,), f"epistemic has shape {belief.epistemic.shape}"
    assert belief.passes.shape == (n,), f"passes has shape {belief.passes.shape}"
    assert (belief.probability >= 0).all(), "a probability is negative or NaN"
    assert np.allclose(belief.probability.sum(axis=1), 1.0), "probabilities do not sum to 1"
    assert (belief.epistemic >= 0).all(), "an information gain is negative or NaN"
    assert (belief.epistemic <= np.log(k) + 1e-9).all(), "an information gain exceeds log K"
    assert belief.passes.dtype.kind == "i" and (belief.passes >= 1).all(), "passes must be >= 1"


def _check_purity(spec: Classifier, fitted: FittedClassifier, U: Array, labels: Labels) -> None:
    other = layered(30, U.shape[1], spec.k, seed=1)[0]
    first, elsewhere = fitted.predict(U), fitted.predict(other)
    _same(first, fitted.predict(U.copy()), "the same points asked twice")
    for seed in range(2, 12):  # enough to push anything out of a small cache
        fitted.predict(layered(3, U.shape[1], spec.k, seed)[0])
    _same(first, fitted.predict(U), "the same points asked later")
    _same(elsewhere, fitted.predict(other), "other points asked later")
    _same(first, _fitted(spec, U, labels).predict(U), "the same fit")
    some = fitted.predict(U[::3])
    assert np.allclose(some.probability, first.probability[::3], atol=1e-4), (
        "a belief about a point depends on the points asked with it"
    )
    check_belief(fitted.predict(U[:0]), 0, spec.k)


def _check_warm(spec: Classifier, fitted: FittedClassifier, U: Array, labels: Labels) -> None:
    for name, array in fitted.warm.items():
        assert array.dtype.kind in "biuf", f"warm {name!r} has dtype {array.dtype}"
    memory = stored(fitted.warm)
    _same(
        _fitted(spec, U, labels, memory).predict(U),
        _fitted(spec, U, labels, fitted.warm).predict(U),
        "a stored and a live warm start",
    )
    wider, its_labels = layered(20, U.shape[1] + 1, spec.k)
    check_belief(_fitted(spec, wider, its_labels, memory).predict(wider), 20, spec.k)


def _check_scarce_data(spec: Classifier) -> None:
    for n in (1, 2, 3):
        U, labels = layered(n, 3, spec.k)
        check_belief(_fitted(spec, U, labels).predict(U), n, spec.k)
    U = layered(25, 3, spec.k)[0]
    for only in (1, spec.k):
        fitted = _fitted(spec, U, np.full(25, only))
        belief = fitted.predict(U)
        check_belief(belief, 25, spec.k)
        assert (belief.probability.argmax(axis=1) + 1 == only).all(), "the only class must win"
        json.dumps(dict(fitted.notes), allow_nan=False)
    ends = np.where(U[:, 0] < 0.5, 1, spec.k)
    check_belief(_fitted(spec, U, ends).predict(U), 25, spec.k)


def _check_learning(spec: Classifier, fitted: FittedClassifier) -> None:
    U, labels = layered(200, 4, spec.k, seed=3)
    expected_rank = fitted.predict(U).probability @ np.arange(1, spec.k + 1)
    correlation = np.corrcoef(expected_rank, labels)[0, 1]
    assert correlation > 0.5, f"the classes of an easy problem were not learnt ({correlation:.2f})"


def _fitted(
    spec: Classifier, U: Array, labels: Labels, warm: Memory | None = None
) -> FittedClassifier:
    return spec.fit(U, labels, warm=warm, rng=np.random.default_rng(5))


def _same(a: RankBelief, b: RankBelief, what: str) -> None:
    same = np.array_equal(a.probability, b.probability) and np.array_equal(a.passes, b.passes)
    assert same and np.array_equal(a.epistemic, b.epistemic), f"{what} must give the same belief"


def _global_states() -> tuple[str, str, bytes]:
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002
    return repr(legacy), repr(random.getstate()), torch.get_rng_state().numpy().tobytes()
