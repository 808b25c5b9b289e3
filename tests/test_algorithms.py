from __future__ import annotations

from pathlib import Path

import pytest

from neuropareto.algorithm import RandomSearch
from neuropareto.algorithms import algorithm, algorithms
from neuropareto.nsga2 import NSGA2


def test_names_give_algorithms() -> None:
    assert algorithm("random") == RandomSearch() and algorithm("nsga2") == NSGA2()
    names = algorithms()
    assert {"neuropareto", "neuropareto-paper", "nsga2", "random", "no-temperature", "k-3"} <= {
        *names
    }
    assert len(set(names)) == len(names)


def test_every_name_makes_something_that_proposes() -> None:
    for name in algorithms():
        try:
            made = algorithm(name)
        except ModuleNotFoundError as error:  # an optional library is not installed here
            assert "pip install" in str(error)
            continue
        assert callable(made.propose)


def test_ours_and_the_literal_pipeline_differ() -> None:
    assert algorithm("neuropareto") != algorithm("neuropareto-paper")


def test_an_outsider_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outsider.py").write_text(
        "from neuropareto.nsga2 import NSGA2\n"
        "SMALL = NSGA2(8)\ndef made(): return NSGA2(9)\nNOTHING = 3\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert algorithm("outsider:NSGA2") == NSGA2()
    assert algorithm("outsider:SMALL") == NSGA2(8) and algorithm("outsider:made") == NSGA2(9)
    for wrong in ("outsider:NOTHING", "outsider:absent"):
        with pytest.raises(ValueError, match="propose"):
            algorithm(wrong)
    with pytest.raises(ValueError, match="cannot be imported"):
        algorithm("nowhere.at_all:X")


def test_a_slip_is_answered_with_a_guess() -> None:
    with pytest.raises(ValueError, match="did you mean nsga2"):
        algorithm("nsga3")
    with pytest.raises(ValueError, match=r"package\.module:Name"):
        algorithm("zzz")
