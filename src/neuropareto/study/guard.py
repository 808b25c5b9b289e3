"""Kernel limits on a process, signals to its whole group, and what its end means.

Shared by the warden, which guards evaluations of this machine, and by the simulator, which guards
its program where no warden does. POSIX only.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
from pathlib import Path

from neuropareto.study.limits import Limits

# A process that ends by one of these was ended by somebody else: an operator, the batch system,
# the kernel short of memory. The point deserves another try.
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def address_space() -> int:
    """Bytes of address space this process uses now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def ceilings(limits: Limits, *, loaded: int = 0) -> dict[int, tuple[int, int]]:
    """Resource limits {resource: (soft, hard)}; ``loaded`` bytes of memory come on top.

    The hard CPU limit is later than the soft one, so that a program that ignores SIGXCPU dies too.
    """
    found = {resource.RLIMIT_CORE: (0, 0)}
    if limits.cpu is not None:
        soft = math.ceil(limits.cpu)
        found[resource.RLIMIT_CPU] = (soft, soft + max(1, math.ceil(limits.grace)))
    if limits.memory is not None:
        found[resource.RLIMIT_AS] = (int(limits.memory) + loaded,) * 2
    if limits.disk is not None:
        found[resource.RLIMIT_FSIZE] = (int(limits.disk),) * 2
    return found


def impose(limits: Limits) -> None:
    """Put this process and its future children under ``limits``."""
    for kind, (soft, hard) in ceilings(limits, loaded=address_space()).items():
        resource.setrlimit(kind, _below(soft, hard, resource.getrlimit(kind)[1]))


def launcher(limits: Limits) -> list[str]:
    """What to put before an argv so that the program runs under ``limits``; empty for none."""
    if not limits.any:
        return []
    words = ",".join(f"{kind}:{soft}:{hard}" for kind, (soft, hard) in ceilings(limits).items())
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")), words]


def _below(soft: int, hard: int, present: int) -> tuple[int, int]:
    """A process may lower its hard limit but not raise it."""
    if present == resource.RLIM_INFINITY:
        return soft, hard
    return min(soft, present), min(hard, present)


def signal_group(leader: int, number: int) -> bool:
    """Signal every process of the group; False if none is left."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False  # PermissionError: macOS says this of a group of zombies
    return True


def end_group(leader: int, grace: float) -> None:
    """SIGTERM to the group, then SIGKILL to what is left after ``grace`` seconds."""
    until = time.monotonic() + grace
    alive = signal_group(leader, signal.SIGTERM)
    while alive and time.monotonic() < until:
        time.sleep(0.02)
        alive = signal_group(leader, 0)
    signal_group(leader, signal.SIGKILL)


def meaning(status: int, limits: Limits, cpu: float, *, overdue: bool) -> tuple[str, str]:
    """Failure class and reason of a process that ended without a result.

    ``status`` is negative for a signal, else the exit status; ``cpu`` the CPU seconds it used.
    """
    if overdue:
        how = "by SIGKILL after it ignored SIGTERM" if -status == signal.SIGKILL else "by SIGTERM"
        return (
            "timeout",
            f"it ran longer than the wall-clock limit of {limits.wall:g} s; ended {how}",
        )
    if status >= 0:
        return "crash", f"the process ended with exit status {status} and no result"
    name = _signal_name(-status)
    if limits.cpu is not None and (
        -status == signal.SIGXCPU or (-status == signal.SIGKILL and cpu >= limits.cpu)
    ):
        return "timeout", f"it used more than the CPU limit of {limits.cpu:g} s ({name})"
    if -status == signal.SIGXFSZ:
        return "crash", f"it wrote a file beyond the disk limit of {limits.disk} bytes ({name})"
    if -status in FROM_OUTSIDE:
        return (
            "lost",
            f"the process was killed from outside by {name} (out of memory? an operator?)",
        )
    return "crash", f"the process died of {name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
