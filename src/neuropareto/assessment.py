"""Assessment: what a fitted surrogate says of how well it explains its data.

What acts only where the structure of a problem is known, or only where it is not, asks here: the choice
between the two rules of exploration, and the second opinion. Ours, decisions D-84 and D-85.
Notation: m outputs.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from neuropareto.moves import Wrapping
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted


@runtime_checkable
class Assessed(Protocol):
    """A fitted surrogate that says how well it explains its data."""

    @property
    def signal(self) -> Array:
        """The evidence against pure noise of each output, in nats for each row, (m,)."""
        ...

    @property
    def density(self) -> Array:
        """The leave-one-out log density of each output, in nats for each row, (m,)."""
        ...

    @property
    def unexplained(self) -> Array:
        """The share of each output's variance that is left to noise and residual, (m,)."""
        ...


def assessed(model: Fitted) -> Assessed | None:
    """The :class:`Assessed` surrogate in ``model``, or None if there is none."""
    while isinstance(model, Wrapping) and not isinstance(model, Assessed):
        model = model.model
    return model if isinstance(model, Assessed) else None
