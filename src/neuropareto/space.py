"""The search space: real, integer and categorical variables, and their map to the unit cube.

Notation: n points, d variables; ``X`` (n, d) in the user's units, ``U`` (n, d) in the unit cube.
A real variable is affine in u (or in log x); an integer or categorical one owns equal cells of
[0, 1], so that a uniform u gives every value the same weight. A categorical value is stored in X
as the index of its choice. ``from_unit(to_unit(X))`` is X for every X that came from the cube.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Number
from typing import Any, SupportsFloat, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Real:
    """A real variable in [lower, upper]; ``log=True`` searches it on a logarithmic scale."""

    lower: float
    upper: float
    log: bool = False
    name: str = ""


@dataclass(frozen=True)
class Integer:
    """An integer variable in {lower, ..., upper}; ``log=True`` weights it logarithmically."""

    lower: int
    upper: int
    log: bool = False
    name: str = ""


@dataclass(frozen=True)
class Categorical:
    """A variable with unordered choices; X holds the index of the choice."""

    choices: tuple[Any, ...]
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(self.choices))


Variable: TypeAlias = Real | Integer | Categorical
SpaceLike: TypeAlias = "Space | Sequence[Any] | npt.NDArray[Any] | Mapping[str, Any]"


@dataclass(frozen=True)
class Space:
    """A box of d variables.

    Build it with :meth:`Space.of` from ``[(lo, hi), ...]``, a (d, 2) array, a pair ``(xl, xu)`` of
    vectors, variables (:class:`Real`, :class:`Integer`, :class:`Categorical`) or a mapping from
    names to any of these.
    """

    variables: tuple[Variable, ...]
    _cells: Array = field(init=False, repr=False, compare=False)
    _low: Array = field(init=False, repr=False, compare=False)
    _width: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if not self.variables:
            raise ValueError("A space needs at least one variable, got none; give its bounds.")
        for i, v in enumerate(self.variables):
            _check_variable(v, _label(v, i))
        given = [v.name for v in self.variables if v.name]
        if len(set(given)) < len(given):
            twice = next(name for name in given if given.count(name) > 1)
            raise ValueError(
                f"Variable names must differ, but {twice!r} occurs twice; rename one."
            )
        # Work scale: low + width * u. Discrete variables are widened by half a step on each side.
        low, high, cells = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)
        for i, v in enumerate(self.variables):
            lo, hi = _bounds(v)
            half = 0.0 if isinstance(v, Real) else 0.5
            cells[i] = 0.0 if isinstance(v, Real) else hi - lo + 1
            low[i], high[i] = lo - half, hi + half
            if not isinstance(v, Categorical) and v.log:
                low[i], high[i] = math.log(low[i]), math.log(high[i])
        for name, value in (("_cells", cells), ("_low", low), ("_width", high - low)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, given: SpaceLike) -> Space:
        """Read a space from any of the accepted forms (see the class)."""
        if isinstance(given, Space):
            return given
        if isinstance(given, Mapping):
            return cls(tuple(_named(name, v) for name, v in given.items()))
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
            raise ValueError(
                f"A space must be bounds like [(0, 1), (0, 5)], a (d, 2) array, a pair (xl, xu) or "
                f"named variables, got {type(given).__name__}; pass one of these."
            )
        if len(given) and all(isinstance(v, (Real, Integer, Categorical)) for v in given):
            return cls(tuple(given))
        if any(isinstance(v, (Real, Integer, Categorical)) for v in given):
            return cls(tuple(_named("", v) for v in given))
        bounds = _bounds_array(given)
        return cls(tuple(Real(float(lo), float(hi)) for lo, hi in bounds))

    @property
    def d(self) -> int:
        """The number of variables."""
        return len(self.variables)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each variable; unnamed ones are called x1, x2, ... by position."""
        taken = {v.name for v in self.variables if v.name}
        names = []
        for i, v in enumerate(self.variables):
            name = v.name or f"x{i + 1}"
            while not v.name and name in taken:
                name += "_"
            names.append(name)
        return tuple(names)

    @cached_property
    def lower(self) -> Array:
        """Lower bounds (d,) in the user's units."""
        return _frozen(np.array([_bounds(v)[0] for v in self.variables], dtype=np.float64))

    @cached_property
    def upper(self) -> Array:
        """Upper bounds (d,) in the user's units."""
        return _frozen(np.array([_bounds(v)[1] for v in self.variables], dtype=np.float64))

    @cached_property
    def _log(self) -> npt.NDArray[np.bool_]:
        return np.array([not isinstance(v, Categorical) and v.log for v in self.variables])

    @cached_property
    def _discrete(self) -> npt.NDArray[np.bool_]:
        return self._cells > 0

    @property
    def is_continuous(self) -> bool:
        """True if every variable is real."""
        return not self._discrete.any()

    def from_unit(self, U: Array) -> Array:
        """Points of the unit cube in the user's units; (n, d) -> (n, d)."""
        work = self._low + self._width * np.asarray(U, dtype=np.float64)
        if self._log.any():
            work[..., self._log] = np.exp(work[..., self._log])
        if self._discrete.any():
            work[..., self._discrete] = np.rint(work[..., self._discrete])
        X = np.clip(work, self.lower, self.upper)
        # Rounding may miss an end by one unit in the last place; the ends are exact.
        X = np.where(
            np.asarray(U) >= 1.0, self.upper, np.where(np.asarray(U) <= 0.0, self.lower, X)
        )
        return np.asarray(X, dtype=np.float64)

    def to_unit(self, X: Array) -> Array:
        """Points in the user's units as points of the unit cube; (n, d) -> (n, d)."""
        X = np.asarray(X, dtype=np.float64)
        work = X.copy()
        if self._log.any():
            work[..., self._log] = np.log(work[..., self._log])
        U = np.clip((work - self._low) / self._width, 0.0, 1.0)
        return self._nudged(U, X)

    def _nudged(self, U: Array, X: Array) -> Array:
        """Repair u by bisection where from_unit(u) misses x by rounding; from_unit is monotone."""
        rows = (
            np.flatnonzero((self.from_unit(U) != X).any(axis=-1)) if U.ndim == 2 else slice(None)
        )
        u, x = U[rows], X[rows]
        miss = self.from_unit(u) != x
        if not miss.any():
            return U
        reach = 8 * np.spacing(np.abs(self._low) + np.abs(self._width)) / self._width
        low, high = np.clip(u - reach, 0.0, 1.0), np.clip(u + reach, 0.0, 1.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self.from_unit(middle) < x
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        repaired = miss & (self.from_unit(high) == x)
        U[rows] = np.where(repaired, high, u)
        return U

    def snap(self, U: Array) -> Array:
        """The unit-cube image of the point that will really be evaluated at ``U``."""
        if self.is_continuous:
            return np.clip(U, 0.0, 1.0)
        return self.to_unit(self.from_unit(U))

    def latin_hypercube(self, n: int, *, rng: np.random.Generator) -> Array:
        """n points of the unit cube, one in each of n equal slices of every variable; (n, d)."""
        slices = rng.permuted(np.tile(np.arange(n)[:, None], (1, self.d)), axis=0)
        return np.asarray((slices + rng.random((n, self.d))) / n, dtype=np.float64)

    def as_dict(self, x: Array) -> dict[str, Any]:
        """One point (d,) as {name: value}, with integers as int and categories as their choice."""
        values: dict[str, Any] = {}
        for name, v, value in zip(self.names, self.variables, np.asarray(x), strict=True):
            if isinstance(v, Categorical):
                values[name] = v.choices[int(value)]
            else:
                values[name] = int(value) if isinstance(v, Integer) else float(value)
        return values

    def from_dict(self, values: Mapping[str, Any]) -> Array:
        """The point (d,) of a mapping {name: value}; the inverse of :meth:`as_dict`."""
        missing = [name for name in self.names if name not in values]
        if missing:
            raise ValueError(
                f"A point needs every variable, but {missing[0]!r} is missing; add it."
            )
        x = np.zeros(self.d)
        for i, (name, v) in enumerate(zip(self.names, self.variables, strict=True)):
            if isinstance(v, Categorical):
                if values[name] not in v.choices:
                    raise ValueError(
                        f"Variable {name!r} must be one of {v.choices}, got {values[name]!r}."
                    )
                x[i] = v.choices.index(values[name])
            else:
                x[i] = float(values[name])
        return np.asarray(self.check_points(x[None])[0])

    def check_points(self, X: npt.ArrayLike) -> Array:
        """``X`` as a float array (n, d) inside the bounds, or a ValueError that says what is wrong."""
        points = numbers(X, "Points")
        if points.ndim != 2 or points.shape[1] != self.d:
            raise ValueError(
                f"Points must have shape (n, {self.d}), one row per point and one column per "
                f"variable, got shape {points.shape}; reshape them."
            )
        bad = ~np.isfinite(points) | (points < self.lower) | (points > self.upper)
        if not bad.any():
            bad = self._discrete & (points != np.rint(points))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"Variable {self.names[column]!r} must lie in [{self.lower[column]:g}, "
                f"{self.upper[column]:g}]{' and be whole' if self._discrete[column] else ''}, got "
                f"{points[row, column]:g} in row {row}; correct the point or widen the space."
            )
        return points


