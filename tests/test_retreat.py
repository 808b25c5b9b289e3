from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuropareto import NeuroPareto, Optimizer, minimize, pareto, problem
from neuropareto.acquisition import History
from neuropareto.archive import Archive
from neuropareto.memory import Memory, joined, part
from neuropareto.past import Past
from neuropareto.randomness import Streams
from neuropareto.retreat import (
    Steadfast,
    TrustRegion,
    box,
    centre,
    chosen,
    descents,
    extended,
    inflation,
)
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP
from neuropareto.surrogate.contract import Posterior

D = 5
K = 3
WIDTH = 3 * 2 + K + 2
NOBODY = np.empty((0, D))


def smooth(U: Array) -> Array:
    """Two bowls: around 0.3 and 0.6 in every variable."""
    return np.stack([np.square(U - 0.3).sum(axis=1), np.square(U - 0.6).sum(axis=1)], axis=1)


def outcome(n: int, seed: int = 0) -> tuple[Array, Array]:
    U = np.random.default_rng(seed).random((n, D))
    return U, 1.0 + smooth(U)


def past_of(U: Array, promised: Array, elsewhere: int = 0) -> Past:
    features = np.concatenate([promised, np.zeros((len(U), WIDTH - 2))], axis=1)
    return Past(History(U, features, np.zeros(len(U))), elsewhere)


@dataclass(frozen=True)
class AlwaysLost(TrustRegion):
    """Whatever the model brings."""

    def lost(self, past: Past, archive: Archive) -> bool:
        return len(past.history) >= self.evidence


Story = tuple[Past, Archive]


def situation(delivered: float, promised: float, n: int = 30) -> Story:
    """Sixty points, then n proposals: so far below the best ones they are, and were promised to be."""
    U, F = outcome(60)
    new = np.random.default_rng(1).random((n, D))
    best = F[np.arange(n) % 60]
    archive = Archive.of(np.concatenate([U, new]), np.concatenate([F, best * (1 - delivered)]))
    return past_of(new, best * (1 - promised)), archive


# -- when --


@pytest.mark.parametrize(
    ("delivered", "promised", "expected"),
    [
        (-0.1, 0.5, True),  # much was promised and nothing came
        (0.002, 0.5, True),  # next to nothing
        (0.4, 0.5, False),  # it came
        (-0.1, -0.1, False),  # nothing was promised: the front is complete
        (0.01, 0.01, False),  # little was promised, and it came
    ],
)
def test_broken_promises_and_nothing_else_make_it_retreat(
    delivered: float, promised: float, expected: bool
) -> None:
    past, archive = situation(delivered, promised)
    assert TrustRegion().lost(past, archive) is expected


def test_a_few_broken_promises_are_no_evidence() -> None:
    past, archive = situation(-0.1, 0.5, n=29)
    assert not TrustRegion().lost(past, archive)


def test_an_empty_front_is_no_place_to_retreat_to() -> None:
    past, archive = situation(-0.1, 0.5)
    nowhere = Archive.of(archive.U, archive.F, np.ones((len(archive), 1)))
    assert not TrustRegion().lost(past, nowhere)


def test_a_model_that_has_found_its_way_is_not_lost_again() -> None:
    """After local steps a batch of the model reaches the front: then nobody can gain a share of it."""
    past, archive = situation(-0.1, 0.5)
    past = replace(past, elsewhere=40)
    assert TrustRegion().lost(past, archive)
    rng = np.random.default_rng(7)
    for values in (archive.F[:10] * 0.01, archive.F[:20] * 0.5):  # the way found; then no gain
        new, history = rng.random((len(values), D)), past.history
        features = np.tile(history.features[:1], (len(new), 1))
        past = replace(past, history=history.extended(new, features, np.zeros(len(new)), 1000))
        archive = archive.extended(new, values)
        assert not TrustRegion().lost(past, archive)


def test_a_model_that_never_has_stays_lost() -> None:
    """Its next proposals do not earn either, while the local steps do."""
    past, archive = situation(-0.1, 0.5)
    rng = np.random.default_rng(7)
    for _ in range(3):
        archive = archive.extended(
            rng.random((40, D)), archive.front[:1].repeat(40, axis=0) * 0.95
        )
        new, history = rng.random((10, D)), past.history
        past = Past(history.extended(new, history.features[:10], np.zeros(10), 1000), 40)
        archive = archive.extended(new, archive.F[:10] * 1.1)
        assert TrustRegion().lost(past, archive)


