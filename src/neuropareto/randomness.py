"""Randomness as an argument: every generator is derived from (seed, round, stage name).

Nothing about randomness has to be saved: a resumed run asks for the same streams and gets the
same numbers. Streams are keyed by the *name* of a stage, so replacing one stage leaves the draws
of all others alone and ablations are paired. Global generators are never touched.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


def stream(seed: int, round: int, stage: str) -> np.random.Generator:
    """The generator of one stage in one round; equal arguments give equal numbers, anywhere."""
    if seed < 0 or round < 0:
        raise ValueError(
            f"A seed and a round must be integers >= 0, got seed={seed} and round={round}; "
            "choose any non-negative seed."
        )
    key = int.from_bytes(hashlib.sha256(stage.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, round, key])))


@dataclass(frozen=True)
class Streams:
    """All generators of one round: ``streams("classifier")`` is the classifier's."""

    seed: int
    round: int

    def __call__(self, stage: str) -> np.random.Generator:
        """The generator of ``stage`` in this round, always from its beginning."""
        return stream(self.seed, self.round, stage)


def torch_seed(rng: np.random.Generator) -> int:
    """A seed for a private ``torch.Generator``, drawn from a numpy generator."""
    return int(rng.integers(2**63 - 1))
