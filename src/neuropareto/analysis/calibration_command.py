"""``neuropareto analyse calibration``: classifier, surrogate and the trends of the bound on runs."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from neuropareto.analysis import calibration_figures as figures
from neuropareto.analysis import calibration_trends as trends
from neuropareto.analysis import classifier_calibration as classifier
from neuropareto.analysis import surrogate_calibration as surrogate
from neuropareto.analysis.runs import Run, runs_of
from neuropareto.bench import printed
from neuropareto.bench.layout import FORMS, Table, render
from neuropareto.randomness import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = ("classifier", "forward", "surrogate", "trends")
Rows = Sequence[Mapping[str, object]]


def command(argv: Sequence[str]) -> int:
    """neuropareto analyse calibration: are probabilities and intervals what they claim to be?"""
    parser = argparse.ArgumentParser(
        prog="neuropareto analyse calibration",
        description="Calibration of the rank classifier and the surrogate on finished runs.",
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="record, folder of records or study"
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="what to measure (default: all)"
    )
    parser.add_argument("--algorithm", default="neuropareto", help="whose runs (neuropareto)")
    parser.add_argument("--seeds", type=int, help="only seeds below this number")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    parser.add_argument("--output", type=Path, help="folder for the raw results as CSV")
    parser.add_argument("--figures", type=Path, help="folder for pictures (PNG)")
    options = parser.parse_args(argv)
    runs = [
        run
        for path in options.runs
        for run in runs_of(path)
        if options.seeds is None or run.seed < options.seeds
    ]
    own = [run for run in runs if run.algorithm == options.algorithm]
    if not own:
        names = ", ".join(sorted({run.algorithm for run in runs}))
        raise ValueError(f"No run of {options.algorithm!r} is there; there are runs of {names}.")
    for part in options.part or PARTS:
        table, rows, picture = _measured(part, own, options.algorithm)
        print(render(table, options.format), flush=True)
        if options.output is not None:
            for name, lines in rows.items():
                _write(options.output / f"calibration-{name}.csv", lines)
        if options.figures is not None and picture is not None:
            options.figures.mkdir(parents=True, exist_ok=True)
            picture.savefig(options.figures / f"calibration-{part}.png", dpi=90)
    return 0


def _measured(
    part: str, runs: Sequence[Run], algorithm: str
) -> tuple[Table, Mapping[str, Rows], Figure | None]:
    """Table, raw results by file name, and picture of one part."""
    if part == "surrogate":
        found = surrogate.measured(runs)
        return surrogate.table(found), {part: _scores(found)}, figures.surrogate_figure(
            found, algorithm
        )  # fmt: skip
    if part == "trends":
        curves = measured_trends(runs)
        points = [
            {"quantity": t.name, "over": t.over, "x": x, "y": y}
            for t in curves
            for x, y in zip(t.x, t.y, strict=True)
        ]
        return trends.table(curves), {part: points}, figures.trends_figure(curves)
    targets = {key: str(printed.printed_text(key)["printed"]) for key in ("ece", "mce", "ace")}
    if part == "forward":
        told = classifier.measured([p for run in runs for p in classifier.forward(run)])
        title = "Calibration of the classifier on the points that are evaluated next"
        return classifier.table(told, title, targets), {part: _errors(told)}, None
    told = classifier.measured([p for run in runs for p in classifier.held_out(run)])
    title = "Calibration of the classifier on held-out points of archives"
    files = {part: _errors(told), "reliability": _bins(told), "tests": _tests(told)}
    return classifier.table(told, title, targets), files, figures.classifier_figure(told)


def measured_trends(runs: Sequence[Run]) -> list[trends.Trend]:
    """All trends; those on archives use the first seed of each task."""
    first = min(run.seed for run in runs)
    splits = [trends.split(run) for run in runs if run.seed == first]
    return [
        trends.temperature_rate(rng=stream(0, 0, "temperature-rate")),
        *trends.sampling(splits, (2, 4, 8, 16, 32, 64), 32),
        *trends.maximum(splits, (4, 8, 16, 32, 64, 128), 4),
        *trends.calibration_size(splits, (5, 10, 20, 40, 80, 150)),
    ]


def _errors(found: classifier.ClassifierCalibration) -> Rows:
    return [
        {"task": r.task, "seed": r.seed, "variant": r.variant, **asdict(r.errors)}
        for r in (*found.whole, *found.tasks, *found.runs)
    ]


def _bins(found: classifier.ClassifierCalibration) -> Rows:
    return [
        {
            "variant": name,
            "lower": float(d.lower[i]),
            "upper": float(d.upper[i]),
            "confidence": float(d.confidence[i]),
            "accuracy": float(d.accuracy[i]),
            "count": int(d.count[i]),
        }
        for name, d in found.diagrams.items()
        for i in range(len(d.count))
    ]


def _tests(found: classifier.ClassifierCalibration) -> Rows:
    return [
        {"ours": ours, **asdict(c)}
        for ours in (classifier.BOTH, classifier.MATRIX)
        for c in found.comparisons(ours)
    ]


def _scores(found: surrogate.SurrogateCalibration) -> Rows:
    return [
        {
            "task": key[0],
            "algorithm": key[1],
            "intervals": how,
            "n": s.n,
            **{
                f"within_{100 * level:.0f}": value
                for level, value in zip(surrogate.LEVELS.tolist(), s.coverage, strict=True)
            },
            "sharpness": s.sharpness,
            "rmse": s.rmse,
            "crps": s.crps,
            "nlpd": s.nlpd,
        }
        for how, all_ in (("as predicted", found.raw), ("recalibrated", found.corrected))
        for key, s in all_.items()
    ]


def _write(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
