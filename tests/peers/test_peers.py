"""The table of peers: names, published rounds, one sentence for a missing library."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

import neuropareto.peers as peers
from neuropareto import algorithms
from neuropareto.algorithm import Batched
from neuropareto.algorithms import algorithm
from neuropareto.study.spec import build, describe

WITHOUT_BOTORCH = """
import sys
sys.modules.update({name: None for name in ("botorch", "gpytorch", "linear_operator")})
from neuropareto.algorithms import algorithm, algorithms
print(algorithm("k-rvea").batch, "gp-hv" in algorithms())
try:
    algorithm("gp-hv")
except ModuleNotFoundError as error:
    print(error)
"""


def test_all_thirteen_are_listed() -> None:
    assert len(peers.PEERS) == 13 and set(peers.PEERS) <= set(algorithms())


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_is_a_frozen_spec_with_a_round_of_its_own(name: str) -> None:
    spec = algorithm(name)
    assert isinstance(spec, Batched) and spec.batch >= 1
    assert dataclasses.is_dataclass(spec)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.batch = 2
    assert (type(spec).__doc__ or "").strip()


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_study_can_store_it(name: str) -> None:
    spec = algorithm(name)
    assert build(describe(spec)) == spec


def test_classes_are_found_by_name() -> None:
    assert type(algorithm("k-rvea")) is peers.KRVEA
    assert {"KRVEA", "MORBO"} <= set(dir(peers))
    with pytest.raises(AttributeError, match="it has GPEI"):
        _ = peers.NOBODY


def test_a_missing_library_is_one_sentence_and_stops_nobody_else() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_BOTORCH], capture_output=True, text=True, check=True
    )
    works, said = run.stdout.strip().splitlines()
    assert works == "5 True"
    assert said == "GPHV needs BoTorch, which is not installed: pip install 'neuropareto[peers]'."
