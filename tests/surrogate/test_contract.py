from __future__ import annotations

import pytest

from neuropareto.surrogate import (
    RBF,
    Coregional,
    DeepGP,
    ExactGP,
    FourierProxy,
    Homoscedastic,
    Inducing,
    Ladder,
    LinearProxy,
    NeuralMean,
    Nystroem,
    RandomFourier,
    Schedule,
    Surrogate,
)
from neuropareto.testing.surrogate import check_surrogate

SMALL = DeepGP(
    features=RandomFourier(features=256, anchors=24),
    inducing=48,
    iterations=15,
    schedule=Schedule(first_epochs=6, epochs=3, settle=1),
)
SURROGATES: dict[str, Surrogate] = {
    "exact": ExactGP(iterations=30),
    "rbf": ExactGP(kernel=RBF(), iterations=30),
    "linear": LinearProxy(),
    "fourier": FourierProxy(features=240),
    "deep": SMALL,
    "shallow": DeepGP(layers=1, inducing=48, iterations=15, schedule=SMALL.schedule),
    "three layers": DeepGP(
        layers=3,
        features=Inducing(24),
        inducing=48,
        iterations=15,
        noise=Homoscedastic(),
        schedule=SMALL.schedule,
    ),
    "nystroem": DeepGP(
        features=Nystroem(24),
        inducing=48,
        iterations=15,
        mean=NeuralMean(hidden=0),
        schedule=SMALL.schedule,
    ),
    "coregional": Coregional(ExactGP(iterations=20)),
    "ladder": Ladder((ExactGP(iterations=20), FourierProxy(features=240))),
}


@pytest.mark.parametrize("name", SURROGATES)
def test_every_surrogate_passes_the_exam(name: str) -> None:
    check_surrogate(SURROGATES[name])
