"""Figures that look into a fitted part: classifier, proxy, deep GP, coregional model.

Each takes the archive of a finished run (DTLZ2 with 100 variables unless the scale says otherwise),
fits one part of the algorithm to it as a round would, and compares with the truth, which a test
problem tells for free. Nothing here touches the run itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.bench import printed
from neuropareto.bench.figures.curves import subjects
from neuropareto.bench.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    NotYet,
    clean,
    new_figure,
    panels,
)
from neuropareto.bench.material import Material
from neuropareto.bench.record import Record
from neuropareto.randomness import stream
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuropareto.analysis.slices import Slice


def whole_records(material: Material, most: int) -> list[Record]:
    """Up to ``most`` records with all their points, ours before others, on the usual subject."""
    for task in subjects(material):
        names = material.records.algorithms([task])
        for name in sorted(names, key=lambda a: (not printed.own(a), a == "random", a)):
            entries = [e for e in material.records.of(task, name).values() if e.summary["whole"]]
            if entries:
                material.use(entries[:most])
                return [entry.read() for entry in entries[:most]]
    raise NotYet(
        "No record with all its points on DTLZ2 with 100 variables is there; run `neuropareto bench "
        "run wall-clock --seeds 1`, or choose others with --problems and --dimensions."
    )


def truth(record: Record, U: Array) -> Array:
    """The problem's own objectives at points of the unit cube, with the sense of minimisation."""
    from neuropareto.analysis.slices import truth as told

    return told(record.cell.task.instance(record.cell.seed), U)


def reliability(material: Material) -> Figure:
    """Confidence against accuracy of the classifier, raw, with each part, with both, and ours."""
    from neuropareto.analysis import classifier_calibration as study
    from neuropareto.analysis.runs import Run
    from neuropareto.calibration import ace, ece, mce
    from neuropareto.calibration import reliability as diagram

    styles = {
        study.RAW: (GREY, "D:"), study.SCALED: (GREEN, "^-."), study.DROPOUT: (ORANGE, "s--"),
        study.BOTH: (BLUE, "o-"), study.MATRIX: (PURPLE, "v-"),
    }  # fmt: skip
    records = whole_records(material, 3)
    predicted = [p for record in records for p in study.held_out(Run.of(record))]
    figure = new_figure(6.0, 6.6)
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color=BLACK, lw=0.9, label="perfect")
    for name, (color, line) in styles.items():
        mine = [p for p in predicted if p.variant == name]
        probability = np.concatenate([p.probability for p in mine])
        labels = np.concatenate([p.labels for p in mine])
        found = diagram(probability, labels, bins=10)
        errors = [f(probability, labels) for f in (ece, mce, ace)]
        ax.plot(
            found.confidence, found.accuracy, line, color=color, ms=6,
            label=f"{name}: ECE {errors[0]:.3f}, MCE {errors[1]:.3f}, ACE {errors[2]:.3f}",
        )  # fmt: skip
    known = ", ".join(
        f"{key.upper()} {printed.printed_text(key)['printed']}" for key in ("ece", "mce", "ace")
    )
    ax.plot([], [], " ", label=f"printed (temperature and dropout): {known}")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    task = records[0].cell.task
    clean(
        ax, title=f"Reliability of predicted rank classes, {task.name} {task.d}D",
        x="confidence", y="accuracy on held-out points",
    )  # fmt: skip
    figure.legend(frameon=False, fontsize=8, loc="outside upper left")
    return figure


def proxy_rank(material: Material) -> Figure:
    """Rank of candidates by the cheap proxy against the hypervolume they would really add."""
    from neuropareto.candidates import RankConditioned
    from neuropareto.classifier import RankClassifier, bounded_k
    from neuropareto.screening import margin
    from neuropareto.surrogate import FourierProxy

    record = whole_records(material, 1)[0]
    archive = record.archive(record.cell.task.n_initial)  # as the first round meets it
    rng = stream(record.cell.seed, 0, "proxy-rank")
    classifier = RankClassifier().fit(
        archive.U, archive.labels(bounded_k(5, len(archive))), warm=None, rng=rng
    )
    proxy = FourierProxy().fit(archive.U, archive.F, warm=None, rng=rng)
    belief = classifier.predict(archive.U)
    pool = RankConditioned(size=1000).generate(archive, belief, proxy, rng=rng)
    # Children that equal an evaluated point tie with the front and add nothing by construction.
    known = {u.tobytes() for u in archive.U}
    U = np.array([u for u in pool.U if u.tobytes() not in known])
    believed = proxy.posterior(U)
    gain = _contribution(truth(record, U), archive)
    figure = new_figure(10.0, 4.3)
    axes = panels(figure, 2, 2)
    scores = {
        "mean only": believed.mean,
        "mean + 0.5 sd": believed.mean + 0.5 * np.sqrt(believed.epistemic),
    }
    for ax, (name, F), color in zip(axes, scores.items(), (ORANGE, BLUE), strict=True):
        score = margin(F, archive)
        ranks = np.empty(len(score))
        ranks[np.argsort(score, kind="stable")] = np.arange(1, len(score) + 1)
        rho = float(spearmanr(-score, gain).statistic)
        ax.scatter(ranks, gain, s=10, color=color, alpha=0.55, lw=0)
        for low, high in pairwise((0, 10, 30, 100, 300, 1000)):
            inside = (ranks > low) & (ranks <= high)
            ends = [max(low, 0.8), high]
            ax.plot(ends, [gain[inside].mean()] * 2, color=BLACK, lw=1.8, label="average")
        ax.set_xscale("log")
        clean(ax, title=f"{name}: Spearman {rho:.2f}", x="rank by the proxy (1 is best)", y="")
    axes[0].set_ylabel("true hypervolume contribution")
    axes[1].sharey(axes[0])
    axes[0].legend(*(part[:1] for part in axes[0].get_legend_handles_labels()), frameon=False)
    helpful = int(np.sum(gain > 0))
    axes[1].text(
        0.98, 0.95, f"{helpful} of {len(gain)} candidates\nwould add anything", ha="right", va="top",
        transform=axes[1].transAxes, fontsize=8, color="#606060",
    )  # fmt: skip
    return figure


