"""The two-stage protocol: its counts, its safeguards, its order, and that it survives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuropareto.analysis import judging
from neuropareto.analysis.cost import measured
from neuropareto.analysis.judging import Trial, judged, rank_correlation
from neuropareto.analysis.knobs import PIPELINES, Configuration, one_at_a_time, present
from neuropareto.analysis.retuning import Retuning, evaluations, refinements, retune
from neuropareto.archive import Archive
from neuropareto.bench.material import Material
from neuropareto.bench.tables import table
from neuropareto.candidates import RankConditioned
from neuropareto.classifier import RankClassifier, Training
from neuropareto.cli import main
from neuropareto.problem import Problem
from neuropareto.problems import problem
from neuropareto.randomness import Streams
from neuropareto.screening import KeepAll
from neuropareto.selection import MeanGain
from neuropareto.space import Array
from neuropareto.surrogate import FourierProxy, Ladder

PAPER = PIPELINES["paper"]
QUICK = replace(
    PAPER,
    classifier=RankClassifier(training=Training(steps=4, folds=2, check=2)),
    surrogate=Ladder((FourierProxy(),)),
    candidates=RankConditioned(size=60),
    screening=KeepAll(),
    estimate=MeanGain(),
)
FEW = tuple(Configuration.of({"s0": s, "width": w}) for s, w in ((8, 64), (4, 64), (8, 32)))


def plan(**changes: object) -> Retuning:
    usual = Retuning(QUICK, FEW, budget=100, n_initial=20, refine="never")
    return replace(usual, **changes)  # type: ignore[arg-type]


def counted(name: str = "zdt1") -> tuple[Problem, list[Array]]:
    made, seen = problem(name, 4), []

    def objective(X: Array) -> Array:
        seen.append(X[0])
        return np.asarray(made.objective(X))

    return replace(made, objective=objective), seen


def test_evaluations_are_counted_and_not_repeated(tmp_path: Path) -> None:
    subject, seen = counted()
    found = retune(plan(refine="always", budget=120), subject, tmp_path)
    assert len(seen) == 20 + found.cost.total and found.cost.total <= 9
    assert len({x.tobytes() for x in seen}) == len(seen)
    X, F, G = evaluations(tmp_path)
    assert X.tolist() == [x.tolist() for x in seen] and G.shape == (len(X), 0)
    assert pytest.approx(np.asarray(problem("zdt1", 4).objective(X))) == F
    assert found.cost.refine <= 3 and {e.stage for e in found.evidence} == {"transfer", "refine"}
    assert [e.place for e in found.evidence] == list(range(1, 1 + len(found.evidence)))
    before = len(seen)
    again = retune(plan(refine="always", budget=120), subject, tmp_path)
    assert len(seen) == before and again.configuration == found.configuration
    assert measured([tmp_path])[0].cost == found.cost
    assert main(["tune", "figure", str(tmp_path), "-o", str(tmp_path / "e.png")]) == 0
    assert (tmp_path / "e.png").stat().st_size > 5000
    made = table("retuning", Material([tmp_path]))
    assert any("measured: zdt1" in row[0].text for row in made.rows) and not made.missing


def test_equal_proposals_share_one_evaluation(tmp_path: Path) -> None:
    # Without a history of proposals the acquisition network is silent: its width cannot matter.
    same = tuple(Configuration.of({"acquisition_width": w}) for w in (32, 64))
    found = retune(plan(transferred=same), counted()[0], tmp_path)
    assert found.cost.transfer == 1 and any("acquisition_width" in note for note in found.notes)
    assert found.configuration == same[0]  # a tie goes to prior evidence


def test_the_refinement_waits_for_a_weak_signal(tmp_path: Path) -> None:
    kept = retune(plan(refine="auto", threshold=-1.0), counted()[0], tmp_path / "a")
    assert kept.cost.refine == 0
    rng = np.random.default_rng(0)
    noise = replace(counted()[0], objective=lambda X: rng.random((len(X), 2)))
    weak = retune(plan(refine="auto", threshold=0.9), noise, tmp_path / "b")
    assert any(e.stage == "refine" for e in weak.evidence)
    guard = {g.name: g for g in weak.safeguards}
    assert not guard["validation signal in the transfer stage"].holds
    assert not guard["comparable budget"].holds  # 100 of the 300 that the candidates come from
    assert any("larger pilot" in note for note in weak.notes)


def test_failures_count_and_do_not_stop_it(tmp_path: Path) -> None:
    subject, seen = counted()
    whole = subject.objective

    def sometimes(X: Array) -> Array:
        F = np.asarray(whole(X))
        if len(seen) > 20:
            raise RuntimeError("the furnace tripped")
        return np.asarray(F if len(seen) % 2 else np.full_like(F, np.nan))

    found = retune(plan(), replace(subject, objective=sometimes), tmp_path)
    assert found.cost.transfer >= 1 and found.evidence[0].figures["gain"] == 0.0
    with pytest.raises(ValueError, match="0 of 20 evaluations"):
        retune(
            plan(), replace(subject, objective=lambda X: np.full((1, 2), np.nan)), tmp_path / "b"
        )


def test_maximised_objectives_are_turned_once(tmp_path: Path) -> None:
    made = problem("zdt1", 4)
    turned = replace(
        made, directions=("maximize", "minimize"),
        objective=lambda X: np.asarray(made.objective(X)) * [-1.0, 1.0],
    )  # fmt: skip
    plain = retune(plan(), made, tmp_path / "a")
    other = retune(plan(), turned, tmp_path / "b")
    assert other.evidence == plain.evidence


def test_constraints_are_kept(tmp_path: Path) -> None:
    made = problem("zdt1", 4)

    def objective(X: Array) -> tuple[Array, Array]:
        return np.asarray(made.objective(X)), np.ones((len(X), 1))  # nothing is feasible

    subject = Problem("closed", made.space, 2, objective, n_constraints=1)
    found = retune(plan(), subject, tmp_path)
    assert all(e.figures["gain"] == 0.0 for e in found.evidence)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one transferred"):
        plan(transferred=())
    with pytest.raises(ValueError, match="auto, always, never"):
        plan(refine="maybe")
    with pytest.raises(ValueError, match="correlation"):
        plan(threshold=2.0)
    with pytest.raises(ValueError, match="must hold the start design"):
        retune(plan(budget=20), counted()[0], tmp_path)
    retune(plan(), counted()[0], tmp_path)
    with pytest.raises(ValueError, match="differs in seed"):
        retune(plan(seed=1), counted()[0], tmp_path)


def test_refinements_turn_three_knobs_and_nothing_twice() -> None:
    tried = list(one_at_a_time(PAPER))
    rng = np.random.default_rng(0)
    found = refinements(tried[0], tried, PAPER, 9, rng=rng)
    usual = present(PAPER).values
    assert len(set(found)) == 9 and not set(found) & set(tried)
    for c in found:
        changed = {k for k, v in c.values.items() if v != usual[k]}
        assert changed <= {"inducing", "s0", "diversity_weight"}
        assert c.values["inducing"] in (200, 256, 400)
    default = refinements(
        Configuration(), [], PIPELINES["default"], 99, rng=np.random.default_rng(0)
    )
    assert len(default) == 9  # three values of S_0, three of lambda_div


def test_rank_correlation_of_known_orders() -> None:
    true = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 9.0]])
    assert rank_correlation(true**3, true) == pytest.approx(1.0)
    assert rank_correlation(true * [1.0, -1.0], true) == pytest.approx(0.0)
    assert rank_correlation(np.zeros((3, 2)), true) == 0.0 == rank_correlation(true[:2], true[:2])


def test_the_gain_is_the_added_hypervolume(monkeypatch: pytest.MonkeyPatch) -> None:
    U = np.random.default_rng(0).random((6, 3))
    F = np.array([[0.0, 2.0], [2.0, 0.0], [4.0, 4.0], [3.0, 3.0], [3.5, 2.0], [2.0, 3.5]])
    archive = Archive.of(U, F)  # hypervolume at (4, 4): 16 - 4 = 12
    usual = Configuration.of({"s0": 8})
    trials = [
        Trial(usual, "transfer", U[0] / 2, np.array([0.0, 0.0]), 0.5),  # fills the missing 4
        Trial(usual.changed({"s0": 4}), "transfer", U[1] / 2, None, 0.5),
        Trial(usual.changed({"s0": 6}), "transfer", U[2] / 2, np.array([0.0, 0.0]), 0.5, False),
    ]
    found = judged(trials, archive, QUICK, models={}, rng=Streams(0, 1))
    assert found.gain == pytest.approx([4 / 12, 0.0, 0.0]) and found.best == usual
    assert judging._ranks(np.array([2.0, np.nan, 1.0, 1.0])).tolist() == [3.0, 4.0, 1.5, 1.5]


SCRIPT = """
import sys, time
from dataclasses import replace
from pathlib import Path
from neuropareto.problems import problem
from tests.analysis.test_retuning import plan
from neuropareto.analysis.retuning import retune

