from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from neuropareto import Optimizer
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.threads import one_thread


def counts() -> list[int]:
    return [torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]


@pytest.fixture
def two() -> Iterator[None]:
    """An environment that allows two threads, whatever the test run's own allows."""
    before = torch.get_num_threads()
    with threadpool_limits(limits=2):
        torch.set_num_threads(2)
        yield
        torch.set_num_threads(before)


def test_inside_there_is_one_thread_and_afterwards_as_many_as_before(two: None) -> None:
    before = counts()
    assert before[0] == 2 and max(before) == 2
    with one_thread():
        assert set(counts()) == {1}
        with one_thread():
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert counts() == before


def test_an_error_inside_leaves_the_threads_as_they_were(two: None) -> None:
    before = counts()
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert counts() == before


class Counting:
    """Random points, and how many threads there were when it was asked for them."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        self.seen += counts()
        return Proposal(rng("points").random((q, archive.d)), None, {})


def test_algorithms_propose_with_one_thread_and_objectives_keep_theirs(two: None) -> None:
    algorithm = Counting()
    optimizer = Optimizer([(0, 1)] * 2, 2, algorithm, seed=0, n_initial=2)
    batch = optimizer.ask(2)
    optimizer.tell(batch, np.eye(2))
    optimizer.ask(1)
    assert set(algorithm.seen) == {1}
    assert counts()[0] == 2


ASK = """
import json
import numpy as np
from neuropareto import NeuroPareto, Optimizer, problem

task = problem("dtlz2", d=30)
optimizer = Optimizer(task.space, 2, NeuroPareto(), seed=0, n_initial=150)
batch = optimizer.ask(150)
optimizer.tell(batch, task(batch.X))
batch = optimizer.ask(5)
print(json.dumps([x.hex() for x in batch.X.ravel().tolist()]))
"""


def test_proposals_do_not_depend_on_the_number_of_threads() -> None:
    def asked(threads: int) -> list[str]:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, str(threads))}
        run = subprocess.run(
            [sys.executable, "-c", ASK],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(run.stdout))

    assert asked(1) == asked(2)
