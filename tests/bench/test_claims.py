from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from neuropareto.bench.claims import QUIET_SECONDS, claim
from neuropareto.study.owner import Owner


def test_only_one_can_hold_a_claim(tmp_path: Path) -> None:
    first = claim(tmp_path / "a.claim")
    assert first is not None
    assert claim(tmp_path / "a.claim") is None
    first.release()
    assert claim(tmp_path / "a.claim") is not None


def test_a_claim_creates_its_folder(tmp_path: Path) -> None:
    assert claim(tmp_path / "new" / "a.claim") is not None


def test_the_claim_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    code = (
        "import sys, time; from pathlib import Path; from neuropareto.bench.claims import claim\n"
        "assert claim(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "held\n"
        assert claim(path) is None
        process.kill()
        process.wait()
    assert claim(path) is not None
    assert [p.name for p in tmp_path.iterdir()] == ["a.claim"]


def test_elsewhere_only_time_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    elsewhere = replace(Owner.here(), host="another", boot="another")
    path.write_text(elsewhere.to_json(), encoding="utf-8")
    assert claim(path) is None
    long_ago = time.time() - QUIET_SECONDS - 10
    os.utime(path, (long_ago, long_ago))
    assert claim(path) is not None


def test_a_sign_of_life_renews_a_claim(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    held = claim(path)
    assert held is not None
    os.utime(path, (0, 0))
    held.renew()
    assert time.time() - path.stat().st_mtime < 60


def test_a_torn_claim_is_respected_for_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "a.claim"
    path.write_text("{", encoding="utf-8")
    assert claim(path) is None
    os.utime(path, (time.time() - 120, time.time() - 120))
    assert claim(path) is not None
