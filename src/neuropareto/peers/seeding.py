"""Libraries that draw from torch's global generator, made repeatable without leaving a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from neuropareto.randomness import torch_seed


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Within the block torch's global generator is seeded from ``rng``; afterwards it is as before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(rng))
        yield
