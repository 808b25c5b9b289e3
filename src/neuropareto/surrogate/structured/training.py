"""How one objective's hyper-parameters are found: from nothing, or from the last round's.

From nothing: an additive model first, whose strongest variables become the modulators; then
modulators, discrete restarts, a last descent, and a rival in which one variable is rough; once for
each belief about sparsity, chosen by leave-one-out density. From the last round: a few steps, with
the restarts that data growth calls for. Notation: X n points, y (n,) one objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.structured import restarts
from neuropareto.surrogate.structured.additive import Own, Shared
from neuropareto.surrogate.structured.conditioned import Conditioned
from neuropareto.surrogate.structured.corners import Corners
from neuropareto.surrogate.structured.evidence import Evidence
from neuropareto.surrogate.structured.interactions import Pair
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.modulation import (
    Modulation,
    ProductOfModulators,
    SumOfModulators,
)
from neuropareto.surrogate.structured.parameters import Values, vector
from neuropareto.surrogate.structured.placing import placed, turned
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.roughness import roughness
from neuropareto.surrogate.structured.term import Additive
from neuropareto.surrogate.structured.warp import Units, standardised
from neuropareto.surrogate.structured.weights import Sparse, Tight, Weights

# Above this share of unexplained variance restarts are worth their time.
_RESTLESS = 2e-3
# Corners are looked for where curves explain nearly everything, but not all: with more left over,
# what the variables do together looks like corners, too.
_SETTLED, _ADDITIVE = 1e-5, 5e-3
# A law of all curves is looked for even where a little more is left over.
_LAWFUL = 1e-2
# log a of an output warp that is almost the identity.
NO_WARP = 4.0


@dataclass(frozen=True)
class Rough:
    """When a model meets a rival in which one variable is rough (decision D-79).

    Only a model below the leave-one-out density ``satisfied``, only variables whose
    :func:`roughness` exceeds ``evident``; the rival must be denser by ``margin``.
    """

    satisfied: float = 2.0
    evident: float = 5.0
    margin: float = 0.3


@dataclass(frozen=True)
class Looked:
    """How many evaluations there were at the last warm ``steps`` and at the last full ``rescan``."""

    steps: int
    rescan: int


@dataclass(frozen=True)
class Due:
    """Whether a fit takes warm ``steps`` and a full ``rescan``; ``looked`` is what it leaves behind."""

    steps: bool
    rescan: bool
    looked: Looked


@dataclass(frozen=True)
class Effort:
    """Steps of L-BFGS: additive stage, first modulated stage, last stage, and a warm start.

    At most ``modulators`` variables modulate; ``waves`` lets periodic curves be looked for, fully
    every ``rescan_after`` evaluations; ``corners`` lets corners be looked for until they are found
    (decision D-83); ``places`` lets one law for all variables be, with each full rescan (decision
    D-93); ``rough`` says when a single rough variable is. Warm steps are taken every
    ``retrain_every`` evaluations, or as soon as the data have grown by a share ``grown``; in between,
    a fit only conditions on what is new: training goes by evaluations, not by rounds (decision D-89).
    """

    additive: int = 25
    modulated: int = 25
    last: int = 50
    warm: int = 18
    modulators: int = 6
    rescan_after: int = 30
    retrain_every: int = 10
    grown: float = 0.05
    waves: bool = True
    corners: bool = True
    places: bool = True
    rough: Rough = Rough()

    def due(self, n: int, looked: Looked | None) -> Due:
        """What a fit to ``n`` evaluations has to do; None if there was none before."""
        if looked is None:
            return Due(True, True, Looked(n, n))
        steps = n - looked.steps >= min(self.retrain_every, self.grown * looked.steps)
        rescan = steps and n - looked.rescan >= self.rescan_after
        now = Looked(n if steps else looked.steps, n if rescan else looked.rescan)
        return Due(steps, rescan, now)


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

    @property
    def rough(self) -> tuple[int, ...]:
        """Its modulators whose rough part is as large as the base itself."""
        J = self.kernel.modulation.J
        return tuple(j for j, r in zip(J, self.P["rough"], strict=True) if r > 0.0) if J else ()


@dataclass(frozen=True)
class Hints:
    """What the models of the other objectives have found: frequencies, rough variables, places."""

    frequencies: tuple[float, ...] = ()
    rough: tuple[int, ...] = ()
    places: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, others: Sequence[Trained]) -> Hints:
        """The hints of models of ``others``."""
        return cls(
            tuple(t.frequency for t in others if t.frequency),
            tuple(dict.fromkeys(j for t in others for j in t.rough)),
            tuple(t.P["place"] for t in others if t.kernel.places),
        )


def trained(variant: Variant, X: Points, y: Array, hints: Hints, effort: Effort) -> Trained:
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
        evidence, P = restarts.frequency(evidence, P, hints.frequencies, full=True)
    starts = [P]
    if float(P["output_warp"]) < NO_WARP - 1.0:
        starts.append(P | {"output_warp": vector((NO_WARP,))})
    P = _best(evidence, starts, y, effort.last)
    found = Trained(variant, evidence.kernel, P)
    found = _challenged(found, X, y, hints, effort)
    return _sharpened(found, X, v) if effort.corners else found


def located(found: Trained, X: Points, y: Array, hints: Hints, effort: Effort) -> Trained:
    """``found``, or with one law for all variables, if that foresees left-out values better.

    A model that finds nothing but noise, and may have fitted it, has none. Beliefs about sparsity
    are weighed without laws: one that fits badly gains most by a hundred places. A failure of its
    numerics costs the law, not the model.
    """
    v = Units.of(y).scaled(y)
    evidence = Evidence(found.kernel, X, v, found.variant.warped)
    open_ = _SETTLED < restarts.unexplained(found.P) < _LAWFUL
    if not (effort.places and open_ and evidence.advantage(found.P) > 0.0):
        return found
    try:
        law, P = placed(evidence, found.P, y, found.variant.weights, hints.places)
    except NumericalFailure:
        return found
    if law is evidence:
        return found
    found = replace(found, kernel=law.kernel, P=P)
    return _sharpened(found, X, v) if effort.corners else found


def _sharpened(found: Trained, X: Points, v: Tensor) -> Trained:
    """``found``, or with corners in its curves if the evidence says so."""
    if found.kernel.corners or not _SETTLED < restarts.unexplained(found.P) < _ADDITIVE:
        return found
    evidence = Evidence(found.kernel, X, v, found.variant.warped)
    evidence, P = restarts.corners(evidence, found.P, Corners(found.variant.weights))
    return replace(found, kernel=evidence.kernel, P=P)


def _challenged(found: Trained, X: Points, y: Array, hints: Hints, effort: Effort) -> Trained:
    """``found``, or a model that starts from one rough variable and little else, if it is denser.

    Variables are taken from the outputs, from what the model could not foresee of them, and from
    the other objectives, in this order.
    """
    rule, J = effort.rough, found.kernel.modulation.J
    model = Conditioned.on(found.kernel, found.P, X, y)
    if not J or model.density > rule.satisfied:
        return found
    v = Units.of(y).scaled(y)
    scores = [roughness(e, X.U) for e in (standardised(found.P, v)[0], model.unforeseen)]
    rough = [int(s.argmax()) for s in scores if s.max() > rule.evident]
    best, highest = found, model.density + rule.margin
    for j in dict.fromkeys((*rough, *hints.rough)):
        among = J if j in J else (j, *J[:-1])
        kernel = replace(
            found.kernel, modulation=found.variant.modulation(among), waves=(), corners=()
        )
        evidence = Evidence(kernel, X, v, found.variant.warped)
        rival = replace(found, kernel=kernel, P=_roughened(evidence, among.index(j), effort.last))
        density = Conditioned.on(kernel, rival.P, X, y).density
        if density > highest:
            best, highest = rival, density
    return best


def _roughened(evidence: Evidence, at: int, steps: int) -> Values:
    """Hyper-parameters from a start in which modulator number ``at`` is rough and the rest small."""
    levels = torch.full((len(evidence.kernel.modulation.J),), -4.0, dtype=torch.float64)
    levels[at] = 0.0
    quiet = {"shared": -6.0, "residual": -6.0, "noise": -3.0}
    starts = [
        evidence.table.start(
            {name: vector((value,)) for name, value in quiet.items()}
            | {"own": vector((own,)), "output_warp": vector((warp,)), "rough": levels}
            | {"rough_length": vector((math.log(length),))}
        )
        for own, length, warp in product((-6.0, -1.0), (0.04, 0.08, 0.15), (1.0, NO_WARP))
    ]
    nearest = starts[int(np.argmin([evidence.loss(start) for start in starts]))]
    return evidence.improved(nearest, steps)[0]


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
    old: Trained, X: Points, y: Array, hints: Hints, effort: Effort, *, rescan: bool
) -> Trained:
    """Hyper-parameters from the last round's, by a few steps; with a ``rescan`` all restarts."""
    units = Units.of(y)
    if units.constant:
        return old
    evidence = Evidence(old.kernel, X, units.scaled(y), old.variant.warped)
    P = restarts.output_warp(evidence, evidence.table.start(old.P))
    restless = restarts.unexplained(P) > _RESTLESS
    if restless and rescan and old.kernel.modulation.J:
        P = restarts.rough_modulator(evidence, P)
    if effort.waves and restless and (rescan or hints.frequencies):
        new = [
            h for h in hints.frequencies if old.frequency is None or abs(h - old.frequency) > 0.2
        ]
        evidence, P = restarts.frequency(evidence, P, new, full=rescan)
    # On another scale of the output the old values are a poor start.
    moved = abs(float(P["output_warp"] - old.P["output_warp"])) > 1.0
    steps = effort.last if moved else effort.warm
    if old.kernel.places:
        P = turned(evidence, P, y, steps)
    else:
        P, _ = evidence.improved(P, steps)
    found = Trained(old.variant, evidence.kernel, P)
    found = _sharpened(found, X, evidence.v) if effort.corners else found
    return located(found, X, y, hints, effort) if rescan else found


def strongest(variant: Variant, model: Conditioned, k: int) -> tuple[int, ...]:
    """The k variables whose own curves are largest, strongest first."""
    own = Own(variant.weights)
    size = own.coefficients(model.P, model.alpha, model.X).square().sum(1)
    return tuple(torch.argsort(size, descending=True)[:k].tolist())
