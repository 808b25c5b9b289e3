"""How the figures look: one colour and line an algorithm, a line below that says what it is made of.

Colours are Okabe and Ito's, safe for colour-blind eyes; line styles differ too, so that figures
survive a black-and-white printer.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from neuropareto.bench.printed import display
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE, YELLOW, GREY, BLACK = (
    "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#B8A800", "#8C8C8C", "#222222",
)  # fmt: skip
_LOOKS: dict[str, tuple[str, Any]] = {
    "neuropareto": (BLUE, "-"),
    "neuropareto-paper": (SKY, "-"),
    "nsga2": (ORANGE, "--"),
    "random": (GREY, ":"),
    "clmea": (VERMILION, "-"),
    "mcea-d": (GREEN, "-."),
    "k-rvea": (PURPLE, "--"),
    "csea": (YELLOW, "-."),
    "edn-armoea": (GREEN, ":"),
    "cps-moea": (VERMILION, "--"),
    "gp-ei": (PURPLE, ":"),
    "rf-ei": (YELLOW, "--"),
    "gp-hv": (BLACK, "--"),
    "cl-ego": (BLACK, ":"),
    "morbo": (BLACK, "-"),
    "egbo": (GREEN, "-"),
    "cdm-psl": (PURPLE, "-"),
}
_SPARE = ((SKY, "--"), (GREEN, "--"), (PURPLE, "-."), (VERMILION, ":"), (ORANGE, "-."))


class NotYet(ValueError):
    """A figure cannot be made: what is missing and what to do about it."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in the house style."""
    from neuropareto import plots  # matplotlib's house style lives above the benchmark

    return plots.new_figure(width, height)


def clean(ax: Any, *, title: str, x: str, y: str) -> None:
    """Labels, light grid, no frame on top and right."""
    from neuropareto import plots

    plots.clean(ax, title=title, x=x, y=y)


def look(algorithm: str, place: int = 0) -> dict[str, Any]:
    """Colour, line style and label of an algorithm; unknown ones get spare looks by ``place``."""
    color, line = _LOOKS.get(algorithm, _SPARE[place % len(_SPARE)])
    bold = algorithm == "neuropareto"
    return {"color": color, "ls": line, "lw": 2.2 if bold else 1.5, "label": display(algorithm)}


def footer(figure: Figure, lines: tuple[str, ...]) -> None:
    """What the figure is made of, small, below it."""
    width = int(19 * figure.get_figwidth())
    wrapped = [part for line in lines for part in textwrap.wrap(line, width)]
    figure.supxlabel("\n".join(wrapped), x=0.01, ha="left", fontsize=6.5, color="#707070")


def shared_legend(figure: Figure, axes: Any) -> None:
    """One legend above all panels, each name once."""
    found: dict[str, Any] = {}
    for ax in np.ravel(axes):
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside upper center",
            ncols=min(max(1, int(figure.get_figwidth() / 2.1)), len(found)), frameon=False,
        )  # fmt: skip


def logarithmic(ax: Any, axes: str) -> None:
    """Logarithmic scales on the named axes ("x", "y" or "xy") with plain numbers at the ticks.

    Called after plotting: how many ticks carry a number depends on the range.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in axes:
        (ax.set_xscale if name == "x" else ax.set_yscale)("log")
        low, high = ax.get_xlim() if name == "x" else ax.get_ylim()
        decades = float(np.log10(high / low))
        axis = ax.xaxis if name == "x" else ax.yaxis
        subs = (
            (1.0,) if decades > 2.2 else (1.0, 3.0) if decades > 1.0 else (1.0, 2.0, 3.0, 5.0, 7.0)
        )
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def band(ax: Any, x: Array, curves: Array, how: dict[str, Any]) -> None:
    """Median line and quartile band of curves (runs, points); NaN where no run has a value."""
    have = np.isfinite(curves).any(axis=0)
    if not have.any():
        return
    lower, middle, upper = np.nanquantile(curves[:, have], [0.25, 0.5, 0.75], axis=0)
    ax.plot(x[have], middle, **how)
    if len(curves) > 1:
        ax.fill_between(x[have], lower, upper, color=how["color"], alpha=0.16, lw=0)


def panels(figure: Figure, n: int, columns: int) -> list[Any]:
    """n panels in rows of ``columns``."""
    rows = -(-n // columns)
    return [figure.add_subplot(rows, columns, i + 1) for i in range(n)]
