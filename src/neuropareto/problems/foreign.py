"""Problems of pymoo and BoTorch by name, in this package's conventions.

``pymoo:dtlz2`` is any problem of ``pymoo.problems.get_problem``; ``botorch:Penicillin`` any of
``botorch.test_functions.multi_objective``. Objectives are minimised and constraints satisfied
where G <= 0: BoTorch's slacks change sign, pymoo's equalities h = 0 become |h| - 1e-4 <= 0. Both
libraries are optional; they are imported when such a problem is asked for.
"""

from __future__ import annotations

import difflib
import inspect
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from neuropareto.problem import Outcome, Problem
from neuropareto.space import Array, Categorical, Integer, Real, Space, Variable

PREFIXES = ("pymoo:", "botorch:")
_EQUALITY_TOLERANCE = 1e-4
_FEASIBLE_DESIGNS = {"WeldedBeam": (1.0, 5.0, 9.0, 2.0)}


@dataclass(frozen=True, eq=False)
class FromBotorch:
    """A BoTorch test problem as an objective: X (n, d) -> F (n, m) or (F, G)."""

    problem: Any
    is_constrained: bool
    slack_sign: float = 1.0

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points without noise."""
        # torch takes seconds to import and only this problem's owner needs it here.
        import torch

        with torch.no_grad():
            points = torch.from_numpy(np.array(X, dtype=np.float64, order="C"))
            F = np.asarray(self.problem.evaluate_true(points), dtype=np.float64)
            if not self.is_constrained:
                return F
            slacks = np.asarray(self.problem.evaluate_slack_true(points), dtype=np.float64)
            return F, -self.slack_sign * slacks


@dataclass(frozen=True, eq=False)
class FromPymoo:
    """A pymoo problem as an objective: X (n, d) -> F (n, m) or (F, G)."""

    problem: Any

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points."""
        # pymoo writes into its input in places.
        points = np.array(X, dtype=np.float64)
        parts = self.problem.evaluate(points, return_values_of=["F", "G", "H"])
        F, G, H = (np.asarray(part, dtype=np.float64).reshape(len(X), -1) for part in parts)
        if self.problem.n_constr == 0:
            return F
        return F, np.hstack([G, np.abs(H) - _EQUALITY_TOLERANCE])


