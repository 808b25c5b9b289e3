"""The paper's ablations: each replaces one part of the literal pipeline by a null object.

Paper: Tables "Component Contribution Analysis" and of the decomposition, LMC and static
comparisons. Each value makes an algorithm; the algorithm does not know that it is ablated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from neuropareto.acquisition import StaticEHVI, SurrogateEstimate
from neuropareto.calibration import Uncalibrated
from neuropareto.classifier import RankClassifier
from neuropareto.dropout import NoDropout
from neuropareto.neuropareto import NeuroPareto
from neuropareto.screening import KeepAll
from neuropareto.surrogate import (
    Coregional,
    DeepGP,
    ExactGP,
    FourierProxy,
    Homoscedastic,
    Inducing,
    Ladder,
)
from neuropareto.surrogate.contract import Surrogate


def _with_surrogate(surrogate: Surrogate) -> NeuroPareto:
    return replace(NeuroPareto.paper(), surrogate=Ladder((surrogate, ExactGP(), FourierProxy())))


ABLATIONS: Mapping[str, Callable[[], NeuroPareto]] = {
    "complete": NeuroPareto.paper,
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
