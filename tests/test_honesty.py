"""Nothing may favour a place of the box as such: the centre, the faces, the corners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from neuropareto import NeuroPareto, Optimizer, minimize, pareto, problem
from neuropareto.problem import Problem
from neuropareto.problems import mirrored, permuted, translated
from neuropareto.space import Array

D = 8
Values = Callable[[Array, np.random.Generator], Array]


def constant(X: Array, rng: np.random.Generator) -> Array:
    return np.ones((len(X), 2))


def noise(X: Array, rng: np.random.Generator) -> Array:
    return rng.standard_normal((len(X), 2))


def proposals(values: Values, seed: int) -> Array:
    """Three batches of ten after a start design of 40."""
    optimizer = Optimizer([(0, 1)] * D, 2, NeuroPareto(), seed=seed, n_initial=40)
    rng = np.random.default_rng(100 + seed)
    found = []
    for n in (40, 10, 10, 10):
        batch = optimizer.ask(n)
        optimizer.tell(batch, values(batch.X, rng))
        found.append(batch.X)
    return np.concatenate(found[1:])


@pytest.mark.parametrize(
    ("values", "seeds"),
    [(constant, 2), (noise, 1), pytest.param(noise, 6, marks=pytest.mark.slow)],
)
def test_without_anything_to_learn_no_place_is_favoured(values: Values, seeds: int) -> None:
    X = np.concatenate([proposals(values, seed) for seed in range(seeds)])
    on_face = (X < 1e-3) | (X > 1 - 1e-3)
    assert on_face.mean() < 0.05
    assert on_face.mean(axis=1).max() <= 0.5, "no corners"
    assert np.mean(np.abs(X - 0.5) < 0.02) < 0.08, "twice what is uniform"
    assert 0.1 < np.mean((X < 0.1) | (X > 0.9)) < 0.35, "0.2 is uniform"


def turned(task: Problem, seed: int) -> dict[str, Problem]:
    return {
        "plain": task,
        "mirrored": mirrored(task, seed=seed),
        "permuted": permuted(task, seed=seed),
        "translated": translated(task, seed=seed),
    }


@pytest.mark.slow
def test_mirror_images_permutations_and_translations_are_as_easy() -> None:
    """DTLZ2's optimum is the centre of the box, but for the translated copy."""
    task = problem("dtlz2", d=10)
    assert task.front is not None
    front = task.front()
    distances: dict[str, list[float]] = {}
    for seed in range(3):
        for name, copy in turned(task, seed).items():
            result = minimize(copy, budget=90, n_initial=40, batch=10, seed=seed, progress=False)
            distances.setdefault(name, []).append(pareto.igd(result.F, front))
    medians = {name: float(np.median(values)) for name, values in distances.items()}
    assert max(medians.values()) < 2.0 * min(medians.values()), distances
    assert max(medians.values()) < 0.1, distances
