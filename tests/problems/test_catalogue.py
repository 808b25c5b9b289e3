"""The catalogue: names, close matches, variants, the table of the documentation, pickling."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuropareto.problems import problem, problems
from neuropareto.problems.catalogue import table
from neuropareto.testing.problem import objectives

DOCS = Path(__file__).parents[2] / "docs" / "problems.md"


def test_names() -> None:
    names = problems()
    assert len(set(names)) == len(names) >= 40
    assert {"dtlz1", "zdt6", "wfg9", "chain", "re91", "rover", "truss", "geothermal"} <= set(names)


def test_names_are_read_in_any_case() -> None:
    assert problem("DTLZ2", 10, 2).name == "dtlz2"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("dltz2", "dtlz2"), ("zdt5", "zdt"), ("sparse", "sparse-"), ("xyzzy", "choose from dtlz1")],
)
def test_unknown_names_get_close_matches(asked: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        problem(asked)


def test_unknown_variants_get_close_matches() -> None:
    with pytest.raises(ValueError, match="did you mean rotated"):
        problem("dtlz2", variant="rotate")


def test_sizes_default_to_the_usual() -> None:
    assert problem("dtlz2").d == 30 and problem("dtlz2").n_objectives == 2
    assert problem("dtlz2", m=40).d == 40
    assert problem("dtlz2", d=100, m=2).space.d == 100


@pytest.mark.parametrize("name", ["dtlz7", "zdt4", "wfg9", "chain", "re41", "rover", "truss"])
@pytest.mark.parametrize("variant", [None, "mirrored"])
def test_problems_travel_to_other_processes(name: str, variant: str | None) -> None:
    made = problem(name, variant=variant)
    copy = pickle.loads(pickle.dumps(made))
    X = made.space.from_unit(np.random.default_rng(0).random((3, made.d)))
    np.testing.assert_array_equal(objectives(copy, X), objectives(made, X))


def test_documented_table_is_the_catalogue() -> None:
    assert table() in DOCS.read_text(encoding="utf-8"), "run python -m neuropareto.problems"


def test_catalogue_does_not_import_heavy_libraries() -> None:
    code = (
        "import sys; from neuropareto.problems import problem; problem('dtlz2'); "
        "print([m for m in ('torch', 'pymoo', 'botorch', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
