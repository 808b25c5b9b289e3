"""Power laws with planted slopes, the rate of the temperature, and the trends on a small archive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuropareto.analysis import calibration_trends as trends
from neuropareto.analysis.calibration_command import command
from neuropareto.analysis.runs import Run
from neuropareto.archive import Archive
from neuropareto.bench.layout import render
from neuropareto.calibration import Temperature


def test_a_planted_power_is_found_with_its_interval() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    exact = trends.power(x, 3.0 * x**-0.5)
    assert exact.slope == pytest.approx(-0.5) and exact.upper - exact.lower < 1e-6
    noise = np.exp(0.1 * np.random.default_rng(0).normal(size=5))
    law = trends.power(x, 3.0 * x**-0.5 * noise)
    assert law.lower < -0.5 < law.upper


def test_the_error_of_the_temperature_falls_as_one_over_root_n() -> None:
    found = trends.temperature_rate(
        (50, 100, 200, 400, 800), rng=np.random.default_rng(0), repeats=60
    )
    assert found.law is not None and found.law.slope == pytest.approx(-0.5, abs=0.12)


def test_a_part_of_the_rows_fits_the_temperature_of_that_part() -> None:
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(40, 1, 3)), rng.integers(1, 4, 40)
    some = trends.FirstRows(Temperature(), 10, seed=1).scaling(z, labels)
    everything = trends.FirstRows(Temperature(), 40, seed=1).scaling(z, labels)
    assert everything.temperature == pytest.approx(Temperature().temperature(z, labels))
    assert some.temperature != everything.temperature


@pytest.fixture(scope="module")
def part() -> trends.Split:
    rng = np.random.default_rng(0)
    U = rng.random((120, 5))
    F = np.stack([U[:, 0], 1 - U[:, 0] + U[:, 1:].sum(axis=1)], axis=1)
    return trends.split(Run("toy", "neuropareto", 0, (), F, 60, 1.0, Archive.of(U, F)))


def test_more_passes_come_closer_to_many(part: trends.Split) -> None:
    apart, error = trends.sampling([part], (2, 8, 32), 32, tau=10.0)
    assert apart.y[0] > apart.y[1] > apart.y[2] > 0
    assert apart.law is not None and apart.law.slope == pytest.approx(-0.5, abs=0.25)
    assert len(error.y) == 3 and all(0 <= y <= 1 for y in error.y)


def test_a_larger_maximum_helps_where_passes_disagree(part: trends.Split) -> None:
    apart, _ = trends.maximum([part], (4, 64), 4, tau=1e-6)
    assert apart.y[1] < 0.6 * apart.y[0]


def test_the_temperature_settles_with_more_held_out_rows(part: trends.Split) -> None:
    error, apart = trends.calibration_size([part], (3, 60), repeats=2)
    assert apart.y[1] == pytest.approx(0.0, abs=1e-3) and apart.y[0] > 0.01
    text = render(trends.table([error, apart]), "text")
    assert "N_calib" in text and "-0.5" in text


def test_the_command_refuses_runs_of_others() -> None:
    records = Path(__file__).parents[2] / "benchmarks" / "records" / "end-to-end"
    if not records.exists():
        pytest.skip("records are not shipped with a package")
    with pytest.raises(ValueError, match="there are runs of"):
        command([str(records), "--algorithm", "nobody"])


def test_a_split_needs_the_points() -> None:
    with pytest.raises(ValueError, match="does not hold its points"):
        trends.split(Run("toy", "neuropareto", 0, (), np.empty((0, 2)), 0, 0.0))
