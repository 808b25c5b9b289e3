"""Where a record comes from: commit, date, versions, machine."""

from __future__ import annotations

import platform
import subprocess
import time
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import neuropareto

_LIBRARIES = ("numpy", "scipy", "torch", "moocore", "scikit-learn", "botorch", "gpytorch", "pymoo")


def made_now() -> dict[str, Any]:
    """Commit, date and environment of this process, as JSON values."""
    return {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **_environment()}


@lru_cache(maxsize=1)
def _environment() -> dict[str, Any]:
    return {
        "commit": commit(),
        "version": neuropareto.__version__,
        "python": platform.python_version(),
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name))},
        "platform": platform.platform(),
        "processor": _processor(),
    }


def commit() -> str:
    """The commit of the package's own sources, "+" if they were changed since; "" outside git."""
    folder = Path(neuropareto.__file__).parent
    name = _git(folder, "rev-parse", "--short=12", "HEAD")
    changed = name and _git(folder, "status", "--porcelain", "--", str(folder))
    return f"{name}+" if changed else name


def _git(folder: Path, *arguments: str) -> str:
    try:
        run = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
