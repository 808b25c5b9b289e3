"""Runs seen beside the truth: watching changes nothing, and the errors are those by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import NeuroPareto, cli, minimize, pareto
from neuropareto.analysis import bound_report, fidelity, information
from neuropareto.analysis.estimates import change_ratios, replacement_loss, sensitivity
from neuropareto.analysis.observation import ENDING, ObservedRound, ObservedRun, read, read_all
from neuropareto.analysis.round_errors import misranked, oracle_gain, round_errors
from neuropareto.analysis.watch import observe
from neuropareto.archive import Indices
from neuropareto.bench.material import Material
from neuropareto.bench.tables import table as bench_table
from neuropareto.candidates import RankConditioned
from neuropareto.exploration import Unmoved
from neuropareto.problems import problem
from neuropareto.screening import TwoStage
from neuropareto.space import Array
from neuropareto.surrogate import ExactGP

SMALL = NeuroPareto(
    surrogate=ExactGP(iterations=10),
    candidates=RankConditioned(size=120),
    screening=TwoStage(n_screen=100, k=40, proxy=None),
    exploration=Unmoved(),  # as in the paper, whose theory is about what was chosen
)
Z = np.array([1.0, 1.0])


def line(x: Array) -> Array:
    """Points of the front f1 + f2 = 1/2."""
    return np.column_stack([x, 0.5 - x])


def made_round(
    *,
    known: Array,
    pool: Array,
    error: float = 0.0,
    first: Array | None = None,
    short: Indices | None = None,
    chosen: Indices | None = None,
) -> ObservedRound:
    """A round of given truth; the classifier says class 1 with probability ``first``."""
    p = np.ones(len(pool)) if first is None else first
    rows = np.arange(len(pool)) if short is None else short
    taken = np.array([0]) if chosen is None else chosen
    return ObservedRound(
        known=known, nearby=Z, pool=pool, probability=np.column_stack([p, 1 - p]),
        information=np.linspace(0, 1, len(pool)), short=rows, mean=pool[rows] + error,
        chosen=taken, evaluated=pool[rows][taken],
    )  # fmt: skip


def made_run(rounds: list[ObservedRound], best: float = 0.875) -> ObservedRun:
    return ObservedRun("made", "hand", 0, 4, Z, line(np.linspace(0, 0.5, 50)), best, tuple(rounds))


@pytest.fixture(scope="module")
def run() -> ObservedRun:
    return observe(problem("dtlz2", 6), SMALL, seed=3, budget=45, batch=5, n_initial=30)


def test_watching_does_not_change_the_run(run: ObservedRun) -> None:
    plain = minimize(
        problem("dtlz2", 6), budget=45, batch=5, n_initial=30, seed=3, algorithm=SMALL,
        progress=False,
    )  # fmt: skip
    seen = np.vstack([run.rounds[-1].known, run.rounds[-1].evaluated])
    assert np.array_equal(seen, plain.F)
    assert len(run.rounds) == 3 and not run.skipped


def test_what_was_chosen_is_what_was_evaluated(run: ObservedRun) -> None:
    for observed in run.rounds:
        assert np.allclose(observed.choice, observed.evaluated)
        assert observed.mean.shape == (40, 2) and 110 < len(observed.pool) <= 120
    assert run.volumes[-1] >= run.volumes[0] and run.volumes[-1] <= run.best


def test_a_run_survives_its_file(run: ObservedRun, tmp_path: Path) -> None:
    run.save(tmp_path / f"a{ENDING}")
    again = read_all([tmp_path])[0]
    assert str(again) == str(run) and again.best == run.best
    assert all(
        np.array_equal(a.mean, b.mean) for a, b in zip(run.rounds, again.rounds, strict=True)
    )


def test_other_files_and_mixed_problems_are_refused(run: ObservedRun, tmp_path: Path) -> None:
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not an observed run"):
        read(tmp_path / "b.npz")
    run.save(tmp_path / f"a{ENDING}")
    replace(run, d=7).save(tmp_path / f"b{ENDING}")
    with pytest.raises(ValueError, match="one problem"):
        read_all([tmp_path])


def test_problems_without_a_known_truth_are_refused() -> None:
    with pytest.raises(ValueError, match="front"):
        observe(problem("rover"), SMALL, seed=0, budget=80, n_initial=20)
    with pytest.raises(ValueError, match="budget"):
        observe(problem("dtlz2", 6), SMALL, seed=0, budget=30, n_initial=30)


def test_the_surrogate_error_by_hand() -> None:
    observed = made_round(known=line(np.array([0.25])), pool=line(np.array([0.1, 0.4])), error=0.1)
    errors = round_errors(observed, Z, sensitivity=0.5, loss=0.0)
    assert errors.surrogate == pytest.approx(0.5 * 0.2)
    assert errors.squared == pytest.approx(2 * 0.01) and errors.worst == pytest.approx(0.2)


def test_the_classifier_error_counts_wrong_judgements_of_the_top() -> None:
    # Two candidates ahead of the front, two behind it; two are chosen, so the top are the first two.
    pool = np.array([[0.2, 0.2], [0.1, 0.3], [0.6, 0.6], [0.7, 0.7]])
    known, q = np.array([[0.4, 0.4]]), np.array([0, 1])
    for first, wrong in (([1, 1, 0, 0], 0.0), ([1, 0, 1, 1], 0.5), ([0, 0, 1, 1], 1.0)):
        observed = made_round(known=known, pool=pool, first=np.array(first, float), chosen=q)
        assert misranked(observed, Z) == wrong
        assert round_errors(observed, Z, sensitivity=0.0, loss=0.3).classifier == 0.3 * wrong
    behind = made_round(known=known, pool=pool[2:], first=np.zeros(2), chosen=q)
    assert misranked(behind, Z) == 0.0, "a dominated candidate is not of class 1"


def test_the_acquisition_error_is_what_a_better_choice_would_have_brought() -> None:
    pool = np.array([[0.6, 0.6], [0.5, 0.5]])
    observed = made_round(known=np.array([[0.8, 0.8]]), pool=pool)
    errors = round_errors(observed, Z, sensitivity=1.0, loss=1.0)
    assert errors.acquisition == pytest.approx(0.25 - 0.16)
    assert errors.deficit == pytest.approx(0.25 - 0.16) and errors.covered
    assert round_errors(
        replace(observed, chosen=np.array([1]), evaluated=pool[1:]), Z, sensitivity=1.0, loss=1.0
    ).acquisition == pytest.approx(0.0)


def test_what_the_screening_loses_may_break_the_lemma() -> None:
    pool = np.array([[0.6, 0.6], [0.1, 0.1]])
    observed = made_round(known=np.array([[0.8, 0.8]]), pool=pool, short=np.array([0]))
    errors = round_errors(observed, Z, sensitivity=1.0, loss=0.05)
    assert errors.total == 0.0 and errors.deficit > 0.6 and not errors.covered


def test_the_total_is_the_sum_and_the_amplification_is_bounded(run: ObservedRun) -> None:
    for observed in run.rounds:
        e = round_errors(observed, run.reference, sensitivity=0.7, loss=0.1)
        assert e.total == pytest.approx(e.surrogate + e.classifier + e.acquisition)
        assert min(e.surrogate, e.classifier, e.acquisition, e.deficit) >= 0
        # ||v||_1 <= sqrt(m) ||v||_2, and E ||v|| <= sqrt(E ||v||^2).
        assert 0 < e.amplification <= 0.7 * np.sqrt(2) + 1e-12


def test_the_oracle_is_never_behind_the_choice(run: ObservedRun) -> None:
    for observed in run.rounds:
        few = oracle_gain(observed.shortlist, observed.front, Z, 2)
        more = oracle_gain(observed.shortlist, observed.front, Z, 5)
        assert more >= few


def test_the_sensitivity_of_a_single_point_in_closed_form() -> None:
    # Without a front (a, a) gains (1 - a)^2, so the ratio is its mean slope, (1 - a) - 0.005 a.
    Y = np.array([[0.5, 0.5], [2.0, 2.0]])
    ratios = change_ratios(Y, 1.01 * Y, np.empty((0, 2)), Z)
    assert ratios[0] == pytest.approx(0.5 - 0.0025) and ratios[1] == 0.0
    assert change_ratios(Y, Y, np.empty((0, 2)), Z).tolist() == [0.0, 0.0]


def test_the_sensitivity_is_a_quantile_and_counts_what_breaks_it() -> None:
    pool = np.repeat(np.array([[0.5, 0.5]]), 99, axis=0)
    far = np.array([[0.9, 0.9]])
    observed = made_round(known=np.array([[2.0, 2.0]]), pool=np.vstack([pool, far]))
    found = sensitivity([made_run([observed])], rng=np.random.default_rng(0), samples=500)
    assert found.samples == 100 and found.value == pytest.approx(0.4975)
    assert found.violated == 0.0, "a surrogate without error breaks nothing"
    bad = replace(observed, mean=np.zeros((100, 2)))
    found = sensitivity([made_run([bad])], rng=np.random.default_rng(0))
    assert found.violated == 1.0 and found.needed == pytest.approx(0.99 / 1.8, abs=0.3)


def test_the_replacement_loss_is_the_largest_contribution() -> None:
    known = np.array([[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]])
    observed = made_round(known=known, pool=np.array([[2.0, 2.0]]))
    found = replacement_loss([made_run([observed])], rng=np.random.default_rng(0), trials=200)
    assert found.value == pytest.approx(pareto.contributions(known, Z).max())
    outside = made_round(known=known + 2, pool=np.array([[2.0, 2.0]]))
    lost = replacement_loss([made_run([outside])], rng=np.random.default_rng(0), trials=5)
    assert lost.value == 0.0


def test_the_fidelity_by_hand() -> None:
    pool = np.array([[0.5, 0.5], [0.6, 0.6], [0.2, 0.2]])
    observed = made_round(
        known=np.array([[0.8, 0.8]]), pool=pool, short=np.array([0, 1]), chosen=np.array([1])
    )
    rows = fidelity.scenarios(observed)
    assert rows[0] == pytest.approx([0.25 - 0.04, 0.64 - 0.04, 0.16 - 0.04])
    found = fidelity.fidelity(rows, rng=np.random.default_rng(0))
    assert found.rho == pytest.approx(0.12 / 0.21) and found.whole == pytest.approx(0.12 / 0.6)
    with pytest.raises(ValueError, match="0 / 0"):
        fidelity.fidelity(np.zeros((4, 3)), rng=np.random.default_rng(0))


def test_the_gains_of_a_batch_add_up() -> None:
    pool = line(np.array([0.1, 0.25, 0.4]))
    observed = made_round(known=np.array([[0.9, 0.9]]), pool=pool, chosen=np.arange(3))
    taken = fidelity.scenarios(observed)[:, 2].sum()
    assert taken == pytest.approx(pareto.hypervolume(pool, Z) - 0.01)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000))
def test_no_choice_beats_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed = made_round(
        known=rng.random((5, 2)), pool=rng.random((30, 2)), short=np.arange(0, 30, 2),
        chosen=rng.permutation(15)[:4],
    )  # fmt: skip
    rows = fidelity.scenarios(observed)
    assert (rows[:, 2] <= rows[:, 0]).all() and (rows[:, 0] <= rows[:, 1]).all()


def test_a_twentieth_of_the_scenarios_is_held_out() -> None:
    rows = np.column_stack([np.ones(200), np.ones(200), np.linspace(0, 1, 200)])
    found = fidelity.fidelity(rows, rng=np.random.default_rng(0))
    assert found.held_out == 10 and found.median == pytest.approx(0.5)
    assert found.quartiles == pytest.approx((0.25, 0.75))
    empty = fidelity.fidelity(np.vstack([rows, np.zeros((5, 3))]), rng=np.random.default_rng(0))
    assert empty.empty == 5 and empty.median == pytest.approx(0.5)


def test_the_table_shows_the_record(run: ObservedRun, tmp_path: Path) -> None:
    record = fidelity.Record.of([replace(run, problem="zdt3", d=100, algorithm="neuropareto")])
    path = record.write(tmp_path)
    again = fidelity.read_record(path)
    assert again.fidelity.median == pytest.approx(record.fidelity.median)
    made = bench_table("rho", Material([tmp_path]))
    row = next(r for r in made.rows if r[0].text == "ZDT3")
    shown = dict(zip(made.columns, (item.text for item in row), strict=True))
    assert float(shown["ours"]) == pytest.approx(record.fidelity.rho, rel=0.01)
    assert float(shown["ours\nagainst the pool"]) == pytest.approx(record.fidelity.whole, rel=0.01)
    assert shown["printed"] == "0.83" and any("seeds 3" in note for note in made.notes)
    assert len(made.missing) == 2
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="not a record"):
        fidelity.read_record(path)


def test_the_potential_is_the_fall_of_the_igd() -> None:
    rng = np.random.default_rng(0)
    front, known, new = line(np.linspace(0, 0.5, 40)), rng.random((6, 2)), rng.random((9, 2))
    found = information.potential(new, known, front)
    by_hand = [pareto.igd(known, front) - pareto.igd(np.vstack([known, c]), front) for c in new]
    assert found == pytest.approx(np.array(by_hand), abs=1e-12) and found.max() > 0


def test_spearman_by_hand() -> None:
    assert information.spearman(np.arange(4.0), np.arange(4.0) ** 3) == pytest.approx(1.0)
    assert information.spearman(np.arange(4.0), -np.arange(4.0)) == pytest.approx(-1.0)
    assert np.isnan(information.spearman(np.ones(4), np.arange(4.0)))


def test_a_planted_link_is_found_and_a_missing_one_is_not() -> None:
    rng = np.random.default_rng(0)
    observed = made_round(known=np.array([[2.0, 2.0]]), pool=rng.random((300, 2)))
    run = made_run([observed])
    pot = information.potential(observed.pool, observed.known, run.truth)
    planted = information.link([made_run([replace(observed, information=2 * pot)])])
    assert planted.median == pytest.approx(1.0) and planted.slope[0] == pytest.approx(2.0)
    assert planted.slack[0] == pytest.approx(0.0, abs=1e-9)
    assert planted.free[0] == pytest.approx(2.0) and "clear" in planted.verdict
    none = information.link([made_run([replace(observed, information=rng.random(300))])])
    assert abs(none.median) < 0.2 and "clear" not in none.verdict


def test_the_inequality_holds_with_the_slack_that_is_reported(run: ObservedRun) -> None:
    found = information.link([run])
    for t, observed in enumerate(run.rounds):
        pot = information.potential(observed.pool, observed.known, run.truth)
        right = max(found.slope[t], 0.0) * pot - found.slack[t]
        assert (observed.information >= right - 1e-12).all()
        assert (observed.information >= found.free[t] * pot - 1e-12).all()


def test_the_report_of_a_perfect_run_says_something_and_of_a_poor_one_that_it_is_vacuous() -> None:
    # A run that errs nowhere: the gain does not react to the candidates, so L_H is 0 as well.
    known = line(np.linspace(0.0, 0.5, 9))
    silent = made_round(known=known, pool=known + 0.2, first=np.zeros(9))
    # The candidate with something to gain is taken in round 1, so that rho has a value.
    gainful = made_round(
        known=np.array([[0.9, 0.9]]), pool=np.vstack([line(np.array([0.25])), known[:1] + 9]),
        chosen=np.array([0]),
    )  # fmt: skip
    perfect = bound_report.report([made_run([gainful, *[silent] * 60])])
    assert perfect.sensitivity.value == 0.0 and perfect.bound.prefactor == 0.0
    assert not perfect.bound.vacuous
    assert any("says something" in s for part in bound_report.tables(perfect) for s in part.notes)
    poor = bound_report.report([made_run([replace(gainful, mean=gainful.mean + 1.0)] * 3)])
    assert poor.bound.vacuous
    assert any("is vacuous" in s for part in bound_report.tables(poor) for s in part.notes)


def test_the_report_of_two_runs_checks_the_martingale(run: ObservedRun) -> None:
    found = bound_report.report([run, replace(run, seed=4)])
    assert found.martingale is not None and found.martingale.largest == pytest.approx(0.0)
    assert found.bound.errors == pytest.approx(sum(e.total for e in found.errors[0]))
    assert found.reached == pytest.approx(run.volumes[-1])
    assert bound_report.report([run]).martingale is None


def test_the_commands_print_and_write(
    run: ObservedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / f"a{ENDING}")
    run.save(Path(file))
    picture = tmp_path / "bound.png"
    assert cli.main(["analyse", "bound", file, "--figure", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "vacuous" in text and "eps_class" in text and picture.stat().st_size > 1000
    assert cli.main(["analyse", "information", file, "--format", "markdown"]) == 0
    assert "Spearman" in capsys.readouterr().out
    assert cli.main(["analyse", "rho", file, "-o", str(tmp_path / "r")]) == 0
    assert "held-out" in capsys.readouterr().out
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["rho-dtlz2-d6-m2-neuropareto.json"]


def test_observing_from_the_command_line_refuses_other_algorithms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["analyse", "observe", "dtlz2", "-d", "6", "--algorithm", "nsga2"]) == 1
    assert "watched" in capsys.readouterr().err
