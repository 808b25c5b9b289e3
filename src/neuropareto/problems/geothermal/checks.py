"""Border checks shared by the parts of the reservoir: positive numbers and fractions."""

from __future__ import annotations

import math


def positive(value: float, what: str) -> None:
    """Raise a ValueError unless ``value`` is a finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{what} must be a finite number > 0, got {value}.")


def not_negative(value: float, what: str) -> None:
    """Raise a ValueError unless ``value`` is a finite number >= 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{what} must be a finite number >= 0, got {value}.")