def foreign(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """The problem called ``pymoo:...`` or ``botorch:...``, with d variables and m objectives.

    Raises ImportError if the library is missing and ValueError for an unknown name or a size the
    problem does not have.
    """
    library, _, plain = name.partition(":")
    made = (
        _from_pymoo(name, plain, d, m) if library == "pymoo" else _from_botorch(name, plain, d, m)
    )
    for what, asked, got in (("d", d, made.d), ("m", m, made.n_objectives)):
        if asked is not None and asked != got:
            raise ValueError(f"{name} has {what}={got} and no other, got {what}={asked!r}.")
    return made


def _unknown(name: str, plain: str, known: list[str], library: str) -> ValueError:
    near = difflib.get_close_matches(plain.lower(), [k.lower() for k in known], n=3)
    hint = ", ".join(k for k in known if k.lower() in near) or ", ".join(known[:8]) + ", ..."
    return ValueError(f"{library} has no problem {name!r}; near or known names: {hint}.")


def _library(name: str, module: str) -> Any:
    with warnings.catch_warnings():
        # Deprecations inside these libraries are no concern of whoever asks for a problem.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return import_module(module)
        except ImportError:
            raise ImportError(
                f"Problems of {name} need that library: pip install 'neuropareto[peers]'."
            ) from None


def _from_botorch(name: str, plain: str, d: int | None, m: int | None) -> Problem:
    base = _library("BoTorch", "botorch.test_functions.base")
    multi_objective = _library("BoTorch", "botorch.test_functions.multi_objective")
    kinds = {
        kind.__name__: kind
        for _, kind in inspect.getmembers(multi_objective, inspect.isclass)
        if issubclass(kind, base.MultiObjectiveTestProblem) and not inspect.isabstract(kind)
    }
    matches = [kind for label, kind in kinds.items() if label.lower() == plain.lower()]
    if not matches:
        raise _unknown(name, plain, sorted(kinds), "BoTorch")
    problem = _sized(name, matches[0], {"dim": d, "num_objectives": m})
    is_constrained = isinstance(problem, base.ConstrainedBaseTestProblem)
    reference = problem.ref_point.numpy()
    return Problem(
        name=name,
        space=botorch_space(problem),
        n_objectives=int(problem.num_objectives),
        objective=FromBotorch(problem, is_constrained, _slack_sign(problem)),
        n_constraints=int(problem.num_constraints) if is_constrained else 0,
        # BoTorch leaves (0, 0) where no reference point has been chosen yet.
        reference_point=reference if reference.any() else None,
    )


def _slack_sign(problem: Any) -> float:
    """-1 where a design known to be feasible has negative slacks, which should be positive.

    BoTorch 0.18 takes the welded beam's constraints g <= 0 from pymoo as slacks without turning
    their sign. Asking a feasible design keeps this right if that is corrected one day.
    """
    design = _FEASIBLE_DESIGNS.get(type(problem).__name__)
    if design is None:
        return 1.0
    outcome = FromBotorch(problem, is_constrained=True)(np.array([design]))
    return 1.0 if bool(np.all(outcome[1] <= 0.0)) else -1.0


def botorch_space(problem: Any) -> Space:
    """The box of a BoTorch problem, with its integer and categorical variables."""
    lower, upper = problem.bounds.numpy()
    variables: list[Variable] = []
    for j, (lo, hi) in enumerate(zip(lower, upper, strict=True)):
        if j in problem.categorical_inds:
            variables.append(Categorical(tuple(range(int(lo), int(hi) + 1))))
        elif j in problem.discrete_inds:
            variables.append(Integer(int(lo), int(hi)))
        else:
            variables.append(Real(float(lo), float(hi)))
    return Space(tuple(variables))


def _sized(name: str, kind: Any, sizes: dict[str, int | None]) -> Any:
    """``kind`` with those of the asked sizes that its constructor knows."""
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in sizes.items() if value is not None and key in known}
    needed = {
        key
        for key in sizes
        if key in known and known[key].default is inspect.Parameter.empty and key not in given
    }
    if needed:
        raise ValueError(
            f"{name} needs its size, {', '.join(sorted(needed))}: give d (and m) as in "
            f"problem({name!r}, d=30)."
        )
    try:
        return kind(**given)
    except Exception as error:
        raise ValueError(f"{name} cannot be made with {given}: {error}") from error


def _from_pymoo(name: str, plain: str, d: int | None, m: int | None) -> Problem:
    get_problem = _library("pymoo", "pymoo.problems").get_problem
    given = {key: size for key, size in (("n_var", d), ("n_obj", m)) if size is not None}
    try:
        problem = get_problem(plain, **given)
    except TypeError:
        problem = _without_sizes(name, plain, get_problem)
    except Exception as error:
        raise ValueError(f"pymoo cannot make {name!r} with {given}: {error}") from error
    return Problem(
        name=name,
        space=pymoo_space(name, problem),
        n_objectives=int(problem.n_obj),
        objective=FromPymoo(problem),
        n_constraints=int(problem.n_constr),
    )


def _without_sizes(name: str, plain: str, make: Any) -> Any:
    """A problem of fixed size; whether that size was asked for is checked by the caller."""
    try:
        return make(plain)
    except Exception as error:
        raise ValueError(f"pymoo cannot make {name!r}; give d and m: {error}") from error


def pymoo_space(name: str, problem: Any) -> Space:
    """The box of a pymoo problem; a ValueError if it has none."""
    if problem.xl is None or problem.xu is None:
        raise ValueError(f"{name} has no bounds, which a search space needs.")
    kind = problem.vtype
    if kind is bool or kind is int:
        pairs = zip(problem.xl, problem.xu, strict=True)
        return Space(tuple(Integer(int(lo), int(hi)) for lo, hi in pairs))
    return Space.of((np.asarray(problem.xl, float), np.asarray(problem.xu, float)))
