"""Surrogates: what is believed about the objectives, with uncertainty split in two.

One contract for all of them: a frozen spec whose ``fit`` returns a fitted, pure model; the model's
``posterior`` returns means, epistemic (reducible) and aleatoric (irreducible) variances per
objective. Notation: U (n, d) in the unit cube, F (n, m) objectives, q candidates.
Paper: section "Complexity reduced Deep Gaussian Process surrogates".
"""

from __future__ import annotations

from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate
from neuropareto.surrogate.coregional import Coregional
from neuropareto.surrogate.deep_gp import DeepGP
from neuropareto.surrogate.exact_gp import ExactGP
from neuropareto.surrogate.features import Inducing, Nystroem, RandomFourier
from neuropareto.surrogate.hedged import Hedged
from neuropareto.surrogate.kernels import RBF, Matern52
from neuropareto.surrogate.ladder import Ladder
from neuropareto.surrogate.mean import NeuralMean
from neuropareto.surrogate.noise import Heteroscedastic, Homoscedastic
from neuropareto.surrogate.proxy import FourierProxy, LinearProxy
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.training import Schedule

__all__ = [
    "RBF",
    "Coregional",
    "DeepGP",
    "ExactGP",
    "Fitted",
    "FourierProxy",
    "Hedged",
    "Heteroscedastic",
    "Homoscedastic",
    "Inducing",
    "Ladder",
    "LinearProxy",
    "Matern52",
    "NeuralMean",
    "NumericalFailure",
    "Nystroem",
    "Posterior",
    "RandomFourier",
    "Schedule",
    "StructuredGP",
    "Surrogate",
]
