"""The geothermal case as a table: hypervolume and size of the front, against the structured front.

The paper's case study; it prints +23 % hypervolume over MCEA/D and 16 front points against 8, for a
reservoir that it does not describe. The structured front (early level x late level, 49 schedules,
the same for all wells) is the yardstick, because random designs are poor here.
"""

from __future__ import annotations

import numpy as np

from neuropareto.bench import printed
from neuropareto.bench.layout import Item, Table, number
from neuropareto.bench.material import Material, array
from neuropareto.bench.measures import HV
from neuropareto.bench.statistics import Spread, mark, rank_sum
from neuropareto.bench.tables.comparison import MARKS
from neuropareto.hypervolume import hypervolume
from neuropareto.pareto import nondominated
from neuropareto.problems.geothermal import coarse_reservoir, structured_front

PRINTED = {
    printed.OURS: ("16", "+23 % over MCEA/D"),
    "mcea-d": ("8", ""),
}


def geothermal(material: Material) -> Table:
    """Median hypervolume at (20, 20) M$ and front size of every algorithm that has been run."""
    grid = material.grid("geothermal")
    material.expect(grid.cells)
    task = grid.tasks[0]
    _, structured = structured_front(7, coarse_reservoir())
    level = float(hypervolume(-structured, [-20.0, -20.0]))
    ours = array(material.values(task, printed.OURS, HV))
    rows = [
        (Item("structured front"), Item("49 schedules"), Item(number(level)), Item("1.00"),
         Item(str(int(nondominated(-structured).sum()))), Item(""), Item(""), Item(""))
    ]  # fmt: skip
    for algorithm in dict.fromkeys((*grid.algorithms, *material.whole_algorithms([task]))):
        runs = material.runs(task, algorithm)
        if not runs:
            continue
        values = array(material.values(task, algorithm, HV))
        spread = Spread.of(values)
        sizes = [len(entry.read().front_rows) for entry in runs.values()]
        other = algorithm != printed.OURS and len(ours) > 0
        points, claim = PRINTED.get(algorithm, ("", ""))
        rows.append(
            (
                Item(printed.display(algorithm)),
                Item(f"{len(runs)} seeds"),
                Item(f"{number(spread.median)} ({number(spread.iqr)})",
                     mark(-values, -ours) if other else ""),
                Item(f"{spread.median / level:.2f}"),
                Item(f"{np.median(sizes):.0f}"),
                Item(f"p {rank_sum(values, ours):.2g}" if other else ""),
                Item(points),
                Item(claim),
            )
        )  # fmt: skip
    names = (
        "algorithm", "runs", "hypervolume", "over the structured front", "front points",
        "rank sum", "front points\nprinted", "hypervolume\nprinted",
    )  # fmt: skip
    return Table(f"{grid.title}: after {task.budget} evaluations", names, tuple(rows), (MARKS,))
