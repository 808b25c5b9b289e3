"""NeuroPareto: Pareto fronts of expensive black boxes with hundreds of variables.

In the order in which a run flows:

- given and known: ``Space`` (``Real``, ``Integer``, ``Categorical``), ``Problem``, ``Archive``
- decided by an ``Algorithm``: ``NeuroPareto`` (Algorithm 1 of the paper), ``NSGA2``, ``RandomSearch``
- run by ``minimize(...) -> Result`` or, step by step, ``Optimizer.ask/tell``
- kept and run on workers by ``neuropareto.study.Study``; reached by the command ``neuropareto``
- measured on ``problem("dtlz2", d=100, m=2)``; ``problems()`` and ``algorithms()`` list the names
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuropareto.algorithm import Algorithm, Proposal, RandomSearch
from neuropareto.algorithms import algorithms
from neuropareto.archive import Archive
from neuropareto.minimize import minimize
from neuropareto.nsga2 import NSGA2
from neuropareto.optimizer import Batch, Optimizer, Trial
from neuropareto.problem import Problem
from neuropareto.problems import problem, problems  # functions; the modules keep their full names
from neuropareto.result import Result
from neuropareto.space import Categorical, Integer, Real, Space

if TYPE_CHECKING:
    from neuropareto.neuropareto import NeuroPareto

__version__ = "0.1.0"

__all__ = [
    "NSGA2",
    "Algorithm",
    "Archive",
    "Batch",
    "Categorical",
    "Integer",
    "NeuroPareto",
    "Optimizer",
    "Problem",
    "Proposal",
    "RandomSearch",
    "Real",
    "Result",
    "Space",
    "Trial",
    "algorithms",
    "minimize",
    "problem",
    "problems",
]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import; whoever only reads results should not wait for it.
    if name == "NeuroPareto":
        from neuropareto.neuropareto import NeuroPareto

        return NeuroPareto
    raise AttributeError(f"module 'neuropareto' has no attribute {name!r}")