made = problem("zdt1", 4)

def objective(X):
    with open("calls.txt", "a") as file:
        file.write(repr(X.tolist()) + chr(10))
    time.sleep(0.02)
    return made.objective(X)

print(retune(plan(), replace(made, objective=objective), Path("out")).markdown())
"""


def _command() -> list[str]:
    return [sys.executable, "-c", SCRIPT]


def test_a_killed_tuning_goes_on_where_it_was(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    journal = tmp_path / "out" / "journal.jsonl"
    process = subprocess.Popen(_command(), cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 60
        # A header and some of the start design: it is in the middle of its evaluations.
        while time.monotonic() < deadline and process.poll() is None:
            if journal.exists() and journal.read_bytes().count(b"\n") >= 6:
                break
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = journal.read_bytes().count(b"\n") - 1
    assert 5 <= done < 20
    assert not (tmp_path / "out" / "tuned.json").exists()
    finished = subprocess.run(
        _command(), cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    # At most the evaluation that was under way is made again.
    assert len(set(calls)) >= len(calls) - 1
    told = json.loads((tmp_path / "out" / "tuned.json").read_text())
    assert len(set(calls)) == 20 + told["cost"]["transfer"]
    assert "Tuned on zdt1" in finished.stdout


def test_a_study_that_was_never_run_needs_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["init", str(tmp_path / "s")])
    capsys.readouterr()
    code = main(
        ["tune", "two-stage", str(tmp_path / "s" / "study.toml"), "-o", str(tmp_path / "o")]
    )
    assert code == 1 and "--trust" in capsys.readouterr().err


def test_costs_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "cost", "300"]) == 0
    assert "24 (8%)" in capsys.readouterr().out


def test_unknown_problems_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "two-stage", "nothing:here"]) == 1
    assert "cannot be imported" in capsys.readouterr().err
    assert main(["tune", "grid", "zdt1", "--configurations", "some"]) == 1
    assert "one-at-a-time" in capsys.readouterr().err
