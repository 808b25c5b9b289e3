"""Whether the surrogate's 90 % intervals held on the points it proposed, and how long that took.

A forecast is made before its point is evaluated, and each batch is held against its own. Where failed
evaluations break that pairing, what the next round's fit noted of the batch has to do. A run counts by
the mean over its batches, a group by the mean over its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from neuropareto.bench import printed
from neuropareto.bench.layout import Item, Table, items, number
from neuropareto.bench.material import Material
from neuropareto.bench.records import Entry
from neuropareto.space import Array
from neuropareto.stages import came_true


def table(material: Material, algorithm: str = printed.OURS) -> Table | None:
    """By variant, dimension and objectives, and over all; None where no run noted a forecast."""
    groups: dict[tuple[str, int, int], list[tuple[Entry, float]]] = {}
    for task in dict.fromkeys(entry.cell.task for entry in material.records):
        if not material.scale.wants(task):
            continue
        for entry in material.runs(task, algorithm).values():
            share = run_coverage(entry)
            if share is not None:
                groups.setdefault((task.variant, task.d, task.m), []).append((entry, share))
    if not groups:
        return None
    rows = [_row(items(*key), groups[key]) for key in sorted(groups)]
    rows.append(_row(items("all", "", ""), [run for runs in groups.values() for run in runs]))
    return Table(
        f"90 % intervals of {printed.display(algorithm)} on its own proposals, and its seconds",
        ("variant", "D", "M", "runs", "held", "worst run", "seconds a run", "longest"),
        tuple(rows),
        ("Held: mean over runs of the share of outcomes inside. Seconds: inside the algorithm.",),
    )


def run_coverage(entry: Entry) -> float | None:
    """The mean over a run's batches of the share of outcomes inside; None if it noted none."""
    record = entry.read()
    if len(record.failed_X):
        noted = [note.get("surrogate", {}).get("coverage") for note in record.notes]
    else:
        F = record.minimised
        noted = [_held(note, F) for note in record.notes]
    shares = [float(share) for share in noted if share is not None]
    return float(np.mean(shares)) if shares else None


def _held(note: Mapping[str, Any], F: Array) -> float | None:
    """The share of a round's outcomes inside the intervals it predicted; None if it did not."""
    found = came_true(note, F)
    if found is None:
        return None
    mean, variance, outcome = found
    return float((np.abs(outcome - mean) <= ndtri(0.95) * np.sqrt(variance)).mean())


def _row(start: tuple[Item, ...], runs: Sequence[tuple[Entry, float]]) -> tuple[Item, ...]:
    shares = [share for _, share in runs]
    seconds = [float(entry.summary["proposal_seconds"]) for entry, _ in runs]
    return (
        *start, *items(len(runs), f"{np.mean(shares):.3f}", f"{min(shares):.3f}"),
        Item(number(float(np.median(seconds)), 3)), Item(number(max(seconds), 3)),
    )  # fmt: skip