def _contribution(F: Array, archive: Archive) -> Array:
    """What each candidate would add to the archive's hypervolume at a point behind all of them."""
    reference = np.maximum(archive.F.max(axis=0), F.max(axis=0))
    return np.asarray(pareto.improvement(F, archive.front, reference))


def slice_(material: Material) -> Figure:
    """Mean and split uncertainty along one variable, through a point of the run's front."""
    from neuropareto.analysis.slices import slice_through
    from neuropareto.surrogate import DeepGP

    record = whole_records(material, 1)[0]
    task, seed = record.cell.task, record.cell.seed
    archive = record.archive()
    found = slice_through(
        archive, DeepGP(), rng=stream(seed, 0, "slice"), problem=task.instance(seed)
    )
    title = f"Deep GP on the {archive.n} evaluations of a run, {task.name} {task.d}D"
    return slice_figure(found, title)


def slice_figure(found: Slice, title: str) -> Figure:
    """A slice of the split uncertainty, drawn: bands above, standard deviations below."""
    t, believed, true, m = found.t, found.posterior, found.true, len(found.value)
    figure = new_figure(10.0, 4.6)
    axes = figure.subplots(2, m, sharex=True, height_ratios=[3, 1], squeeze=False)
    for j in range(m):
        ax, below = axes[0, j], axes[1, j]
        mean = believed.mean[:, j]
        epistemic, aleatoric = (np.sqrt(v[:, j]) for v in (believed.epistemic, believed.aleatoric))
        both = np.sqrt(epistemic**2 + aleatoric**2)
        ax.fill_between(
            t, mean - 2 * both, mean + 2 * both, color=ORANGE, alpha=0.3, lw=0,
            label="2 sd: epistemic and aleatoric",
        )  # fmt: skip
        ax.fill_between(
            t, mean - 2 * epistemic, mean + 2 * epistemic, color=SKY, alpha=0.55, lw=0,
            label="2 sd: epistemic",
        )  # fmt: skip
        ax.plot(t, mean, color=BLUE, lw=2, label="mean")
        if true is not None:
            ax.plot(t, true[:, j], color=BLACK, lw=1.2, ls="--", label="true")
        place = found.point[found.variable]
        ax.plot(place, found.value[j], "o", color=VERMILION, label="evaluated")
        clean(ax, title=f"Objective {j + 1}", x="", y=f"f{j + 1}")
        below.plot(t, epistemic, color=BLUE, lw=1.6, label="epistemic")
        below.plot(t, aleatoric, color=ORANGE, lw=1.6, ls="--", label="aleatoric")
        below.plot(
            found.seen, np.full(len(found.seen), 0.06), "|", color=GREY, ms=7,
            transform=below.get_xaxis_transform(), label="evaluations",
        )  # fmt: skip
        below.set_yscale("log")
        below.tick_params(axis="y", which="minor", labelleft=False)
        sizes = np.concatenate([epistemic, aleatoric])
        below.set_ylim(0.3 * sizes.min(), 6 * sizes.max())
        clean(below, title="", x=f"variable {found.variable + 1}", y="sd")
    axes[0, 0].legend(frameon=False, fontsize=7.5)
    axes[1, -1].legend(frameon=False, fontsize=7, ncols=3, loc="upper center")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def lmc(material: Material) -> Figure:
    """Predictive correlation of the objectives by the coregional deep GP, averaged over a run."""
    from neuropareto.surrogate import Coregional, DeepGP

    record = whole_records(material, 1)[0]
    archive = record.archive()
    model = Coregional(DeepGP()).fit(
        archive.U, archive.F, warm=None, rng=stream(record.cell.seed, 0, "lmc")
    )
    explored = archive.U[record.cell.task.n_initial :]
    R = model.correlation(explored if len(explored) else archive.U)
    figure = new_figure(5.4, 4.6)
    ax = figure.add_subplot()
    image = ax.imshow(R, vmin=-1, vmax=1, cmap="PuOr")
    names = [f"f{j + 1}" for j in range(archive.m)]
    ax.set_xticks(range(archive.m), names)
    ax.set_yticks(range(archive.m), names)
    for i in range(archive.m):
        for j in range(archive.m):
            color = "white" if abs(R[i, j]) > 0.6 else BLACK
            ax.text(j, i, f"{R[i, j]:.2f}", ha="center", va="center", color=color)
    figure.colorbar(image, label="correlation", shrink=0.85)
    limit = printed.printed_text("largest LMC correlation")["printed"]
    task = record.cell.task
    ax.set_title(
        f"Predictive correlation, {task.name} {task.d}D\n(printed: off the diagonal below {limit})",
        loc="left", fontsize=11, fontweight="bold",
    )  # fmt: skip
    return figure


def information_gain_figure(material: Material) -> Figure:
    """The dropout index against a deep ensemble on a problem in one variable."""
    from neuropareto.analysis.dropout_reference import figure, measured

    return figure(measured())
