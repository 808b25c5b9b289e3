"""A picture of a tuning's evidence: one row a configuration, best on top, one panel a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from neuropareto.analysis.cost import TUNED
from neuropareto.bench.figures.style import BLUE, ORANGE, clean, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def evidence_figure(folder: Path) -> Figure:
    """The evidence in a folder's ``tuned.json``; transferred or grid blue, refined orange."""
    told = json.loads((folder / TUNED).read_text(encoding="utf-8"))
    rows = told["evidence"]
    names = list(dict.fromkeys(key for row in rows for key in row["figures"]))
    figure = new_figure(3.4 + 2.2 * len(names), 1.2 + 0.24 * len(rows))
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        for y, row in enumerate(rows):
            color, mark = (ORANGE, "s") if row["stage"] == "refine" else (BLUE, "o")
            if name in row["figures"]:
                ax.plot(row["figures"][name], y, mark, color=color, ms=5)
        clean(ax, title="", x=name, y="")
    axes[0].set_yticks(range(len(rows)), [row["said"] for row in rows], fontsize=7.5)
    axes[0].invert_yaxis()
    figure.suptitle(
        f"Evidence on {told['problem']} ({told['how']}; squares: refined)", x=0.01, ha="left",
        fontsize=11, fontweight="bold",
    )  # fmt: skip
    return figure
