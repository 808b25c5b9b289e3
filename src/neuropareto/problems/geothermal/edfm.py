"""The embedded discrete fracture model: nodes and the connections between them.

Nodes: the n n grid cells, then the s fracture segments; N in all. Each connection has one shape
factor A / d in metres; times a permeability it is a transmissibility (m3), times a conductivity a
conductance (W/K). With layer thickness H, aperture b, segment length L and <d> the mean distance of
a cell from its fracture:  cell-cell w H / (d1 + d2);  cell-segment 2 L H / <d>;  along a fracture
b H / (L1/2 + L2/2);  at a crossing the two factors b H / <d_i> in series, <d_i> the mean distance
of the segment from the crossing; a well cuts its segment in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.fluid import Fluid, Rock
from neuropareto.problems.geothermal.fractures import (
    Fractures,
    Indices,
    Segments,
    centred_line,
    check_reach,
    cut,
    intersections,
)
from neuropareto.problems.geothermal.geometry import Geometry, Grid
from neuropareto.problems.geothermal.wells import Well, Wells
from neuropareto.space import Array


@dataclass(frozen=True, eq=False)
class Connections:
    """The connection list: nodes ``left`` and ``right`` (c,), transmissibility (c,) in m3 and
    conductance (c,) in W/K.
    """

    left: Indices
    right: Indices
    transmissibility: Array
    conductance: Array


@dataclass(frozen=True, eq=False)
class Completions:
    """Where the wells are: ``node`` (w,) and well index (w,) in m3, injectors first."""

    node: Indices
    index: Array


@dataclass(frozen=True, eq=False)
class Network:
    """The discretised reservoir of N nodes.

    ``volume`` (N,) in m3, ``heat_capacity`` (N,) in J/K, ``cover_area`` (N,) the plan area in m2
    through which a node touches the cap rock (0 for segments and the ring), ``fixed`` (N,) 1 for
    the nodes that are held at the initial state.
    """

    grid: Grid
    segments: Segments
    connections: Connections
    completions: Completions
    volume: Array
    heat_capacity: Array
    cover_area: Array
    fixed: Array

    @property
    def nodes(self) -> int:
        """The number of nodes, N."""
        return len(self.volume)

    def summed(self, where: Indices, values: Array) -> Array:
        """The sum of the ``values`` (k,) that belong to each node, (N,)."""
        return np.asarray(np.bincount(where, values, self.nodes), dtype=np.float64)


def build(
    geometry: Geometry, fractures: Fractures, rock: Rock, fluid: Fluid, wells: Wells
) -> Network:
    """Discretise a reservoir. Raises ValueError if a fracture or well does not fit."""
    grid = Grid(geometry.edges())
    lines, owner = _all_lines(geometry, fractures, wells)
    segments = cut(lines, grid)
    areas, ring, height = grid.areas, grid.ring, geometry.thickness
    widths = np.full(len(segments.cell), rock.aperture)
    water, bulk = rock.water_heat_capacity(fluid), rock.bulk_heat_capacity(fluid)
    segment_volume = segments.lengths * height * widths
    nothing = np.zeros(len(segments.cell))
    return Network(
        grid=grid,
        segments=segments,
        connections=_connections(grid, segments, geometry, rock, fluid),
        completions=_completions(wells, owner, grid, segments, height, rock),
        volume=np.concatenate([areas * height, segment_volume]),
        heat_capacity=np.concatenate([areas * height * bulk, segment_volume * water]),
        cover_area=np.concatenate([areas * (1.0 - ring), nothing]),
        fixed=np.concatenate([ring, nothing]),
    )


def mean_distance(line: Array, x: Array, y: Array) -> Array:
    """Mean distance from the straight line through (x0, y0, x1, y1) over rectangles.

    ``line`` (s, 4), ``x`` and ``y`` (s, 2) the sides of the rectangles. With s = a x + b y - c the
    signed distance, the integral of |s| over a rectangle is the mixed difference of |s|^3 / (6 a b)
    over its corners.
    """
    step = line[:, 2:] - line[:, :2]
    normal = (
        np.stack([-step[:, 1], step[:, 0]], axis=1) / np.hypot(step[:, 0], step[:, 1])[:, None]
    )
    middle = np.stack([x.mean(axis=1), y.mean(axis=1)], axis=1)
    offset = (normal * (middle - line[:, :2])).sum(axis=1)
    # A line along an axis is turned by 0.006 degrees about the middle of the rectangle, so that
    # one formula serves all.
    a, b = np.where(np.abs(normal) < 1e-4, np.copysign(1e-4, normal), normal).T
    total = np.zeros(len(line))
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        s = offset + a * (x[:, i] - middle[:, 0]) + b * (y[:, j] - middle[:, 1])
        total += (-1.0) ** (i + j) * np.abs(s) ** 3 / (6 * a * b)
    return np.asarray(total / ((x[:, 1] - x[:, 0]) * (y[:, 1] - y[:, 0])), dtype=np.float64)


def _all_lines(
    geometry: Geometry, fractures: Fractures, wells: Wells
) -> tuple[Array, list[int | None]]:
    """All fractures (k, 4), natural ones first, and the stimulated one of each well, if any."""
    lines = [fractures.lines(geometry.core)]
    owner: list[int | None] = []
    count = len(lines[0])
    for well in wells.all:
        owner.append(count if well.fracture > 0 else None)
        if well.fracture > 0:
            lines.append(centred_line(well.x, well.y, well.fracture, well.angle))
            count += 1
    table = np.concatenate(lines)
    check_reach(table, geometry.core)
    return table, owner


def _connections(
    grid: Grid, segments: Segments, geometry: Geometry, rock: Rock, fluid: Fluid
) -> Connections:
    height, aperture, n = geometry.thickness, rock.aperture, grid.n
    bulk = rock.bulk_conductivity(fluid)
    inside, along = rock.fracture_permeability, fluid.conductivity
    cells = np.arange(n * n).reshape(n, n)
    gap = 0.5 * (grid.widths[1:] + grid.widths[:-1])
    face = height * grid.widths[None, :] / gap[:, None]
    in_cell, base = _cell_factors(grid, segments, height), n * n
    own = np.arange(len(segments.cell)) + base
    chain = np.flatnonzero(segments.fracture[1:] == segments.fracture[:-1])
    middle = 0.5 * (segments.lengths[1:] + segments.lengths[:-1])[chain]
    first, second, crossing = _crossing_factors(segments, height, aperture)
    parts = [
        (cells[:-1].ravel(), cells[1:].ravel(), face.ravel(), rock.permeability, bulk),
        (cells[:, :-1].ravel(), cells[:, 1:].ravel(), face.T.ravel(), rock.permeability, bulk),
        (segments.cell, own, in_cell, rock.permeability, bulk),
        (own[chain], own[chain + 1], aperture * height / middle, inside, along),
        (first + base, second + base, crossing, inside, along),
    ]
    return Connections(
        left=np.concatenate([p[0] for p in parts]).astype(np.intp),
        right=np.concatenate([p[1] for p in parts]).astype(np.intp),
        transmissibility=np.concatenate([p[2] * p[3] for p in parts]),
        conductance=np.concatenate([p[2] * p[4] for p in parts]),
    )


def _cell_factors(grid: Grid, segments: Segments, height: float) -> Array:
    """2 L H / <d> between each segment and its cell."""
    i, j = np.divmod(segments.cell, grid.n)
    x = np.stack([grid.edges[i], grid.edges[i + 1]], axis=1)
    y = np.stack([grid.edges[j], grid.edges[j + 1]], axis=1)
    distance = mean_distance(segments.lines[segments.fracture], x, y)
    return np.asarray(2 * segments.lengths * height / distance, dtype=np.float64)


def _crossing_factors(
    segments: Segments, height: float, aperture: float
) -> tuple[Indices, Indices, Array]:
    pairs: dict[tuple[int, int], float] = {}
    for i, j, share_i, share_j in intersections(segments.lines):
        one, two = segments.at(i, share_i), segments.at(j, share_j)
        distance = _distance_from(segments, one, share_i) + _distance_from(segments, two, share_j)
        pairs[one, two] = pairs.get((one, two), 0.0) + aperture * height / distance
    ends = np.array(list(pairs), dtype=np.intp).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], np.array(list(pairs.values()), dtype=np.float64)


def _distance_from(segments: Segments, segment: int, share: float) -> float:
    """Mean distance of a segment from a point on it, (a^2 + b^2) / (2 (a + b)), in metres."""
    width = segments.end[segment] - segments.start[segment]
    part = np.clip((share - segments.start[segment]) / width, 0.0, 1.0)
    return float(segments.lengths[segment] * (part**2 + (1 - part) ** 2) / 2)


def _completions(
    wells: Wells,
    owner: list[int | None],
    grid: Grid,
    segments: Segments,
    height: float,
    rock: Rock,
) -> Completions:
    nodes, index = [], []
    for well, stimulated in zip(wells.all, owner, strict=True):
        fracture, share = (stimulated, 0.5) if stimulated is not None else _nearest(well, segments)
        segment = segments.at(fracture, share)
        nodes.append(grid.n**2 + segment)
        factor = rock.aperture * height / _distance_from(segments, segment, share)
        index.append(factor * rock.fracture_permeability)
    return Completions(np.array(nodes, dtype=np.intp), np.array(index))


def _nearest(well: Well, segments: Segments) -> tuple[int, float]:
    """The fracture that passes through a well, and where. Raises ValueError if none does."""
    start, step = segments.lines[:, :2], segments.lines[:, 2:] - segments.lines[:, :2]
    point = np.array([well.x, well.y])
    share = np.clip(((point - start) * step).sum(axis=1) / (step**2).sum(axis=1), 0.0, 1.0)
    distance = np.linalg.norm(start + share[:, None] * step - point, axis=1)
    if not len(distance) or distance.min() > 1.0:
        raise ValueError(
            f"The well at ({well.x:g}, {well.y:g}) has no fracture of its own and none passes "
            f"within 1 m of it; give it a fracture length > 0 or move it onto a fracture."
        )
    k = int(np.argmin(distance))
    return k, float(share[k])
