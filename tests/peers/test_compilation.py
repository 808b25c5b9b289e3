"""The C++ kernel of BoTorch: a builder that was killed must not stop anybody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension
from botorch.acquisition.multi_objective import logei

from neuropareto.algorithm import Algorithm
from neuropareto.peers.compilation import VARIABLE, folder, guarded
from neuropareto.peers.egbo import EGBO
from neuropareto.peers.gp_hv import GPHV
from neuropareto.randomness import Streams
from neuropareto.testing.algorithm import example_archive


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_dead_builders_file_is_removed_and_the_setting_comes_back(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = folder() / "logei_fused_ext" / "lock"
    dead.parent.mkdir(parents=True)
    dead.touch()
    with guarded():
        assert not dead.exists() and os.environ[VARIABLE] == str(dead.parents[1])
    assert VARIABLE not in os.environ
    assert cache in folder().parents
    monkeypatch.setenv(VARIABLE, str(cache / "mine"))
    with guarded():
        assert os.environ[VARIABLE].startswith(str(cache / "mine"))
    assert os.environ[VARIABLE] == str(cache / "mine")


def test_a_builder_at_work_is_waited_for_and_a_killed_one_is_not(cache: Path) -> None:
    holds = (
        "import time; from neuropareto.peers.compilation import guarded\n"
        "with guarded(): print('holds', flush=True); time.sleep(600)"
    )
    waits = "from neuropareto.peers.compilation import guarded\nwith guarded(): print('through')"
    first = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    with first, first.stdout:
        assert first.stdout.readline() == "holds\n"
        second = subprocess.Popen([sys.executable, "-c", waits], stdout=subprocess.PIPE, text=True)
        with second:
            with pytest.raises(subprocess.TimeoutExpired):
                second.communicate(timeout=3)
            os.kill(first.pid, signal.SIGKILL)
            assert second.communicate(timeout=60)[0] == "through\n"


@pytest.mark.parametrize(
    "peer",
    [
        EGBO(batch=2, brood=4, samples=4, starts=2, iterations=1, joint=1, fit_iterations=2),
        GPHV(batch=2, samples=4, starts=4, iterations=1, fit_iterations=2),
    ],
    ids=["egbo", "gp-hv"],
)
def test_peers_build_in_the_guarded_folder_and_work_without_a_compiler(
    peer: Algorithm, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []

    def no_compiler(*_: Any, **__: Any) -> None:
        places.append(os.environ.get(VARIABLE))
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(torch.utils.cpp_extension, "load", no_compiler)
    monkeypatch.setattr(logei, "_load_attempted", False)
    monkeypatch.setattr(logei, "_C", None)
    archive = example_archive(12, 3, 2)
    none = archive.U[:0]
    proposal = peer.propose(archive, 2, pending=none, memory=None, rng=Streams(0, 1))
    assert proposal.U.shape == (2, 3)
    assert places == [str(folder())]


def test_a_home_that_cannot_be_written_to_is_no_hindrance(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "neuropareto").write_text("a file where a folder should be")
    with guarded():
        assert VARIABLE not in os.environ
