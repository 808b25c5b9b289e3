from __future__ import annotations

import numpy as np

from neuropareto.peers.dominance_network import answers, dominance_order, relations, trained
from neuropareto.peers.spea2 import fitness, selected


def test_relations_by_hand() -> None:
    Z = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    assert relations(Z).tolist() == [[0, 1, 1, 0], [-1, 0, 0, -1], [-1, 0, 0, -1], [0, 1, 1, 0]]


def test_the_network_learns_an_easy_order() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((60, 4))
    level = U.mean(axis=1)
    D = relations(np.stack([level, level], axis=1))
    V = np.repeat(np.linspace(0.1, 0.9, 6)[:, None], 4, axis=1)[::-1]
    assert dominance_order(U, D, V, epochs=20, pairs=1000, rng=rng).tolist() == [5, 4, 3, 2, 1, 0]
    network = trained(U.astype(np.float32), D, epochs=20, pairs=1000, rng=rng)
    answer, confidence = answers(network, U.astype(np.float32))
    assert (answer == -answer.T).all() and np.allclose(confidence, confidence.T)
    off = ~np.eye(len(U), dtype=bool)
    assert (answer == D)[off].mean() > 0.9


def test_spea2_fitness_by_hand() -> None:
    """Row 0 dominates two rows, row 1 dominates one: raw fitness 0, 2, 2 + 1."""
    Z = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]])
    density = 1.0 / (np.array([1.0, 1.0, 2.0]) * np.sqrt(2.0) + 2.0)
    assert np.allclose(fitness(Z), np.array([0.0, 2.0, 3.0]) + density)


def test_spea2_thins_out_the_crowd() -> None:
    x = np.array([0.0, 0.01, 0.5, 1.0])
    Z = np.stack([x, 1.0 - x], axis=1)
    assert sorted(selected(Z, 3, np.zeros(4)).tolist()) == [0, 2, 3]


def test_spea2_fills_up_and_minds_the_penalty() -> None:
    Z = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    assert selected(Z, 2, np.zeros(3)).tolist() == [0, 1]
    assert selected(Z, 2, np.array([1e3, 0.0, 0.0])).tolist() == [1, 2]
