"""Memory: named arrays that may be forgotten; how stages share one flat mapping without clashes.

An algorithm's memory is a flat mapping from names to numpy arrays, so that a study can store it
without pickle. Each stage keeps its own part under a prefix: ``classifier/W1``, ``surrogate/Z``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

Memory: TypeAlias = Mapping[str, npt.NDArray[Any]]


def part(memory: Memory | None, stage: str) -> Memory | None:
    """What ``stage`` stored, with its prefix taken off; None if it stored nothing."""
    prefix = stage + "/"
    found = {k[len(prefix) :]: v for k, v in (memory or {}).items() if k.startswith(prefix)}
    return found or None


def joined(parts: Mapping[str, Memory | None]) -> dict[str, npt.NDArray[Any]]:
    """One flat memory from the parts of several stages; the inverse of :func:`part`."""
    return {f"{stage}/{k}": v for stage, m in parts.items() for k, v in (m or {}).items()}
