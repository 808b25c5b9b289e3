"""The pictures of a report, as SVG images inside the page.

Built without pyplot; text stays text, and no name is ever read as mathematics. Colours are safe
for colour-blind readers and differ in grey too. Notation: n evaluations, m objectives, d variables.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuropareto.plots import BLUE, GREY, ORANGE, clean, new_figure
from neuropareto.report.importance import Importance
from neuropareto.report.record import Predictions
from neuropareto.result import Result
from neuropareto.space import Array

_STYLE: dict[Any, Any] = {
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "neuropareto",
    "font.family": "sans-serif",
    "axes.edgecolor": "#777777",
    "font.size": 10,
}
SHADES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def image(draw: Callable[[], Any], alt: str) -> tuple[str, str]:
    """(data URL, alternative text) of what ``draw`` draws."""
    new_figure(1.0, 1.0)  # says how to install matplotlib where it is missing
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context(_STYLE):
        # A name in a script that the font lacks is drawn by the browser's own font.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        figure, buffer = draw(), io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{data}", alt


def label(name: str, longest: int = 26) -> str:
    """A name as it may stand in a picture: printable and short."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def front(result: Result, names: Sequence[str]) -> Any:
    """Evaluations and front, one panel for each pair of the first four objectives."""
    m = min(result.F.shape[1], 4)
    if m == 1:
        return _single(result, names)
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = new_figure(8.6 if len(pairs) == 1 else 10.0, 4.6 if len(pairs) == 1 else 3.4 * rows)
    feasible = (result.G <= 0).all(axis=1)
    for place, (i, j) in enumerate(pairs):
        ax = figure.add_subplot(rows, columns, place + 1)
        x, y = result.F[:, i], result.F[:, j]
        if (~feasible).any():
            ax.scatter(x[~feasible], y[~feasible], s=14, marker="x", lw=0.8, color="#BBBBBB",
                       label="breaks a constraint")  # fmt: skip
        _by_age(ax, result, x, y, feasible)
        order = np.argsort(result.front.F[:, i])
        line = "o-" if result.F.shape[1] == 2 else "o"
        ax.plot(result.front.F[order, i], result.front.F[order, j], line, ms=5, lw=1, color=ORANGE,
                label=f"front ({len(result.front)})", zorder=3)  # fmt: skip
        clean(ax, title="", x=_axis(result, names, i), y=_axis(result, names, j))
        if place == 0:
            ax.legend(frameon=False, fontsize=9)
    return figure


def _by_age(ax: Any, result: Result, x: Array, y: Array, feasible: Any) -> None:
    start = int(result.notes[0]["evaluations"]) if result.notes else len(x)
    age = np.arange(len(x)) < start
    for chosen, colour, text in ((age, GREY, "start design"), (~age, BLUE, "proposed")):
        rows = chosen & feasible
        if rows.any():
            ax.scatter(x[rows], y[rows], s=15, color=colour, alpha=0.6, linewidths=0, label=text)


def _single(result: Result, names: Sequence[str]) -> Any:
    figure = new_figure(8.6, 4.0)
    ax = figure.add_subplot()
    ax.plot(np.arange(1, len(result.F) + 1), result.F[:, 0], "o", ms=4, color=BLUE, alpha=0.7)
    clean(ax, title="", x="evaluations", y=_axis(result, names, 0))
    return figure


def _axis(result: Result, names: Sequence[str], j: int) -> str:
    return f"{label(names[j])}  ({'less' if result.directions[j] == 'minimize' else 'more'} is better)"


def history(result: Result) -> Any:
    """Hypervolume and size of the front after each evaluation."""
    figure = new_figure(8.6, 3.4)
    ax = figure.add_subplot()
    steps = np.arange(1, len(result.history) + 1)
    ax.step(steps, result.history.hypervolume, where="post", color=BLUE, lw=1.8)
    ax.fill_between(steps, result.history.hypervolume, step="post", color=BLUE, alpha=0.08)
    if result.notes:
        start = int(result.notes[0]["evaluations"])
        ax.axvline(start, color="#777777", ls=":", lw=1.2)
        ax.annotate(" start design ends", (start, 0.04), xycoords=("data", "axes fraction"),
                    fontsize=9, color="#555555")  # fmt: skip
    ax.set_ylim(bottom=0)
    clean(ax, title="", x="successful evaluations", y="hypervolume")
    return figure


