"""neuropareto doctor: check a study's database; save what is readable of a damaged one.

Exit code 0 if the study is intact (or everything was rescued), else 1. Nothing is ever changed in
the file that is examined.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuropareto.commands.target import add_study, target_of
from neuropareto.study.doctor import examine, rescue


def main(argv: Sequence[str]) -> int:
    """Examine, and rescue if wanted."""
    parser = argparse.ArgumentParser(prog="neuropareto doctor", description=__doc__)
    add_study(parser)
    parser.add_argument("--rescue", type=Path, metavar="NEW", help="write what is readable to NEW")
    options = parser.parse_args(argv)
    target = target_of(options.study)
    target.check_begun()
    store = target.store
    found = examine(store) if options.rescue is None else rescue(store, options.rescue)
    print(found)
    return 0 if found.healthy else 1
