"""Figures that look into a fitted part: classifier, proxy, deep GP, coregional model.

Each takes the archive of a finished run (DTLZ2 with 100 variables unless the scale says otherwise),
fits one part of the algorithm to it as a round would, and compares with the truth, which a test
problem tells for free. Nothing here touches the run itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

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
from neuropareto.problem import signs
from neuropareto.randomness import stream
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    problem = record.cell.task.instance(record.cell.seed)
    outcome = problem.objective(problem.space.from_unit(U))
    F = outcome[0] if isinstance(outcome, tuple) else outcome
    return np.asarray(signs(problem.directions, problem.n_objectives) * F)


def reliability(material: Material) -> Figure:
    """Confidence against accuracy of the classifier with and without temperature and dropout."""
    from neuropareto.calibration import Temperature, Uncalibrated, ace, ece, mce
    from neuropareto.calibration import reliability as diagram
    from neuropareto.classifier import RankClassifier
    from neuropareto.dropout import AdaptiveDropout, NoDropout

    variants = {
        "temperature and MC dropout": (RankClassifier(), BLUE, "o-"),
        "MC dropout only": (RankClassifier(calibration=Uncalibrated()), ORANGE, "s--"),
        "temperature only": (RankClassifier(dropout=NoDropout()), GREEN, "^-."),
        "neither": (
            RankClassifier(dropout=NoDropout(), calibration=Uncalibrated()), GREY, "D:",
        ),
    }  # fmt: skip
    assert isinstance(variants["temperature and MC dropout"][0].dropout, AdaptiveDropout)
    assert isinstance(variants["temperature and MC dropout"][0].calibration, Temperature)
    records = whole_records(material, 3)
    figure = new_figure(6.0, 6.4)
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color=BLACK, lw=0.9, label="perfect")
    for name, (spec, color, line) in variants.items():
        probability, labels = _held_out(records, spec)
        found = diagram(probability, labels, bins=10)
        errors = [f(probability, labels) for f in (ece, mce, ace)]
        ax.plot(
            found.confidence, found.accuracy, line, color=color, ms=6,
            label=f"{name}: ECE {errors[0]:.3f}, MCE {errors[1]:.3f}, ACE {errors[2]:.3f}",
        )  # fmt: skip
    known = ", ".join(
        f"{key.upper()} {printed.printed_text(key)['printed']}" for key in ("ece", "mce", "ace")
    )
    ax.plot([], [], " ", label=f"printed (both): {known}")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    task = records[0].cell.task
    clean(
        ax, title=f"Reliability of predicted rank classes, {task.name} {task.d}D",
        x="confidence", y="accuracy on held-out points",
    )  # fmt: skip
    figure.legend(frameon=False, fontsize=8, loc="outside upper left")
    return figure


def _held_out(records: list[Record], spec: Any) -> tuple[Array, Any]:
    """Probabilities and labels of every point, each predicted by a classifier that never saw it."""
    from neuropareto.classifier import bounded_k

    probabilities, labels = [], []
    for record in records:
        archive = record.archive()
        k = bounded_k(spec.k, len(archive))
        y = archive.labels(k)
        place = stream(record.cell.seed, 0, "reliability").permutation(len(archive)) % 4
        for fold in range(4):
            train, test = place != fold, place == fold
            rng = stream(record.cell.seed, fold, "reliability-fit")
            fitted = spec.fit(archive.U[train], y[train], warm=None, rng=rng)
            probabilities.append(fitted.predict(archive.U[test]).probability)
            labels.append(y[test])
    return np.concatenate(probabilities), np.concatenate(labels)


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
    from neuropareto.surrogate import DeepGP

    record = whole_records(material, 1)[0]
    archive = record.archive()
    model = DeepGP().fit(archive.U, archive.F, warm=None, rng=stream(record.cell.seed, 0, "slice"))
    middle = archive.front_indices[len(archive.front_indices) // 2]
    variable = archive.d - 1
    t = np.linspace(0.0, 1.0, 161)
    U = np.repeat(archive.U[middle][None], len(t), axis=0)
    U[:, variable] = t
    believed, true = model.posterior(U), truth(record, U)
    figure = new_figure(10.0, 4.6)
    axes = figure.subplots(2, archive.m, sharex=True, height_ratios=[3, 1], squeeze=False)
    for j in range(archive.m):
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
        ax.plot(t, true[:, j], color=BLACK, lw=1.2, ls="--", label="true")
        ax.plot(
            archive.U[middle, variable],
            archive.F[middle, j],
            "o",
            color=VERMILION,
            label="evaluated",
        )
        clean(ax, title=f"Objective {j + 1}", x="", y=f"f{j + 1}")
        below.plot(t, epistemic, color=BLUE, lw=1.6, label="epistemic")
        below.plot(t, aleatoric, color=ORANGE, lw=1.6, ls="--", label="aleatoric")
        below.plot(
            archive.U[:, variable], np.full(archive.n, 0.06), "|", color=GREY, ms=7,
            transform=below.get_xaxis_transform(), label="evaluations",
        )  # fmt: skip
        below.set_yscale("log")
        below.tick_params(axis="y", which="minor", labelleft=False)
        sizes = np.concatenate([epistemic, aleatoric])
        below.set_ylim(0.3 * sizes.min(), 6 * sizes.max())
        clean(below, title="", x=f"variable {variable + 1}", y="sd")
    axes[0, 0].legend(frameon=False, fontsize=7.5)
    axes[1, -1].legend(frameon=False, fontsize=7, ncols=3, loc="upper center")
    task = record.cell.task
    figure.suptitle(
        f"Deep GP on the {archive.n} evaluations of a run, {task.name} {task.d}D", x=0.01, ha="left",
        fontsize=11, fontweight="bold",
    )  # fmt: skip
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
    """The dropout index against a deep ensemble on a problem in one variable.

    The reference is the information gain between label and network over networks that differ in
    their start only (a deep ensemble); the paper names no sampler.
    """
    from neuropareto.classifier import RankClassifier, information_gain
    from neuropareto.dropout import AdaptiveDropout, NoDropout

    rng = stream(0, 0, "information-gain")
    n, members = 90, 40
    u = np.clip(rng.choice([0.1, 0.28, 0.45, 0.88], n) + rng.normal(scale=0.04, size=n), 0, 1)
    labels = 1 + (np.sin(5.0 * u) > 0).astype(np.int64)  # nobody has looked between 0.5 and 0.8
    U, t = _waves(u), np.linspace(0, 1, 101)
    single = RankClassifier(k=2, dropout=NoDropout())
    networks = [
        single.fit(U, labels, warm=None, rng=stream(2, s, "member")) for s in range(members)
    ]
    reference = information_gain(
        np.stack([network.predict(_waves(t)).probability for network in networks], axis=1)
    )
    figure = new_figure(10.2, 4.4)
    left, right = panels(figure, 2, 2)
    right.plot(t, reference, color=PURPLE, ls="--", lw=1.8, label=f"ensemble of {members}")
    top = float(reference.max())
    for p, color, marker in ((AdaptiveDropout().p, BLUE, "o"), (0.5, ORANGE, "s")):
        spec = RankClassifier(k=2, dropout=AdaptiveDropout(p=p, s0=32, s_max=32))
        fitted = spec.fit(U, labels, warm=None, rng=stream(1, 0, "dropout"))
        index = fitted.predict(_waves(t)).epistemic
        r, bias = float(pearsonr(reference, index).statistic), float(np.mean(index - reference))
        left.plot(
            reference, index, marker, ms=4.5, ls="", color=color, alpha=0.8,
            label=f"p = {p:g}: Pearson {r:.2f}, bias {bias:+.3f}",
        )  # fmt: skip
        right.plot(t, index, color=color, lw=1.8, label=f"dropout, p = {p:g}")
        top = max(top, float(index.max()))
    left.plot([0, 1.05 * top], [0, 1.05 * top], color=BLACK, lw=0.9, label="agreement")
    clean(
        left, title="Dropout index against the reference",
        x=f"information gain over {members} networks (nats)", y="dropout index (nats)",
    )  # fmt: skip
    left.legend(frameon=False, fontsize=8, loc="upper left")
    for k, color in ((1, GREEN), (2, VERMILION)):
        inside = labels == k
        right.plot(
            u[inside], np.full(inside.sum(), 0.02), "|", ms=8, color=color,
            transform=right.get_xaxis_transform(), label=f"class {k}",
        )  # fmt: skip
    clean(right, title="Over the variable", x="u", y="information gain (nats)")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _waves(u: Array) -> Array:
    """A variable u (n,) as eight smooth features in [0, 1], (n, 8), for a network made for many."""
    k = np.arange(1, 5)
    angle = np.pi * k * u[:, None]
    return np.concatenate([0.5 + 0.5 * np.cos(angle), 0.5 + 0.5 * np.sin(angle)], axis=1)
