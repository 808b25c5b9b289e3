"""Seconds, stage profile and memory of a geothermal simulation, and the yardsticks of the case.

Run: OMP_NUM_THREADS=1 python benchmarks/geothermal.py [--yardsticks]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import statistics
import time
from pathlib import Path

import numpy as np

from neuropareto.hypervolume import hypervolume
from neuropareto.pareto import nondominated
from neuropareto.problems.geothermal import (
    CashFlow,
    Geometry,
    Reservoir,
    coarse_reservoir,
    geothermal,
    structured_front,
)
from neuropareto.randomness import stream

STAGES = {
    ("flow", "solve_flow"): "flow: all",
    ("banded", "solve_symmetric"): "flow: factorise and solve",
    ("heat", "heat_step"): "heat: assemble and factorise",
    ("banded", "factorise"): "heat: factorise",
    ("heat", "advanced"): "heat: all of the steps",
    ("banded", "solve"): "heat: triangular solves",
    ("heat", "_outflow"): "heat: residual check",
    ("cover", "advanced"): "cap and base rock",
}


def seconds_per_simulation(reservoir: Reservoir, repeats: int = 9) -> tuple[float, float]:
    """Median wall and processor seconds over random schedules, after the geometry was built."""
    U = stream(0, 0, "benchmark").random((repeats, reservoir.n_variables))
    reservoir.simulate(U[0])
    wall, processor = [], []
    for u in U:
        began, used = time.perf_counter(), time.process_time()
        reservoir.simulate(u)
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return statistics.median(wall), statistics.median(processor)


def profile(reservoir: Reservoir) -> list[tuple[str, int, float]]:
    """(stage, calls, cumulative seconds) of one simulation."""
    u = stream(0, 0, "benchmark").random(reservoir.n_variables)
    reservoir.simulate(u)
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(reservoir.simulate, u)
    found = {
        (Path(file).stem, function): (entry[1], entry[3])
        for (file, _, function), entry in pstats.Stats(profiler).stats.items()  # type: ignore[attr-defined]
    }
    return [(label, *found[key]) for key, label in STAGES.items()]


def yardsticks(name: str, reservoir: Reservoir) -> None:
    """Hypervolumes with reference (20, 20): 200 Latin-hypercube designs and the 7 x 7 front."""
    space = geothermal().space
    random = CashFlow(reservoir)(space.latin_hypercube(200, rng=np.random.default_rng(0)))
    _, structured = structured_front(7, reservoir)
    for label, F in (
        ("200 Latin-hypercube designs", random),
        ("7 x 7 structured front", structured),
    ):
        volume, points = hypervolume(-F, [-20.0, -20.0]), int(nondominated(-F).sum())
        print(f"{name:>6}: {label:<28} hypervolume {volume:9.0f}  ({points} points)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--yardsticks", action="store_true", help="also the hypervolumes (a minute)"
    )
    options = parser.parse_args()
    cases = {
        "60 m, 1 sweep": coarse_reservoir(),
        "60 m": Reservoir(geometry=Geometry(cell=60.0)),
        "40 m": Reservoir(),
        "25 m": Reservoir(geometry=Geometry(cell=25.0)),
    }
    for name, reservoir in cases.items():
        disc = reservoir.discretisation
        wall, processor = seconds_per_simulation(reservoir)
        print(
            f"{name:>14}: {wall:.3f} s a simulation ({processor:.3f} s of processor time), "
            f"{disc.network.nodes} nodes ({len(disc.network.segments.cell)} segments), "
            f"half band width {disc.pattern.width}, peak memory so far "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
        )
    print("\nStages of one simulation at 40 m (with the profiler's overhead):")
    for stage, calls, seconds in profile(cases["40 m"]):
        print(f"  {stage:<30} {calls:4d} calls {1e3 * seconds:7.1f} ms")
    if options.yardsticks:
        print()
        yardsticks("60 m", coarse_reservoir())
        yardsticks("40 m", Reservoir())


if __name__ == "__main__":
    main()
