"""How well calibrated the rank classifier is on the archives of runs, part by part.

Sections "Empirical calibration validation" and "Comparison to single-method baselines". Every point
of an archive is predicted by a classifier that never saw it (four stratified folds); *forward*, the
points that a round is about to evaluate are predicted from the archive before it, which is what the
classifier is asked in a run. Notation: n points, K classes. Classes are those of the whole archive
(D-8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuropareto.analysis.calibration_errors import Errors, errors
from neuropareto.analysis.runs import Run
from neuropareto.archive import Archive
from neuropareto.bench.layout import Table, items, number
from neuropareto.bench.statistics import holm, signed_rank
from neuropareto.calibration import Labels, Reliability, Tempered, reliability
from neuropareto.classifier import (
    FittedRankClassifier,
    MatrixScaling,
    NoDropout,
    RankClassifier,
    bounded_k,
)
from neuropareto.randomness import stream
from neuropareto.space import Array

RAW, SCALED, DROPOUT, BOTH, MATRIX = (
    "raw", "temperature", "dropout", "temperature and dropout", "matrix and dropout",
)  # fmt: skip
VARIANTS = (RAW, SCALED, DROPOUT, BOTH, MATRIX)
"""The paper's four, the last of them its own choice, and ours with an affine map of the logits."""
FOLDS = 4


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of one run by one variant: probability (n, K), labels (n,)."""

    task: str
    seed: int
    variant: str
    probability: Array
    labels: Labels


def fitted_variants(
    U: Array, labels: Labels, *, seed: int, fold: int
) -> Mapping[str, FittedRankClassifier]:
    """All variants fitted to points (n, d) and classes (n,); what they share is trained once.

    Leaving out the temperature changes nothing but the last division, so the raw variants are the
    scaled ones with T = 1.
    """
    y = np.asarray(labels, dtype=np.int64)

    def fit(spec: RankClassifier) -> FittedRankClassifier:
        return spec.fit(U, y, warm=None, rng=stream(seed, fold, "calibration-fit"))

    plain, both = fit(RankClassifier(dropout=NoDropout())), fit(RankClassifier())
    return {
        RAW: _unscaled(plain),
        SCALED: plain,
        DROPOUT: _unscaled(both),
        BOTH: both,
        MATRIX: fit(RankClassifier(calibration=MatrixScaling())),
    }


def stratified(labels: Labels, folds: int, *, rng: np.random.Generator) -> Labels:
    """A fold 0..folds-1 for every row, (n,), with equally many rows of each class in all (+-1).

    An archive has fixed numbers of each class. Folds drawn blindly give the test rows least of what
    the training rows have most of, so that even a classifier which only knows the shares looks sure
    of the wrong class.
    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels)) % folds
    return place


def held_out(run: Run) -> list[Predicted]:
    """Each point of the run's archive, predicted by classifiers that never saw it; one a variant."""
    archive = _archive(run)
    y = archive.labels(bounded_k(RankClassifier().k, len(archive)))
    place = stratified(y, FOLDS, rng=stream(run.seed, 0, "calibration-folds"))
    found = {name: np.empty((len(archive), RankClassifier().k)) for name in VARIANTS}
    for fold in range(FOLDS):
        train, test = place != fold, place == fold
        models = fitted_variants(archive.U[train], y[train], seed=run.seed, fold=fold)
        for name, model in models.items():
            found[name][test] = model.predict(archive.U[test]).probability
    return [Predicted(run.task, run.seed, name, p, y) for name, p in found.items()]


def forward(run: Run, every: int = 4) -> list[Predicted]:
    """Points of every ``every``-th round, predicted from the archive before that round.

    A point's label is its class in the archive that it has joined: ranks are relative, so this
    includes the shift of the classes themselves. Empty for a run without noted rounds.
    """
    archive = _archive(run)
    starts = [int(note["evaluations"]) for note in run.notes if "stage_seconds" in note]
    if not starts:
        return []
    ends = [*starts[1:], len(archive)]
    found: dict[str, list[Array]] = {name: [] for name in VARIANTS}
    labels: list[Labels] = []
    for start, end in list(zip(starts, ends, strict=True))[::every]:
        k = bounded_k(RankClassifier().k, start)
        before = Archive.of(archive.U[:start], archive.F[:start], _rows(archive, start))
        after = Archive.of(archive.U[:end], archive.F[:end], _rows(archive, end))
        models = fitted_variants(before.U, before.labels(k), seed=run.seed, fold=start)
        for name, model in models.items():
            found[name].append(model.predict(archive.U[start:end]).probability)
        labels.append(after.labels(k)[start:])
    y = np.concatenate(labels)
    return [Predicted(run.task, run.seed, n, np.concatenate(p), y) for n, p in found.items()]


@dataclass(frozen=True)
class Row:
    """The errors of one variant on one run, one task ("all seeds": seed -1) or everything."""

    task: str
    seed: int
    variant: str
    errors: Errors


@dataclass(frozen=True)
class Comparison:
    """A paired Wilcoxon signed-rank test of the per-run errors of two variants.

    ``difference`` is the median of other minus ours; ``p`` is corrected by Holm over the tests.
    """

    measure: str
    other: str
    pairs: int
    difference: float
    p: float


