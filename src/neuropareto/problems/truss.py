"""A steel bridge of bars: mass against compliance, 126 cross-sections (a problem of our own).

A plane truss of p panels of 4 m: two chords, p + 1 posts and two crossing diagonals per panel,
5 p + 1 bars, pinned at one end and on a roller at the other. The areas (cm^2) of all bars are the
variables. Three load cases: 20 kN/m on the whole deck, on its left half and on its right half.
Objectives: mass (t) and the compliance f'u summed over the cases (kJ), with K(A) u = f and
K = sum_i (E A_i / L_i) c_i c_i' by finite elements. Both are convex in A, so the front is
connected; every bar matters, but unequally. Notation: n designs, p + 1 post lines of 4 movements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuropareto.problem import Problem
from neuropareto.problems.fronts import POINTS, Front
from neuropareto.problems.sizes import chosen, fixed
from neuropareto.problems.structure import Indices
from neuropareto.space import Array, Space

_YOUNG = 2.1e8  # kN/m^2
_DENSITY = 7.85  # t/m^3
_PANEL = 4.0  # m
_DECK_LOAD = 20.0  # kN/m
_AREAS = (5.0, 400.0)  # cm^2


@dataclass(frozen=True)
class Bridge:
    """The geometry of a bridge of ``panels`` panels; its height is 1/12.5 of the span.

    Nodes 0, 2, 4, ... are the deck and 1, 3, 5, ... the top chord, so that the movements
    (x, y of deck, x, y of top) of post line i are 4 i, ..., 4 i + 3.
    """

    panels: int

    @cached_property
    def nodes(self) -> Array:
        """Coordinates in m; (2p + 2, 2)."""
        x = np.repeat(_PANEL * np.arange(self.panels + 1), 2)
        height = _PANEL * self.panels / 12.5
        return np.column_stack([x, np.tile([0.0, height], self.panels + 1)])

    @cached_property
    def bars(self) -> Indices:
        """The nodes of each bar: deck, top, falling and rising diagonals, then posts; (b, 2)."""
        deck = 2 * np.arange(self.panels + 1)
        top = deck + 1
        pairs = [
            (deck[:-1], deck[1:]),
            (top[:-1], top[1:]),
            (top[:-1], deck[1:]),
            (deck[:-1], top[1:]),
            (deck, top),
        ]
        return np.vstack([np.column_stack(pair) for pair in pairs])

    @cached_property
    def supported(self) -> Indices:
        """The movements that the ground takes: both of the first node, the last deck's y."""
        return np.array([0, 1, 4 * self.panels + 1])

    @cached_property
    def lengths(self) -> Array:
        """Bar lengths in m; (b,)."""
        lengths: Array = np.linalg.norm(np.diff(self.nodes[self.bars], axis=1)[:, 0], axis=1)
        return lengths

    @cached_property
    def directions(self) -> Array:
        """Each bar's elongation per unit of every movement, c_i, 0 where supported; (b, 4p + 4)."""
        first, second = self.bars.T
        unit = (self.nodes[second] - self.nodes[first]) / self.lengths[:, None]
        C = np.zeros((len(self.bars), 2 * len(self.nodes)))
        rows = np.arange(len(self.bars))
        for axis in range(2):
            C[rows, 2 * first + axis] = -unit[:, axis]
            C[rows, 2 * second + axis] = unit[:, axis]
        C[:, self.supported] = 0.0
        return C

    @cached_property
    def loads(self) -> Array:
        """Nodal loads (kN) of the three cases; (4p + 4, 3)."""
        share = np.full(self.panels + 1, _DECK_LOAD * _PANEL)
        share[[0, -1]] /= 2
        line = np.arange(self.panels + 1) - self.panels / 2
        f = np.zeros((4 * self.panels + 4, 3))
        for case, loaded in enumerate((np.isfinite(line), line <= 0, line >= 0)):
            f[1::4, case] = -share * loaded
        f[self.supported] = 0.0
        return f

    @cached_property
    def elements(self) -> tuple[Array, Array]:
        """c c' E / L of the 4 bars of each panel (p, 4, 8, 8) and of the posts (p + 1, 4, 4)."""
        p = self.panels
        C = self.directions * np.sqrt(_YOUNG / self.lengths)[:, None]
        across = C[: 4 * p].reshape(4, p, p + 1, 4)
        line = np.arange(p)
        pairs = np.concatenate([across[:, line, line], across[:, line, line + 1]], axis=2)
        posts = C[4 * p :].reshape(p + 1, p + 1, 4)[np.arange(p + 1), np.arange(p + 1)]
        panel = np.einsum("bpx,bpy->pbxy", pairs, pairs)
        return panel, np.einsum("px,py->pxy", posts, posts)