def later(past: Past, archive: Archive, F: Array, promised: Array | None = None) -> Story:
    """What came next: local steps with these outcomes or, with a promise, the model's proposals."""
    new = np.random.default_rng(len(archive)).random((len(F), D))
    archive = archive.extended(new, F)
    if promised is None:
        return replace(past, elsewhere=past.elsewhere + len(F)), archive
    history = past.history.extended(new, past_of(new, promised).history.features, np.zeros(len(F)))
    return replace(past, history=history), archive


def open_field(delivered: float, promised: float, n: int = 30) -> Story:
    """A situation with two extreme points besides: the ideal point is (0, 0), far from the front."""
    past, archive = situation(delivered, promised, n)
    U = np.random.default_rng(2).random((2, D))
    return past, Archive.of(
        np.concatenate([U, archive.U]), np.concatenate([[[0.0, 4.0], [4.0, 0.0]], archive.F])
    )


def compromises(archive: Archive, n: int, share: float) -> Array:
    """n points that leave ``share`` of the way from the ideal point to the front's best compromise."""
    ideal = archive.F.min(axis=0)
    best = archive.F[np.argmin(archive.F.max(axis=1))]
    return np.tile(ideal + share * (best - ideal), (n, 1))


def test_the_retreat_goes_on_while_local_steps_bring_more() -> None:
    """One batch of the model that brings something is no reason to go back to it."""
    for steps, expected in ((0.2, True), (0.999, False)):
        past, archive = open_field(-0.1, 0.5)
        past, archive = later(past, archive, compromises(archive, 10, steps))
        best = compromises(archive, 10, 0.7)
        past, archive = later(past, archive, best, promised=best)
        assert TrustRegion().lost(past, archive) is expected


def in_vain(story: Story, tens: int, promise: float = 0.3, share: float = 1.1) -> list[bool]:
    """So many tens of proposals that end at this share of the best compromise: each time, lost?"""
    past, archive = story
    lost = []
    for _ in range(tens):
        promised, came = (compromises(archive, 10, s) for s in (promise, share))
        past, archive = later(past, archive, came, promised)
        lost.append(TrustRegion().lost(past, archive))
    return lost


def recovered() -> Story:
    """A retreat that a batch of the model has ended: it brought more than the local steps."""
    past, archive = open_field(-0.1, 0.5)
    past, archive = later(past, archive, compromises(archive, 40, 0.95))
    best = compromises(archive, 10, 0.4)
    story = later(past, archive, best, promised=best)
    assert not TrustRegion().lost(*story)
    return story


def test_a_lucky_batch_does_not_keep_the_model_for_good() -> None:
    """It earns much, then nothing of what it promises: after thirty proposals the steps go on."""
    assert in_vain(recovered(), 4) == [False, False, True, True]


def test_a_model_that_earns_slowly_or_has_arrived_is_kept() -> None:
    assert not any(in_vain(recovered(), 6, share=0.95)), "something comes"
    assert not any(in_vain(recovered(), 6, promise=0.98)), "nothing is promised"


def test_a_search_that_never_was_lost_is_trusted() -> None:
    """What a model learns from its mistakes is worth more to it than local steps: D-78."""
    assert not any(in_vain(open_field(0.4, 0.5), 6))


def test_what_breaks_a_constraint_was_proposed_in_vain() -> None:
    past, archive = recovered()
    for share in (0.8, 0.6, 0.4):
        best = compromises(archive, 10, share)
        past, archive = later(past, archive, best, promised=best)
    shut = np.zeros((len(archive), 1))
    assert not TrustRegion().lost(past, Archive.of(archive.U, archive.F, shut))
    shut[-30:] = 1.0
    assert TrustRegion().lost(past, Archive.of(archive.U, archive.F, shut))


def test_the_paper_never_retreats() -> None:
    past, archive = situation(-0.1, 0.5)
    assert NeuroPareto.paper().retreat == Steadfast()
    assert proposal(past, archive, TrustRegion()) is not None
    none = Steadfast().proposal(past, archive, 4, pending=NOBODY, memory=None, rng=Streams(0, 0))
    assert none is None


# -- where --


def proposal(
    past: Past,
    archive: Archive,
    spec: TrustRegion,
    q: int = 4,
    memory: Memory | None = None,
    pending: Array = NOBODY,
    seed: int = 0,
) -> tuple[Array, Memory] | None:
    found = spec.proposal(past, archive, q, pending=pending, memory=memory, rng=Streams(seed, 0))
    return None if found is None else (found.U, found.memory or {})


