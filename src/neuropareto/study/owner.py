"""Who writes to a study: identity of a process, and whether an earlier writer is still alive.

On the same machine the process table decides, and never the clock: process number and start time
together name one process for ever. A writer on another host (or in another container) cannot be
seen from here; then only the age of its last sign of life is known, and a person has to decide.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from neuropareto.study.errors import StudyDamaged

Verdict = Literal["dead", "alive", "elsewhere"]

QUIET_SECONDS = 120.0
"""A writer elsewhere that gave a sign of life this recently is taken to be alive."""


@dataclass(frozen=True)
class Owner:
    """One process: where it runs, its number and start time, and a token that is its alone."""

    host: str
    pid: int
    started: str
    boot: str
    namespace: str
    token: str
    claimed: float

    @classmethod
    def here(cls) -> Owner:
        """This process, with a fresh token."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            pid=pid,
            started=start_time(pid) or "",
            boot=_text("/proc/sys/kernel/random/boot_id"),
            namespace=_link("/proc/self/ns/pid"),
            token=secrets.token_hex(16),
            claimed=time.time(),
        )

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Owner:
        """Read :meth:`to_json`'s text; raises StudyDamaged if it is anything else."""
        try:
            fields = json.loads(text)
            words = {k: fields[k] for k in ("host", "started", "boot", "namespace", "token")}
            pid, claimed = fields["pid"], fields["claimed"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StudyDamaged(f"The owner entry is unreadable: {str(text)[:80]!r}.") from None
        right = all(isinstance(v, str) for v in words.values()) and isinstance(claimed, float)
        if not right or isinstance(pid, bool) or not isinstance(pid, int):
            raise StudyDamaged(f"The owner entry is unreadable: {str(text)[:80]!r}.")
        return cls(pid=pid, claimed=claimed, **words)

    def __str__(self) -> str:
        """Process and host, fit for a sentence."""
        return f"process {self.pid} on {self.host!r}"


def verdict(other: Owner, here: Owner, *, shared_disk: bool) -> Verdict:
    """Whether ``other`` lives, as far as ``here`` can see.

    A different boot of the same host means that it is dead, unless the disk is shared: then the
    same host name may belong to two machines.
    """
    if other.boot != here.boot:
        same = other.host == here.host and other.boot and here.boot and not shared_disk
        return "dead" if same else "elsewhere"
    if other.namespace != here.namespace or other.host != here.host or sys.platform == "win32":
        return "elsewhere"
    if not Path("/proc/self/stat").exists():
        return "alive" if _responds(other.pid) else "dead"
    started = start_time(other.pid)
    return "alive" if started is not None and started == other.started else "dead"


def start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot; None if it is gone or only a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name may hold spaces and brackets, so fields are counted from its last bracket.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _responds(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
