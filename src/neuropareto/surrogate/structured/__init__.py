"""The structured Gaussian process: few modulators times additive curves, chosen by evidence.

In the order of its parts: ``points`` and ``parameters``; terms of the kernel (``additive``,
``waves``, ``corners``, ``placed``, ``interactions``, ``modulation``), composed in ``kernel``;
``warp`` of the output; ``evidence`` with its gradient; ``restarts``, ``placing`` and ``training``;
``conditioned`` and ``model``.
Where the structure is wrong, the residual term of the kernel takes over, by evidence.
"""

from __future__ import annotations

from neuropareto.surrogate.structured.model import FittedStructuredGP, Modulators, StructuredGP
from neuropareto.surrogate.structured.recalibration import Online, Recalibration, Uncalibrated

__all__ = [
    "FittedStructuredGP",
    "Modulators",
    "Online",
    "Recalibration",
    "StructuredGP",
    "Uncalibrated",
]
