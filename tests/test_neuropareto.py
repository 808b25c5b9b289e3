from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from neuropareto import NeuroPareto, Optimizer, minimize, pareto
from neuropareto.ablations import ABLATIONS, INGREDIENTS
from neuropareto.acquisition import LearnedAcquisition, SurrogateEstimate
from neuropareto.candidates import Pool, RankConditioned, Several, SurrogateDescent
from neuropareto.classifier import RankClassifier
from neuropareto.problems import problem
from neuropareto.screening import TwoStage
from neuropareto.selection import Daring
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP, FourierProxy
from neuropareto.testing.algorithm import check_algorithm, conflicting

# The same pipeline with small numbers: what it does is tested here, how well it does elsewhere.
SMALL = NeuroPareto(
    surrogate=ExactGP(iterations=15),
    candidates=Several((RankConditioned(size=120), SurrogateDescent(starts=8, steps=8))),
    screening=TwoStage(n_screen=100, k=40, proxy=None),
)


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL)


def test_the_default_and_the_paper_pass_the_exam_on_one_shape() -> None:
    check_algorithm(NeuroPareto.paper(), shapes=((4, 2),))


def spent(optimizer: Optimizer, q: int, rounds: int) -> Optimizer:
    for _ in range(rounds):
        batch = optimizer.ask(q)
        optimizer.tell(batch, conflicting(batch.X, 2))
    return optimizer


def test_a_round_notes_its_stages_and_diagnostics() -> None:
    o = spent(Optimizer([(0, 1)] * 6, 2, SMALL, seed=0, n_initial=20), 5, 6)
    note = o.notes[-1]
    assert list(note["stage_seconds"]) == [
        "classifier", "surrogate", "viability", "acquisition", "candidates", "screening", "posterior",
        "selection", "exploration", "second",
    ]  # fmt: skip
    assert 130 < note["pool"] <= 144, "without copies"
    assert note["shortlist"] == 40 and len(note["operators"]) == len(note["moved"]) == 5
    assert np.array(note["predicted_epistemic"]).shape == (5, 2)
    json.dumps(o.notes, allow_nan=False)


def test_the_history_keeps_features_as_they_were_proposed() -> None:
    o = spent(Optimizer([(0, 3)] * 6, 2, SMALL, seed=0, n_initial=20), 5, 5)
    assert o.memory is not None
    first = o.memory["history/features"].copy()
    spent(o, 5, 2)
    assert o.memory is not None
    assert np.array_equal(o.memory["history/features"][: len(first)], first)
    mean = np.array(o.notes[0]["predicted_mean"])
    assert np.allclose(first[:5, :2], mean), "Eq. feat starts with the means of that round"
    assert np.allclose(o.memory["history/U"][:5], o.archive.U[20:25]), "settled where evaluated"
    assert o.notes[-1]["acquisition"]["n"] == 10, "every evaluated proposal is a lesson"


def test_forgetting_the_memory_changes_the_warm_start_and_nothing_else() -> None:
    kept = spent(Optimizer([(0, 1)] * 5, 2, SMALL, seed=2, n_initial=20), 5, 5)
    forgot = spent(Optimizer([(0, 1)] * 5, 2, SMALL, seed=2, n_initial=20), 5, 5)
    forgot.memory = None
    assert forgot.ask(4).X.shape == kept.ask(4).X.shape == (4, 5)


def test_constraints_are_learnt_and_respected() -> None:
    def limited(X: Array) -> tuple[Array, Array]:
        return conflicting(X, 2), 0.6 - X[:, :1]

    result = minimize(
        limited, [(0, 1)] * 4, n_objectives=2, n_constraints=1, vectorized=True, budget=44,
        n_initial=24, batch=5, seed=0, algorithm=SMALL, progress=False,
    )  # fmt: skip
    proposed = result.G[24:, 0] <= 1e-3
    assert proposed.mean() > 0.7 > (result.G[:24, 0] <= 0).mean()


@pytest.mark.parametrize("most", [0.42, pytest.param(0.25, marks=pytest.mark.slow)])
def test_a_front_on_the_edge_of_what_is_feasible_is_found(most: float) -> None:
    """The mean of the distance variables must stay below ``most``; without that it would be 0.5.

    With 0.25 no point of the start design is feasible. On the edge g = 9 (0.5 - most)^2, so the
    front is a quarter of a circle with the radius 1 + g.
    """
    sphere = problem("dtlz2", 10, 2)

    def limited(X: Array) -> tuple[Array, Array]:
        return np.asarray(sphere(X)), X[:, 1:].mean(axis=1, keepdims=True) - most

    result = minimize(
        limited, [(0, 1)] * 10, n_objectives=2, n_constraints=1, vectorized=True, budget=80,
        n_initial=40, batch=10, seed=0, progress=False,
    )  # fmt: skip
    started = (result.G[:40, 0] <= 0).mean()
    assert 0 < started < 0.4 if most == 0.42 else started == 0
    assert (result.G[50:, 0] <= 0).mean() > 0.6
    radius = 1.0 + 9 * (0.5 - most) ** 2
    norms = np.linalg.norm(result.front.F, axis=1)
    assert len(norms) >= 12 and norms.min() >= radius - 1e-9
    assert np.median(norms) < radius + 0.02


