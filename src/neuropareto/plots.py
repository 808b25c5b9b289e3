"""Pictures of a run, with matplotlib: the front, the hypervolume history, both side by side.

Each function returns a Figure and shows nothing by itself; figures are built without pyplot's
global state. matplotlib is an extra: ``pip install 'neuropareto[plots]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuropareto.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, GREEN = (
    "#0072B2",
    "#D55E00",
    "#9A9A9A",
    "#009E73",
)  # Okabe-Ito, colour-blind safe


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in the house style, or one sentence that says how to install matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Pictures need matplotlib; install it with: pip install 'neuropareto[plots]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained", dpi=130)
    figure.patch.set_facecolor("white")
    return figure


def clean(ax: Any, *, title: str, x: str, y: str) -> None:
    """Labels, light grid, no frame on top and right."""
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def overview(result: Result) -> Figure:
    """The front beside the hypervolume history."""
    figure = new_figure(10.0, 4.2)
    three = result.F.shape[1] == 3
    left = figure.add_subplot(1, 2, 1, projection="3d" if three else None)
    draw_front(left, result)
    draw_history(figure.add_subplot(1, 2, 2), result)
    return figure


def draw_front(ax: Any, result: Result) -> None:
    """The evaluations and their front: a plane for 2, space for 3, parallel lines for more."""
    m = result.F.shape[1]
    if m == 2:
        _plane(ax, result)
    elif m == 3:
        everything = result.F.T
        ax.scatter(*everything, s=10, color=GREY, alpha=0.4, label="evaluated")
        ax.scatter(*result.front.F.T, s=26, color=ORANGE, label="front")
        clean(ax, title="Pareto front", x="f1", y="f2")
        ax.set_zlabel("f3")
        ax.legend(frameon=False)
    else:
        _parallel(ax, result)


def _plane(ax: Any, result: Result) -> None:
    n_start = int(result.notes[0]["evaluations"]) if result.notes else len(result.F)
    start, found = result.F[:n_start], result.F[n_start:]
    ax.scatter(*start.T, s=12, color=GREY, alpha=0.55, label="start design", linewidths=0)
    if len(found):
        ax.scatter(*found.T, s=14, color=BLUE, alpha=0.75, label="proposed", linewidths=0)
    order = np.argsort(result.front.F[:, 0])
    ax.plot(
        *result.front.F[order].T,
        "o-",
        ms=5,
        lw=1,
        color=ORANGE,
        label=f"front ({len(result.front)})",
    )
    clean(ax, title="Pareto front", x="f1", y="f2")
    ax.legend(frameon=False)


def _parallel(ax: Any, result: Result) -> None:
    low, span = result.F.min(axis=0), np.ptp(result.F, axis=0)
    scaled = (result.front.F - low) / np.where(span > 0, span, 1.0)
    axis = np.arange(1, result.F.shape[1] + 1)
    ax.plot(axis, scaled.T, color=ORANGE, alpha=0.45, lw=1)
    ax.set_xticks(axis, [f"f{j}" for j in axis])
    clean(ax, title="Pareto front (each objective scaled to its range)", x="", y="scaled value")


def draw_history(ax: Any, result: Result) -> None:
    """Hypervolume after each evaluation; a dotted line marks the end of the start design."""
    steps = np.arange(1, len(result.history) + 1)
    ax.step(steps, result.history.hypervolume, where="post", color=BLUE, lw=1.8)
    if result.notes:
        start = int(result.notes[0]["evaluations"])
        ax.axvline(start, color=GREY, ls=":", lw=1.2)
        ax.annotate(
            "start design ends", (start, 0.04), xycoords=("data", "axes fraction"), fontsize=8,
            rotation=90, ha="right", va="bottom", color="#606060",
        )  # fmt: skip
    ax.set_ylim(bottom=0.0)
    clean(ax, title="Hypervolume", x="evaluations", y="dominated hypervolume")
