"""The dropout index against a (small) deep ensemble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuropareto.analysis.dropout_reference import command, measured, table, toy, waves
from neuropareto.bench.layout import render


def test_the_toy_has_two_classes_and_a_gap() -> None:
    data = toy(400, rng=np.random.default_rng(0))
    assert set(data.labels) == {1, 2}
    assert not ((data.u > 0.62) & (data.u < 0.72)).any()
    assert waves(data.u).shape == (400, 8) and 0 <= waves(data.u).min() <= waves(data.u).max() <= 1


def test_the_reference_is_largest_where_nobody_has_looked() -> None:
    found = measured(8, (0.5,))
    gap = (found.t > 0.58) & (found.t < 0.76)
    seen = (found.t < 0.3) | (found.t > 0.85)
    assert found.reference[gap].mean() > 2 * found.reference[seen].mean()
    (index,) = found.indices
    assert index.gain.shape == found.t.shape and (index.gain >= 0).all()
    assert index.bias == pytest.approx(np.mean(index.gain - found.reference))
    assert index.ratio == pytest.approx(1 + index.bias / found.reference.mean())
    assert -1 <= index.pearson <= 1 and -1 <= index.spearman <= 1
    text = render(table([found, found]), "markdown")
    assert "8 networks" in text and f"{index.pearson:.2f}" in text


def test_the_command_writes_curves_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "a" / "b.png"
    arguments = ["--members", "4", "--seeds", "1", "--output", str(tmp_path)]
    assert command([*arguments, "--figure", str(picture)]) == 0
    assert "Pearson" in capsys.readouterr().out and picture.stat().st_size > 5000
    curves = np.genfromtxt(tmp_path / "dropout-reference.csv", delimiter=",", names=True)
    assert curves.dtype.names is not None and "reference" in curves.dtype.names
    assert len(curves) == 101


def test_a_reference_needs_a_few_networks() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        measured(3)
