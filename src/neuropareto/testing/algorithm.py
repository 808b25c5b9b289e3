"""The algorithm exam: what every implementation of ``Algorithm.propose`` must do.

Determinism, shapes, the unit cube, pending points, any number of variables and objectives, tiny
and failed archives, forgotten memory, memory that can be stored, notes that are JSON, immutable
inputs, untouched global generators, and independence of the objectives' units.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import numpy as np

from neuropareto.algorithm import Algorithm, Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.optimizer import Optimizer
from neuropareto.randomness import Streams
from neuropareto.space import Array


def conflicting(U: Array, m: int) -> Array:
    """A smooth test function with m conflicting objectives, (n, d) -> (n, m)."""
    targets = np.linspace(0.2, 0.8, m)
    return np.stack([((U - t) ** 2).mean(axis=1) for t in targets], axis=1)


def example_archive(n: int, d: int, m: int, seed: int = 0) -> Archive:
    """n evaluations of :func:`conflicting` at random points."""
    U = np.random.default_rng([seed, n, d, m]).random((n, d))
    return Archive.of(U, conflicting(U, m))


def check_algorithm(
    algorithm: Algorithm, *, shapes: Sequence[tuple[int, int]] = ((3, 2), (12, 3), (5, 5))
) -> None:
    """Run the whole exam; ``shapes`` are the (d, m) pairs to try."""
    for d, m in shapes:
        archive = example_archive(6 * d + 4, d, m)
        first = _proposal(algorithm, archive, 4, round=1)
        check_proposal(first, 4, d)
        _same(first, _proposal(algorithm, archive, 4, round=1), "the same call twice")
        _check_memory(algorithm, archive, first)
        _check_pending(algorithm, archive, first)
    _check_small_archives(algorithm)
    _check_globals(algorithm)
    _check_run(algorithm)


def check_proposal(proposal: Proposal, q: int, d: int) -> None:
    """Shape, range, storable memory and JSON notes of one proposal."""
    assert proposal.U.shape == (q, d), f"expected {q} points of {d}, got shape {proposal.U.shape}"
    assert np.isfinite(proposal.U).all(), "a proposed point is not finite"
    assert (proposal.U >= 0).all() and (proposal.U <= 1).all(), "a point lies outside [0, 1]"
    for name, array in (proposal.memory or {}).items():
        assert isinstance(array, np.ndarray), f"memory {name!r} is not an array"
        assert array.dtype.kind in "biuf", f"memory {name!r} has dtype {array.dtype}"
    json.dumps(dict(proposal.notes), allow_nan=False)


def _proposal(
    algorithm: Algorithm,
    archive: Archive,
    q: int,
    *,
    round: int,
    memory: Memory | None = None,
    pending: Array | None = None,
) -> Proposal:
    pending = np.empty((0, archive.d)) if pending is None else pending
    pending.setflags(write=False)
    return algorithm.propose(archive, q, pending=pending, memory=memory, rng=Streams(7, round))


def _same(a: Proposal, b: Proposal, what: str) -> None:
    assert np.array_equal(a.U, b.U), f"{what} must give the same points"


def _check_memory(algorithm: Algorithm, archive: Archive, first: Proposal) -> None:
    U = first.U
    grown = archive.extended(U, conflicting(U, archive.m))
    copied = {name: array.copy() for name, array in (first.memory or {}).items()}
    with_memory = _proposal(algorithm, grown, 3, round=2, memory=first.memory)
    check_proposal(with_memory, 3, archive.d)
    again = _proposal(algorithm, grown, 3, round=2, memory=copied)
    _same(with_memory, again, "a memory that went through storage")
    check_proposal(_proposal(algorithm, grown, 3, round=2), 3, archive.d)
    other_round = _proposal(algorithm, grown, 3, round=3, memory=first.memory)
    assert not np.array_equal(with_memory.U, other_round.U), "another round must draw anew"


def _check_pending(algorithm: Algorithm, archive: Archive, first: Proposal) -> None:
    waiting = _proposal(algorithm, archive, 4, round=1, pending=first.U.copy())
    check_proposal(waiting, 4, archive.d)
    check_proposal(_proposal(algorithm, archive, 1, round=1, pending=first.U.copy()), 1, archive.d)


def _check_small_archives(algorithm: Algorithm) -> None:
    for n in (0, 1, 2, 3):
        check_proposal(_proposal(algorithm, example_archive(n, 6, 2), 5, round=1), 5, 6)
    only_failures = Archive.empty(6, 2).extended(
        np.empty((0, 6)), np.empty((0, 2)), failed=np.full((4, 6), 0.3)
    )
    check_proposal(_proposal(algorithm, only_failures, 3, round=1), 3, 6)
    flat = example_archive(12, 6, 2)
    constant = Archive.of(flat.U, np.ones((12, 2)))
    check_proposal(_proposal(algorithm, constant, 3, round=1), 3, 6)
    huge = Archive.of(flat.U, 1e12 * flat.F - 5e12)
    check_proposal(_proposal(algorithm, huge, 3, round=1), 3, 6)
    repeated = Archive.of(np.repeat(flat.U[:2], 6, axis=0), np.repeat(flat.F[:2], 6, axis=0))
    check_proposal(_proposal(algorithm, repeated, 3, round=1), 3, 6)
    limited = Archive.of(flat.U, flat.F, flat.U[:, :1] - 0.5)
    check_proposal(_proposal(algorithm, limited, 3, round=1), 3, 6)


def _check_globals(algorithm: Algorithm) -> None:
    import torch

    before = (random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state())  # type: ignore[index]  # noqa: NPY002
    _proposal(algorithm, example_archive(20, 4, 2), 3, round=1)
    after = (random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state())  # type: ignore[index]  # noqa: NPY002
    assert before[0] == after[0], "the global generator of `random` was touched"
    assert before[1] == after[1], "numpy's global generator was touched"
    assert torch.equal(before[2], after[2]), "torch's global generator was touched"


def _check_run(algorithm: Algorithm) -> None:
    """A short run through the optimizer, with odd batch sizes, a failure and late answers."""
    optimizer = Optimizer([(0.0, 1.0)] * 4, 2, algorithm, seed=3, n_initial=10)
    late = optimizer.ask(11)
    optimizer.tell(list(late)[:10], conflicting(late.X[:10], 2))
    for q in (1, 3, 2):
        asked = optimizer.ask(q)
        optimizer.fail(list(asked)[:1], "simulated failure")
        if q > 1:
            optimizer.tell(list(asked)[1:], conflicting(asked.X[1:], 2))
    optimizer.tell(list(late)[10:], conflicting(late.X[10:], 2))
    assert len(optimizer.pending) == 0, "a trial was lost"
    assert len(np.unique(optimizer.X, axis=0)) == len(optimizer.X), "a point was proposed twice"
