"""A script that limits itself and then becomes a program: python launch.py LIMITS PROGRAM ARGS...

LIMITS is ``resource:soft:hard,...``. Setting limits in the child between fork and exec is not safe
where threads run, and setting them from outside comes too late for a quick program. It imports
nothing of this package, so that it starts in milliseconds.
"""

from __future__ import annotations

import os
import resource
import signal
import sys


def main(limits: str, *argv: str) -> None:
    """Lower the limits, then execute ``argv``; exit status 127 if that fails."""
    for part in limits.split(","):
        kind, soft, hard = map(int, part.split(":"))
        present = resource.getrlimit(kind)[1]
        if present != resource.RLIM_INFINITY:  # a hard limit can be lowered, never raised
            soft, hard = min(soft, present), min(hard, present)
        resource.setrlimit(kind, (soft, hard))
    # Python ignores these two, and what is ignored stays ignored in the program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(*sys.argv[1:])
