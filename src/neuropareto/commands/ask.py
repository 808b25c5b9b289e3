"""neuropareto ask: the next points to evaluate by hand, as JSON on standard output.

{"trials": [{"id": 12, "x": {"depth": 3.5, "steel": "S235"}}]}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from neuropareto.commands.target import add_study, add_take_over, target_of


def main(argv: Sequence[str]) -> int:
    """Print new points, or those still open."""
    parser = argparse.ArgumentParser(
        prog="neuropareto ask", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_study(parser)
    parser.add_argument("-n", "--number", type=int, default=1, help="how many (default: 1)")
    parser.add_argument(
        "--pending",
        action="store_true",
        help="nothing new: the points that still wait for results",
    )
    add_take_over(parser)
    options = parser.parse_args(argv)
    target = target_of(options.study)
    opened = target.view() if options.pending else target.open(take_over=options.take_over)
    with opened as study:
        batch = study.pending if options.pending else study.ask(options.number)
        space = study.description.space
        trials = [{"id": trial.id, "x": space.as_dict(trial.x)} for trial in batch]
    print(json.dumps({"trials": trials}, indent=1))
    return 0
