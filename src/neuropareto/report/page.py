"""The page: sections of a report as HTML, every foreign text escaped.

The page holds no script and may load nothing (its Content-Security-Policy says so); pictures are
inside it. What a user or a program named or printed appears only through :func:`shown`.
"""

from __future__ import annotations

import html
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto import __version__
from neuropareto.report import figures
from neuropareto.report.importance import Importance, importance_of
from neuropareto.report.record import Predictions, Record, record_of_result
from neuropareto.report.style import STYLE
from neuropareto.result import Result

_MOST_ROWS, _MOST_REASONS = 30, 8


def write_report(
    result: Result, path: str | os.PathLike[str], *, record: Record | None = None
) -> Path:
    """Write one self-contained HTML page about a run; a study's ``record`` adds what its log knows.

    Raises ModuleNotFoundError, with the command that helps, if matplotlib is not installed.
    """
    known = record_of_result(result) if record is None else record
    parts = [_head(result, known)]
    if not len(result.F):
        parts.append(_section("Results", "<p>No evaluation has succeeded so far.</p>"))
    else:
        matter = importance_of(result.space.to_unit(result.X), result.F, seed=result.seed)
        parts += [
            _front(result, known),
            _history(result),
            _parallel(result, known, matter),
            _importance(result, known, matter),
            _uncertainty(known.predictions, known.objectives),
        ]
    parts += [_failures(known), _times(result, known), _foot(result)]
    title = shown(result.name or "run")
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
        f"{''.join(parts)}</main></body></html>\n"
    )
    Path(path).write_text(page, encoding="utf-8")
    return Path(path)


# -- pieces --


def shown(text: object, longest: int = 200) -> str:
    """Foreign text for HTML: escaped, bounded, without control characters."""
    words = str(text)
    if len(words) > longest:
        words = f"{words[:longest]}…"
    clean = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in words)
    return html.escape(clean, quote=True)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _section(title: str, body: str, lead: str = "") -> str:
    intro = f'<p class="lead">{lead}</p>' if lead else ""
    return f"<section><h2>{title}</h2>{intro}{body}</section>"


def _picture(draw: Callable[[], Any], alt: str) -> str:
    url, text = figures.image(draw, alt)
    return f'<img alt="{shown(text)}" src="{url}">'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


# -- sections --


def _head(result: Result, record: Record) -> str:
    failed = len(result.failures)
    cards = [
        (
            "evaluations",
            str(len(result.succeeded)),
            f"{failed} failed" if failed else "none failed",
        ),
        ("on the front", str(len(result.front)), f"of {len(result.F)} that succeeded"),
        ("hypervolume", _number(result.hypervolume), "at the reference point"),
        ("variables", str(result.space.d), f"{len(record.objectives)} objectives"),
    ]
    tiles = "".join(
        f'<div class="card"><div class="what">{what}</div><div class="big">{value}</div>'
        f'<div class="small">{more}</div></div>'
        for what, value, more in cards
    )
    goals = ", ".join(
        f"{direction} <b><bdi>{shown(name, 60)}</bdi></b>"
        for name, direction in zip(record.objectives, result.directions, strict=True)
    )
    state = ' <span class="flag">interrupted</span>' if result.interrupted else ""
    return (
        f"<header><h1><bdi>{shown(result.name or 'Run')}</bdi>{state}</h1>"
        f'<p class="lead">{goals}; by {shown(result.algorithm, 80)}, seed {result.seed}</p>'
        f'<div class="cards">{tiles}</div></header>'
    )


def _front(result: Result, record: Record) -> str:
    names = [shown(name, 60) for name in record.objectives]
    order = np.argsort(result.front.F[:, 0])
    rows = [
        [str(int(result.front.rows[i]) + 1), *map(_number, result.front.F[i])]
        for i in order[:_MOST_ROWS]
    ]
    more = len(order) - len(rows)
    table = _table(["evaluation", *names], rows) + (
        f"<p>… and {more} more.</p>" if more > 0 else ""
    )
    picture = _picture(lambda: figures.front(result, record.objectives), "The Pareto front")
    return _section(
        "The front",
        f"{picture}<details><summary>The points of the front</summary>{table}</details>",
        "Each orange point is a best compromise: no evaluation was better in every objective.",
    )


def _history(result: Result) -> str:
    point = ", ".join(_number(v) for v in result.reference_point)
    return _section(
        "Progress",
        _picture(lambda: figures.history(result), "Hypervolume over evaluations"),
        f"The hypervolume that the front dominates, measured from ({point}). A flat end means that "
        "more evaluations brought little.",
    )


