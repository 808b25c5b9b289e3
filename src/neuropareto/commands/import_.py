"""neuropareto import: earlier evaluations as a warm start.

From a CSV file, another study's database, or an Optuna storage; the source is only read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuropareto.commands.target import add_take_over, target_of
from neuropareto.study import exchange
from neuropareto.study.gate import is_study


def main(argv: Sequence[str]) -> int:
    """Add evaluations; those that do not fit are named."""
    parser = argparse.ArgumentParser(prog="neuropareto import", description=__doc__)
    parser.add_argument("study", type=Path, metavar="STUDY")
    parser.add_argument(
        "source", metavar="SOURCE", help="a CSV file, a study's database, or an Optuna storage"
    )
    parser.add_argument("--name", help="which study of an Optuna storage")
    add_take_over(parser)
    options = parser.parse_args(argv)
    with target_of(options.study).open(take_over=options.take_over) as study:
        if Path(options.source).suffix == ".csv":
            found = exchange.import_csv(study, options.source)
        elif is_study(Path(options.source)):
            found = exchange.import_study(study, options.source)
        else:
            found = exchange.import_optuna(study, options.source, options.name)
    for line in found.skipped:
        print(f"left out: {line}", file=sys.stderr)
    print(f"{found.told} results and {found.failed} failures taken in", file=sys.stderr)
    return 0
