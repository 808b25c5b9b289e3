"""Asynchronous evaluation against batches, on a simulated clock.

The real run loop drives a pool whose evaluations take simulated time: between 1 and 10 minutes,
log-uniform, drawn anew for each trial. Nothing sleeps, so the clock is exact and the figures do
not depend on this machine. For every seed the batch run sets hypervolume targets (shares of what
it has at its end), and both ways are timed until they reach them.

    python benchmarks/asynchronous.py [--seeds 10] [--algorithm nsga2] [--write]

``--write`` puts the table into asynchronous.md beside this file.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neuropareto.problems import problem
from neuropareto.randomness import stream
from neuropareto.study.algorithms import algorithm_of
from neuropareto.study.evaluation import Job, Report, Task
from neuropareto.study.limits import Limits
from neuropareto.study.runner import run
from neuropareto.study.study import Study

SHARES = (0.5, 0.75, 0.9, 1.0)
MARK = "<!-- figures -->"


@dataclass
class Simulated:
    """An engine without time: evaluations end in the order of their simulated durations."""

    seed: int
    now: float = 0.0
    busy: float = 0.0
    ends: list[float] = field(default_factory=list)
    _task: Task | None = None
    _running: list[tuple[float, int, Job]] = field(default_factory=list)

    def open(self, task: Task, workers: int, limits: Limits) -> Simulated:
        self._task = task
        return self

    def start(self, job: Job) -> None:
        # The duration belongs to the trial number, so both ways meet the same luck.
        minutes = 10.0 ** stream(self.seed, job.trial, "duration").random()
        self.busy += minutes
        heapq.heappush(self._running, (self.now + minutes, job.trial, job))

    def wait(self, timeout: float) -> list[Report]:
        assert self._task is not None
        self.now, _, job = heapq.heappop(self._running)
        self.ends.append(self.now)
        return [self._task(job)]

    def close(self) -> list[Report]:
        return []


@dataclass(frozen=True)
class Trace:
    """Hypervolume over the simulated clock, and how busy the workers were."""

    clock: np.ndarray
    hypervolume: np.ndarray
    utilisation: float

    def reached(self, target: float) -> float:
        above = np.flatnonzero(self.hypervolume >= target)
        return float(self.clock[above[0]]) if len(above) else float("inf")


def traced(options: argparse.Namespace, seed: int, batch: int | None, budget: int) -> Trace:
    task = problem(options.problem, d=options.variables)
    algorithm = algorithm_of(
        options.algorithm, {"population": 40} if options.algorithm == "nsga2" else {}
    )
    engine = Simulated(seed)
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=place) as folder,
        Study.create(
            Path(folder) / "study.db",
            task.space,
            task.n_objectives,
            algorithm,
            seed=seed,
            n_initial=options.initial,
            reference_point=task.reference_point,
        ) as study,
    ):
        result = run(
            study,
            task,
            budget,
            workers=options.workers,
            engine=engine,
            batch=batch,
            progress=False,
        )
    clock = np.array(engine.ends)
    return Trace(clock, result.history.hypervolume, engine.busy / (options.workers * engine.now))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--problem", default="zdt1")
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--algorithm", default="nsga2")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--initial", type=int, default=40)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    ratios: dict[float, list[float]] = {share: [] for share in SHARES}
    busy: list[tuple[float, float]] = []
    lines = []
    for seed in range(options.seeds):
        batches = traced(options, seed, options.workers, options.budget)
        # Time is what is compared, so the asynchronous way may use evaluations that fit into it.
        free = traced(options, seed, None, 2 * options.budget)
        busy.append((batches.utilisation, free.utilisation))
        start = batches.hypervolume[options.initial - 1]
        cells = []
        for share in SHARES:
            target = start + share * (batches.hypervolume[-1] - start)
            slow, quick = batches.reached(target), free.reached(target)
            ratios[share].append(quick / slow)
            cells.append(f"{slow:.0f} / {quick:.0f}")
        lines.append(f"| {seed} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    text = table(options, lines, ratios, np.array(busy))
    print(text)
    if options.write:
        path = Path(__file__).with_suffix(".md")
        head = path.read_text(encoding="utf-8").split(MARK)[0]
        path.write_text(f"{head}{MARK}\n\n{text}\n", encoding="utf-8")


def table(
    options: argparse.Namespace,
    lines: list[str],
    ratios: dict[float, list[float]],
    busy: np.ndarray,
) -> str:
    header = " | ".join(f"{share:.0%} of the gain" for share in SHARES)
    medians = " | ".join(f"**{np.median(ratios[share]):.2f}**" for share in SHARES)
    worst = " | ".join(f"{np.max(ratios[share]):.2f}" for share in SHARES)
    batch_busy, free_busy = busy.mean(axis=0)
    return "\n".join(
        [
            f"{options.problem}, {options.variables} variables, {options.algorithm}, "
            f"{options.workers} workers, {options.budget} evaluations in batches of "
            f"{options.workers}, evaluations of 1 to 10 minutes, {options.seeds} seeds.",
            f"Workers are busy {batch_busy:.0%} of the time in batches, {free_busy:.0%} "
            "asynchronously. Simulated minutes (batches / asynchronous) to each target:",
            "",
            f"| seed | {header} |",
            f"|---|{'---|' * len(SHARES)}",
            *lines,
            f"| median of asynchronous / batches | {medians} |",
            f"| worst seed | {worst} |",
        ]
    )


if __name__ == "__main__":
    main()