def _parallel(result: Result, record: Record, matter: Importance | None) -> str:
    if not len(result.front):
        return ""
    chosen = matter.top(8) if matter is not None else list(range(min(8, result.space.d)))
    which = "the variables that matter most" if matter is not None else "the first variables"
    return _section(
        "What the front is made of",
        _picture(
            lambda: figures.parallel(result, record.objectives, chosen), "Parallel coordinates"
        ),
        f"Each coloured line is a point of the front, through {which} (left of the bar, over their "
        "bounds) and the objectives; grey lines are other evaluations.",
    )


def _importance(result: Result, record: Record, matter: Importance | None) -> str:
    if matter is None:
        return _section(
            "Which variables matter", "<p>Too few evaluations to say anything about it.</p>"
        )
    names = [shown(name, 60) for name in record.objectives]
    explained = ", ".join(
        f"<bdi>{name}</bdi> {max(0.0, 100 * r2):.0f} %"
        for name, r2 in zip(names, matter.r2, strict=True)
    )
    rows = [
        [
            f"<bdi>{shown(result.space.names[i], 60)}</bdi>",
            *(f"{100 * s:.1f} % <span class='small'>({c:+.2f})</span>"
              for s, c in zip(matter.share[i], matter.correlation[i], strict=True)),
        ]
        for i in matter.top(_MOST_ROWS)
    ]  # fmt: skip
    table = _table(["variable", *(f"{name} (rank correlation)" for name in names)], rows)
    picture = _picture(
        lambda: figures.importance(matter, record.objectives, result.space.names),
        "Importance of variables",
    )
    return _section(
        "Which variables matter",
        f"{picture}<details><summary>As a table</summary>{table}</details>",
        "How much a random forest's error on evaluations it has not seen grows when a variable is "
        "shuffled; + and − say in which direction the objective goes with it. The forest explains "
        f"this much of the variance: {explained}. Where that is little, so is what the bars say.",
    )


def _uncertainty(predictions: Predictions | None, names: Sequence[str]) -> str:
    if predictions is None:
        return _section("How sure the model was", "<p>This algorithm recorded no predictions.</p>")
    total = predictions.epistemic + predictions.aleatoric
    share = predictions.epistemic.mean(axis=0) / np.where(
        total.mean(axis=0) > 0, total.mean(axis=0), 1
    )
    rows = [
        [
            f"<bdi>{shown(name, 60)}</bdi>",
            *(f"{100 * predictions.coverage(p)[j]:.0f} %" for p in (0.5, 0.9)),
            f"{100 * share[j]:.0f} %",
        ]
        for j, name in enumerate(names)
    ]
    table = _table(
        ["objective", "observed within the 50 % interval", "within the 90 % interval",
         "part of the variance that data would reduce"], rows,
    )  # fmt: skip
    picture = _picture(lambda: figures.calibration(predictions, names), "Predicted and observed")
    return _section(
        "How sure the model was",
        f"{picture}{table}",
        f"What was predicted for {len(predictions)} points before they were evaluated, and what came "
        "out. A model that knows its limits has half of the points in its 50 % interval.",
    )


def _failures(record: Record) -> str:
    if not record.failures and not record.retries:
        return _section("Failures", "<p>None.</p>")
    final, again = (
        Counter(kind for kind, _ in part) for part in (record.failures, record.retries)
    )
    rows = [
        [shown(kind, 40), str(final[kind]), str(again[kind])]
        for kind in sorted({*final, *again}, key=lambda k: -final[k])
    ]
    reasons = "".join(
        f"<details><summary>{shown(kind, 40)}: {shown(_last_line(reason), 120)}</summary>"
        f"<pre>{shown(reason, 6000)}</pre></details>"
        for kind, reason in record.failures[-_MOST_REASONS:][::-1]
    )
    return _section(
        "Failures",
        _table(["class", "failed for good", "tried again"], rows) + reasons,
        "A failed point is never modelled as a result. The last reasons:" if reasons else "",
    )


def _last_line(reason: str) -> str:
    lines = [line for line in reason.partition("\n--- ")[0].splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def _times(result: Result, record: Record) -> str:
    proposing = np.array([float(note.get("seconds", 0.0)) for note in result.notes])
    words = []
    if len(proposing):
        words.append(
            f"{len(proposing)} proposals took {_number(float(proposing.sum()))} s in all, "
            f"{_number(float(np.median(proposing)))} s each in the middle."
        )
    picture = ""
    if len(record.seconds):
        words.append(
            f"An evaluation took {_number(float(np.median(record.seconds)))} s in the middle."
        )
        picture = _picture(lambda: figures.durations(record.seconds), "Durations of evaluations")
    return _section("Time", f"<p>{' '.join(words)}</p>{picture}") if words else ""


def _foot(result: Result) -> str:
    return (
        f"<footer>NeuroPareto {__version__} · seed {result.seed} · the numbers behind this page: "
        "<code>neuropareto export</code></footer>"
    )
