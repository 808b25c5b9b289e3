"""The transcription of the paper's tables, checked by their size and by arithmetic among columns."""

from __future__ import annotations

import pytest

from neuropareto.ablations import ABLATIONS, INGREDIENTS
from neuropareto.bench import printed
from neuropareto.bench.grid import load, shipped
from neuropareto.bench.tables import TABLES


def column(algorithm: str, *tables: str) -> list[float]:
    return [float(row[algorithm]) for name in tables for row in printed.igd_table(name).values()]


def ratios(a: str, b: str, *tables: str) -> list[float]:
    return [x / y for x, y in zip(column(a, *tables), column(b, *tables), strict=True)]


def test_the_large_tables_have_83_rows_of_eleven_algorithms() -> None:
    sizes = {name: len(printed.igd_table(name)) for name in printed.LARGE}
    assert sizes == {"dtlz-bi": 28, "dtlz-tri": 28, "zdt": 20, "high-dim": 7}
    for name in printed.LARGE:
        for row in printed.igd_table(name).values():
            assert len(row) == 11 and all(float(v) > 0 for v in row.values())


def test_proportional_columns_are_transcribed_without_a_slip() -> None:
    # The printed columns are nearly proportional; one wrong digit would break the pattern.
    three = ("dtlz-bi", "dtlz-tri", "zdt")
    assert all(r == pytest.approx(0.75, abs=1e-3) for r in ratios("gp-ei", "cps-moea", *three))
    assert sum(0.809 < r < 0.8101 for r in ratios("rf-ei", "cps-moea", *three)) == 74
    assert all(0.714 < r < 0.715 for r in ratios("gp-hv", "cps-moea", "dtlz-bi"))
    assert sum(r == pytest.approx(0.9, abs=1e-3) for r in ratios("cl-ego", "gp-hv", *three)) == 75


def test_columns_that_repeat_each_other_are_transcribed_without_a_slip() -> None:
    ours, other = printed.igd_table("dtlz-bi"), printed.igd_table("dtlz-tri")
    same = [
        float(other[key]["clmea"]) / float(ours[key]["neuropareto"])
        for key in ours
    ]  # fmt: skip
    assert sum(min(abs(r - 1), abs(r / 10 - 1)) < 1e-3 for r in same) == 27


def test_spot_values() -> None:
    assert printed.printed_igd("dtlz2", 100, 2, "neuropareto") == "0.17226"
    assert printed.printed_igd("dtlz2", 100, 3, "neuropareto") == "1.4172"
    assert printed.printed_igd("zdt6", 200, 2, "mcea-d") == "7.6840"
    assert printed.printed_igd("dtlz7", 500, 5, "gp-ei") == "33.67"
    assert printed.printed_igd("dtlz3", 200, 2, "gp-ei") == "11909"
    assert printed.printed_igd("dtlz2", 77, 2, "neuropareto") is None
    assert printed.printed_igd("dtlz2", 100, 2, "nsga2") is None


def test_component_shares_add_up() -> None:
    rows = printed.rows_of("component-time")
    for problem, d in (("dtlz2", 100), ("zdt3", 100), ("dtlz2", 200)):
        shares = [float(r["printed"]) for r in rows if (r["problem"], r["d"]) == (problem, d)]
        assert sum(shares) == pytest.approx(100.0, abs=0.05)


def test_printed_times_per_iteration_are_totals_over_300() -> None:
    for row in printed.rows_of("wall-clock"):
        assert float(row["total"]) / 300 == pytest.approx(float(row["iteration"]), abs=0.006)


def test_relative_changes_follow_from_the_values() -> None:
    rows = {row["algorithm"]: row for row in printed.rows_of("decomposition")}
    for name in ("homoscedastic", "shallow"):
        change = 100 * (float(rows[name]["printed"]) / 0.873 - 1)
        assert f"{change:+.1f}%" == rows[name]["change"]
    static, learned = printed.rows_of("static-vs-learned")
    change = 100 * (float(learned["printed"]) / float(static["printed"]) - 1)
    assert f"{change:+.1f}%" == learned["change"]


def test_every_row_of_a_small_table_is_in_the_grid_of_that_name() -> None:
    for name in set(printed.tables()) & set(shipped()):
        algorithms = load(name).algorithms
        named = [r["algorithm"] for r in printed.rows_of(name) if "algorithm" in r]
        assert set(named) <= set(algorithms), name


def test_the_issues_fifteen_tables_are_there() -> None:
    assert {
        "dtlz-bi", "dtlz-tri", "zdt", "grid", "ablation", "pool-size", "decomposition", "lmc",
        "retuning", "rho", "high-dim", "static-vs-learned", "mobo", "wall-clock", "component-time",
    } <= TABLES.keys()  # fmt: skip


def test_families() -> None:
    assert (
        printed.own("neuropareto-paper") and printed.own("no-temperature") and printed.own("k-3")
    )
    assert all(printed.own(name) for name in (*ABLATIONS, *INGREDIENTS))
    assert not printed.own("clmea") and not printed.own("nsga2") and not printed.own("my:Own")
    assert {"clmea", "morbo", "pool-200", "lmc"} <= printed.named_algorithms()
    assert printed.display("mcea-d") == "MCEA/D" and printed.display("my:Own") == "my:Own"
    assert printed.printed_text("ece")["printed"] == "0.032"
