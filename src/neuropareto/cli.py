"""The command line: ``neuropareto COMMAND ...``.

A command is a module with ``main(argv) -> exit code`` and one line in ``COMMANDS``; it is imported
only when it is called, so that ``status`` does not wait for torch. Errors of the user's making come
out as one sentence and exit code 1 (a study file: 2), without a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from neuropareto import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "init": (
        "neuropareto.commands.init",
        "write a study file and a small simulator to start from",
    ),
    "run": ("neuropareto.commands.run", "start or resume a study"),
    "status": ("neuropareto.commands.status", "how far a study is"),
    "ask": ("neuropareto.commands.ask", "the next points to evaluate by hand, as JSON"),
    "tell": ("neuropareto.commands.tell", "results of points, as JSON"),
    "import": ("neuropareto.commands.import_", "earlier evaluations as a warm start"),
    "export": ("neuropareto.commands.export", "all evaluations as CSV, JSON, Parquet or Optuna"),
    "report": ("neuropareto.commands.report", "one HTML page about a study"),
    "doctor": ("neuropareto.commands.doctor", "check a study, rescue a damaged one"),
    "demo": ("neuropareto.demo", "a complete run on the geothermal reservoir"),
    "tune": (
        "neuropareto.commands.tune",
        "find settings: grid search, or two stages on your problem",
    ),
    "bench": ("neuropareto.bench.commands", "campaigns, tables and figures of the paper"),
    "analyse": ("neuropareto.commands.analyse", "bound, calibration and timing, measured on runs"),
}

EX_TEMPFAIL = 75
"""The exit code by which batch systems understand "run me again"."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    options = _parser().parse_args(argv)
    module, _ = COMMANDS[options.command]
    try:
        code = int(importlib.import_module(module).main(options.arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        return told


def _told(error: Exception) -> int | None:
    """Say an error that the user can act on; None for one that is a defect."""
    from neuropareto.study.errors import StudyError
    from neuropareto.study.limits import TooManyFailuresError
    from neuropareto.study.toml_table import StudyFileError

    known = (StudyError, TooManyFailuresError, ValueError, OSError, ModuleNotFoundError)
    if not isinstance(error, known):
        return None
    print(f"neuropareto: {error}", file=sys.stderr)
    return 2 if isinstance(error, StudyFileError) else 1


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {what}" for name, (_, what) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="neuropareto",
        usage="neuropareto COMMAND ...",
        description="Pareto fronts of expensive black boxes with hundreds of variables.",
        epilog=f"commands:\n{lines}\n\n`neuropareto COMMAND --help` says more about each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"neuropareto {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
