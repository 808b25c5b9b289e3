"""The RE suite: values of the authors' programs, BoTorch and pymoo, reference points, limits."""

from __future__ import annotations

import numpy as np
import pytest

from neuropareto.problems import problem
from neuropareto.problems.engineering import DESIGNS, NAMES
from neuropareto.problems.machines import BAR_AREAS, reinforced_beam
from neuropareto.space import Array
from neuropareto.testing.problem import objectives

# Objectives by the formulas of the suite's published programs, evaluated one point at a time by a
# separate transcription, at u_j = (0.37 + 0.29 j + 0.41 i) mod 1 for i = 0, 1.
PUBLISHED = {
    "re21": [[2029.8303073, 0.026817510109], [2197.1838877, 0.020804247715]],
    "re22": [[469.128, 0], [360.486, 791.48002679]],
    "re23": [[307020.11435, 1.30165], [92374.520405, 0.247936]],
    "re24": [[3982.195, 0], [479.03, 0.0088272383354]],
    "re25": [[39.068829022, 5.2970961573], [6.4306590249, 18956.050999]],
    "re31": [[385.26378138, 0.92090342769, 385.16378138], [353.54874736, 0.64909426933, 353.44874736]],
    "re32": [[39.48226564, 0.0019740036984, 0.63375], [22.101968093, 0.013549306481, 0.63375]],
    "re33": [[3.2744670224, 2.0830320087, 0], [0.34813530412, 2.9728062636, 17.87201371]],
    "re34": [[1683.6277179, 7.99323552, 0.1863496], [1687.4148858, 10.54154744, 0.08120872]],
    "re35": [[5232.1604152, 800.31381914, 1.1227154047], [3676.1986299, 1346.9314934, 47.150729655]],
    "re36": [[5.8764545455, 58, 0.34785089388], [5.2344013605, 49, 0.25521589389]],
    "re37": [[0.370013434, 0.76305772, 0.459397281], [0.81781206, 0.17385001, 0.731292284]],
    "re41": [
        [30.83558056, 4.062378, 11.88242598, 0.214843],
        [29.00129584, 4.0611758, 12.329258505, 3.759723051],
    ],
    "re42": [
        [-490.86606913, 10395.250002, 11620.307295, 3.8894452518],
        [-444.56281667, 10237.231643, 12555.821067, 5.9034108288],
    ],
    "re61": [
        [79312.753013, 518.4, 1980307.4617, 1445739.1017, 12691.937854, 0],
        [67972.677719, 1059.6, 465115.44129, 7054429.2351, 9272.3621758, 0],
    ],
    "re91": [
        [30.78150556, 0.738093848, 0.7324930575, 0.68808203988, 0.79212870625, 0.960929925,
         1.0155945, 0.93590588687, 0.92352762293],
        [28.92569584, 0.860797505, 0.62441703, 0.5538863465, 1.2888740969, 0.97316142875,
         1.01529395, 0.98912160505, 0.94689255541],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_values_are_those_of_the_published_programs(name: str) -> None:
    made = problem(name)
    U = (0.37 + 0.29 * np.arange(made.d) + 0.41 * np.arange(2)[:, None]) % 1.0
    np.testing.assert_allclose(
        objectives(made, made.space.from_unit(U)), PUBLISHED[name], rtol=1e-9, atol=1e-12
    )


def test_every_re_problem_is_checked() -> None:
    assert {name for name in NAMES if name.startswith("re")} == PUBLISHED.keys()


def example(name: str, n: int = 200) -> Array:
    made = problem(name)
    return made.space.from_unit(np.random.default_rng(0).random((n, made.d)))


@pytest.mark.parametrize(
    ("name", "other"), [("re34", "botorch:VehicleSafety"), ("re41", "botorch:CarSideImpact")]
)
def test_objectives_equal_botorch(name: str, other: str) -> None:
    X, ours, theirs = example(name), problem(name), problem(other)
    np.testing.assert_allclose(theirs.space.lower, ours.space.lower)
    np.testing.assert_allclose(theirs.space.upper, ours.space.upper)
    np.testing.assert_allclose(objectives(ours, X), objectives(theirs, X), rtol=1e-9, atol=1e-12)


def test_constrained_disc_brake_equals_botorch() -> None:
    X, ours, theirs = example("cre23"), problem("cre23"), problem("botorch:DiscBrake")
    np.testing.assert_allclose(objectives(ours, X), objectives(theirs, X), rtol=1e-9)
    G, H = ours(X)[1], theirs(X)[1]
    np.testing.assert_allclose(G, H, rtol=1e-7, atol=1e-9)


def test_constrained_welded_beam_equals_pymoo_where_their_constants_agree() -> None:
    """pymoo's polar moment of the weld is half of the suite's, so its shear stress is larger, and
    its buckling load has another constant; stress and thickness are the same."""
    X, ours, theirs = example("cre22", 2000), problem("cre22"), problem("pymoo:welded_beam")
    np.testing.assert_allclose(objectives(ours, X), objectives(theirs, X), rtol=1e-9)
    first, second = ours(X), theirs(X)
    assert isinstance(first, tuple) and isinstance(second, tuple)
    G, H = first[1], second[1]
    np.testing.assert_allclose(G[:, 1] / 30_000, H[:, 1], atol=1e-9)
    np.testing.assert_allclose(G[:, 2] / 4.875, H[:, 2], atol=1e-9)
    assert (G[:, 0] / 13_600 <= H[:, 0] + 1e-9).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("cre")])