@dataclass(frozen=True, eq=False)
class ClassifierCalibration:
    """Errors by run, by task over all seeds, over everything; diagrams; tests against a variant."""

    runs: tuple[Row, ...]
    tasks: tuple[Row, ...]
    whole: tuple[Row, ...]
    diagrams: Mapping[str, Reliability]

    def comparisons(self, ours: str = BOTH) -> tuple[Comparison, ...]:
        """Each other variant against ``ours`` over runs, for ECE, MCE, ACE and the likelihood."""
        by = {(row.variant, row.task, row.seed): row.errors for row in self.runs}
        keys = sorted({(row.task, row.seed) for row in self.runs})
        found: list[Comparison] = []
        for measure in ("ece", "mce", "ace", "nll"):
            mine = _column(by, ours, keys, measure)
            for other in VARIANTS:
                if other != ours:
                    theirs = _column(by, other, keys, measure)
                    middle = float(np.median(theirs - mine))
                    p = signed_rank(theirs, mine)
                    found.append(Comparison(measure, other, len(keys), middle, p))
        corrected = holm(np.array([c.p for c in found]))
        return tuple(replace(c, p=float(p)) for c, p in zip(found, corrected, strict=True))


def measured(
    predictions: Sequence[Predicted], *, seed: int = 0, draws: int = 100
) -> ClassifierCalibration:
    """The calibration of predictions, floors from ``draws`` resamplings; ValueError for none."""
    if not predictions:
        raise ValueError(
            "No predictions: the runs must hold all their points and at least one round."
        )

    def row(task: str, number_: int, variant: str) -> Row:
        chosen = [
            p
            for p in predictions
            if p.variant == variant and task in (p.task, "all") and number_ in (p.seed, -1)
        ]
        P = np.concatenate([p.probability for p in chosen])
        y = np.concatenate([p.labels for p in chosen])
        rng = stream(seed, number_ + 1, f"floor {task} {variant}")
        return Row(task, number_, variant, errors(P, y, rng=rng, draws=draws))

    keys = list(dict.fromkeys((p.task, p.seed) for p in predictions))
    names = [v for v in VARIANTS if any(p.variant == v for p in predictions)]
    return ClassifierCalibration(
        runs=tuple(row(task, s, name) for task, s in keys for name in names),
        tasks=tuple(row(task, -1, n) for task in dict.fromkeys(t for t, _ in keys) for n in names),
        whole=tuple(row("all", -1, name) for name in names),
        diagrams={name: _diagram(predictions, name) for name in names},
    )


def table(found: ClassifierCalibration, title: str, targets: Mapping[str, str]) -> Table:
    """Errors over everything and by task, each beside its floor; targets are the paper's."""
    rows = []
    for row in (*found.whole, *found.tasks):
        e = row.errors
        cells = [f"{getattr(e, m):.3f} ({getattr(e, m + '_floor'):.3f})" for m in targets]
        mean = _mean_ece([r for r in found.runs if r.variant == row.variant], row.task)
        rows.append(
            items(
                row.task, row.variant, e.n, f"{e.accuracy:.2f}", *cells, f"{e.chance:.2f}",
                f"{e.nll:.3f}", mean,
            )
        )  # fmt: skip
    notes = [
        "In parentheses the floor: what a perfectly calibrated classifier shows with these "
        "confidences and as many points. 'chance' is the share of perfect samples with at least "
        "this ECE; 'a run' is the mean ECE of single runs and its floor.",
        "The paper prints " + ", ".join(f"{k.upper()} {v}" for k, v in targets.items()) + ".",
    ]
    for c in found.comparisons():
        if c.measure in ("ece", "nll"):
            notes.append(
                f"{c.measure.upper()} of '{c.other}' minus '{BOTH}', median over {c.pairs} runs: "
                f"{c.difference:+.3f} (signed-rank, Holm: p = {number(c.p, 2)})."
            )
    columns = (
        "task", "variant", "n", "accuracy", *(m.upper() for m in targets), "chance", "NLL",
        "ECE\na run",
    )  # fmt: skip
    return Table(title, columns, tuple(rows), tuple(notes))


def _mean_ece(rows: Sequence[Row], task: str) -> str:
    chosen = [r.errors for r in rows if task in (r.task, "all")]
    value, floor = (float(np.mean([getattr(e, m) for e in chosen])) for m in ("ece", "ece_floor"))
    return f"{value:.3f} ({floor:.3f})"


def _column(
    by: Mapping[tuple[str, str, int], Errors],
    variant: str,
    keys: Sequence[tuple[str, int]],
    measure: str,
) -> Array:
    return np.array([getattr(by[(variant, *key)], measure) for key in keys])


def _diagram(predictions: Sequence[Predicted], variant: str) -> Reliability:
    chosen: Iterator[Predicted] = (p for p in predictions if p.variant == variant)
    pairs = [(p.probability, p.labels) for p in chosen]
    return reliability(
        np.concatenate([p for p, _ in pairs]), np.concatenate([y for _, y in pairs])
    )


def _unscaled(model: FittedRankClassifier) -> FittedRankClassifier:
    return replace(model, scaling=Tempered(1.0), _cache={})


def _archive(run: Run) -> Archive:
    if run.archive is None or not len(run.archive):
        raise ValueError(
            f"The run of {run.algorithm} on {run.task}, seed {run.seed}, does not hold its points; "
            "choose runs with all of them."
        )
    return run.archive


def _rows(archive: Archive, n: int) -> Array | None:
    return archive.G[:n] if archive.c else None
