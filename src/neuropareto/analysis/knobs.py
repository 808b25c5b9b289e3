"""The hyper-parameters that are tuned: the paper's grid as a table, and configurations of it.

Paper: Table grid, and the three knobs of the appendix on re-tuning (M_ind, S_0, lambda_div). A knob
knows where its number lies in a :class:`~neuropareto.neuropareto.NeuroPareto`; a pipeline without that
part (the default one has no deep GP) has no such knob. The table's "number of hidden layers" is no
knob: the classifier of Eqs. h1 to z has two, the acquisition network one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from neuropareto.neuropareto import NeuroPareto
from neuropareto.surrogate import DeepGP, Ladder
from neuropareto.surrogate.features import RandomFourier

Path: TypeAlias = "tuple[str, ...]"
Value: TypeAlias = "int | float"

_DEEP = "DeepGP"
PIPELINES: Mapping[str, NeuroPareto] = {"paper": NeuroPareto.paper(), "default": NeuroPareto()}
"""What can be tuned: the paper's literal pipeline (every knob) and the default one (no deep GP)."""


@dataclass(frozen=True)
class Knob:
    """One number of the pipeline: its row in Table grid, the values examined, and its places.

    ``places`` pairs a path of fields with a factor: the number of inducing points a round starts
    with also sets the number up to which it may be doubled.
    """

    component: str
    parameter: str
    values: tuple[Value, ...]
    places: tuple[tuple[Path, int], ...]

    def read(self, pipeline: NeuroPareto) -> Value | None:
        """The present value; None if the pipeline has no such part."""
        found: Value | None = _at(pipeline, self.places[0][0])
        return found

    def turned(self, pipeline: NeuroPareto, value: Value) -> NeuroPareto:
        """The pipeline with this knob at ``value``; ValueError if it has no such part."""
        if self.read(pipeline) is None:
            raise ValueError(
                f"This pipeline has no {self.component.lower()} with a {self.parameter.lower()}; "
                'tune the paper\'s ("paper").'
            )
        for path, factor in self.places:
            pipeline = _replaced(pipeline, path, factor * value)
        return pipeline


KNOBS: Mapping[str, Knob] = {
    "width": Knob(
        "Bayesian classifier", "Hidden width", (64, 128), ((("classifier", "width"), 1),)
    ),
    "dropout": Knob(
        "Bayesian classifier", "Dropout probability", (0.1, 0.2),
        ((("classifier", "dropout", "p"), 1),),
    ),
    "inducing": Knob(
        "Deep GP surrogate", "Inducing points M_ind", (100, 200, 400, 800),
        (
            (("surrogate", _DEEP, "inducing"), 1),
            (("surrogate", _DEEP, "most_inducing"), 2),
        ),
    ),
    "fourier": Knob(
        "Deep GP surrogate", "Random Fourier feature dimension", (1024, 2048),
        ((("surrogate", _DEEP, "features", "features"), 1),),
    ),
    "doubling": Knob(
        "Deep GP surrogate", "ELBO validation threshold (%)", (0.01, 0.02),
        ((("surrogate", _DEEP, "doubling"), 1),),
    ),
    "acquisition_width": Knob(
        "Acquisition network", "Hidden width", (32, 64), ((("acquisition", "width"), 1),)
    ),
    "buffer": Knob(
        "Acquisition network", "History buffer size B", (500, 1000, 2000),
        ((("window", "buffer"), 1),),
    ),
    "s0": Knob(
        "MC-Dropout", "Baseline stochastic passes S_0", (4, 8),
        ((("classifier", "dropout", "s0"), 1),),
    ),
    "tau": Knob(
        "MC-Dropout", "Variance escalation threshold tau_MC", (0.01, 0.02),
        ((("classifier", "dropout", "tau"), 1),),
    ),
    "diversity_weight": Knob(
        "Acquisition network", "Diversity weight lambda_div", (),
        ((("acquisition", "diversity_weight"), 1),),
    ),
}  # fmt: skip
"""Name -> knob. The last one is not in Table grid; only the refinement turns it."""


