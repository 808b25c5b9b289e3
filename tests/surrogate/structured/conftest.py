from __future__ import annotations

import pytest

from neuropareto.surrogate.structured.additive import Own, Shared
from neuropareto.surrogate.structured.corners import Corners
from neuropareto.surrogate.structured.interactions import Pair
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.modulation import (
    Modulation,
    ProductOfModulators,
    SumOfModulators,
    Unmodulated,
)
from neuropareto.surrogate.structured.placed import Placed
from neuropareto.surrogate.structured.waves import WAVES
from neuropareto.surrogate.structured.weights import Sparse, Tight, Weights


def full_kernel(weights: Weights, modulation: Modulation) -> Kernel:
    """Every term at once."""
    return Kernel(
        modulation=modulation,
        additive=(Own(weights), Shared()),
        waves=WAVES,
        corners=(Corners(weights),),
        places=(Placed(),),
        pairs=(Pair(weights, 2),),
    )


KERNELS = {
    "tight sum": full_kernel(Tight(), SumOfModulators((2, 0))),
    "sparse product": full_kernel(Sparse(), ProductOfModulators((0, 2, 3))),
    "tight plain": full_kernel(Tight(), Unmodulated()),
}


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return KERNELS[request.param]
