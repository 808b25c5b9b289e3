"""How one objective's hyper-parameters are found: from nothing, or from the last round's.

From nothing: an additive model first, whose strongest variables become the modulators; then
modulators, discrete restarts, and a last descent; once for each belief about sparsity, chosen by
leave-one-out density. From the last round: a few steps, with the restarts that data growth calls
for. Notation: X n points, y (n,) one objective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from neuropareto.space import Array
from neuropareto.surrogate.structured import restarts
from neuropareto.surrogate.structured.additive import Own, Shared
from neuropareto.surrogate.structured.conditioned import Conditioned
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.interactions import Pair
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.modulation import (
    Modulation,
    ProductOfModulators,
    SumOfModulators,
)
from neuropareto.surrogate.structured.parameters import Values, vector
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import Additive
from neuropareto.surrogate.structured.warp import Units
from neuropareto.surrogate.structured.weights import Sparse, Tight, Weights

# Above this share of unexplained variance restarts are worth their time.
_RESTLESS = 2e-3
# log a of an output warp that is almost the identity.
NO_WARP = 4.0


@dataclass(frozen=True)
class Effort:
    """Steps of L-BFGS: additive stage, first modulated stage, last stage, and a warm start.

    At most ``modulators`` variables modulate; ``waves`` lets periodic curves be looked for, fully
    every ``rescan_every`` rounds.
    """

    additive: int = 25
    modulated: int = 25
    last: int = 50
    warm: int = 18
    modulators: int = 6
    rescan_every: int = 3
    waves: bool = True


@dataclass(frozen=True)
class Variant:
    """A belief about structure: prior of the weights, degrees of pair products, modulation.

    Without ``shared`` no curve is common to all variables; with ``pair_degrees`` 0 there are no
    products of two variables. Without ``warped`` outputs are taken as they are: the warp of labels,
    which have two values only, is not determined by anything.
    """

    name: str
    weights: Weights
    pair_degrees: int
    modulation: Callable[[tuple[int, ...]], Modulation]
    shared: bool = True
    warped: bool = True

    def kernel(self) -> Kernel:
        """The kernel of this belief before its modulators are known."""
        additive: tuple[Additive, ...] = (Own(self.weights),)
        if self.shared:
            additive = (*additive, Shared())
        pairs = (Pair(self.weights, self.pair_degrees),) if self.pair_degrees else ()
        return Kernel(additive=additive, pairs=pairs)


TIGHT = Variant("tight", Tight(), 1, SumOfModulators)
SPARSE = Variant("sparse", Sparse(), 2, SumOfModulators)
TIGHT_PRODUCT = Variant("tight product", Tight(), 1, ProductOfModulators)
SPARSE_PRODUCT = Variant("sparse product", Sparse(), 2, ProductOfModulators)


@dataclass(frozen=True, eq=False)
class Trained:
    """Hyper-parameters ``P`` of a ``kernel`` under a ``variant``."""

    variant: Variant
    kernel: Kernel
    P: Values

    @property
    def frequency(self) -> float | None:
        """The frequency of its periodic curves, if it has any."""
        return float(torch.exp(self.P["frequency"])) if self.kernel.waves else None


def trained(
    variant: Variant, X: Points, y: Array, hints: Sequence[float], effort: Effort
) -> Trained:
    """Hyper-parameters from nothing."""
    v = Units.of(y).scaled(y)
    plain = Evidence(variant.kernel(), X, v, variant.warped)
    P = plain.table.start()
    if Units.of(y).constant:
        return Trained(variant, plain.kernel, P)
    P, _ = plain.improved(P, effort.additive)
    J = strongest(variant, Conditioned.on(plain.kernel, P, X, y), effort.modulators)
    evidence = replace(plain, kernel=plain.kernel.modulated(variant.modulation(J))) if J else plain
    bare = {"output_warp": vector((NO_WARP,)), "residual": vector((-6.0,))}
    afresh = evidence.table.start(bare)
    unwarped = evidence.table.start(P | {"output_warp": vector((NO_WARP,))})
    P = _best(evidence, [evidence.table.start(P), unwarped, afresh], y, effort.modulated)
    if J and restarts.unexplained(P) > _RESTLESS:
        P = restarts.rough_modulator(evidence, P)
    if effort.waves:
        evidence, P = restarts.frequency(evidence, P, hints, full=True)
    starts = [P]
    if float(P["output_warp"]) < NO_WARP - 1.0:
        starts.append(P | {"output_warp": vector((NO_WARP,))})
    P = _best(evidence, starts, y, effort.last)
    return Trained(variant, evidence.kernel, P)


def _best(evidence: Evidence, starts: Sequence[Values], y: Array, steps: int) -> Values:
    """The end of descents from several starts with the highest leave-one-out density.

    A product of modulators and base looks additive on the log scale, and the additive stage says
    so; but only on the plain scale is it linear in the base, and steps do not lead from one to the
    other, nor out of a model in which the residual explains everything.
    """
    ends = [evidence.improved(start, steps)[0] for start in starts]
    if len(ends) == 1:
        return ends[0]
    return max(ends, key=lambda P: Conditioned.on(evidence.kernel, P, evidence.X, y).density)


def retrained(
    old: Trained, X: Points, y: Array, hints: Sequence[float], effort: Effort, round: int
) -> Trained:
    """Hyper-parameters from the last round's, by a few steps and the restarts that are due."""
    units = Units.of(y)
    if units.constant:
        return old
    evidence = Evidence(old.kernel, X, units.scaled(y), old.variant.warped)
    P = restarts.output_warp(evidence, evidence.table.start(old.P))
    restless = restarts.unexplained(P) > _RESTLESS
    due = round % effort.rescan_every == 0
    if restless and due and old.kernel.modulation.J:
        P = restarts.rough_modulator(evidence, P)
    if effort.waves and restless and (due or hints):
        new = [h for h in hints if old.frequency is None or abs(h - old.frequency) > 0.2]
        evidence, P = restarts.frequency(evidence, P, new, full=due)
    # On another scale of the output the old values are a poor start.
    moved = abs(float(P["output_warp"] - old.P["output_warp"])) > 1.0
    P, _ = evidence.improved(P, effort.last if moved else effort.warm)
    return Trained(old.variant, evidence.kernel, P)


def strongest(variant: Variant, model: Conditioned, k: int) -> tuple[int, ...]:
    """The k variables whose own curves are largest, strongest first."""
    own = Own(variant.weights)
    size = own.coefficients(model.P, model.alpha, model.X).square().sum(1)
    return tuple(torch.argsort(size, descending=True)[:k].tolist())
