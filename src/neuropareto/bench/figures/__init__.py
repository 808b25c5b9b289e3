"""Every figure of the paper, drawn from records or by a small computation on one of them.

``FIGURES`` maps a name to what draws it; ``neuropareto bench figure NAME`` writes PNG and SVG. Each
figure says below what it is made of. Where the paper prints a figure of merit, it is marked
"printed". What cannot be drawn raises :class:`NotYet`, which says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neuropareto.bench.figures import bars, curves, fronts, models
from neuropareto.bench.figures.style import NotYet, footer
from neuropareto.bench.material import Material

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "FigureSpec", "NotYet", "draw", "save"]


@dataclass(frozen=True)
class FigureSpec:
    """A figure of the paper: the label it has there, what it shows, and what draws it."""

    label: str
    about: str
    draw: Callable[[Material], Figure]


FIGURES: Mapping[str, FigureSpec] = {
    "convergence-igd": FigureSpec(
        "fig:convergence", "IGD over evaluations", curves.igd_convergence
    ),
    "convergence-hv": FigureSpec(
        "fig:convergence_a", "hypervolume over evaluations", curves.hv_convergence
    ),
    "inducing-sensitivity": FigureSpec("fig:sensitivity", "inducing points", bars.inducing),
    "uncertainty": FigureSpec("fig:uncertainty", "predicted uncertainty", curves.uncertainty),
    "timing": FigureSpec("fig:timing", "seconds of each stage", bars.timing),
    "ablation": FigureSpec("fig:ablation", "parts left out", bars.ablation),
    "scaling": FigureSpec("fig:scaling", "IGD against the budget", curves.scaling),
    "reliability": FigureSpec(
        "fig:calibration", "reliability of the classifier", models.reliability
    ),
    "fronts": FigureSpec("fig:pareto2d", "fronts in the plane", fronts.fronts),
    "proxy-rank": FigureSpec(
        "fig:proxy_vs_hv", "proxy rank, true contribution", models.proxy_rank
    ),
    "nlpd": FigureSpec("fig:nlpd_curve", "predictive density over rounds", curves.nlpd),
    "slice": FigureSpec("fig:decomp_qual_revised", "1-D slice of the uncertainty", models.slice_),
    "k-sensitivity": FigureSpec("fig:k_sensitivity", "rank classes", bars.rank_classes),
    "lmc-correlation": FigureSpec("fig:corr_vis_revised", "objectives' correlation", models.lmc),
    "information-gain": FigureSpec(
        "fig:mi_comparison", "dropout gain, reference", models.information_gain_figure
    ),
    "static-vs-learned": FigureSpec(
        "fig:hv_static_vs_learned", "static and learned", curves.static_vs_learned
    ),
    "geothermal": FigureSpec("fig:geothermal", "the geothermal case", fronts.geothermal),
    "critical-difference": FigureSpec("-", "mean ranks (ours)", bars.critical_difference),
}


def draw(name: str, material: Material) -> Figure:
    """The figure called ``name``; ValueError for an unknown name, NotYet if it cannot be drawn."""
    if name not in FIGURES:
        raise ValueError(f"There is no figure called {name!r}; there are {', '.join(FIGURES)}.")
    figure = FIGURES[name].draw(material)
    footer(figure, material.account())
    return figure


def save(name: str, material: Material, output: Path) -> list[Path]:
    """Draw a figure into a folder (PNG and SVG), or into one file by its ending."""
    figure = draw(name, material)
    if output.suffix in (".png", ".svg"):
        paths = [output]
    elif output.suffix:
        raise ValueError(f"A figure is saved as .png or .svg, got {output.suffix!r}.")
    else:
        paths = [output / f"{name}.png", output / f"{name}.svg"]
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        # Without a date the same records give the same file.
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths
