"""The settings whose effect the paper studies: pool size, rank classes, inducing points.

Each is the literal pipeline with one number changed, under a name that grids and tables use.
Paper: Table pool_size_revised, Figures k_sensitivity and sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from neuropareto.candidates import RankConditioned
from neuropareto.classifier import RankClassifier
from neuropareto.neuropareto import NeuroPareto
from neuropareto.surrogate import DeepGP, ExactGP, FourierProxy, Ladder


def with_pool(size: int) -> NeuroPareto:
    """The paper's pipeline breeding ``size`` candidates a round; full GP calls stay as they are."""
    return replace(NeuroPareto.paper(), candidates=RankConditioned(size=size))


def with_classes(k: int) -> NeuroPareto:
    """The paper's pipeline with k rank classes."""
    return replace(NeuroPareto.paper(), classifier=RankClassifier(k=k))


def with_inducing(points: int) -> NeuroPareto:
    """The paper's pipeline with a fixed number of inducing points."""
    deep = DeepGP(inducing=points, most_inducing=points)
    return replace(NeuroPareto.paper(), surrogate=Ladder((deep, ExactGP(), FourierProxy())))


SENSITIVITY: Mapping[str, Callable[[], NeuroPareto]] = {
    **{f"pool-{size}": partial(with_pool, size) for size in (200, 500, 1000, 2000)},
    **{f"k-{k}": partial(with_classes, k) for k in (3, 4, 5, 6, 7)},
    **{f"inducing-{points}": partial(with_inducing, points) for points in (100, 200, 400, 800)},
}
