"""How the error of a run accumulates: like log t, as the paper says, or in proportion to t?

Appendix "Controlled accumulation of approximation error". Notation: E_t the cumulative total error
after t of T rounds. Both models have a slope and an intercept, so their residuals can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.space import Array


@dataclass(frozen=True)
class Growth:
    """Least squares fits of the cumulative error: C_10 log t + C_11, and a line in t.

    ``logarithmic`` and ``linear`` are their root mean squared residuals.
    """

    c10: float
    c11: float
    logarithmic: float
    linear: float

    @property
    def law(self) -> str:
        """The law that fits better: "log t" or "t"."""
        return "log t" if self.logarithmic < self.linear else "t"


def cumulative(errors: Array) -> Array:
    """E_t = sum of the errors up to round t, (T,) -> (T,).

    Paper: Eqs. one_step_hv, sum_expectation, lemma_telescoping_app: the sums of deficits and of
    errors that the bound compares.
    """
    return np.asarray(np.cumsum(np.asarray(errors, dtype=np.float64)))


def growth(errors: Array) -> Growth:
    """Which law the cumulative sum of ``errors`` (T,) follows. Paper: Eq. log_accum.

    Raises ValueError for fewer than three rounds: two points fit any line.
    """
    if len(errors) < 3:
        raise ValueError(f"A law of growth needs at least three rounds, got {len(errors)}.")
    E, t = cumulative(errors), np.arange(1.0, len(errors) + 1)
    (c10, c11), logarithmic = _line(np.log(t), E)
    _, linear = _line(t, E)
    return Growth(c10, c11, logarithmic, linear)


def _line(x: Array, y: Array) -> tuple[tuple[float, float], float]:
    A = np.column_stack([x, np.ones_like(x)])
    coefficients = np.linalg.lstsq(A, y, rcond=None)[0]
    rms = float(np.sqrt(np.mean((y - A @ coefficients) ** 2)))
    return (float(coefficients[0]), float(coefficients[1])), rms
