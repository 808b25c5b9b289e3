"""Quasi-steady Darcy flow that conserves mass: pressures and mass fluxes for given rates.

Over an interval the flow is steady:  sum_j T_ij (rho/mu)_ij (p_i - p_j) = q_i  for every free node,
q_i > 0 injected and < 0 produced in kg/s, p = 0 (the initial pressure) at the fixed nodes. The
mobility rho/mu of a connection is taken upstream, by the direction of the last known flow.
Water is produced from, and injected into, the fracture segment of each well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.banded import Pattern, SimulationFailed, solve_symmetric
from neuropareto.problems.geothermal.edfm import Network
from neuropareto.space import Array

MASS_TOLERANCE = 1e-8
"""The largest mass imbalance of a node, in kg/s, that a flow solution may have."""


@dataclass(frozen=True, eq=False)
class Flow:
    """Pressures above the initial one (N,) in Pa, mass fluxes left to right (c,) and the largest
    imbalance of a node, both in kg/s.
    """

    pressure: Array
    flux: Array
    imbalance: float


def solve_flow(
    network: Network, pattern: Pattern, mobility: Array, source: Array, last: Array
) -> Flow:
    """Solve the flow for the mobility (N,) of the nodes and the ``source`` (N,) in kg/s.

    ``last`` (N,) is an earlier pressure field; it decides which node is upstream. Raises
    :class:`SimulationFailed` if mass is not conserved to 1e-8 kg/s at every node.
    """
    c = network.connections
    upstream = np.where(last[c.left] >= last[c.right], c.left, c.right)
    conductivity = c.transmissibility * mobility[upstream]
    diagonal = network.summed(c.left, conductivity) + network.summed(c.right, conductivity)
    pressure = np.zeros(network.nodes)
    pressure[pattern.node] = solve_symmetric(
        pattern, diagonal[pattern.node], -conductivity[pattern.inner], source[pattern.node]
    )
    flux = conductivity * (pressure[c.left] - pressure[c.right])
    net = network.summed(c.left, flux) - network.summed(c.right, flux) - source
    imbalance = float(np.abs(net[pattern.node]).max())
    if not imbalance <= MASS_TOLERANCE:
        raise SimulationFailed(
            f"The flow solution loses {imbalance:.2g} kg/s at a node, more than "
            f"{MASS_TOLERANCE:g}; the contrast between fractures and matrix is too large."
        )
    return Flow(pressure, flux, imbalance)
