"""The tables without runs of their own: hyper-parameter grid, re-tuning cost, fidelity rho.

The grid table reads our settings from the specs themselves. The re-tuning costs follow from the
protocol's counts and from finished tunings.
rho is read from the files that `neuropareto analyse rho` writes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuropareto.analysis.cost import PRINTED_GRID, allowed, measured
from neuropareto.bench import printed
from neuropareto.bench.layout import Table, items, number
from neuropareto.bench.material import Material, ranges


def grid(material: Material) -> Table:
    """The paper's grid beside the values that our specs have."""
    ours = _settings()
    rows = []
    for row in printed.rows_of("grid"):
        value = ours[row["component"], row["parameter"]]
        rows.append(items(row["component"], row["parameter"], value, row["printed"]))
    return Table(
        "Hyper-parameters",
        ("component", "parameter", "ours (literal pipeline)", "values examined, printed"),
        tuple(rows),
        ("Ours are the defaults of NeuroPareto.paper(), read from its specs.",),
    )


def retuning(material: Material) -> Table:
    """Evaluations and shares of the budget: what the protocol allows, and what tunings took."""
    rows = []
    for row in printed.rows_of("retuning"):
        budget = row.get("budget")
        counted = allowed(budget).texts() if budget else ("--", "--", f"{PRINTED_GRID:,}")
        rows.append(items(row["name"], *counted, row["transfer"], row["refine"], row["total"]))
    found = measured(material.records.folders)
    rows += [
        items(f"measured: {m.problem}, {m.cost.budget} evaluations", *m.cost.texts(), "", "", "")
        for m in found
    ]
    lacking = "the cost that `neuropareto tune two-stage` really had: no tuned.json in the folders"
    return Table(
        "Cost of re-tuning in evaluations (share of the budget)",
        (
            "scenario", "transfer", "refine", "total",
            "transfer printed", "refine printed", "total printed",
        ),
        tuple(rows),
        (
            "Counted: what the protocol allows at most, one evaluation a configuration. The printed "
            f"grid has {PRINTED_GRID:,} configurations, which fits its 3,000 if each counts as one.",
        ),
        missing=() if found else (lacking,),
    )  # fmt: skip


def rho(material: Material) -> Table:
    """The measured fidelity factors (shortlist and whole pool) beside the printed ones.

    They come from the small files that `neuropareto analyse rho -o FOLDER` writes, in the folders of
    the material or, without any there, in the committed folder of the project.
    """
    from neuropareto.analysis.fidelity import FOLDER, records_in

    found = records_in(material.records.folders) or records_in([FOLDER])
    rows, notes, missing = [], [], []
    ours: list[tuple[float, float, float]] = []
    for row in printed.rows_of("rho"):
        if row["name"] == "Median":
            values = [number(float(np.median(part)), 3) for part in zip(*ours, strict=True)]
            rows.append(items("Median", row["d"], *(values or "---"), "", row["printed"]))
            continue
        d = int(row["d"].removesuffix("D"))
        record = found.get((row["name"].lower(), d, "neuropareto"))
        if record is None:
            rows.append(items(row["name"], row["d"], "-", "-", "-", "", row["printed"]))
            missing.append(
                f"{row['name']} {row['d']}: `neuropareto analyse observe {row['name'].lower()} -d {d}`"
                ", then `neuropareto analyse rho`"
            )
            continue
        one = record.fidelity
        ours.append((one.rho, one.median, one.whole))
        counted = f"{one.held_out} of {one.scenarios - one.empty}"
        shown = [number(value, 3) for value in ours[-1]]
        rows.append(items(row["name"], row["d"], *shown, counted, row["printed"]))
        notes.append(
            f"{row['name']} {row['d']}: seeds {ranges(record.seeds)}, {record.rounds} rounds, "
            f"commit {record.made.get('commit') or 'unknown'}, {str(record.made.get('date'))[:10]}."
        )
    return Table(
        "Fidelity factor rho: gain of the acquisition's choice over the best possible",
        (
            "benchmark", "dimension", "ours", "ours\nall scenarios", "ours\nagainst the pool",
            "scenarios\nheld out", "printed",
        ),
        tuple(rows),
        (
            "Ours: median over the held-out scenarios and over all; best possible on the shortlist "
            "that the acquisition sees, and in the whole pool, which adds the screening's loss.",
            *notes,
        ),
        tuple(missing),
    )  # fmt: skip


def _settings() -> Mapping[tuple[str, str], object]:
    # Imported here: torch takes seconds, and only this table needs the specs.
    from neuropareto.acquisition import LearnedAcquisition
    from neuropareto.classifier import RankClassifier
    from neuropareto.dropout import AdaptiveDropout
    from neuropareto.past import Window
    from neuropareto.surrogate.deep_gp import DeepGP
    from neuropareto.surrogate.features import RandomFourier

    dropout, deep = AdaptiveDropout(), DeepGP()
    return {
        ("Bayesian classifier", "Number of hidden layers"): 2,
        ("Bayesian classifier", "Hidden width"): RankClassifier().width,
        ("Bayesian classifier", "Dropout probability"): dropout.p,
        ("Deep GP surrogate", "Inducing points M_ind"): (
            f"{deep.inducing}, up to {deep.most_inducing}"
        ),
        ("Deep GP surrogate", "Random Fourier feature dimension"): RandomFourier().features,
        ("Deep GP surrogate", "ELBO validation threshold (%)"): 100 * deep.doubling,
        ("Acquisition network", "Number of hidden layers"): 1,
        ("Acquisition network", "Hidden width"): LearnedAcquisition().width,
        ("Acquisition network", "History buffer size B"): Window().buffer,
        ("MC-Dropout", "Baseline stochastic passes S_0"): dropout.s0,
        ("MC-Dropout", "Variance escalation threshold tau_MC"): dropout.tau,
    }
