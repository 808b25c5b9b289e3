"""neuropareto run: start a study, or go on with it, until its budget is spent.

Ends cleanly on Ctrl-C and SIGTERM with exit code 75, which batch systems take as "run me again".
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence

from neuropareto.cli import EX_TEMPFAIL
from neuropareto.commands.target import Target, add_study, add_take_over, target_of
from neuropareto.result import Result
from neuropareto.study.file import StudyFile
from neuropareto.study.runner import run
from neuropareto.study.simulator import Simulator
from neuropareto.study.trust import fingerprint, is_trusted, remember


def main(argv: Sequence[str]) -> int:
    """Run a study; 0 when the budget is spent, 75 when interrupted, 2 when not trusted."""
    parser = argparse.ArgumentParser(prog="neuropareto run", description=__doc__)
    add_study(parser)
    parser.add_argument(
        "--budget", type=int, metavar="N", help="evaluations in all, not in addition"
    )
    parser.add_argument("--workers", type=int, metavar="W", help="evaluations at the same time")
    parser.add_argument(
        "--batch", type=int, metavar="Q", help="propose Q points at a time, and wait"
    )
    parser.add_argument(
        "--engine", help="processes, threads, dask, dask:ADDRESS, ray or ray:ADDRESS"
    )
    parser.add_argument("--trust", action="store_true", help="run the command without asking")
    add_take_over(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(argv)
    target = target_of(options.study)
    file = target.file
    if file is None:
        raise ValueError("To run a study, name its study file (study.toml), not its database.")
    if file.simulator is None:
        raise ValueError(
            f"{file.path.name} has no [evaluation] table, so there is nothing to run; evaluate by "
            "hand with `neuropareto ask` and `neuropareto tell`."
        )
    if not (options.trust or is_trusted(fingerprint(file.simulator)) or _agreed(file)):
        return 2
    _remember(file)
    # The run passes a SIGTERM on when everything is in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_interrupted()))
    try:
        result = _run(target, file, options)
    except KeyboardInterrupt:
        return _interrupted()
    print(result, file=sys.stderr)
    if result.interrupted:
        return _interrupted()
    print(f"Look at it: neuropareto report {shlex.quote(str(options.study))}", file=sys.stderr)
    return 0


def _run(target: Target, file: StudyFile, options: argparse.Namespace) -> Result:
    assert file.simulator is not None
    with target.open(take_over=options.take_over) as study:
        return run(
            study,
            file.simulator,
            file.budget if options.budget is None else options.budget,
            workers=file.workers if options.workers is None else options.workers,
            engine=options.engine or file.engine,
            batch=file.batch if options.batch is None else options.batch,
            limits=file.limits,
            retries=file.retries,
            failure_stop=file.failure_stop,
            progress=not options.quiet,
        )


def _interrupted() -> int:
    print("Interrupted; nothing is lost: run it again to go on.", file=sys.stderr, flush=True)
    return EX_TEMPFAIL


def _remember(file: StudyFile) -> None:
    """Note the user's consent for the next time, where that is possible."""
    if file.simulator is None or is_trusted(fingerprint(file.simulator)):
        return
    try:
        remember(fingerprint(file.simulator), file.path)
    except OSError as error:
        print(f"(could not note that you trust this study: {error})", file=sys.stderr)


def _agreed(file: StudyFile) -> bool:
    """Show what would run and ask; without a terminal the answer is no."""
    assert file.simulator is not None
    print(_shown(file, file.simulator), file=sys.stderr)
    if not sys.stdin.isatty():
        print("Not run: read it, then say so with --trust.", file=sys.stderr)
        return False
    print("Run it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _shown(file: StudyFile, simulator: Simulator) -> str:
    brought = [*simulator.files, *(i.file for i in simulator.inputs)]
    files = f"\nIt finds these files there: {', '.join(map(ascii, brought))}." if brought else ""
    return (
        f"{ascii(str(file.path))[1:-1]} has not been run by you before. It wants to run this "
        f"program on your machine, up to {file.budget} times:\n\n    "
        f"{shlex.join(simulator.argv())}\n\nin directories of its own below "
        f"{ascii(str(simulator.runs))[1:-1]}.{files}"
    )
