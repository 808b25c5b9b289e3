"""The pictures of the case: every one draws from plain arrays and saves; none needs a display."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neuropareto.problems.geothermal import Outcome, coarse_reservoir
from neuropareto.problems.geothermal.figures import (
    LABELS,
    field_figure,
    front_figure,
    hypervolume_figure,
    prediction_figure,
    schedules_figure,
    temperature_figure,
    three_points,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESERVOIR = coarse_reservoir()
RNG = np.random.default_rng(0)
X = RNG.random((3, 160))
F = np.array([[150.0, 100.0], [110.0, 140.0], [60.0, 200.0]])


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [RESERVOIR.simulate(u) for u in X]


def saved(figure: Figure, folder: Path) -> int:
    path = folder / "picture.png"
    figure.savefig(path)
    return path.stat().st_size


def test_three_points_are_the_two_ends_and_a_point_between() -> None:
    many = np.vstack([F, [[50.0, 50.0], [100.0, 90.0]]])
    assert three_points(many) == (0, 1, 2)
    assert three_points(F[:1]) == (0, 0, 0)


def test_front_and_hypervolume(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    front = front_figure(RNG.uniform(50, 150, (40, 2)), F, 30)
    labels = [text.get_text() for text in front.axes[0].get_legend().get_texts()]  # type: ignore[union-attr]
    assert "start design (30)" in labels and "proposed (10)" in labels
    assert saved(front, tmp_path) > 10_000
    history = np.maximum.accumulate(RNG.uniform(0, 2e4, 40))
    assert saved(hypervolume_figure(history, 1.9e4, 30), tmp_path) > 10_000


def test_schedules_show_wells_by_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = schedules_figure(RESERVOIR, X, F)
    images = [image for ax in figure.axes for image in ax.get_images()]
    shown = np.asarray(images[0].get_array())
    np.testing.assert_allclose(shown, RESERVOIR.rates(X[0]).injection.T)
    assert shown.shape == (4, 20) and len(images) == 6
    assert saved(figure, tmp_path) > 10_000


def test_temperatures_and_field(outcomes: list[Outcome], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert saved(temperature_figure(outcomes), tmp_path) > 10_000
    figure = field_figure(RESERVOIR, outcomes, LABELS)
    assert len(figure.axes) == 4
    assert saved(figure, tmp_path) > 10_000


def test_predictions_say_how_many_are_inside_the_band(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    truth = RNG.uniform(50, 150, (20, 2))
    wrong = truth.copy()
    wrong[:5] += 10.0
    figure = prediction_figure(truth, wrong, np.ones((20, 2)), np.ones((20, 2)))
    assert "75% inside" in figure.axes[0].get_title(loc="left")
    assert saved(figure, tmp_path) > 10_000


def test_without_matplotlib_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'neuropareto\[plots\]'"):
        hypervolume_figure(np.ones(3), 1.0, 2)
