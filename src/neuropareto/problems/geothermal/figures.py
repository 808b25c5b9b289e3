"""Pictures of the geothermal case, from arrays: any optimizer's result can be drawn.

Notation: n evaluations, X (n, d) in [0, 1], F (n, 2) in M$ to maximise. Every function returns a
matplotlib Figure that is not shown or saved; ``figure.savefig("front.png")`` does that. matplotlib
is imported on first use. Colours are Okabe and Ito's, viridis and inferno: safe for colour-blind eyes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuropareto.pareto import nondominated
from neuropareto.problems.geothermal.reservoir import Reservoir
from neuropareto.problems.geothermal.simulate import Outcome
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
THREE = (BLUE, GREEN, ORANGE)
LABELS = ("short-term", "compromise", "long-term")
F1, F2 = "short-term value f1 (M$)", "long-term value f2 (M$)"


def three_points(F: Array) -> tuple[int, int, int]:
    """The rows of F (n, 2) with the best f1, the best compromise and the best f2.

    The compromise is the point of the front nearest to the best of both, each objective scaled to
    the range of the front.
    """
    front = np.flatnonzero(nondominated(-F))
    low, high = F[front].min(axis=0), F[front].max(axis=0)
    gap = (high - F[front]) / np.where(high > low, high - low, 1.0)
    middle = front[int(np.argmin(np.hypot(gap[:, 0], gap[:, 1])))]
    return int(np.argmax(F[:, 0])), int(middle), int(np.argmax(F[:, 1]))


def front_figure(F: Array, structured: Array, n_start: int) -> Figure:
    """The front of F (n, 2) beside the structured one (k, 2); the first ``n_start`` rows of F are
    the start design.
    """
    figure = _new_figure(7.0, 5.0)
    ax = figure.add_subplot()
    ax.scatter(
        F[:n_start, 0],
        F[:n_start, 1],
        s=13,
        c=GREY,
        alpha=0.55,
        lw=0,
        label=f"start design ({n_start})",
    )
    if len(F) > n_start:
        label = f"proposed ({len(F) - n_start})"
        ax.scatter(F[n_start:, 0], F[n_start:, 1], s=17, c=BLUE, alpha=0.6, lw=0, label=label)
    _staircase(ax, structured, GREEN, "s", f"structured front ({len(structured)} runs)")
    _staircase(ax, F, ORANGE, "o", "front found")
    _clean(ax, "Short-term against long-term value", F1, F2)
    ax.legend(frameon=False, fontsize=9)
    return figure


def hypervolume_figure(history: Array, structured: float, n_start: int) -> Figure:
    """Hypervolume (n,) after every evaluation, and that of the structured front as a yardstick."""
    figure = _new_figure(7.0, 4.2)
    ax = figure.add_subplot()
    steps = np.arange(1, len(history) + 1)
    ax.step(steps, np.asarray(history) / 1e3, where="post", color=BLUE, lw=2.0)
    ax.axhline(structured / 1e3, color=GREEN, ls="--", lw=1.5)
    ax.annotate(
        "structured front", (0.012, structured / 1e3), xycoords=("axes fraction", "data"),
        xytext=(0, 4), textcoords="offset points", color=GREEN, fontsize=9,
    )  # fmt: skip
    if 0 < n_start < len(history):
        ax.axvline(n_start, color=GREY, ls=":", lw=1.3)
        ax.annotate(
            "start design ends", (n_start, 0.03), xycoords=("data", "axes fraction"),
            xytext=(-4, 0), textcoords="offset points", rotation=90, ha="right", fontsize=8,
            color="#606060",
        )  # fmt: skip
    ax.set_xlim(0, len(history))
    ax.set_ylim(0, 1.12e-3 * max(float(np.max(history)), structured))
    _clean(ax, "Hypervolume", "evaluations", "dominated hypervolume (1000 M$²)")
    return figure


def schedules_figure(
    reservoir: Reservoir, X: Array, F: Array, labels: Sequence[str] = LABELS
) -> Figure:
    """Rates of k schedules X (k, d) as wells x time, a column each, with their F (k, 2)."""
    rates = [reservoir.rates(u) for u in X]
    schedule = reservoir.schedule
    years = schedule.intervals * schedule.days / 365.25
    figure = _new_figure(3.4 * len(X) + 1.2, 4.8)
    axes = figure.subplots(2, len(X), sharex=True, sharey="row", squeeze=False)
    rows = (
        ("injector", [r.injection for r in rates]),
        ("producer", [r.production for r in rates]),
    )
    for row, (kind, tables) in zip(axes, rows, strict=True):
        highest = max(float(table.max()) for table in tables)
        for ax, table in zip(row, tables, strict=True):
            wells = table.shape[1]
            picture = ax.imshow(
                table.T, aspect="auto", cmap="viridis", vmin=0.0, vmax=highest,
                extent=(0.0, years, wells + 0.5, 0.5), interpolation="nearest",
            )  # fmt: skip
            ax.set_yticks(range(1, wells + 1))
            ax.axvline(years * schedule.early / schedule.intervals, color="white", lw=1.2, ls="--")
        row[0].set_ylabel(kind)
        figure.colorbar(picture, ax=row, label="rate (kg/s)", pad=0.015)
    for k, label in enumerate(labels):
        title = f"{label}\nf1 = {F[k, 0]:.0f}, f2 = {F[k, 1]:.0f} M$"
        axes[0, k].set_title(title, fontsize=10)
        axes[1, k].set_xlabel("years")
    return figure


def temperature_figure(outcomes: Sequence[Outcome], labels: Sequence[str] = LABELS) -> Figure:
    """Produced temperature over time: the mean by rate (bold) and every producer (thin)."""
    figure = _new_figure(7.0, 4.2)
    ax = figure.add_subplot()
    for outcome, label, colour in zip(outcomes, labels, _colours(len(outcomes)), strict=True):
        years, celsius = outcome.days / 365.25, outcome.production_temperature - 273.15
        steps = len(years) // len(outcome.rates.production)
        weight = np.repeat(outcome.rates.production, steps, axis=0)
        mean = (celsius * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-12)
        ax.plot(years, celsius, color=colour, lw=0.8, alpha=0.35)
        ax.plot(years, mean, color=colour, lw=2.4, label=label)
    _clean(ax, "Temperature of the produced water", "years", "temperature (°C)")
    ax.set_xlim(0.0, None)
    ax.legend(frameon=False, loc="lower left", title="thin lines: each producer", title_fontsize=9)
    return figure


def field_figure(
    reservoir: Reservoir, outcomes: Sequence[Outcome], labels: Sequence[str]
) -> Figure:
    """Temperature at the end in plan, with fractures and wells; a panel per outcome."""
    network = reservoir.discretisation.network
    edges, lines = network.grid.edges, network.segments.lines
    figure = _new_figure(4.0 * len(outcomes) + 1.2, 4.5)
    axes = figure.subplots(1, len(outcomes), sharey=True, squeeze=False)[0]
    initial, cold = reservoir.rock.temperature - 273.15, reservoir.fluid.injected - 273.15
    for ax, outcome, label in zip(axes, outcomes, labels, strict=True):
        field = outcome.temperature.T - 273.15
        picture = ax.pcolormesh(edges, edges, field, cmap="inferno", vmin=cold, vmax=initial)
        for x0, y0, x1, y1 in lines:
            ax.plot((x0, x1), (y0, y1), color="#56B4E9", lw=1.0, alpha=0.9)
        for wells, mark, name in (
            (reservoir.wells.injectors, "v", "injector"),
            (reservoir.wells.producers, "^", "producer"),
        ):
            ax.scatter(
                [w.x for w in wells], [w.y for w in wells], marker=mark, s=75, lw=1.2,
                c=BLUE if mark == "v" else ORANGE, edgecolors="white", label=name, zorder=3,
            )  # fmt: skip
        reach = 1.15 * reservoir.geometry.core
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="x (m)")
        ax.set_title(f"{label}: {outcome.balance.heat_left:.0%} of the heat left", fontsize=10)
    axes[0].set_ylabel("y (m)")
    axes[0].legend(loc="lower left", fontsize=8, framealpha=0.9)
    figure.colorbar(picture, ax=axes, label="temperature (°C)", shrink=0.9)
    return figure


def prediction_figure(F: Array, mean: Array, epistemic: Array, aleatoric: Array) -> Figure:
    """Predicted against simulated objectives; bars of two standard deviations.

    ``F`` and ``mean`` (n, 2); ``epistemic`` and ``aleatoric`` (n, 2) are variances. The thick bar is
    what the model does not know, the thin one adds the noise it believes in.
    """
    figure = _new_figure(9.6, 4.6)
    for j, name in enumerate((F1, F2)):
        ax = figure.add_subplot(1, 2, j + 1)
        inner = 2.0 * np.sqrt(epistemic[:, j])
        outer = 2.0 * np.sqrt(epistemic[:, j] + aleatoric[:, j])
        ends = np.concatenate([F[:, j], mean[:, j]])
        span = np.array([ends.min(), ends.max()]) + np.array([-0.05, 0.05]) * np.ptp(ends)
        ax.plot(span, span, color=GREY, lw=1.0, ls="--")
        for spread, colour, width, opacity, label in (
            (inner, BLUE, 3.0, 0.35, "epistemic, 2 std"),
            (outer, ORANGE, 0.9, 0.9, "epistemic + aleatoric, 2 std"),
        ):
            ax.errorbar(
                F[:, j], mean[:, j], spread, fmt="none", ecolor=colour, elinewidth=width,
                alpha=opacity, label=label,
            )  # fmt: skip
        ax.scatter(F[:, j], mean[:, j], s=14, c="black", lw=0, zorder=3)
        ax.set(xlim=span)
        inside = float(np.mean(np.abs(F[:, j] - mean[:, j]) <= outer))
        error = float(np.sqrt(np.mean((F[:, j] - mean[:, j]) ** 2)))
        _clean(
            ax,
            f"{inside:.0%} inside the band, RMSE {error:.1f} M$",
            f"simulated {name}",
            "predicted",
        )
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Pictures need matplotlib; install it with: pip install 'neuropareto[plots]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def _clean(ax: Any, title: str, x: str, y: str) -> None:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25, lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _colours(n: int) -> tuple[str, ...]:
    return tuple(np.resize(THREE, n).tolist())


def _staircase(ax: Axes, F: Array, colour: str, marker: str, label: str) -> None:
    """The non-dominated points of F joined by the boundary of what they dominate."""
    best: npt.NDArray[np.float64] = F[nondominated(-F)]
    best = best[np.argsort(best[:, 0])]
    ax.step(best[:, 0], best[:, 1], where="pre", color=colour, lw=1.1, alpha=0.7)
    ax.plot(best[:, 0], best[:, 1], marker, color=colour, ms=6, mec="white", mew=0.7,
            label=f"{label}: {len(best)} points")  # fmt: skip
