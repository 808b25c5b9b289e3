from __future__ import annotations

import numpy as np

from neuropareto.assessment import assessed
from neuropareto.surrogate import ExactGP, Ladder
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured.training import TIGHT


def test_an_assessment_is_seen_through_a_ladder() -> None:
    U = np.random.default_rng(0).random((40, 3))
    for surrogate, known in ((StructuredGP(few=(TIGHT,)), True), (ExactGP(), False)):
        model = Ladder((surrogate,)).fit(U, U, warm=None, rng=np.random.default_rng(0))
        inside = assessed(model)
        assert (inside is not None and inside.unexplained.max() < 1e-3) == known
        if inside is not None:
            assert inside.signal.shape == inside.density.shape == inside.unexplained.shape == (3,)
