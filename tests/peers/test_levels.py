"""The committed runs of the peers are complete, and at the printed levels where those are their own."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from neuropareto.bench.grid import load
from neuropareto.bench.measures import IGD
from neuropareto.bench.printed import printed_igd
from neuropareto.bench.records import Records

FOLDER = Path(__file__).parents[2] / "benchmarks" / "records" / "peers"
OWN_COLUMN = ("clmea", "k-rvea", "mcea-d", "csea", "cps-moea", "edn-armoea")


@pytest.fixture(scope="module")
def values() -> dict[tuple[str, int, str], list[float]]:
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for entry in Records([FOLDER]):
        task = entry.cell.task
        found[task.problem, task.d, entry.cell.algorithm].append(entry.value(IGD))
    return found


def test_every_peer_has_run_every_task(values: dict[tuple[str, int, str], list[float]]) -> None:
    cells = load("peers").cells
    wanted = {(c.task.problem, c.task.d, c.algorithm) for c in cells}
    assert len(wanted) == 16 * 13
    for cell in wanted:
        runs = values[cell]
        assert len(runs) == 3 and np.isfinite(runs).all(), cell


@pytest.mark.parametrize("peer", OWN_COLUMN)
def test_a_peer_is_at_its_printed_level(
    peer: str, values: dict[tuple[str, int, str], list[float]]
) -> None:
    """The printed columns of the other peers are fixed multiples of these, or missing."""
    ratios = [
        np.median(runs) / float(printed)
        for (name, d, algorithm), runs in values.items()
        if algorithm == peer and d == 30 and (printed := printed_igd(name, d, 2, peer))
    ]
    assert len(ratios) == 12
    assert 0.7 < np.exp(np.mean(np.log(ratios))) < 1.4
