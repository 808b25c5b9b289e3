from __future__ import annotations

import numpy as np
import pytest

from neuropareto.assessment import NearlyAll, assessed
from neuropareto.surrogate import ExactGP, Ladder
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.surrogate.structured.training import TIGHT


class Said:
    def __init__(self, unexplained: list[float]) -> None:
        self.unexplained = np.array(unexplained)
        self.signal = self.density = np.ones(len(unexplained))


@pytest.mark.parametrize(
    ("unexplained", "nearly_all"),
    [([1e-4, 4e-3], True), ([1e-4, 6e-3], False), ([1.0, 1.0], False)],
)
def test_nearly_all_is_explained_in_every_output(
    unexplained: list[float], nearly_all: bool
) -> None:
    assert NearlyAll().by(Said(unexplained)) == nearly_all


def test_an_assessment_is_seen_through_a_ladder() -> None:
    U = np.random.default_rng(0).random((40, 3))
    for surrogate, known in ((StructuredGP(few=(TIGHT,)), True), (ExactGP(), False)):
        model = Ladder((surrogate,)).fit(U, U, warm=None, rng=np.random.default_rng(0))
        inside = assessed(model)
        assert (inside is not None and NearlyAll(1e-3).by(inside)) == known
