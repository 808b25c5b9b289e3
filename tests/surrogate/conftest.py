"""GPyTorch, the oracle of these tests, warns of torch's deprecations when it is first imported."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import gpytorch  # noqa: F401
