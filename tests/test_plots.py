from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from neuropareto import NSGA2, Result, minimize
from neuropareto.testing.algorithm import conflicting


def result(m: int) -> Result:
    return minimize(
        lambda X: conflicting(X, m), [(0, 1)] * 4, n_objectives=m, budget=24, n_initial=12, batch=6,
        seed=0, algorithm=NSGA2(8), vectorized=True, progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("m", [2, 3, 5])
def test_a_run_becomes_a_picture(m: int, tmp_path: Path) -> None:
    figure = result(m).plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles[0].startswith("Pareto front") and titles[1] == "Hypervolume"


def test_the_front_is_drawn_where_it_lies() -> None:
    run = result(2)
    lines = run.plot().axes[0].lines[0]
    assert np.allclose(np.sort(np.asarray(lines.get_xdata())), sorted(run.front.F[:, 0]))


def test_an_empty_run_can_be_drawn() -> None:
    def broken(x: object) -> list[float]:
        raise RuntimeError

    run = minimize(
        broken, [(0, 1)], n_objectives=2, budget=3, n_initial=2, algorithm=NSGA2(), progress=False
    )
    assert len(run.plot().axes) == 2


def test_a_missing_matplotlib_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    run = result(2)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'neuropareto\[plots\]'"):
        run.plot()
