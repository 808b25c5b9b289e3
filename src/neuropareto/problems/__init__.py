"""Test problems with known answers, realistic ones without, and wrappers that make them harder.

In flow order: :mod:`catalogue` (by name), the families :mod:`dtlz`, :mod:`constrained_dtlz`,
:mod:`zdt`, :mod:`wfg`, :mod:`sparse`, :mod:`engineering` (formulas in :mod:`machines` and
:mod:`vehicles`), :mod:`rover`, :mod:`truss`, :mod:`geothermal` and :mod:`foreign` (pymoo, BoTorch);
the wrappers :mod:`variants` and :mod:`noise`; what they share, :mod:`fronts`, :mod:`structure` and
:mod:`sizes`.
"""

from neuropareto.problems.catalogue import problem, problems
from neuropareto.problems.noise import noisy
from neuropareto.problems.structure import Structure, declare, pareto_set
from neuropareto.problems.variants import mirrored, permuted, rotated, shifted, translated

__all__ = [
    "Structure",
    "declare",
    "mirrored",
    "noisy",
    "pareto_set",
    "permuted",
    "problem",
    "problems",
    "rotated",
    "shifted",
    "translated",
]
