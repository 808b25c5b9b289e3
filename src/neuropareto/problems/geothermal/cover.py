"""Heat conduction into cap and base rock: one column of layers per node, eliminated exactly.

Cap and base are equal by symmetry, so one column with twice the area serves both. Per unit of
area, layer k obeys  C_k (y_k - y_k_old) / dt = g_k (y_{k-1} - y_k) + g_{k+1} (y_{k+1} - y_k)  with
y_0 the reservoir, g the conductances between layer centres and none below the last layer. The
matrix is the same for all columns: with its inverse M, y = M (C/dt y_old + g_1 e_1 y_0), so a column
adds the constant g_1 - g_1^2 M_11 to the node's diagonal and a known heat flow to its right side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.fluid import Rock
from neuropareto.problems.geothermal.geometry import Geometry
from neuropareto.space import Array


@dataclass(frozen=True, eq=False)
class Cover:
    """The columns for one time step: ``storage`` (l,) C in J/m2/K per layer, ``old`` (l, l) and
    ``drive`` (l,) with y = old y_old + drive y_0, and ``contact`` g_1 in W/m2/K.
    """

    storage: Array
    old: Array
    drive: Array
    contact: float

    @property
    def loss(self) -> float:
        """What a column adds to its node's diagonal, in W/m2/K."""
        return self.contact * (1.0 - float(self.drive[0])) if len(self.drive) else 0.0

    def inflow(self, layers: Array) -> Array:
        """Heat that flows into the nodes if they stay at 0, (N,) in W/m2; ``layers`` (l, N)."""
        if not len(self.drive):
            return np.zeros(layers.shape[1])
        return np.asarray(self.contact * (self.old[0] @ layers), dtype=np.float64)

    def advanced(self, layers: Array, node: Array) -> Array:
        """The layers (l, N) at the end of a step that ends with ``node`` (N,)."""
        return np.asarray(self.old @ layers + np.outer(self.drive, node), dtype=np.float64)


def cover(geometry: Geometry, rock: Rock, dt: float) -> Cover:
    """The columns of cap and base rock together, for steps of ``dt`` seconds."""
    layers = np.array(geometry.cover)
    storage = 2.0 * rock.heat_capacity * layers
    if not len(layers):
        return Cover(storage, np.zeros((0, 0)), np.zeros(0), 0.0)
    thickness = np.concatenate([[geometry.thickness], layers])
    link = 2.0 * rock.conductivity / (0.5 * (thickness[1:] + thickness[:-1]))
    below = np.append(link[1:], 0.0)
    matrix = np.diag(storage / dt + link + below)
    matrix -= np.diag(link[1:], 1) + np.diag(link[1:], -1)
    inverse = np.linalg.inv(matrix)
    return Cover(storage, inverse * (storage / dt), inverse[:, 0] * link[0], float(link[0]))
