"""Shared by the tests of studies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def memory_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: syncing to a busy disk is not what is tested."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared, prefix="neuropareto-") as place:
        yield Path(place)
