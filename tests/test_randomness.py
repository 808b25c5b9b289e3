from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from neuropareto.randomness import Streams, stream, torch_seed


def test_streams_depend_on_seed_round_and_stage_and_on_nothing_else() -> None:
    base = stream(1, 2, "classifier").random(4)
    assert np.array_equal(base, stream(1, 2, "classifier").random(4))
    for other in (stream(2, 2, "classifier"), stream(1, 3, "classifier"), stream(1, 2, "x")):
        assert not np.array_equal(base, other.random(4))


def test_a_stage_of_a_round_starts_anew_each_time() -> None:
    streams = Streams(5, 1)
    streams("other").random(100)
    assert np.array_equal(streams("a").random(3), Streams(5, 1)("a").random(3))


def test_streams_are_the_same_in_another_process() -> None:
    code = "from neuropareto.randomness import stream; print(stream(3, 4, 's').integers(10**9))"
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert int(there.stdout) == stream(3, 4, "s").integers(10**9)


def test_torch_seeds_follow_the_generator() -> None:
    assert torch_seed(stream(0, 0, "t")) == torch_seed(stream(0, 0, "t")) >= 0


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="integers >= 0"):
        stream(-1, 0, "s")
