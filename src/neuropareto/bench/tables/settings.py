"""The tables without runs of their own: hyper-parameter grid, re-tuning cost, fidelity rho.

The grid table reads our settings from the specs themselves. The re-tuning costs follow from the
protocol's counts. rho needs the analysis of held-out scenarios, which is another command's job.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from neuropareto.bench import printed
from neuropareto.bench.layout import Table, items
from neuropareto.bench.material import Material

TRANSFERRED, REFINED = 15, 9
"""Configurations that the protocol evaluates at most in its two stages."""


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
    """Evaluations and shares of the budget that the two-stage protocol takes at most."""
    rows = []
    for row in printed.rows_of("retuning"):
        budget = row.get("budget")
        counted = [
            f"{n} ({100 * n / budget:.3g}%)" if budget else "--"
            for n in (TRANSFERRED, REFINED, TRANSFERRED + REFINED)
        ]
        rows.append(items(row["name"], *counted, row["transfer"], row["refine"], row["total"]))
    return Table(
        "Cost of re-tuning in evaluations (share of the budget)",
        (
            "scenario", "transfer", "refine", "total",
            "transfer printed", "refine printed", "total printed",
        ),
        tuple(rows),
        (
            f"Counted, not measured: at most {TRANSFERRED} transferred configurations and "
            f"{REFINED} refinements, as the protocol says.",
        ),
        missing=_lacking("neuropareto.analysis", "the cost that `neuropareto tune` really had"),
    )  # fmt: skip


def rho(material: Material) -> Table:
    """The printed fidelity factors; ours come from the analysis of the hypervolume bound."""
    rows = [items(r["name"], r["d"], "-", r["printed"]) for r in printed.rows_of("rho")]
    return Table(
        "Fidelity factor rho: gain of the acquisition's choice over the best possible",
        ("benchmark", "dimension", "ours", "printed"),
        tuple(rows),
        missing=_lacking("neuropareto.analysis", "our rho (held-out scenarios, median ratio)"),
    )


def _lacking(module: str, what: str) -> tuple[str, ...]:
    there = importlib.util.find_spec(module) is not None
    state = "is installed but not read by this table" if there else "is not part of this version"
    return (f"{what}: needs {module}, which {state}.",)


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
