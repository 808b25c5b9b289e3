"""What a durable study costs beside the models, and how that grows with the number of trials.

    python benchmarks/study.py --d 500 --sizes 1000 10000 100000

The study grows in batches by random search. At each size: ask and tell one point at a time (two
transactions, each synced to disk), its CPU part, what the disk alone takes for two synced writes of
the same size, the same in batches, closing and opening again, bytes on disk and in memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from neuropareto import RandomSearch
from neuropareto.space import Array
from neuropareto.study import Study

HEAD = (
    "| trials | one at a time, ms/trial | of that CPU | two bare synced writes, ms | batches, "
    "ms/trial | reopen, s | reopen, ms/trial | disk, kB/trial | peak memory, GB |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def objectives(X: Array, m: int) -> Array:
    """Cheap and finite; its front stays small, so that archives do not dominate the figures."""
    s = X[:, :m] ** 2
    return np.asarray(s + s.sum(axis=1, keepdims=True))


def grow(study: Study, n: int, m: int, batch: int) -> float:
    """Ask and tell until n trials are finished; seconds."""
    began = time.perf_counter()
    while (left := n - study.finished) > 0:
        points = study.ask(min(batch, left))
        study.tell(points, objectives(points.X, m))
    return time.perf_counter() - began


def bare_writes(directory: Path, n_bytes: int, n: int = 100) -> float:
    """What the disk itself takes for two appends of a trial's bytes, each synced; seconds."""
    with tempfile.TemporaryFile(dir=directory) as file:
        began = time.perf_counter()
        for _ in range(2 * n):
            file.write(bytes(n_bytes))
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - began) / n


def measure(path: Path, sizes: list[int], d: int, m: int, batch: int, single: int) -> list[str]:
    lines = []
    algorithm = RandomSearch()
    study = Study.create(path, [(0.0, 1.0)] * d, m, algorithm, seed=1, n_initial=0)
    before = 0
    for size in sizes:
        in_batches = grow(study, size - single, m, batch) / (size - single - before)
        os.sync()  # what the growth left to write is not the single trials' business
        floor = bare_writes(path.parent, 8 * d)
        cpu = time.process_time()
        one_by_one = grow(study, size, m, 1) / single
        cpu = (time.process_time() - cpu) / single
        before = size
        expected = study.optimizer.F[-1]
        study.close()
        del study  # or both lives of the study would be in memory at once
        began = time.perf_counter()
        study = Study.open(path)
        reopen = time.perf_counter() - began
        assert study.finished == size and np.array_equal(study.optimizer.F[-1], expected)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        line = (
            f"| {size:,} | {1e3 * one_by_one:.2f} | {1e3 * cpu:.2f} | {1e3 * floor:.2f} | "
            f"{1e3 * in_batches:.3f} | {reopen:.2f} | "
            f"{1e3 * reopen / size:.3f} | {path.stat().st_size / size / 1e3:.2f} | {peak:.2f} |"
        )
        print(line, flush=True)
        lines.append(line)
    study.close()
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--d", type=int, default=500)
    parser.add_argument("--m", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--single", type=int, default=300)
    parser.add_argument("--directory", type=Path, default=None)
    given = parser.parse_args(arguments)
    print(
        f"d = {given.d}, m = {given.m}, batches of {given.batch}; Python "
        f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}, {sys.platform}"
    )
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        path = Path(place) / "benchmark.study"
        measure(path, given.sizes, given.d, given.m, given.batch, given.single)


if __name__ == "__main__":
    main()
