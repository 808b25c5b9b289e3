"""Seconds of the first rounds with one thread, and with as many as the libraries take by themselves.

    env -u OMP_NUM_THREADS python benchmarks/threads.py            # about two minutes on idle cores
    env -u OMP_NUM_THREADS python benchmarks/threads.py --busy     # all cores have other work

Decision D-88. The problem costs nothing, so all seconds are the optimizer's.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import time
from unittest import mock

import torch

from neuropareto import NeuroPareto, Optimizer, problem
from neuropareto.threads import one_thread

TASKS = ((30, 100, 5), (100, 200, 4), (500, 200, 2))


def seconds(d: int, n_initial: int, rounds: int) -> tuple[float, float]:
    """Wall and processor seconds of some rounds of ten."""
    task = problem("dtlz2", d=d)
    optimizer = Optimizer(task.space, 2, NeuroPareto(), seed=0, n_initial=n_initial)
    batch = optimizer.ask(n_initial)
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        optimizer.tell(batch, task(batch.X))
        batch = optimizer.ask(10)
    return time.perf_counter() - wall, time.process_time() - processor


def spin() -> None:
    while True:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", action="store_true", help="keep all cores busy beside it")
    busy = parser.parse_args().busy
    others = [
        multiprocessing.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)
    ]
    for process in others if busy else ():
        process.start()
    print(
        f"{os.cpu_count()} cores, {'busy' if busy else 'idle'}; torch: {torch.get_num_threads()}\n"
    )
    print("| variables | rounds | threads | wall | processor |\n|---:|---:|---|---:|---:|")
    for d, n_initial, rounds in TASKS:
        for name, rule in (("one", one_thread), ("the libraries' choice", contextlib.nullcontext)):
            with mock.patch("neuropareto.optimizer.one_thread", rule):
                wall, processor = seconds(d, n_initial, rounds)
            print(f"| {d} | {rounds} | {name} | {wall:.1f} | {processor:.1f} |", flush=True)


if __name__ == "__main__":
    main()
