from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from neuropareto import NSGA2, Optimizer, RandomSearch, pareto
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm

D, POPULATION, GENERATIONS, SEEDS = 30, 40, 15, 24


def zdt1(X: Array) -> Array:
    g = 1 + 9 * X[:, 1:].mean(axis=1)
    return np.stack([X[:, 0], g * (1 - np.sqrt(X[:, 0] / g))], axis=1)


@pytest.mark.parametrize("algorithm", [NSGA2(), NSGA2(population=4), RandomSearch()])
def test_the_algorithm_exam(algorithm: NSGA2 | RandomSearch) -> None:
    check_algorithm(algorithm)


def ours(seed: int) -> Array:
    o = Optimizer([(0, 1)] * D, 2, NSGA2(POPULATION), seed=seed, n_initial=POPULATION)
    for _ in range(GENERATIONS):
        batch = o.ask(POPULATION)
        o.tell(batch, zdt1(batch.X))
    return o.F


def pymoos(seed: int) -> Array:
    minimize = pytest.importorskip("pymoo.optimize").minimize
    from pymoo.algorithms.moo.nsga2 import NSGA2 as Theirs
    from pymoo.operators.sampling.lhs import LHS
    from pymoo.problems import get_problem

    theirs = Theirs(pop_size=POPULATION, sampling=LHS())
    # pymoo's default tournament asks for dominance; the published one, and ours, for rank.
    theirs.tournament_type = "comp_by_rank_and_crowding"
    result = minimize(
        get_problem("zdt1", n_var=D), theirs, ("n_gen", GENERATIONS), seed=seed, save_history=True
    )
    return np.concatenate([generation.off.get("F") for generation in result.history])


def test_it_equals_pymoos_in_distribution_on_zdt1_30d() -> None:
    reference = np.array([1.1, 11.0])
    a = [pareto.hypervolume(ours(s), reference) for s in range(SEEDS)]
    b = [pareto.hypervolume(pymoos(s), reference) for s in range(SEEDS)]
    random = pareto.hypervolume(zdt1(np.random.default_rng(0).random((600, D))), reference)
    assert min(a) > random and min(b) > random
    assert mannwhitneyu(a, b).pvalue > 0.01, (np.median(a), np.median(b))


def test_survivors_are_the_generational_ones() -> None:
    """With q = N each call selects from parents and children only, as the published loop does."""
    o = Optimizer([(0, 1)] * 5, 2, NSGA2(10), seed=1, n_initial=10)
    for _ in range(3):
        batch = o.ask(10)
        o.tell(batch, zdt1(batch.X))
    o.ask(10)
    assert o.memory is not None
    survivors = o.memory["population"]
    rest = np.setdiff1d(np.arange(20, 30), survivors)
    ranks = pareto.ranks(o.archive.F[np.concatenate([survivors, rest])])
    assert ranks[: len(survivors)].max() <= ranks[len(survivors) :].min() + 1
