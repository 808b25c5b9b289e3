"""Times neuropareto.pareto against moocore and pymoo on the same data, in the same run.

    python benchmarks/pareto.py           all sizes, about a minute on one free core
    python benchmarks/pareto.py --quick   the small sizes, about 20 seconds

Prints Markdown tables: milliseconds of processor time (median of repeats, the contestants taking
turns), so that other work on the machine counts little, and how many times as long each other
library took as neuropareto. "-" means that the library has no such function or was left out
because it would take minutes. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

import moocore
import numpy as np
import numpy.typing as npt
from pymoo.indicators.hv import HV
from pymoo.indicators.igd import IGD
from pymoo.indicators.igd_plus import IGDPlus
from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from neuropareto import hypervolume as inner
from neuropareto import pareto

Array = npt.NDArray[np.float64]
Job = Callable[[], object]

RNG = np.random.default_rng(2024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only, about 20 seconds")
    quick = parser.parse_args().quick
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, moocore "
        f"{version('moocore')}, pymoo {version('pymoo')}, {platform.machine()}, one process."
    )
    bench_ranks((1_000, 10_000) if quick else (1_000, 10_000, 100_000))
    bench_arrivals((1_000,) if quick else (1_000, 10_000, 100_000))
    bench_improvement((2, 3, 4, 5) if quick else (2, 3, 4, 5, 6))
    bench_crossover((10, 100) if quick else (10, 30, 100, 300, 1_000))
    bench_greedy((2, 3) if quick else (2, 3, 4, 5))
    bench_sets((2, 3, 4) if quick else (2, 3, 4, 5, 6))
    bench_distances((300,) if quick else (30, 300, 3_000))


# ---- the tables ---------------------------------------------------------------------------------


def bench_ranks(sizes: Sequence[int]) -> None:
    table("Ranks of n points, three objectives", "data, n, ranks")
    for n in sizes:
        line = RNG.random((n, 1))
        for kind, F in (
            ("uniform", RNG.random((n, 3))),
            ("correlated", line + 0.001 * RNG.standard_normal((n, 3))),
        ):
            row(
                f"{kind}, {n:,}, {pareto.ranks(F).max():,}",
                lambda F=F: pareto.ranks(F),
                lambda F=F: moocore.pareto_rank(F),
                (lambda F=F: NonDominatedSorting().do(F)) if n <= 10_000 else None,
                repeats=5 if n <= 10_000 else 3,
            )


def bench_arrivals(sizes: Sequence[int]) -> None:
    table("The front after each of n arrivals: whole sequence", "data, m, n, final front")
    for kind in ("uniform", "near a front"):
        for m in (2, 3):
            F_all = RNG.random((max(sizes), m)) if kind == "uniform" else near(max(sizes), m)
            for n in sizes:
                F = F_all[:n]
                k = np.count_nonzero(pareto.nondominated(F))
                label = f"{kind}, {m}, {n:,}, {k:,}"
                repeats = 3 if n <= 1_000 else 1
                # One by one costs about n k; beyond these products it takes minutes.
                peer = (lambda F=F: arrive(F, moocore_after)) if n * k < 2e7 else None
                if n * k < 5e8:
                    row(
                        f"front_after, {label}",
                        lambda F=F: arrive(F, pareto.front_after),
                        peer,
                        (lambda F=F: arrive(F, pymoo_after)) if n <= 1_000 else None,
                        repeats=repeats,
                    )
                row(
                    f"front_exits, {label}",
                    lambda F=F: pareto.front_exits(F),
                    peer if n <= 10_000 else None,
                    None,
                    repeats=repeats,
                )


def bench_improvement(objectives: Sequence[int]) -> None:
    table("Hypervolume improvement of n candidates over a front of k", "m, n, k")
    for m in objectives:
        for n, k in ((1, 100), (1_000, 20), (1_000, 100)):
            improvement_row(m, n, k)
    improvement_row(2, 5_000, 100)
    improvement_row(3, 1_000, 300)


def improvement_row(m: int, n: int, k: int) -> None:
    C, P, z = shell(n, m), sphere(k, m), np.full(m, 1.1)

    def by_difference() -> Array:
        before = moocore.hypervolume(P, z)
        return np.array([moocore.hypervolume(np.vstack([P, c]), z) - before for c in C])

    def pymoo_difference() -> Array:
        indicator = HV(ref_point=z)
        return np.array([indicator(np.vstack([P, c])) for c in C]) - indicator(P)

    np.testing.assert_allclose(pareto.improvement(C, P, z), by_difference(), atol=1e-12)
    row(
        f"{m}, {n:,}, {k}",
        lambda: pareto.improvement(C, P, z),
        by_difference,
        pymoo_difference if m < 5 else None,
        repeats=3 if m < 5 else 1,
    )


def bench_crossover(fronts: Sequence[int]) -> None:
    """From how many candidates on the boxes are faster than one moocore call per candidate."""
    print("\n### Boxes against one moocore call per candidate\n")
    print("| m, k | boxes | build ms | us per candidate | one call us | pays from n |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for m in (3, 4, 5, 6, 7):
        for k in fronts:
            if m > 5 and k > 100:
                continue
            P, C, z = sphere(k, m), shell(400, m), np.full(m, 1.1)
            few = C[: 20 if m > 5 else 100]
            boxes = inner._boxes(P, z)
            assert boxes is not None
            build = median_ms(lambda P=P, z=z: inner._boxes(P, z), 7)
            each = median_ms(lambda C=C, b=boxes: inner._box_volumes(C, *b), 7) / len(C)
            call = median_ms(lambda C=few, P=P, z=z: [inner._gain(c, P, z) for c in C], 3) / len(
                few
            )
            pays = f"{build / (call - each):.0f}" if call > each else "never"
            print(
                f"| {m}, {k:,} | {boxes[0].shape[1]:,} | {build:.3g} | {1e3 * each:.3g} | "
                f"{1e3 * call:.3g} | {pays} |",
                flush=True,
            )


def bench_greedy(objectives: Sequence[int]) -> None:
    table("Greedy choice of 20 of n candidates over 100 points; moocore: plain greedy", "m, n")
    for m in objectives:
        C, P, z = shell(500, m), sphere(100, m), np.full(m, 1.1)

        def plain(C: Array = C, P: Array = P, z: Array = z) -> list[int]:
            chosen: list[int] = []
            for _ in range(20):
                gains = [moocore.hypervolume(np.vstack([P, c]), z) for c in C]
                chosen.append(int(np.argmax(gains)))
                P = np.vstack([P, C[chosen[-1]]])
            return chosen

        def ours(C: Array = C, P: Array = P, z: Array = z) -> list[int]:
            return pareto.greedy_improvement(C, P, z, 20).tolist()

        assert ours() == plain()
        row(f"{m}, 500", ours, plain, None, repeats=1)
    for m in objectives:
        C, P, z = shell(2_000, m), sphere(100, m), np.full(m, 1.1)
        row(
            f"{m}, 2,000",
            lambda C=C, P=P, z=z: pareto.greedy_improvement(C, P, z, 20),
            None,
            None,
        )


def bench_sets(objectives: Sequence[int]) -> None:
    table("Of 100 points: hypervolume, contributions, crowding", "function, m")
    for m in objectives:
        P, z = sphere(100, m), np.full(m, 1.1)
        D = np.vstack([P, sphere(100, m) * 1.05])
        row(
            f"hypervolume, {m}",
            lambda P=P, z=z: pareto.hypervolume(P, z),
            lambda P=P, z=z: moocore.hypervolume(P, z),
            lambda P=P, z=z: HV(ref_point=z)(P),
        )
        row(
            f"contributions, {m}",
            lambda P=P, z=z: pareto.contributions(P, z),
            lambda P=P, z=z: moocore.hv_contributions(P, z),
            None,
            repeats=5 if m < 6 else 1,
        )
        row(
            f"contributions with 100 rows 5 % behind, {m}",
            lambda D=D, z=z: pareto.contributions(D, z),
            (lambda D=D, z=z: moocore.hv_contributions(D, z, ignore_dominated=False))
            if m < 6
            else None,
            None,
            repeats=3 if m < 5 else 1,
        )
        row(
            f"crowding, {m}",
            lambda P=P: pareto.crowding(P),
            None,
            lambda P=P: calc_crowding_distance(P),
        )


def bench_distances(sizes: Sequence[int]) -> None:
    table("Distance of n points to a front of 10,000", "function, m, n")
    for m in (2, 3):
        P = sphere(10_000, m)
        for n in sizes:
            F = sphere(n, m) * RNG.uniform(1, 2.5, (n, 1))
            row(
                f"igd, {m}, {n:,}",
                lambda F=F, P=P: pareto.igd(F, P),
                lambda F=F, P=P: moocore.igd(F, P),
                (lambda F=F, P=P: IGD(P)(F)) if n <= 300 else None,
            )
            row(
                f"igd_plus, {m}, {n:,}",
                lambda F=F, P=P: pareto.igd_plus(F, P),
                lambda F=F, P=P: moocore.igd_plus(F, P),
                (lambda F=F, P=P: IGDPlus(P)(F)) if n <= 300 else None,
            )
            row(
                f"igd_history, {m}, {n:,}",
                lambda F=F, P=P: pareto.igd_history(F, P),
                (lambda F=F, P=P: [moocore.igd(F[: i + 1], P) for i in range(len(F))])
                if n <= 300
                else None,
                None,
                repeats=3 if n <= 300 else 1,
            )


# ---- data ---------------------------------------------------------------------------------------


def sphere(n: int, m: int) -> Array:
    """n points on the positive part of the unit sphere: a front without dominated points."""
    rows = np.abs(RNG.standard_normal((n, m)))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def shell(n: int, m: int) -> Array:
    """Candidates on both sides of that front."""
    return sphere(n, m) * RNG.uniform(0.85, 1.15, (n, 1))


def near(n: int, m: int) -> Array:
    """Points slightly behind that front, so that the front of the arrivals keeps growing."""
    return sphere(n, m) * (1 + RNG.exponential(0.01, (n, 1)))


def arrive(F: Array, after: Callable[[pareto.Indices, Array, int], pareto.Indices]) -> int:
    front = np.empty(0, dtype=np.int64)
    for i in range(len(F)):
        front = after(front, F, i)
    return len(front)


def moocore_after(front: pareto.Indices, F: Array, new: int) -> pareto.Indices:
    both = np.append(front, new)
    return both[moocore.is_nondominated(F[both], keep_weakly=True)]


def pymoo_after(front: pareto.Indices, F: Array, new: int) -> pareto.Indices:
    both = np.append(front, new)
    return both[NonDominatedSorting().do(F[both], only_non_dominated_front=True)]


# ---- timing -------------------------------------------------------------------------------------


def median_ms(job: Job, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def table(title: str, first: str) -> None:
    print(f"\n### {title}\n")
    print(f"| {first} | neuropareto ms | moocore ms | pymoo ms | moocore / ours | pymoo / ours |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)


def row(label: str, ours: Job, peer: Job | None, other: Job | None, repeats: int = 5) -> None:
    """One line: at least ``repeats`` turns each, and up to 51 while the line is short of 0.3 s."""
    taken: list[list[float]] = [[], [], []]
    jobs = (ours, peer, other)
    began, turn = time.perf_counter(), 0
    while turn < repeats or (turn < 51 and time.perf_counter() - began < 0.3):
        turn += 1
        for job, times in zip(jobs, taken, strict=True):
            if job is not None:
                start = time.process_time()
                job()
                times.append(1e3 * (time.process_time() - start))
    middle = [statistics.median(times) if times else None for times in taken]
    own = middle[0] or 1e-9
    cells = [shown(value) if value is not None else "-" for value in middle]
    cells += [f"{value / own:.1f}" if value is not None else "-" for value in middle[1:]]
    print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def shown(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


if __name__ == "__main__":
    main()
