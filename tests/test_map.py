"""docs/map.md is true: every equation label once, with an object that cites it and a test."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (\w+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
LABELS = [
    "mo_problem",
    "dominance",
    "h1",
    "h2",
    "h3",
    "z",
    "temp_softmax",
    "mean_prob",
    "epistemic_clf_corrected",
    "gp_layer",
    "mean_fn",
    "f_vec",
    "ep_vec",
    "al_vec",
    "elbo",
    "feat",
    "acq_map",
    "acq_loss",
    "div_gain",
    "crowding_per_point",
    "avg_crowding",
    "div_norm",
    "gp_variance",
    "deepgp_variance",
    "hetero_noise",
    "K_rule_of_thumb",
    "lmc_revised",
    "predictive_cov_revised",
    "mc_avg",
    "pred_entropy",
    "exp_entropy",
    "dropout_mi",
    "mc_temp_predict",
    "ece_decomp",
    "temp_opt",
    "temp_rate",
    "mc_var_bound",
    "adaptive_s_rule",
    "static_score",
    "time_breakdown",
    "speedup_100d",
    "eps_gp",
    "eps_class",
    "eps_acq",
    "one_step_hv",
    "per_step_decomp",
    "per_step_compact",
    "gp_to_hv",
    "first_order",
    "delta_def",
    "sum_expectation",
    "martingale",
    "log_accum",
    "high_prob_bound",
    "overall_refined",
    "surrogate_sqrt_bound",
    "dgp_mse",
    "sparse_var_rates",
    "tighter_sparse",
    "covering_bound",
    "ece_bound",
    "mi_igd",
    "Lip_H_app",
    "increment_bound_app",
    "eps_gp_app",
    "eps_class_app",
    "eps_acq_app",
    "eps_total_def_app",
    "lemma_perstep_app",
    "lemma_telescoping_app",
    "B_explicit_app",
    "hv_bound_refined_app",
    "Doob_app",
    "azuma_conclusion_app",
]


def rows() -> list[tuple[str, str, str]]:
    found = ROW.findall((ROOT / "docs" / "map.md").read_text(encoding="utf-8"))
    return [row for row in found if row[0] != "label"]


def test_every_label_of_the_paper_is_mapped_once() -> None:
    mapped = [label for label, _, _ in rows()]
    assert sorted(mapped) == sorted(LABELS)


def test_the_labels_are_those_of_the_paper() -> None:
    sources = list((ROOT.parent / "shared" / "paper").glob("*.txt"))
    if not sources:
        pytest.skip("the paper's source is not beside the project")
    text = sources[0].read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"\\label\{eq:([^}]+)\}", text))) == sorted(LABELS)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_object_cites_its_equation_and_the_test_exists(row: tuple[str, str, str]) -> None:
    label, home, test = row
    if home == "–":
        assert test.strip(), "say where the statement is measured, or that it is not"
        return
    module_name, _, path = home.strip("`").partition(":")
    module = importlib.import_module(f"neuropareto.{module_name}")
    found: object = module
    for name in path.split("."):
        found = getattr(found, name)
    words = f"{inspect.getdoc(found)}\n{module.__doc__}"
    assert re.search(rf"\b{label}\b", words), f"{home} does not cite {label}"
    file, _, name = test.strip("`").partition("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test
