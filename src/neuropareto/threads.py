"""One thread for an algorithm's work: faster on matrices of this size, and the same bits everywhere.

A proposal works on thousands of matrices with a few hundred rows. Libraries that divide each of them
among all cores spend more time on dividing than they gain, several times more where the cores have
other work, such as evaluations; and sums that are divided otherwise round otherwise, so that proposals
would depend on the number of cores. Decision D-88.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS, OpenMP and torch use one thread in this process; afterwards as many as before.

    What other Python threads of the process compute meanwhile does so, too.
    """
    torch = sys.modules.get("torch")  # who has not imported it does not wait for it here
    before = torch.get_num_threads() if torch else 1
    with _controller(len(sys.modules)).limit(limits=1):
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """The libraries that are loaded; finding them takes milliseconds, and only an import loads more."""
    return ThreadpoolController()
