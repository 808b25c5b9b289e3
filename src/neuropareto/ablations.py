"""Ablations: each replaces one part by a null object; the algorithm does not know that it is ablated.

``ABLATIONS`` are the paper's, of its literal pipeline: Tables "Component Contribution Analysis" and of
the decomposition, LMC and static comparisons. ``INGREDIENTS`` are ours, of the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from neuropareto.acquisition import StaticEHVI, SurrogateEstimate
from neuropareto.calibration import Uncalibrated
from neuropareto.candidates import Candidates, RankConditioned, Several, SurrogateDescent
from neuropareto.classifier import RankClassifier, Uninformed
from neuropareto.dropout import NoDropout
from neuropareto.exploration import Neighbours, Unmoved
from neuropareto.moves import Descents, GradientMoves, ProfileJumps, Slides
from neuropareto.neuropareto import NeuroPareto
from neuropareto.retreat import Steadfast
from neuropareto.screening import KeepAll
from neuropareto.second import Alone
from neuropareto.selection import Daring, ExpectedGain, Planned
from neuropareto.surrogate import (
    Coregional,
    DeepGP,
    ExactGP,
    FourierProxy,
    Hedged,
    Homoscedastic,
    Inducing,
    Ladder,
)
from neuropareto.surrogate.contract import Surrogate
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured import Uncalibrated as NoRecalibration
from neuropareto.surrogate.structured.training import TIGHT, TIGHT_PRODUCT, Effort, Rough
from neuropareto.viability import Unguarded


def _with_surrogate(
    surrogate: Surrogate, whole: Callable[[], NeuroPareto] = NeuroPareto.paper
) -> NeuroPareto:
    return replace(whole(), surrogate=Ladder((surrogate, ExactGP(), FourierProxy())))


def _structured(**changes: Any) -> Callable[[], NeuroPareto]:
    return lambda: _with_surrogate(replace(StructuredGP(), **changes), NeuroPareto)


def _believing(**changes: Any) -> Callable[[], NeuroPareto]:
    """The default with every belief about structure changed."""
    few, many = (
        tuple(replace(variant, **changes) for variant in variants)
        for variants in (StructuredGP().few, StructuredGP().many)
    )
    return _structured(few=few, many=many)


def _with_candidates(*sources: Candidates) -> Callable[[], NeuroPareto]:
    return lambda: replace(NeuroPareto(), candidates=Several(sources))


_VARIATION = RankConditioned(size=500)
_BOTH = Descents((GradientMoves(), ProfileJumps()))


ABLATIONS: Mapping[str, Callable[[], NeuroPareto]] = {
    "no-uncertainty": lambda: replace(
        NeuroPareto.paper(), classifier=RankClassifier(dropout=NoDropout())
    ),
    "no-temperature": lambda: replace(
        NeuroPareto.paper(), classifier=RankClassifier(calibration=Uncalibrated())
    ),
    "standard-gp": lambda: replace(
        NeuroPareto.paper(), surrogate=Ladder((ExactGP(), FourierProxy()))
    ),
    "no-learned-acquisition": lambda: replace(
        NeuroPareto.paper(), acquisition=SurrogateEstimate()
    ),
    "static": lambda: replace(NeuroPareto.paper(), acquisition=StaticEHVI()),
    "no-complexity-reduction": lambda: replace(
        _with_surrogate(DeepGP(features=Inducing())), screening=KeepAll()
    ),
    "lmc": lambda: _with_surrogate(Coregional(DeepGP())),
    "homoscedastic": lambda: _with_surrogate(DeepGP(noise=Homoscedastic())),
    "shallow": lambda: _with_surrogate(DeepGP(layers=1)),
}
"""Name of each row of the paper's ablation tables -> the algorithm of that row."""


INGREDIENTS: Mapping[str, Callable[[], NeuroPareto]] = {
    "without-classifier": lambda: replace(NeuroPareto(), classifier=Uninformed()),
    "without-calibration": lambda: replace(
        NeuroPareto(), classifier=RankClassifier(calibration=Uncalibrated())
    ),
    "without-learned-acquisition": lambda: replace(NeuroPareto(), acquisition=SurrogateEstimate()),
    "without-structure": lambda: replace(
        _with_surrogate(ExactGP(), NeuroPareto),
        candidates=Several((SurrogateDescent(), _VARIATION)),
    ),
    "without-modulators": _structured(effort=Effort(modulators=0)),
    "without-waves": _structured(effort=Effort(waves=False)),
    "without-corners": _structured(effort=Effort(corners=False)),
    "without-places": _structured(effort=Effort(places=False)),
    "without-rough-rival": _structured(effort=Effort(rough=Rough(satisfied=-math.inf))),
    "without-shared-curves": _believing(shared=False),
    "without-pair-products": _believing(pair_degrees=0),
    "without-sparse-belief": _structured(few=(TIGHT,), many=(TIGHT_PRODUCT,)),
    "without-recalibration": _structured(recalibration=NoRecalibration()),
    "without-gradient-moves": _with_candidates(Slides(Descents((ProfileJumps(),))), _VARIATION),
    "without-jumps": _with_candidates(Slides(Descents((GradientMoves(),))), _VARIATION),
    "without-slides": _with_candidates(_BOTH, _VARIATION),
    "without-variation": _with_candidates(Slides(_BOTH)),
    "without-exploration": lambda: replace(NeuroPareto(), exploration=Unmoved()),
    "without-scatter": lambda: replace(NeuroPareto(), exploration=Neighbours()),
    "without-daring": lambda: replace(NeuroPareto(), selection=Planned(Daring(share=0.0))),
    "without-plan": lambda: replace(NeuroPareto(), selection=Daring()),
    "without-doubt": _structured(doubt=math.inf),
    "without-viability": lambda: replace(NeuroPareto(), viability=Unguarded()),
    "without-retreat": lambda: replace(NeuroPareto(), retreat=Steadfast()),
    "without-second-opinion": lambda: replace(NeuroPareto(), second=Alone()),
    "without-choice-by-mean": lambda: replace(NeuroPareto(), estimate=ExpectedGain()),
    "with-hedge": lambda: _with_surrogate(Hedged(), NeuroPareto),
}
"""Name -> the default ``NeuroPareto()`` without one ingredient (or with one that it does not have)."""
