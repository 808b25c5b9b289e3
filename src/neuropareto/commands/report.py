"""neuropareto report: one self-contained HTML page about a study; does not disturb a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuropareto.commands.target import add_study, target_of
from neuropareto.report import record_of, write_report
from neuropareto.study.filesystem import replacing


def main(argv: Sequence[str]) -> int:
    """Write the page and print its path."""
    parser = argparse.ArgumentParser(prog="neuropareto report", description=__doc__)
    add_study(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: beside the database, .html"
    )
    options = parser.parse_args(argv)
    target = target_of(options.study)
    output = options.output or target.store.with_suffix(".html")
    target.check_output(output)
    with target.view() as study, replacing(output) as part:
        write_report(study.result(), part, record=record_of(study))
    print(output)
    return 0
