"""Whether this user has agreed to run a command: a list of content hashes, one file per user.

What is hashed is what would run: the argv, the program and files beside the study file, and the
templates. A changed budget asks nothing; a changed script asks again. The list lies in
``$XDG_STATE_HOME/neuropareto/trusted``, by default below ``~/.local/state``.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from neuropareto.study.simulator import Simulator
from neuropareto.study.template import Template


def fingerprint(simulator: Simulator) -> str:
    """SHA-256 over everything that a run of this simulator would execute or read as script."""
    home = simulator.home
    named = [*simulator.files, simulator.command[0]]
    named += [a.removeprefix("{study}/") for a in simulator.command if a.startswith("{study}/")]
    contents = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name in sorted(set(named))
        if (path := home / name).is_file()
    }
    templates = {i.file: i.text for i in simulator.inputs if isinstance(i, Template)}
    document = json.dumps([simulator.command, contents, templates], sort_keys=True)
    return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()


def state_file() -> Path:
    """Where this user's list lies."""
    given = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    return base / "neuropareto" / "trusted"


def is_trusted(mark: str) -> bool:
    """Whether the user agreed to this fingerprint before."""
    try:
        lines = state_file().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split(" ", 1)[0] == mark for line in lines)


def remember(mark: str, where: Path) -> None:
    """Note that the user agreed; ``where`` is for people who read the list."""
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{mark} {str(where)!a}\n")
