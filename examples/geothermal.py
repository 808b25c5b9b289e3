"""The geothermal case from start to pictures: 300 simulations, then everything one wants to see.

Run: python examples/geothermal.py --output geothermal-output
Add --coarse for 60 m cells (five times faster), --budget 40 for a first look, or another algorithm:
--algorithm nsga2. The pictures of predictions need an algorithm that predicts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from neuropareto import minimize
from neuropareto.algorithms import algorithm
from neuropareto.problems.geothermal import (
    Reservoir,
    coarse_reservoir,
    geothermal,
    geothermal_coarse,
)
from neuropareto.problems.geothermal.album import draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coarse", action="store_true", help="60 m cells instead of 40 m")
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--algorithm", default="neuropareto", help="a name of algorithms()")
    parser.add_argument("--output", type=Path, default=Path("geothermal-output"))
    options = parser.parse_args()
    problem = geothermal_coarse() if options.coarse else geothermal()
    reservoir = coarse_reservoir() if options.coarse else Reservoir()
    result = minimize(
        problem,
        budget=options.budget,
        batch=options.batch,
        algorithm=algorithm(options.algorithm),
        seed=options.seed,
        progress=True,
    )
    album = draw(reservoir, result.X, result.F, result.notes, options.output)
    print(
        f"hypervolume {album.history[-1]:.0f}, structured front {album.yardstick:.0f}; "
        f"pictures in {options.output}"
    )
    print(f"{len(result.front.F)} points on the front after {len(result.F)} simulations")


if __name__ == "__main__":
    main()