def test_a_constraint_that_only_says_no_does_not_stop_it() -> None:
    """Nothing feasible, and a constraint of one value: no front, and no slope to follow."""
    optimizer = Optimizer([(0, 1)] * 4, 2, NeuroPareto(), seed=1, n_initial=12, n_constraints=1)
    for n in (12, 4, 4):
        batch = optimizer.ask(n)
        optimizer.tell(batch, conflicting(batch.X, 2), np.ones((n, 1)))
    assert len(optimizer.archive) == 20


@dataclass(frozen=True)
class Defect:
    """A stage with a mistake in it."""

    def generate(self, *given: object, **named: object) -> Pool:
        raise IndexError("a mistake of ours")


def test_a_defect_costs_a_round_and_not_the_study() -> None:
    optimizer = Optimizer(
        [(0, 1)] * 4, 2, replace(SMALL, candidates=Defect()), seed=0, n_initial=12
    )
    batch = optimizer.ask(12)
    optimizer.tell(batch, conflicting(batch.X, 2))
    with pytest.warns(RuntimeWarning, match="IndexError: a mistake of ours.*report"):
        assert len(optimizer.ask(5).X) == 5
    assert "a mistake of ours" in optimizer.notes[-1]["quasi_random"]


def test_failed_points_do_not_stop_it() -> None:
    def moody(x: Array) -> list[float]:
        if x[0] > 0.8:
            raise RuntimeError("diverged")
        return [*conflicting(x[None], 2)[0]]

    result = minimize(
        moody, [(0, 1)] * 4, n_objectives=2, budget=40, n_initial=20, batch=5, seed=0,
        algorithm=SMALL, progress=False,
    )  # fmt: skip
    assert len(result.F) + len(result.failures) == 40 and len(result.F) > 25


@pytest.mark.parametrize("name", sorted(ABLATIONS))
def test_every_ablation_runs(name: str) -> None:
    o = Optimizer([(0, 1)] * 5, 2, ABLATIONS[name](), seed=0, n_initial=15)
    spent(o, 5, 4)
    base = NeuroPareto.paper()
    changed = [f for f in base.__dataclass_fields__ if getattr(o.algorithm, f) != getattr(base, f)]
    assert 1 <= len(changed) <= 2, changed
    assert len(o.archive) == 20 and np.isfinite(o.archive.F).all()


# Those that change the model's inside or bring a null object of their own; the rest are slow runs.
TELLING = {
    "with-hedge", "without-classifier", "without-modulators", "without-pair-products",
    "without-shared-curves", "without-structure", "without-waves", "without-corners", "without-places",
    "without-scatter",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in TELLING else [pytest.mark.slow]) for n in INGREDIENTS],
)
def test_the_default_without_an_ingredient_runs(name: str) -> None:
    o = Optimizer([(0, 1)] * 4, 2, INGREDIENTS[name](), seed=0, n_initial=12)
    spent(o, 4, 5)
    base = NeuroPareto()
    changed = [f for f in base.__dataclass_fields__ if getattr(o.algorithm, f) != getattr(base, f)]
    assert len(changed) == (2 if name == "without-structure" else 1), changed
    assert len(o.archive) == 20 and np.isfinite(o.archive.F).all()
    assert o.notes[-1]["surrogate"]["rung"] == 0  # none fell back to a cheaper model


def test_ablations_share_the_streams_of_the_other_stages() -> None:
    """Replacing the acquisition leaves the first proposal alone: before history it has no say."""
    a = spent(Optimizer([(0, 1)] * 5, 2, SMALL, seed=4, n_initial=15), 5, 4)
    other = replace(SMALL, acquisition=SurrogateEstimate())
    b = spent(Optimizer([(0, 1)] * 5, 2, other, seed=4, n_initial=15), 5, 4)
    assert np.array_equal(a.X[:20], b.X[:20])


def test_parts_are_values() -> None:
    assert NeuroPareto() == NeuroPareto() and hash(NeuroPareto()) == hash(NeuroPareto())
    assert NeuroPareto.paper() != NeuroPareto()
    assert isinstance(NeuroPareto().classifier, RankClassifier)
    assert isinstance(NeuroPareto().acquisition, LearnedAcquisition)
    assert NeuroPareto.paper().screening == TwoStage(proxy=FourierProxy())


def test_it_beats_random_search_in_sixty_evaluations() -> None:
    task = problem("zdt1", d=12)
    assert task.front is not None
    result = minimize(
        task, budget=60, n_initial=30, batch=10, seed=0, algorithm=SMALL, progress=False
    )
    random = task(np.random.default_rng(0).random((600, 12)))
    assert isinstance(random, np.ndarray)
    assert pareto.igd(result.F, task.front()) < 0.5 * pareto.igd(random, task.front())


@pytest.mark.slow
def test_single_proposals_do_not_chase_the_ends_of_a_front() -> None:
    """The greediest single point, every time, ends at one of two points of the front (D-90)."""
    task = problem("dtlz2", d=30, variant="shifted", seed=0)
    assert task.front is not None
    planned, greedy = (
        minimize(
            task, budget=180, n_initial=100, batch=1, seed=0, algorithm=algorithm, progress=False
        )
        for algorithm in (NeuroPareto(), replace(NeuroPareto(), selection=Daring()))
    )
    assert pareto.igd(planned.F, task.front()) < 0.5 * pareto.igd(greedy.F, task.front())