def test_steps_stay_in_a_small_box_around_the_best_compromise() -> None:
    past, archive = situation(-0.1, 0.5)
    found = proposal(past, archive, TrustRegion(), q=7)
    assert found is not None
    assert found[0].shape == (7, D) and len(np.unique(found[0], axis=0)) == 7
    assert np.abs(found[0] - centre(archive)).max() <= TrustRegion().radius
    again = proposal(past, archive, TrustRegion(), q=7)
    assert again is not None and np.array_equal(found[0], again[0])


def test_the_centre_is_balanced_and_on_the_front() -> None:
    U = np.random.default_rng(0).random((4, D))
    F = np.array([[0.0, 10.0], [4.0, 4.0], [10.0, 0.0], [9.0, 9.0]])
    assert np.array_equal(centre(Archive.of(U, F)), U[1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(1e-4, 0.5))
def test_the_box_lies_in_the_cube_and_is_never_flat(point: list[float], radius: float) -> None:
    low, high = box(np.array(point), radius)
    assert (low >= 0).all() and (high <= 1).all() and (high - low >= 0.99 * radius).all()


def near_archive(n: int = 40, radius: float = 0.05) -> Archive:
    """Far points, and n near one of them: enough for a model of the neighbourhood."""
    U, _ = outcome(60)
    low, high = box(U[np.argmin(smooth(U).max(axis=1))], radius)
    near = low + np.random.default_rng(3).random((n, D)) * (high - low)
    both = np.concatenate([U, near])
    return Archive.of(both, smooth(both))


def local_of(archive: Archive, radius: float = 0.05) -> tuple[Archive, Array, Array]:
    low, high = box(centre(archive), radius)
    V = (archive.U - low) / (high - low)
    rows = np.abs(V - 0.5).max(axis=1) <= 3
    return Archive.of(V[rows], archive.F[rows]), low, high


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_neighbours_the_steps_gain(seed: int) -> None:
    archive = near_archive()
    local, low, high = local_of(archive)
    rng = np.random.default_rng(seed)
    model = ExactGP().fit(local.U, local.outputs, warm=None, rng=rng)
    V = chosen(model, local, archive, archive.front, 10, rng=rng)
    assert (V >= 0).all() and (V <= 1).all() and len(np.unique(V, axis=0)) == 10
    worst = archive.F.max(axis=0)
    guided, blind = (
        pareto.hypervolume(np.concatenate([archive.front, smooth(U)]), worst)
        for U in (low + V * (high - low), low + rng.random((10, D)) * (high - low))
    )
    assert guided > blind > pareto.hypervolume(archive.front, worst)


def test_single_steps_follow_mean_and_draws_in_turn() -> None:
    archive = near_archive(12, radius=0.2)
    local, _, _ = local_of(archive, radius=0.2)
    model = ExactGP().fit(local.U, local.outputs, warm=None, rng=np.random.default_rng(0))
    grown = [archive]
    for i in range(3):
        grown.append(grown[-1].extended(np.full((1, D), 0.1 * i), archive.F.max(axis=0)[None]))
    steps = np.array(
        [
            [
                chosen(model, local, a, archive.front, 1, rng=np.random.default_rng(s))
                for a in grown
            ]
            for s in range(5)
        ]
    )
    assert np.array_equal(steps[:, :2], steps[:, 2:])
    assert not np.array_equal(steps[:, 0], steps[:, 1])


def test_descents_lead_down() -> None:
    local, low, high = local_of(near_archive())
    model = ExactGP().fit(local.U, local.outputs, warm=None, rng=np.random.default_rng(0))
    V = descents(model, local, rng=np.random.default_rng(0), starts=20)
    first, last = (smooth(low + part * (high - low)) for part in (V[:20], V[-20:]))
    assert V.shape == (80, D) and (V >= 0).all() and (V <= 1).all()
    assert (last.min(axis=0) <= first.min(axis=0) + 1e-9).all()


def test_steps_keep_to_the_feasible_side() -> None:
    archive = near_archive()
    G = (archive.U.mean(axis=1) - 0.45)[:, None]
    limited = Archive.of(archive.U, archive.F, G)
    low, high = box(centre(limited), 0.05)
    V = (limited.U - low) / (high - low)
    rows = np.abs(V - 0.5).max(axis=1) <= 3
    local = Archive.of(V[rows], limited.F[rows], limited.G[rows])
    model = ExactGP().fit(local.U, local.outputs, warm=None, rng=np.random.default_rng(0))
    steps = chosen(model, local, limited, limited.front, 10, rng=np.random.default_rng(0))
    U = low + steps * (high - low)
    assert np.mean(U.mean(axis=1) <= 0.451) >= 0.9


# -- what is remembered --


def retreating(gain: float, modelled: bool, n: int = 10) -> float:
    """The radius after n local evaluations that multiplied the best objectives by 1 - gain."""
    past, archive = situation(-0.1, 0.5)
    kept = {
        "radius": np.array(0.02), "seen": np.array(len(archive)),
        "modelled": np.array(modelled), "proposed": np.array(4),
    }  # fmt: skip
    new = np.random.default_rng(9).random((n, D))
    F = np.tile(archive.F[archive.front_indices[:1]] * (1 - gain), (n, 1))
    grown = archive.extended(new, F)
    found = proposal(
        replace(past, elsewhere=4), grown, TrustRegion(), memory=joined({"retreat": kept})
    )
    assert found is not None
    own = part(found[1], "retreat") or {}
    assert int(own["proposed"]) == 8
    assert int(own["seen"]) == (len(grown) if n >= 10 or not modelled else len(archive))
    return float(own["radius"])


def test_the_box_grows_with_success_and_shrinks_without() -> None:
    assert retreating(0.3, modelled=True) == pytest.approx(0.03)
    assert retreating(-0.1, modelled=True) == pytest.approx(0.012)
    assert retreating(-0.1, modelled=False) == pytest.approx(0.02), "random steps prove nothing"
    assert retreating(-0.1, modelled=True, n=1) == pytest.approx(0.02), "nor does a single one"


def test_what_the_model_remembers_is_kept() -> None:
    past, archive = situation(-0.1, 0.5)
    memory = {"surrogate/w": np.arange(3.0), "history/U": np.zeros((1, D))}
    found = proposal(past, archive, TrustRegion(), memory=memory)
    assert found is not None
    assert {"surrogate/w", "history/U", "retreat/radius"} <= set(found[1])


def test_local_steps_say_what_they_expect() -> None:
    """With a model of the neighbourhood: in the objectives' units, for each point, and about right."""
    archive = near_archive()
    past = past_of(archive.U[-30:], archive.F[-30:] * 0.3)
    spec = AlwaysLost(radius=0.05)
    found = spec.proposal(past, archive, 4, pending=NOBODY, memory=None, rng=Streams(0, 0))
    assert found is not None
    said = {name: np.array(found.notes[f"predicted_{name}"]) for name in
            ("mean", "epistemic", "aleatoric")}  # fmt: skip
    assert {value.shape for value in said.values()} == {(4, 2)}
    error = np.abs(smooth(found.U) - said["mean"])
    assert (error <= 4 * np.sqrt(said["epistemic"] + said["aleatoric"])).all()
    assert error.max() < 0.1 * np.ptp(archive.F)
    alone, there = situation(-0.1, 0.5)
    blind = TrustRegion().proposal(alone, there, 4, pending=NOBODY, memory=None, rng=Streams(0, 0))
    assert blind is not None and "predicted_mean" not in blind.notes


def test_forecasts_that_were_too_sure_become_less_so() -> None:
    """Ten local steps, two objectives: z-scores of z; ten more scores of one are always there."""
    archive = near_archive()
    U, m = archive.U[-10:], archive.m
    variance = np.full((10, m), 0.04)
    for z, expected in ((0.1, 1.0), (3.0, (20 * 9 + 10) / 30), (100.0, 25.0)):
        mean = archive.F[-10:] - z * np.sqrt(variance)
        said = extended(History.empty(D, 2 * m), U, Posterior(mean, variance, 0 * variance))
        assert inflation(said, archive) == pytest.approx(expected)
    assert inflation(History.empty(D, 2 * m), archive) == 1.0, "nothing is known yet"


def test_what_was_foretold_is_remembered_and_corrects_the_next_forecast() -> None:
    """The second batch's variances are those of its GP times what the first one's errors ask for."""
    archive = near_archive()
    past = past_of(archive.U[-30:], archive.F[-30:] * 0.3)
    spec = AlwaysLost(radius=0.05, steps=1000)
    first = spec.proposal(past, archive, 4, pending=NOBODY, memory=None, rng=Streams(0, 0))
    assert first is not None
    far = np.array(first.notes["predicted_mean"]) + 5 * np.sqrt(
        np.array(first.notes["predicted_epistemic"]) + np.array(first.notes["predicted_aleatoric"])
    )
    grown = archive.extended(first.U, far)
    later = replace(past, elsewhere=4)
    memory = dict(first.memory or {})
    forgetful = {name: value for name, value in memory.items() if name != "retreat/features"}
    said = []
    for known in (forgetful, memory):
        found = spec.proposal(later, grown, 4, pending=NOBODY, memory=known, rng=Streams(0, 1))
        assert found is not None
        said.append(np.array(found.notes["predicted_epistemic"]))
    assert np.allclose(said[1], said[0] * (8 * 25 + 10) / 18)


@pytest.mark.parametrize("q", [1, 4, 10])
def test_the_model_gets_its_turn(q: int) -> None:
    """Forty local steps, then ten proposals of the model, whatever the size of the batches."""
    past, archive = situation(-0.1, 0.5)
    turns: list[bool] = []
    while len(turns) < 100 // q:
        model = TrustRegion().models_turn(past, archive)
        turns.append(model)
        F = archive.F[:q] * 1.1
        past, archive = later(past, archive, F, F * 0.5 if model else None)
    batches = int(np.ceil(10 / q))
    assert turns[: 40 // q] == [False] * (40 // q)
    assert turns[40 // q :][:batches] == [True] * batches
    assert not turns[40 // q + batches]


def test_points_under_evaluation_are_not_asked_for_again() -> None:
    archive = near_archive()
    new = archive.U[-30:]
    past = past_of(new, archive.F[-30:] * 0.3)
    spec = AlwaysLost(radius=0.05)
    first = proposal(past, archive, spec, q=1)
    assert first is not None
    second = proposal(past, archive, spec, q=1, pending=first[0])
    assert second is not None and np.abs(first[0] - second[0]).max() > 1e-6


def test_the_history_is_found_behind_points_from_elsewhere() -> None:
    """The model's proposals lie further back in the archive than their number says."""
    U, F = outcome(60)
    own, local = (np.random.default_rng(seed).random((10, D)) for seed in (5, 6))
    archive = Archive.of(np.concatenate([U, own, local]), np.concatenate([F, F[:20]]))
    memory = joined(
        {"history": past_of(own, F[:10]).history.memory, "retreat": {"proposed": np.array(10)}}
    )
    past = Past.recalled(memory, archive, NOBODY, K)
    assert past.elsewhere == 10 and np.array_equal(past.history.U, own)
    assert len(past.history.matched(archive.U)[0]) == 10


# -- as a whole --


def run(algorithm: NeuroPareto, rounds: int) -> Optimizer:
    optimizer = Optimizer([(0, 1)] * D, 2, algorithm, seed=0, n_initial=30)
    for n in (30, *(10,) * rounds):
        batch = optimizer.ask(n)
        optimizer.tell(batch, smooth(batch.X))
    return optimizer


def test_a_search_that_gets_on_does_not_retreat() -> None:
    notes = run(NeuroPareto(), 4).notes
    assert len(notes) == 4 and not any("retreat" in note for note in notes)


def test_a_search_in_retreat_goes_on_and_comes_back() -> None:
    """Held to be lost whatever it earns: after three rounds two local ones, then the model's turn."""
    never = AlwaysLost(patience=2)
    optimizer = run(NeuroPareto(retreat=never), 7)
    local = ["retreat" in note for note in optimizer.notes]
    assert local == [False, False, False, True, True, False, True]
    assert optimizer.memory is not None
    assert any(name.startswith("surrogate/") for name in optimizer.memory)
    assert int(optimizer.memory["retreat/proposed"]) == 30


@pytest.mark.slow
def test_a_rotated_rastrigin_is_searched_better_in_retreat() -> None:
    """200 proposals of the model alone find next to nothing; NSGA-II has about 2,100.

    One run is an accident: the last bit of a value decides which hill it finds.
    """
    ratios = []
    for seed in range(3):
        task = problem("dtlz3", d=30, variant="rotated", seed=seed)
        assert task.front is not None
        front = task.front()
        distance = []
        for retreat in (TrustRegion(), Steadfast()):
            algorithm = NeuroPareto(retreat=retreat)
            found = minimize(task, budget=300, seed=seed, progress=False, algorithm=algorithm)
            distance.append(pareto.igd(found.F, front))
        ratios.append(distance[0] / distance[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.8, ratios