@dataclass(frozen=True, eq=False)
class Truss:
    """The objective: areas X (n, b) in cm^2 -> mass (t) and compliance (kJ), F (n, 2)."""

    bridge: Bridge

    def __call__(self, X: Array) -> Array:
        """Evaluate n designs, in pieces that fit into memory."""
        A = 1e-4 * np.asarray(X, dtype=np.float64)
        mass = _DENSITY * A @ self.bridge.lengths
        pieces = [self._compliance(A[i : i + 1024]) for i in range(0, len(A), 1024)]
        return np.column_stack([mass, np.concatenate([np.zeros(0), *pieces])])

    def _compliance(self, A: Array) -> Array:
        f = self.bridge.loads.reshape(-1, 1, 4, 3)
        compliance: Array = np.sum(f * self.movements(A), axis=(0, 2, 3))
        return compliance

    def movements(self, A: Array) -> Array:
        """K(A)^-1 f (m) for areas in m^2, by block elimination; (n, b) -> (p + 1, n, 4, 3)."""
        bridge, n, p = self.bridge, len(A), self.bridge.panels
        panel, post = bridge.elements
        H = np.einsum("nbp,pbxy->pnxy", A[:, : 4 * p].reshape(n, 4, p), panel)
        K = np.einsum("np,pxy->pnxy", A[:, 4 * p :], post)
        K[:-1] += H[:, :, :4, :4]
        K[1:] += H[:, :, 4:, 4:]
        line, movement = np.divmod(bridge.supported, 4)
        K[line, :, movement, movement] = 1.0
        u = np.repeat(bridge.loads.reshape(p + 1, 1, 4, 3), n, axis=1)
        toward = np.zeros((p, n, 4, 4))
        for i in range(p):
            solved = np.linalg.solve(K[i], np.concatenate([H[i, :, :4, 4:], u[i]], axis=2))
            toward[i], u[i] = solved[:, :, :4], solved[:, :, 4:]
            back = H[i, :, 4:, :4]
            K[i + 1] -= back @ toward[i]
            u[i + 1] -= back @ u[i]
        u[p] = np.linalg.solve(K[p], u[p])
        for i in range(p - 1, -1, -1):
            u[i] -= toward[i] @ u[i + 1]
        return u


def best_designs(bridge: Bridge, prices: Array, *, sweeps: int = 150) -> Array:
    """The areas (cm^2) that minimise compliance + price * mass, one row per price; (k, b).

    Compliance is the least of sum_i q_i^2 L_i / (E A_i) over bar forces q in balance with the
    loads, jointly convex in (q, A): solving for q and for A in turn descends to the minimum.
    """
    low, high = (1e-4 * bound for bound in _AREAS)
    evaluate = Truss(bridge)
    A = np.full((len(prices), len(bridge.bars)), (low + high) / 4)
    for _ in range(sweeps):
        u = np.moveaxis(evaluate.movements(A), 0, 1).reshape(len(A), -1, 3)
        strain = np.linalg.norm(bridge.directions @ u, axis=2) / bridge.lengths
        A = np.clip(A * strain * np.sqrt(_YOUNG / (_DENSITY * prices[:, None])), low, high)
    return 1e4 * A


def pareto_designs(panels: int) -> Array:
    """About 10,000 Pareto-optimal designs (p, b), interpolated between 200 solved ones."""
    bridge = Bridge(panels)
    light, heavy = _price_range(bridge)
    nodes = best_designs(bridge, np.geomspace(light, heavy, 200))
    F = Truss(bridge)(nodes)
    # Both ends of the price range repeat the same cornered design; keep each design once.
    moved = np.r_[True, np.abs(np.diff(F[:, 0])) > 1e-9 * F[0, 0]]
    nodes, F = nodes[moved], F[moved]
    scaled = (F - F.min(axis=0)) / np.ptp(F, axis=0)
    length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(scaled, axis=0), axis=1))]
    at = np.interp(np.linspace(0.0, length[-1], POINTS), length, np.arange(len(length)))
    left = np.minimum(at.astype(np.intp), len(length) - 2)
    share = (at - left)[:, None]
    designs: Array = (1.0 - share) * nodes[left] + share * nodes[left + 1]
    return designs


def _price_range(bridge: Bridge) -> tuple[float, float]:
    """Prices of mass at which all bars are at their largest, and at their smallest, area."""
    evaluate = Truss(bridge)
    ends = 1e-4 * np.array(_AREAS)[::-1, None] * np.ones((2, len(bridge.bars)))
    u = np.moveaxis(evaluate.movements(ends), 0, 1).reshape(2, -1, 3)
    strain = np.linalg.norm(bridge.directions @ u, axis=2) / bridge.lengths
    worth = _YOUNG / _DENSITY * strain**2
    return max(float(worth[0].min()), 1e-6 * float(worth[0].max())), float(worth[1].max())


def _front(panels: int) -> Array:
    return Truss(Bridge(panels))(pareto_designs(panels))


def truss(d: int | None = None, m: int | None = None) -> Problem:
    """The bridge with d = 5 p + 1 bars (126 if not given), p >= 2 panels; m = 2.

    Raises ValueError for other d or m.
    """
    fixed("truss", "m", m, 2)
    d = chosen("truss", "d", d, 126, least=11)
    if d % 5 != 1:
        raise ValueError(
            f"A truss of p panels has d = 5 p + 1 bars, got d={d}; the nearest is "
            f"d={5 * round((d - 1) / 5) + 1}."
        )
    bridge = Bridge((d - 1) // 5)
    # Twice the mass and compliance of equal bars of a third of the largest area: within the reach
    # of random designs, far above good ones.
    evaluate = Truss(bridge)
    reference = 2.0 * evaluate(np.full((1, d), _AREAS[1] / 3))[0]
    return Problem(
        name="truss",
        space=Space.of([_AREAS] * d),
        n_objectives=2,
        objective=evaluate,
        reference_point=reference,
        front=Front(_front, (bridge.panels,)),
    )
