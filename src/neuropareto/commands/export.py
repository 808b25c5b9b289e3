"""neuropareto export: all evaluations of a study as CSV, JSON, Parquet or an Optuna storage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuropareto.commands.target import target_of
from neuropareto.study import exchange

FORMATS = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".sqlite3": "optuna"}


def main(argv: Sequence[str]) -> int:
    """Write a file."""
    parser = argparse.ArgumentParser(prog="neuropareto export", description=__doc__)
    parser.add_argument("study", type=Path, metavar="STUDY")
    parser.add_argument("output", metavar="OUTPUT", help="a file, or a storage URL for Optuna")
    parser.add_argument(
        "--format", choices=sorted(set(FORMATS.values())), help="default: by the file's ending"
    )
    options = parser.parse_args(argv)
    chosen = options.format or FORMATS.get(Path(options.output).suffix)
    if chosen is None:
        raise ValueError(
            f"The format of {options.output!r} is not clear from its ending; say --format csv, "
            "json, parquet or optuna."
        )
    target = target_of(options.study)
    target.check_output(Path(options.output.removeprefix("sqlite:///")))
    with target.view() as study:
        if chosen == "csv":
            exchange.export_csv(study, options.output)
        elif chosen == "json":
            exchange.export_json(study, options.output)
        elif chosen == "parquet":
            exchange.export_parquet(study, options.output)
        else:
            storage = options.output if "://" in options.output else f"sqlite:///{options.output}"
            exchange.export_optuna(study, storage, study.description.name or "study")
    return 0
