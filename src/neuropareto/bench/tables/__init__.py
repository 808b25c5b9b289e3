"""Every table of the paper, made from records: ours beside what is printed.

``TABLES`` maps a name to what makes it; ``neuropareto bench table NAME`` prints it. A builder gets the
material and says what it used; cells that were not run are listed, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from neuropareto.bench.layout import Table
from neuropareto.bench.material import Material
from neuropareto.bench.tables import comparison, costs, ingredients, reservoir, settings, variants


@dataclass(frozen=True)
class TableSpec:
    """A table of the paper: the label it has there, what it shows, and how it is made."""

    label: str
    about: str
    build: Callable[[Material], Table]


def _large(name: str) -> Callable[[Material], Table]:
    return lambda material: comparison.igd(material, name)


def _by_hypervolume(name: str) -> Callable[[Material], Table]:
    return lambda material: comparison.by_hypervolume(material, name)


def _variants(name: str) -> Callable[[Material], Table]:
    return lambda material: variants.table(material, name)


TABLES: Mapping[str, TableSpec] = {
    "dtlz-bi": TableSpec("tab:dtlz_bi_results", "IGD on bi-objective DTLZ", _large("dtlz-bi")),
    "dtlz-tri": TableSpec("tab:dtlz_tri_results", "IGD on three-objective DTLZ", _large("dtlz-tri")),
    "zdt": TableSpec("tab:zdt_results", "IGD on bi-objective ZDT", _large("zdt")),
    "high-dim": TableSpec(
        "tab:high_dim_results", "IGD on 500-D, 5-objective DTLZ", _large("high-dim")
    ),
    "mobo": TableSpec("tab:comparison", "IGD and HV against MORBO, EGBO, CDM-PSL", comparison.mobo),
    "ablation": TableSpec("tab:ablation", "parts left out, DTLZ2-100D", _variants("ablation")),
    "pool-size": TableSpec("tab:pool_size_revised", "candidate pool sizes", _variants("pool-size")),
    "decomposition": TableSpec(
        "tab:decomp_ablation_revised", "surrogate variants", _variants("decomposition")
    ),
    "lmc": TableSpec("tab:corr_ablation_revised", "coregional surrogate", _variants("lmc")),
    "static-vs-learned": TableSpec(
        "tab:static_vs_learned", "static and learned acquisition", _variants("static-vs-learned")
    ),
    "wall-clock": TableSpec("tab:wall_clock_comparison_full", "seconds of a run", costs.wall_clock),
    "component-time": TableSpec(
        "tab:component_time_full", "where the time goes", costs.component_time
    ),
    "grid": TableSpec("tab:grid", "hyper-parameter grid and our settings", settings.grid),
    "retuning": TableSpec("tab:refinement_cost_revised", "cost of re-tuning", settings.retuning),
    "rho": TableSpec("tab:rho", "fidelity of the acquisition", settings.rho),
    "geothermal": TableSpec("fig:geothermal", "the reservoir", reservoir.geothermal),
    "ingredients": TableSpec(
        "-", "the default without each of its ingredients (ours)", ingredients.table
    ),
    "engineering": TableSpec(
        "-", "hypervolume on engineering problems (ours)", _by_hypervolume("engineering")
    ),
    "constrained": TableSpec(
        "-", "hypervolume on problems with constraints (ours)", _by_hypervolume("constrained")
    ),
    "variants": TableSpec(
        "-", "IGD on shifted, translated and rotated problems (ours)", comparison.by_variant
    ),
}  # fmt: skip


def table(name: str, material: Material) -> Table:
    """The table called ``name``; raises ValueError for an unknown name."""
    if name not in TABLES:
        raise ValueError(f"There is no table called {name!r}; there are {', '.join(TABLES)}.")
    made = TABLES[name].build(material)
    return replace(
        made,
        notes=made.notes + material.account(),
        missing=material.missing_lines() + made.missing,
    )