def numbers(given: npt.ArrayLike, what: str) -> Array:
    """``given`` as a float64 array; strings, complex numbers and ragged lists are refused."""
    try:
        array = np.asarray(given)
    except Exception as error:  # a ragged list, or an object that does not become an array
        why = "a ragged list" if isinstance(given, (list, tuple)) else type(given).__name__
        raise ValueError(
            f"{what} must be a rectangular array of numbers, got {why} ({error})."
        ) from None
    if array.dtype == object and all(isinstance(v, Number) for v in array.flat):
        array = array.astype(np.float64)  # whole numbers beyond 64 bits, fractions
    if array.dtype.kind not in "bifu":
        raise ValueError(
            f"{what} must be real numbers, got values of type {array.dtype}; convert them to float."
        )
    return array.astype(np.float64)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _label(v: Variable, i: int) -> str:
    return f"{v.name!r}" if v.name else f"x{i + 1}"


def _bounds(v: Variable) -> tuple[float, float]:
    if isinstance(v, Categorical):
        return 0.0, float(len(v.choices) - 1)
    return float(v.lower), float(v.upper)


def _check_variable(v: Variable, label: str) -> None:
    if not isinstance(v.name, str) or (
        v.name and not re.fullmatch(r"[^\x00-\x1f\x7f]{1,200}", v.name)
    ):
        raise ValueError(
            f"A variable name must be a text of 1 to 200 printable characters, got "
            f"{str(v.name)[:40]!r}; rename it."
        )
    if isinstance(v, Categorical):
        # A table keeps a choice as text: two that read the same could not be told apart there.
        if len(v.choices) < 2 or len(set(map(str, v.choices))) < len(v.choices):
            raise ValueError(
                f"Variable {label} must have at least two choices that read differently, got "
                f"{v.choices}."
            )
        return
    lo, hi = v.lower, v.upper
    if not all(isinstance(end, SupportsFloat) and not isinstance(end, str) for end in (lo, hi)):
        raise ValueError(f"The bounds of {label} must be numbers, got ({lo!r}, {hi!r}).")
    if not (math.isfinite(lo) and math.isfinite(hi)):
        raise ValueError(
            f"The bounds of {label} must be finite numbers, got ({lo}, {hi}); give both."
        )
    if lo >= hi:
        word = "equal" if lo == hi else "reversed"
        hint = "drop the variable or widen it" if lo == hi else "swap them"
        raise ValueError(f"The bounds of {label} are {word}: ({lo}, {hi}); {hint}.")
    if not math.isfinite(hi - lo):
        raise ValueError(
            f"The range of {label} overflows: ({lo}, {hi}); use a log scale or rescale."
        )
    if isinstance(v, Integer) and (lo != int(lo) or hi != int(hi)):
        raise ValueError(f"The bounds of the integer {label} must be whole, got ({lo}, {hi}).")
    if isinstance(v, Integer) and max(abs(lo), abs(hi)) > 2**53:
        raise ValueError(
            f"The bounds of the integer {label} must lie within 2**53, beyond which not every whole "
            f"number is a float, got ({lo}, {hi}); count in larger units or use a log scale of a Real."
        )
    if v.log and lo <= 0:
        raise ValueError(f"The log-scaled {label} needs a lower bound > 0, got {lo}; raise it.")


def _named(name: str, given: Any) -> Variable:
    if isinstance(given, (Real, Integer, Categorical)):
        return replace(given, name=name) if name else given
    pair = numbers(given, f"The bounds of {name!r}")
    if pair.shape != (2,):
        raise ValueError(f"The bounds of {name!r} must be (lower, upper), got {given!r}.")
    return Real(float(pair[0]), float(pair[1]), name=name)


def _bounds_array(given: Any) -> Array:
    """(d, 2) bounds from pairs, a (d, 2) array or (xl, xu)."""
    bounds = numbers(given, "Bounds")
    if bounds.ndim != 2 or 2 not in bounds.shape or bounds.size == 0:
        raise ValueError(
            f"Bounds must be d pairs (lower, upper), a (d, 2) array or (xl, xu), got shape "
            f"{bounds.shape}; for two variables write [(lo1, hi1), (lo2, hi2)]."
        )
    # A tuple of two vectors is (xl, xu); a list of pairs or an array of shape (d, 2) is row-wise.
    is_pair_of_vectors = isinstance(given, tuple) and len(given) == 2
    if bounds.shape[1] != 2 or (is_pair_of_vectors and not isinstance(given[0], tuple)):
        return bounds.T
    return bounds