@dataclass(frozen=True)
class Configuration:
    """Values of knobs, in the order of ``KNOBS``; those not named stay as the pipeline has them."""

    settings: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Configuration:
        """A configuration from name -> value; ValueError for a name that is no knob."""
        unknown = sorted(set(values) - set(KNOBS))
        if unknown:
            raise ValueError(f"There is no knob {unknown[0]!r}; there are {', '.join(KNOBS)}.")
        return cls(tuple((name, values[name]) for name in KNOBS if name in values))

    @property
    def values(self) -> dict[str, Value]:
        """Name -> value."""
        return dict(self.settings)

    def changed(self, values: Mapping[str, Value]) -> Configuration:
        """This configuration with other values for some knobs."""
        return Configuration.of({**self.values, **values})

    def algorithm(self, pipeline: NeuroPareto) -> NeuroPareto:
        """The pipeline with these values."""
        for name, value in self.settings:
            pipeline = KNOBS[name].turned(pipeline, value)
        return pipeline

    def said(self, pipeline: NeuroPareto) -> str:
        """What differs from the pipeline: "inducing 400, s0 4", or "as it is"."""
        parts = [f"{n} {v:g}" for n, v in self.settings if KNOBS[n].read(pipeline) != v]
        return ", ".join(parts) or "as it is"


def present(pipeline: NeuroPareto) -> Configuration:
    """The values that a pipeline has now, of all the knobs it has."""
    found = {name: knob.read(pipeline) for name, knob in KNOBS.items()}
    return Configuration.of({name: value for name, value in found.items() if value is not None})


def axes(pipeline: NeuroPareto) -> dict[str, tuple[Value, ...]]:
    """The knobs of Table grid that the pipeline has, with the values examined."""
    has = present(pipeline).values
    return {name: knob.values for name, knob in KNOBS.items() if knob.values and name in has}


def grid_size(pipeline: NeuroPareto) -> int:
    """How many configurations the whole grid has: the product of the values examined."""
    return math.prod(len(values) for values in axes(pipeline).values())


def whole_grid(pipeline: NeuroPareto) -> Iterator[Configuration]:
    """Every configuration of the grid, the last knob changing fastest."""
    names = axes(pipeline)
    for values in product(*names.values()):
        yield Configuration.of(dict(zip(names, values, strict=True)))


def sampled_grid(
    pipeline: NeuroPareto, n: int, *, rng: np.random.Generator
) -> tuple[Configuration, ...]:
    """n different configurations of the grid, uniformly; all of them if there are no more."""
    names = axes(pipeline)
    shape = tuple(len(values) for values in names.values())
    chosen = rng.permutation(math.prod(shape))[:n]
    places = np.stack(np.unravel_index(chosen, shape), axis=1)
    return tuple(
        Configuration.of({k: v[i] for (k, v), i in zip(names.items(), row, strict=True)})
        for row in places
    )


def one_at_a_time(pipeline: NeuroPareto) -> tuple[Configuration, ...]:
    """The pipeline as it is, then every configuration of the grid that turns a single knob."""
    has = present(pipeline)
    changed = [
        has.changed({name: value})
        for name, values in axes(pipeline).items()
        for value in values
        if has.values[name] != value
    ]
    return (has, *changed)


def nearby(name: str, value: Value) -> tuple[Value, ...]:
    """The two examined values around ``value``; beyond the grid's ends, half and double of it."""
    values = KNOBS[name].values
    below = [v for v in values if v < value]
    above = [v for v in values if v > value]
    half = value // 2 if isinstance(value, int) else value / 2
    return (max(below) if below else half, min(above) if above else 2 * value)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = _child(value, step)
        if value is None:
            return None
    return value


def _child(value: Any, step: str) -> Any:
    if step == _DEEP:
        models = value.surrogates if isinstance(value, Ladder) else (value,)
        return next((model for model in models if isinstance(model, DeepGP)), None)
    if step == "features" and isinstance(value, DeepGP):
        return value.features if isinstance(value.features, RandomFourier) else None
    names = {f.name for f in dataclasses.fields(value) if f.init}
    return getattr(value, step) if step in names else None


def _replaced(value: Any, path: Path, new: Value) -> Any:
    step, rest = path[0], path[1:]
    inner = _replaced(_child(value, step), rest, new) if rest else new
    if step != _DEEP:
        return dataclasses.replace(value, **{step: inner})
    if not isinstance(value, Ladder):
        return inner
    deep = _child(value, step)
    models: tuple[Any, ...] = tuple(
        inner if model is deep else model for model in value.surrogates
    )
    return dataclasses.replace(value, surrogates=models)