def test_constrained_problems_are_the_unconstrained_ones_taken_apart(name: str) -> None:
    """The last objective of the RE twin is the sum of the violations."""
    twin = {"cre21": "re31", "cre22": "re32", "cre23": "re33", "cre24": "re35", "cre25": "re36",
            "cre31": "re41", "cre32": "re42", "cre51": "re61"}[name]  # fmt: skip
    X = example(name, 50)
    outcome = problem(name)(X)
    assert isinstance(outcome, tuple)
    F, G = outcome
    both = np.column_stack([F, np.maximum(G, 0).sum(axis=1)])
    np.testing.assert_allclose(objectives(problem(twin), X), both)


@pytest.mark.parametrize("name", NAMES)
def test_reference_point_is_behind_the_nadir(name: str) -> None:
    design, made = DESIGNS[name], problem(name)
    assert made.reference_point is not None
    ideal, nadir = np.array(design.ideal), np.array(design.nadir)
    assert (ideal < nadir).all()
    np.testing.assert_allclose(made.reference_point - nadir, 0.1 * (nadir - ideal))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_better_than_the_ideal_point(name: str) -> None:
    made, design = problem(name), DESIGNS[name]
    rng = np.random.default_rng(0)
    inside = rng.random((20_000, made.d))
    cornered = np.where(rng.random((20_000, made.d)) < 0.6, np.round(inside), inside)
    # Feasible two-bar trusses have areas near the lower end of a wide range.
    slender = inside ** np.array([60.0, 60.0, 1.0])[np.arange(made.d) % 3]
    outcome = made(made.space.from_unit(np.vstack([inside, cornered, slender])))
    F, G = outcome if isinstance(outcome, tuple) else (outcome, np.zeros((len(outcome), 1)))
    F = F[(G <= 0).all(axis=1)]
    assert len(F) > 0
    ideal, nadir = np.array(design.ideal), np.array(design.nadir)
    assert (F.min(axis=0) >= ideal - 1e-4 * (nadir - ideal)).all()
    # Some good point must be well inside the box of ideal and nadir point.
    assert (F - nadir <= 0).all(axis=1).any()


def test_catalogue_dimensions_are_rounded_to_the_nearest() -> None:
    X = np.array([[0.26, 10.0, 10.0], [0.25, 10.0, 10.0], [15.0, 10.0, 10.0], [9.8, 10.0, 10.0]])
    steel = (reinforced_beam(X)[0][:, 0] - 60.0) / 29.4
    np.testing.assert_allclose(steel, [0.31, 0.2, 15.0, 10.0])
    assert (np.diff(BAR_AREAS) > 0).all()


def test_singular_points_of_the_box_are_finite() -> None:
    assert np.isfinite(objectives(problem("re22"), np.array([[0.2, 0.0, 0.0]]))).all()
    assert np.isfinite(objectives(problem("re33"), np.array([[78.0, 78.0, 2000.0, 15.0]]))).all()


def test_sizes_are_fixed() -> None:
    with pytest.raises(ValueError, match="re21 has d=4"):
        problem("re21", 5)
    with pytest.raises(ValueError, match="re21 has m=2"):
        problem("re21", m=3)
    assert problem("re21", 4, 2).d == 4
