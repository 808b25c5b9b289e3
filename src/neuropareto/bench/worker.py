"""A worker process: runs one cell after the other, as told on standard input, one thread.

Lines of JSON both ways. In: ``{"cell": {...}, "folder": "...", "checkpoint": 30}``. Out: ``{"event":
"round", "evaluations": n}`` while a cell goes on and then ``done``, ``skipped`` (the record is there
already), ``claimed`` (another process runs it) or ``failed`` with a traceback. When standard input
closes, because the runner ended or was killed, the worker ends at once; its checkpoints remain.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, TextIO

from neuropareto.bench.cell import Places, run_cell
from neuropareto.bench.claims import claim
from neuropareto.bench.grid import Cell
from neuropareto.bench.record import RecordDamaged, read_summary


def attempt(cell: Cell, folder: Path, checkpoint: float, told: Any) -> dict[str, Any]:
    """Claim and run a cell; the event that says how it ended."""
    places = Places(folder, cell)
    held = claim(places.claim)
    if held is None:
        return {"event": "claimed"}

    def lived(evaluations: int) -> None:
        held.renew()
        told({"event": "round", "evaluations": evaluations})

    try:
        if finished(places.record):
            return {"event": "skipped"}
        record = run_cell(cell, folder, checkpoint=checkpoint, told=lived)
    except Exception as error:  # a failed cell is reported and must not end the campaign
        report = failure(cell, error, traceback.format_exc())
        places.failure.parent.mkdir(parents=True, exist_ok=True)
        places.failure.write_text(json.dumps(report, indent=1), encoding="utf-8")
        return {"event": "failed", "error": report["error"]}
    finally:
        held.release()
    return {"event": "done", "seconds": record.seconds}


def finished(path: Path) -> bool:
    """Whether a readable record is there."""
    try:
        read_summary(path)
    except (FileNotFoundError, RecordDamaged):
        return False
    return True


def failure(cell: Cell, error: BaseException | str, trace: str) -> dict[str, Any]:
    """The account of a failed attempt, as it is written beside the record."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return {"cell": cell.as_dict(), "error": said, "traceback": trace}


def main() -> None:
    """Serve until standard input closes."""
    # Whatever an algorithm prints must not mix with the protocol.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, jobs), daemon=True).start()

    def tell(event: dict[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")

    while True:
        job = jobs.get()
        cell = Cell.of(job["cell"])
        tell(attempt(cell, Path(job["folder"]), float(job["checkpoint"]), tell))


def _listen(source: TextIO, jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in source:
        jobs.put(json.loads(line))
    os._exit(0)  # nobody is left to work for


if __name__ == "__main__":
    main()
