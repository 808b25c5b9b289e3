"""Heat: fully implicit upwind advection and conduction, one equation per node.

Unknowns are deviations theta = T - T_initial, (N,), exactly 0 at the fixed nodes. For a step dt:
C_i (theta_i - old_i) / dt + sum_j [c_p max(m_ij, 0) theta_i - c_p max(m_ji, 0) theta_j
+ G_ij (theta_i - theta_j)] + c_p q_out theta_i + cover = c_p q_in theta_injected.
The matrix depends on the flow and dt only, so one factorisation serves all steps of an interval.
It is diagonally dominant by columns: no pivoting occurs and temperatures obey a maximum principle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.banded import Factors, Pattern, SimulationFailed, factorise
from neuropareto.problems.geothermal.cover import Cover
from neuropareto.problems.geothermal.edfm import Network
from neuropareto.space import Array

HEAT_TOLERANCE = 1e-9
"""The largest energy residual of a node, as a share of the largest term of its equations."""


@dataclass(frozen=True, eq=False)
class HeatState:
    """Deviations from the initial temperature: nodes (N,) and cover layers (l, N), in K."""

    node: Array
    layers: Array


@dataclass(frozen=True, eq=False)
class HeatStep:
    """The implicit step of ``dt`` seconds for one flow.

    ``flux`` (c,) and ``sink`` (N,) >= 0 times c_p in W/K, ``supply`` (N,) the injected heat in W.
    """

    network: Network
    pattern: Pattern
    cover: Cover
    dt: float
    flux: Array
    sink: Array
    supply: Array
    factors: Factors

    def advanced(self, state: HeatState) -> tuple[HeatState, float]:
        """The state one step later, and the heat that came in through wells and ring, in W.

        Raises :class:`SimulationFailed` if the solution does not satisfy the equations.
        """
        network, free = self.network, self.pattern.node
        kept = network.heat_capacity / self.dt * state.node
        known = kept + self.supply + network.cover_area * self.cover.inflow(state.layers)
        node = np.zeros(network.nodes)
        node[free] = self.factors.solve(known[free])
        outflow = self._outflow(node)
        self._check(known, node, outflow)
        from_ring = float(outflow[network.fixed > 0].sum())
        gain = from_ring + float((self.supply - self.sink * node).sum())
        return HeatState(node, self.cover.advanced(state.layers, node)), gain

    def _outflow(self, node: Array) -> Array:
        """Net heat flow out of every node through its connections, (N,) in W."""
        c = self.network.connections
        left, right = node[c.left], node[c.right]
        heat = np.maximum(self.flux, 0.0) * left + np.minimum(self.flux, 0.0) * right
        heat += c.conductance * (left - right)
        return self.network.summed(c.left, heat) - self.network.summed(c.right, heat)

    def _check(self, known: Array, node: Array, outflow: Array) -> None:
        held = self.network.heat_capacity / self.dt + self.sink
        held = held + self.network.cover_area * self.cover.loss
        residual = (held * node + outflow - known)[self.pattern.node]
        scale = max(float(np.abs(known).max()), 1.0)
        worst = float(np.abs(residual).max())
        if not worst <= HEAT_TOLERANCE * scale:
            raise SimulationFailed(
                f"The heat equations leave a residual of {worst / scale:.2g}, more than "
                f"{HEAT_TOLERANCE:g} of their largest term."
            )


def heat_step(
    network: Network,
    pattern: Pattern,
    cover: Cover,
    dt: float,
    carried: tuple[Array, Array, Array],
) -> HeatStep:
    """Factorise the heat equations for ``carried`` = (c_p flux (c,), c_p sink (N,), supply (N,))."""
    flux, sink, supply = carried
    c = network.connections
    forward = np.maximum(flux, 0.0) + c.conductance
    backward = np.maximum(-flux, 0.0) + c.conductance
    diagonal = network.summed(c.left, forward) + network.summed(c.right, backward)
    diagonal += network.heat_capacity / dt + sink + network.cover_area * cover.loss
    factors = factorise(
        pattern, diagonal[pattern.node], -backward[pattern.inner], -forward[pattern.inner]
    )
    return HeatStep(network, pattern, cover, dt, flux, sink, supply, factors)
