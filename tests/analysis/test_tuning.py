"""Knobs, journal, grid search: what a configuration changes, what is kept, what is chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.analysis import tuning
from neuropareto.analysis.cost import PRINTED_GRID, allowed, measured
from neuropareto.analysis.journal import Journal
from neuropareto.analysis.knobs import (
    KNOBS,
    PIPELINES,
    Configuration,
    axes,
    grid_size,
    nearby,
    one_at_a_time,
    present,
    sampled_grid,
    whole_grid,
)
from neuropareto.analysis.tuned import tuned_algorithm
from neuropareto.analysis.tuning import Search, chosen, search, shares_of_best, tasks_of
from neuropareto.bench import printed
from neuropareto.candidates import RankConditioned
from neuropareto.classifier import RankClassifier, Training
from neuropareto.neuropareto import NeuroPareto
from neuropareto.result import Result
from neuropareto.screening import KeepAll
from neuropareto.selection import MeanGain
from neuropareto.surrogate import FourierProxy, Ladder

PAPER, DEFAULT = PIPELINES["paper"], PIPELINES["default"]
QUICK = replace(
    PAPER,
    classifier=RankClassifier(training=Training(steps=4, folds=2, check=2)),
    surrogate=Ladder((FourierProxy(),)),
    candidates=RankConditioned(size=60),
    screening=KeepAll(),
    estimate=MeanGain(),
)


def test_knobs_are_the_rows_of_the_printed_grid() -> None:
    rows = {
        (row["component"], row["parameter"]): row["printed"] for row in printed.rows_of("grid")
    }
    for knob in KNOBS.values():
        if knob.values:
            text = rows.pop((knob.component, knob.parameter))
            values = [float(v) for v in text.strip("{}").split(",")]
            factor = 100 if "%" in knob.parameter else 1
            assert [factor * v for v in knob.values] == pytest.approx(values)
    # What is left is the number of hidden layers, which our networks do not vary.
    assert {parameter for _, parameter in rows} == {"Number of hidden layers"}
    left = int(np.prod([len(text.strip("{}").split(",")) for text in rows.values()]))
    assert grid_size(PAPER) * left == PRINTED_GRID


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_changes_its_number_and_nothing_else(name: str) -> None:
    knob = KNOBS[name]
    value = (knob.values or (0.25,))[0]
    turned = knob.turned(PAPER, value)
    assert knob.read(turned) == value
    before, after = present(PAPER).values, present(turned).values
    assert {k for k in before if before[k] != after[k]} <= {name}
    usual = knob.read(PAPER)
    assert usual is not None
    if name != "inducing":
        assert knob.turned(turned, usual) == PAPER


def test_the_default_pipeline_has_no_knobs_of_the_deep_gp() -> None:
    assert not {"inducing", "fourier", "doubling"} & set(axes(DEFAULT))
    with pytest.raises(ValueError, match="deep gp"):
        KNOBS["inducing"].turned(DEFAULT, 100)
    with pytest.raises(ValueError, match="no knob 'depth'"):
        Configuration.of({"depth": 2})


def test_configurations_of_the_grid() -> None:
    assert len(set(whole_grid(DEFAULT))) == grid_size(DEFAULT)
    some = sampled_grid(PAPER, 40, rng=np.random.default_rng(0))
    assert len(set(some)) == 40
    assert all(c.values[k] in v for c in some for k, v in axes(PAPER).items())
    single = one_at_a_time(PAPER)
    assert single[0].said(PAPER) == "as it is" and len(single) <= 15
    assert all("," not in c.said(PAPER) for c in single)


def test_nearby_values_lie_on_both_sides() -> None:
    assert nearby("inducing", 256) == (200, 400)
    assert nearby("inducing", 100) == (50, 200) and nearby("inducing", 800) == (400, 1600)


@given(st.integers(1, 5000))
def test_the_allowance_never_exceeds_the_printed_one(budget: int) -> None:
    cost = allowed(budget)
    assert cost.transfer <= 15 and cost.refine <= 9 and cost.total <= 24
    assert cost.total <= max(1.0, 0.08 * budget + 1e-9)


def test_the_allowance_is_the_printed_table() -> None:
    for row in printed.rows_of("retuning"):
        if "budget" in row:
            assert allowed(row["budget"]).texts() == (row["transfer"], row["refine"], row["total"])
    with pytest.raises(ValueError, match="at least one evaluation"):
        allowed(0)


def test_a_journal_forgets_only_what_was_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, {"job": 1})
    journal.append({"a": 1})
    journal.append({"a": 2})
    with path.open("ab") as file:
        file.write(b'{"a": 3')  # the process died here
    again = Journal(path, {"job": 1})
    assert again.entries == [{"a": 1}, {"a": 2}]
    again.append({"a": 3})
    assert Journal(path, {"job": 1}).found(a=3) == {"a": 3}
    with pytest.raises(ValueError, match="differs in job"):
        Journal(path, {"job": 2})
    path.write_text("hello\n")
    with pytest.raises(ValueError, match="not a journal"):
        Journal(path, {"job": 1})


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9))
def test_shares_of_the_best_do_not_depend_on_units(c: int, b: int, seed: int) -> None:
    volume = np.random.default_rng(seed).random((c, b))
    shares = shares_of_best(volume)
    assert shares.max(axis=0) == pytest.approx(1.0) and (shares >= 0).all()
    assert shares_of_best(volume * np.arange(1, b + 1)) == pytest.approx(shares)
    assert (shares_of_best(np.zeros((c, b))) == 1.0).all()


def plan(configurations: tuple[Configuration, ...]) -> Search:
    tasks = tasks_of(["zdt1"], {"dimensions": [4], "budget": 16, "batch": 4, "n_initial": 12})
    return Search(QUICK, configurations, tasks, (0,))


def test_the_larger_hypervolume_is_chosen_and_ties_go_to_the_first() -> None:
    a, b, c = (Configuration.of({"s0": s}) for s in (8, 4, 6))
    made = plan((a, b, c))
    key = made.tasks[0].key
    entries = [
        {"configuration": x.values, "task": key, "seed": 0, "hypervolume": h, "seconds": 1.0}
        for x, h in ((a, 1.0), (b, 2.0), (c, 2.0))
    ]
    found = chosen(made, entries)
    assert found.configuration == b and [e.place for e in found.evidence] == [1, 2, 3]
    assert found.evidence[-1].figures["share of the best"] == pytest.approx(0.5)


def test_a_search_runs_resumes_and_returns_an_algorithm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(tuple(Configuration.of({"s0": s}) for s in (4, 8)))
    found = search(made, tmp_path)
    assert tuned_algorithm(tmp_path / "tuned.json") == found.algorithm
    assert isinstance(found.algorithm, NeuroPareto)
    told = json.loads((tmp_path / "tuned.json").read_text())
    assert told["how"] == "grid" and len(told["evidence"]) == 2
    assert measured([tmp_path]) == ()  # a grid search is no re-tuning
    assert tuning.transferable(tmp_path / "tuned.json", QUICK)[0] == present(QUICK)

    def never(*_: object, **__: object) -> Result:
        raise AssertionError("a finished run was repeated")

    monkeypatch.setattr(tuning, "minimize", never)
    assert search(made, tmp_path).configuration == found.configuration
    with pytest.raises(ValueError, match="another job"):
        search(plan(made.configurations[:1]), tmp_path)


def test_what_is_no_tuned_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    for text in ("{}", "[1]", "no", '{"algorithm": {"class": "os:system", "fields": {}}}'):
        path.write_text(text)
        with pytest.raises(ValueError, match="holds no settings"):
            tuned_algorithm(path)
    path.write_text('{"algorithm": {"class": "neuropareto.nsga2:NSGA2", "fields": {}}}')
    with pytest.raises(ValueError, match="not a NeuroPareto"):
        tuned_algorithm(path)


def test_the_rows_of_one_at_a_time_are_ordered_by_knob() -> None:
    names = [c.said(PAPER).split()[0] for c in one_at_a_time(PAPER)[1:]]
    order = [list(KNOBS).index(name) for name in names]
    assert all(a <= b for a, b in pairwise(order))
