"""BoTorch's C++ kernel, built where a killed builder stops nobody.

BoTorch compiles a kernel of its logarithmic hypervolume criteria when the first of them is made.
PyTorch guards the build with a file that exists while somebody builds; if that process is killed,
the file stays and every later process waits for ever. Here the build has a folder of its own under
a lock of the operating system, which ends with its process: whoever holds it knows that a guard
file found there is a dead one's. The folder belongs to one host, for the kernel is built for one
processor. Without a compiler BoTorch computes the same in Python.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no such lock there, BoTorch builds as it always does
    fcntl = None  # type: ignore[assignment]

VARIABLE = "TORCH_EXTENSIONS_DIR"


def folder() -> Path:
    """Where kernels are built for this host: in PyTorch's folder if one is set, else in the cache."""
    base = os.environ.get(VARIABLE) or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "neuropareto" / f"kernels-{platform.node() or 'here'}"


@contextmanager
def guarded() -> Iterator[None]:
    """Make BoTorch's criteria in here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to compile fused")
        place = folder()
        try:
            place.mkdir(parents=True, exist_ok=True)
            guard = (place / "guard").open("w")
        except OSError:  # a home that cannot be written to: PyTorch says what it makes of that
            yield
            return
        with guard:
            if fcntl is None:
                yield
                return
            fcntl.flock(guard, fcntl.LOCK_EX)
            for dead in place.glob("*/lock"):
                dead.unlink()
            before = os.environ.get(VARIABLE)
            os.environ[VARIABLE] = str(place)
            try:
                yield
            finally:
                if before is None:
                    del os.environ[VARIABLE]
                else:
                    os.environ[VARIABLE] = before
