"""neuropareto status: how far a study is; does not disturb a run."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from neuropareto.commands.target import add_study, target_of
from neuropareto.study.events import Event, Failed, Retried, Started, plain
from neuropareto.study.study import Study


def main(argv: Sequence[str]) -> int:
    """Print the state of a study."""
    parser = argparse.ArgumentParser(prog="neuropareto status", description=__doc__)
    add_study(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    options = parser.parse_args(argv)
    target = target_of(options.study)
    if target.file is not None and not target.begun:
        state = {"begun": False, "budget": target.file.budget}
        print(json.dumps(state) if options.json else target.not_begun)
        return 0
    with target.view() as study:
        state = state_of(study, None if target.file is None else target.file.budget)
    print(json.dumps(plain(state), allow_nan=False) if options.json else _text(state))
    return 0


def state_of(study: Study, budget: int | None) -> dict[str, Any]:
    """The state of a study as JSON values."""
    result = study.result()
    failures: Counter[str] = Counter()
    running: dict[int, str] = {}
    last = 0.0
    for event in study.events():
        last = event.time
        if isinstance(event, Failed):
            failures[event.failure] += 1
        _follow(running, event)
    pending = set(study.pending.ids)
    return {
        "begun": True,
        "name": study.description.name,
        "algorithm": study.description.algorithm_name,
        "variables": study.description.space.d,
        "objectives": list(study.description.objectives),
        "budget": budget,
        "finished": study.finished,
        "imported": study.imported,
        "succeeded": len(result.F),
        "failed": dict(failures),
        "pending": len(pending),
        "under_way": {str(t): w for t, w in running.items() if t in pending},
        "front": len(result.front),
        "hypervolume": result.hypervolume,
        "reference_point": result.reference_point.tolist(),
        "last_event": last,
    }


def _follow(running: dict[int, str], event: Event) -> None:
    """Keep the account of attempts that were started and not ended."""
    if isinstance(event, Started):
        running[event.trial] = event.worker
    elif isinstance(event, Retried):
        running.pop(event.trial, None)


def _text(state: dict[str, Any]) -> str:
    failed = ", ".join(f"{n} {kind}" for kind, n in state["failed"].items())
    total = f" of {state['budget']}" if state["budget"] else ""
    lines = {
        "study": ascii(state["name"])[1:-1] or "(no name)",
        "algorithm": f"{state['algorithm']}, {state['variables']} variables",
        "objectives": ", ".join(ascii(name)[1:-1] for name in state["objectives"]),
        "evaluations": f"{state['finished']}{total}"
        + (f" and {state['imported']} imported" if state["imported"] else ""),
        "failed": f"{sum(state['failed'].values())}" + (f" ({failed})" if failed else ""),
        "pending": f"{state['pending']}, {len(state['under_way'])} of them under way",
        "front": f"{state['front']} points, hypervolume {state['hypervolume']:.6g}",
        "last event": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state["last_event"])),
    }
    return "\n".join(f"{key:>11}: {value}" for key, value in lines.items())