def parallel(result: Result, names: Sequence[str], chosen: Sequence[int]) -> Any:
    """The front through ``chosen`` variables and all objectives, each axis over its whole range."""
    span = result.space.upper - result.space.lower
    V = (result.X[:, chosen] - result.space.lower[chosen]) / span[chosen]
    low, width = result.F.min(axis=0), np.ptp(result.F, axis=0)
    Y = (result.F - low) / np.where(width > 0, width, 1.0)
    lines = np.concatenate([V, Y], axis=1)
    figure = new_figure(10.0, 4.2)
    ax = figure.add_subplot()
    at = np.arange(lines.shape[1])
    rest = np.setdiff1d(np.arange(len(lines)), result.front.rows)[-400:]
    if len(rest):
        ax.plot(at, lines[rest].T, color=GREY, alpha=0.12, lw=0.7)
    import matplotlib

    along = Y[result.front.rows, 0]
    colours = matplotlib.colormaps["viridis"](
        0.9 * (along - along.min()) / max(np.ptp(along), 1e-12)
    )
    for row, colour in zip(result.front.rows, colours, strict=True):
        ax.plot(at, lines[row], color=colour, alpha=0.85, lw=1.3)
    ax.axvline(len(chosen) - 0.5, color="#333333", lw=0.8)
    texts = [label(result.space.names[i], 16) for i in chosen] + [label(n, 16) for n in names]
    ax.set_xticks(at, texts, rotation=35, ha="right")
    ax.set_yticks([0, 1], ["low", "high"])
    ax.set_ylim(-0.04, 1.04)
    clean(ax, title="", x="", y="")
    return figure


def importance(found: Importance, names: Sequence[str], variables: Sequence[str]) -> Any:
    """Bars of the most important variables, one panel for each objective."""
    top = found.top(12)
    m = min(len(names), 4)
    figure = new_figure(10.0, 0.6 + 0.28 * len(top) + 0.5)
    for j in range(m):
        ax = figure.add_subplot(1, m, j + 1)
        ax.barh(np.arange(len(top)), 100 * found.share[top, j], color=SHADES[j], height=0.72)
        shown = [label(variables[i], 18) for i in top] if j == 0 else [""] * len(top)
        ax.set_yticks(np.arange(len(top)), shown)
        ax.invert_yaxis()
        ax.set_xlim(0, max(1.0, 115 * found.share[top].max()))
        for row, i in enumerate(top):
            sign = found.correlation[i, j]
            mark = "+" if sign > 0.15 else "−" if sign < -0.15 else ""
            ax.annotate(f" {mark}", (100 * found.share[i, j], row), va="center", fontsize=10)
        clean(ax, title=label(names[j]), x="error grows by … % of variance", y="")
    return figure


def calibration(predictions: Predictions, names: Sequence[str]) -> Any:
    """Observed over predicted with two standard deviations, one panel for each objective."""
    m = min(len(names), 4)
    figure = new_figure(10.0 if m > 1 else 6.0, 3.9)
    std = np.sqrt(predictions.epistemic + predictions.aleatoric)
    for j in range(m):
        ax = figure.add_subplot(1, m, j + 1)
        ax.errorbar(predictions.mean[:, j], predictions.observed[:, j], xerr=2 * std[:, j], fmt="o",
                    ms=3.5, color=BLUE, ecolor="#0072B255", elinewidth=0.8, alpha=0.8)  # fmt: skip
        both = np.concatenate([predictions.mean[:, j], predictions.observed[:, j]])
        ends = [both.min(), both.max()]
        ax.plot(ends, ends, color="#333333", lw=0.9, ls="--")
        clean(ax, title=label(names[j]), x="predicted (± 2 std)", y="observed" if j == 0 else "")
    return figure


def durations(seconds: Array) -> Any:
    """How long evaluations took."""
    figure = new_figure(8.6, 2.6)
    ax = figure.add_subplot()
    wide = seconds.max() > 30 * max(float(np.median(seconds)), 1e-9) and seconds.min() > 0
    bins: Any = min(40, max(5, len(seconds) // 3))
    if wide:
        bins = np.geomspace(seconds.min(), seconds.max() * 1.001, bins)
        ax.set_xscale("log")
    ax.hist(seconds, bins=bins, color=BLUE, alpha=0.8)
    clean(ax, title="", x="seconds of an evaluation", y="evaluations")
    return figure
