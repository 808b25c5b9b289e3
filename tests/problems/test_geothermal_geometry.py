"""The grid, the fractures on it, and the shape factors of the embedded fracture model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.problems.geothermal import (
    Geometry,
    GivenFractures,
    NaturalFractures,
    Reservoir,
    Rock,
    Well,
    Wells,
)
from neuropareto.problems.geothermal.edfm import build, mean_distance
from neuropareto.problems.geothermal.fluid import Fluid
from neuropareto.problems.geothermal.fractures import centred_line, cut, intersections
from neuropareto.problems.geothermal.geometry import Grid

coordinate = st.floats(-600.0, 600.0)
GRID = Grid(Geometry().edges())


def test_the_default_grid_is_the_one_described() -> None:
    edges = Geometry().edges()
    assert len(edges) == 40
    np.testing.assert_allclose(edges, -edges[::-1], atol=1e-9)
    assert edges[-1] == 1000.0
    inside = np.abs(edges) <= 620.0 + 1e-9
    np.testing.assert_allclose(np.diff(edges[inside]), 40.0)
    outward = np.diff(edges[edges >= 620.0 - 1e-9])
    np.testing.assert_allclose(outward[1:] / outward[:-1], 1.5)


@given(st.floats(10.0, 200.0), st.floats(1.0, 2.0))
@settings(deadline=None, max_examples=50)
def test_every_grid_fills_the_block_with_an_odd_core(cell: float, growth: float) -> None:
    edges = Geometry(cell=cell, growth=growth).edges()
    assert (np.diff(edges) > 0).all()
    assert edges[0] == -1000.0 and edges[-1] == 1000.0
    core = np.diff(edges[np.abs(edges) <= 620.0 + 1e-9])
    assert len(core) % 2 == 1
    assert abs(core[0] / cell - 1) < 0.5


def test_the_network_has_30_fractures_and_the_volumes_of_the_block() -> None:
    network = Reservoir().discretisation.network
    segments = network.segments
    assert len(segments.lines) == 30
    assert 200 < len(segments.cell) < 400
    np.testing.assert_allclose(network.volume[: GRID.n**2].sum(), 2000.0**2 * 100.0)
    water = network.volume[GRID.n**2 :].sum()
    np.testing.assert_allclose(water, segments.lengths.sum() * 100.0 * 0.5e-3)
    assert network.fixed.sum() == 4 * (GRID.n - 1)


def test_natural_fractures_keep_their_limits_and_their_seed() -> None:
    spec = NaturalFractures(count=200, seed=3)
    lines = spec.lines(620.0)
    length = np.hypot(lines[:, 2] - lines[:, 0], lines[:, 3] - lines[:, 1])
    assert length.min() >= 120.0 - 1e-9 and length.max() <= 600.0 + 1e-9
    assert abs(np.median(length) - 260.0) < 40.0
    assert np.abs(lines).max() <= 620.0 + 1e-9
    angle = np.rad2deg(np.arctan2(lines[:, 3] - lines[:, 1], lines[:, 2] - lines[:, 0])) % 180
    assert np.abs(angle[0::2] - 30.0).max() < 25.0
    assert np.abs(angle[1::2] - 120.0).max() < 25.0
    np.testing.assert_array_equal(lines, NaturalFractures(count=200, seed=3).lines(620.0))
    assert not np.array_equal(lines, NaturalFractures(count=200, seed=4).lines(620.0))


@given(coordinate, coordinate, coordinate, coordinate)
@settings(deadline=None, max_examples=100)
def test_cutting_keeps_length_and_places_pieces_in_their_cells(
    x0: float, y0: float, x1: float, y1: float
) -> None:
    length = float(np.hypot(x1 - x0, y1 - y0))
    if length < 1.0:
        return
    line = np.array([[x0, y0, x1, y1]])
    segments = cut(line, GRID, shortest=0.0)
    np.testing.assert_allclose(segments.lengths.sum(), length, rtol=1e-12)
    np.testing.assert_array_equal(segments.start[1:], segments.end[:-1])
    i, j = np.divmod(segments.cell, GRID.n)
    for share in (segments.start, segments.end):
        x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        assert (x >= GRID.edges[i] - 1e-6).all() and (x <= GRID.edges[i + 1] + 1e-6).all()
        assert (y >= GRID.edges[j] - 1e-6).all() and (y <= GRID.edges[j + 1] + 1e-6).all()


def test_no_segment_is_tiny() -> None:
    # The line passes 1 mm beside a corner of four cells.
    line = centred_line(20.0, 20.001, 300.0, 45.0)
    assert cut(line, GRID, shortest=0.0).lengths.min() < 0.01
    joined = cut(line, GRID)
    assert joined.lengths.min() >= 0.05 * 40.0
    np.testing.assert_allclose(joined.lengths.sum(), 300.0)


@given(st.floats(0.0, 180.0), st.floats(-15.0, 15.0), st.floats(5.0, 60.0))
@settings(deadline=None, max_examples=60)
def test_mean_distance_equals_quadrature(angle: float, offset: float, height: float) -> None:
    line = centred_line(offset, -0.3 * offset, 100.0, angle)
    x, y = np.array([[-20.0, 20.0]]), np.array([[-0.5 * height, 0.5 * height]])
    node = (np.arange(400) + 0.5) / 400 - 0.5
    X, Y = np.meshgrid(40.0 * node, height * node, indexing="ij")
    direction = (line[0, 2:] - line[0, :2]) / 100.0
    distance = np.abs(direction[0] * (Y - line[0, 1]) - direction[1] * (X - line[0, 0]))
    np.testing.assert_allclose(mean_distance(line, x, y)[0], distance.mean(), rtol=2e-3, atol=5e-3)


def test_crossings_lie_on_both_lines() -> None:
    lines = NaturalFractures(count=40).lines(620.0)
    found = intersections(lines)
    assert found
    for i, j, along, across in found:
        one = lines[i, :2] + along * (lines[i, 2:] - lines[i, :2])
        two = lines[j, :2] + across * (lines[j, 2:] - lines[j, :2])
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_crossing_fractures_are_connected_once() -> None:
    cross = GivenFractures(((-150.0, 0.0, 150.0, 0.0), (0.0, -150.0, 0.0, 150.0)))
    wells = Wells(
        injectors=(Well(-140.0, 0.0, 0.0, 0.0),), producers=(Well(0.0, 140.0, 0.0, 0.0),)
    )
    network = build(Geometry(), cross, Rock(), Fluid(), wells)
    cells, c = network.grid.n**2, network.connections
    both = (c.left >= cells) & (c.right >= cells)
    pairs = {(int(i), int(j)) for i, j in zip(c.left[both], c.right[both], strict=True)}
    assert len(pairs) == int(both.sum())
    chains = len(network.segments.cell) - 2
    assert len(pairs) == chains + 1


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Geometry(cell=-1.0), "cell"),
        (lambda: Geometry(core=1200.0), "core"),
        (lambda: Geometry(growth=0.5), "growth"),
        (lambda: Geometry(cover=(10.0, float("nan"))), "cover"),
        (lambda: NaturalFractures(count=-1), "count"),
        (lambda: NaturalFractures(angles=()), "angle"),
        (lambda: GivenFractures(((0.0, 0.0, 0.0, 0.0),)), "length 0"),
        (lambda: GivenFractures(((0.0, 0.0, float("inf"), 0.0),)), "finite"),
        (lambda: GivenFractures(((0.0, 0.0, 900.0, 0.0),)).lines(620.0), "core"),
        (lambda: NaturalFractures(longest=5000.0, median=4000.0).lines(620.0), "fit"),
        (lambda: Rock(porosity=1.0), "porosity"),
        (lambda: Rock(temperature=600.0), "temperature"),
        (lambda: Fluid(injected=100.0), "injected"),
        (lambda: Well(0.0, float("nan"), 100.0, 0.0), "finite"),
        (lambda: Wells(injectors=()), "injector"),
        (lambda: Wells(low=60.0), "low"),
        (lambda: Wells(floor=0.0), "floor"),
    ],
)
def test_impossible_parts_are_refused(make: object, word: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=word):
        make()


def test_a_well_without_a_fracture_is_refused() -> None:
    wells = Wells(injectors=(Well(0.0, 0.0, 0.0, 0.0),), producers=(Well(300.0, 0.0, 100.0, 0.0),))
    with pytest.raises(ValueError, match="no fracture"):
        build(Geometry(), GivenFractures(), Rock(), Fluid(), wells)
