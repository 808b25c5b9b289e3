"""The dropout information gain against a high-fidelity reference, on a problem in one variable.

Section "On formula as information gain", Eq. dropout_mi, Fig. mi_comparison. The dropout index is the
information shared between label and network over dropout masks; the reference is the same quantity
over a large deep ensemble: E networks of the same architecture that differ in their start and in
which rows they saw (bootstrap). Notation: n training points, t test locations, K classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr

from neuropareto.bench.figures import style
from neuropareto.bench.layout import FORMS, Table, items, render
from neuropareto.classifier import RankClassifier, information_gain
from neuropareto.dropout import AdaptiveDropout, NoDropout
from neuropareto.randomness import stream
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PASSES = 128


@dataclass(frozen=True, eq=False)
class Toy:
    """Points on a line (n,) with a gap that nobody has looked into, and their classes (n,)."""

    u: Array
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Index:
    """The dropout index at the test locations (t,) for one dropout rate, against the reference.

    ``pearson`` and ``spearman`` are correlations over locations, ``bias`` the mean of index minus
    reference in nats, ``ratio`` the index's mean over the reference's.
    """

    p: float
    gain: Array
    pearson: float
    spearman: float
    bias: float
    ratio: float


@dataclass(frozen=True, eq=False)
class DropoutReference:
    """The reference over ``members`` networks at locations ``t`` (t,), and each dropout index.

    ``split_half`` is the correlation between the references of two halves of the ensemble: no
    index can be expected to agree better with a reference than the reference with itself.
    """

    toy: Toy
    t: Array
    reference: Array
    members: int
    split_half: float
    indices: tuple[Index, ...]


def toy(n: int = 90, *, rng: np.random.Generator) -> Toy:
    """n points around four places, hardly any in 0.55..0.75, where two classes have their border."""
    u = np.clip(rng.choice([0.1, 0.28, 0.45, 0.88], n) + rng.normal(scale=0.04, size=n), 0, 1)
    return Toy(u, 1 + (np.sin(5.0 * u) > 0).astype(np.int64))


def waves(u: Array) -> Array:
    """A variable u (n,) as eight smooth features in [0, 1], (n, 8), for a network made for many."""
    angle = np.pi * np.arange(1, 5) * u[:, None]
    return np.concatenate([0.5 + 0.5 * np.cos(angle), 0.5 + 0.5 * np.sin(angle)], axis=1)


def measured(
    members: int = 60, rates: Sequence[float] = (0.1, 0.3, 0.5), *, seed: int = 0
) -> DropoutReference:
    """The comparison; ``members`` >= 4 networks in the reference."""
    if members < 4:
        raise ValueError(f"The reference needs at least 4 networks, got {members}.")
    data = toy(rng=stream(seed, 0, "dropout-reference"))
    t = np.linspace(0, 1, 101)
    passes = _ensemble(data, t, members, seed)
    reference = information_gain(passes)
    halves = [information_gain(passes[:, i::2]) for i in (0, 1)]
    return DropoutReference(
        toy=data,
        t=t,
        reference=reference,
        members=members,
        split_half=float(pearsonr(*halves).statistic),
        indices=tuple(_index(p, data, t, reference, seed) for p in rates),
    )


def table(studies: Sequence[DropoutReference]) -> Table:
    """Correlation and bias of each dropout rate: the mean over studies (toys) and the range."""
    rows = []
    for i, first in enumerate(studies[0].indices):
        same = [study.indices[i] for study in studies]
        rows.append(
            items(
                f"{first.p:g}",
                _said([index.pearson for index in same], ".2f"),
                _said([index.spearman for index in same], ".2f"),
                _said([index.bias for index in same], "+.3f"),
                _said([index.ratio for index in same], ".2f"),
            )
        )
    level = np.mean([study.reference.mean() for study in studies])
    halves = np.mean([study.split_half for study in studies])
    return Table(
        "Dropout information gain against a deep ensemble",
        ("dropout p", "Pearson", "Spearman", "bias (nats)", "mean / reference"),
        tuple(rows),
        (
            f"Mean over {len(studies)} draws of the problem (smallest to largest). Reference: "
            f"{studies[0].members} networks, mean {level:.4f} nats; its two halves correlate with "
            f"{halves:.3f}. {PASSES} dropout passes.",
            "The paper prints 'high Pearson correlation and small bias' without figures.",
        ),
    )


def figure(found: DropoutReference) -> Figure:
    """Index over reference, and both over the variable. Paper: Fig. mi_comparison."""
    picture = style.new_figure(10.2, 4.4)
    left, right = style.panels(picture, 2, 2)
    top = float(found.reference.max())
    right.plot(
        found.t, found.reference, color=style.PURPLE, ls="--", lw=1.8,
        label=f"ensemble of {found.members}",
    )  # fmt: skip
    looks = zip((style.BLUE, style.GREEN, style.ORANGE), "o^s", strict=True)
    for index, (color, marker) in zip(found.indices, looks, strict=False):
        left.plot(
            found.reference, index.gain, marker, ms=4.5, color=color, alpha=0.8,
            label=f"p = {index.p:g}: Pearson {index.pearson:.2f}, bias {index.bias:+.3f}",
        )  # fmt: skip
        right.plot(found.t, index.gain, color=color, lw=1.8, label=f"dropout, p = {index.p:g}")
        top = max(top, float(index.gain.max()))
    left.plot([0, 1.05 * top], [0, 1.05 * top], color=style.BLACK, lw=0.9, label="agreement")
    style.clean(
        left, title="Dropout index against the reference",
        x=f"information gain over {found.members} networks (nats)", y="dropout index (nats)",
    )  # fmt: skip
    left.legend(frameon=False, fontsize=8, loc="upper left")
    for k, color in ((1, style.SKY), (2, style.VERMILION)):
        inside = found.toy.labels == k
        right.plot(
            found.toy.u[inside], np.full(inside.sum(), 0.02), "|", ms=8, color=color,
            transform=right.get_xaxis_transform(), label=f"class {k}",
        )  # fmt: skip
    style.clean(right, title="Over the variable", x="u", y="information gain (nats)")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    return picture


def command(argv: Sequence[str]) -> int:
    """neuropareto analyse dropout-reference: the dropout index against a deep ensemble."""
    parser = argparse.ArgumentParser(
        prog="neuropareto analyse dropout-reference",
        description="The dropout information gain against a deep ensemble on a 1-D problem.",
    )
    parser.add_argument("--members", type=int, default=60, help="networks in the reference (60)")
    parser.add_argument("--seeds", type=int, default=5, help="draws of the problem (5)")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    parser.add_argument("--output", type=Path, help="folder for the CSV of all curves")
    parser.add_argument("--figure", type=Path, help="PNG or SVG file to draw into")
    options = parser.parse_args(argv)
    studies = [measured(options.members, seed=seed) for seed in range(max(1, options.seeds))]
    found = studies[0]
    print(render(table(studies), options.format), end="")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        head = ["seed", "u", "reference", *(f"dropout_{i.p:g}" for i in found.indices)]
        rows = [
            np.stack(
                [np.full(len(f.t), seed), f.t, f.reference, *(i.gain for i in f.indices)], axis=1
            )
            for seed, f in enumerate(studies)
        ]
        path = options.output / "dropout-reference.csv"
        np.savetxt(
            path, np.concatenate(rows), "%.6g", ",", header=",".join(head), comments="",
            encoding="utf-8",
        )  # fmt: skip
    if options.figure is not None:
        options.figure.parent.mkdir(parents=True, exist_ok=True)
        figure(found).savefig(options.figure, dpi=90)
    return 0


def _said(values: Sequence[float], form: str) -> str:
    mean = format(float(np.mean(values)), form)
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):{form}} to {max(values):{form}})"


def _ensemble(data: Toy, t: Array, members: int, seed: int) -> Array:
    """Probabilities of each member at each location, (t, members, 2)."""
    single, U, T = RankClassifier(k=2, dropout=NoDropout()), waves(data.u), waves(t)
    found = []
    for s in range(members):
        rows = stream(seed, s, "bootstrap").integers(len(U), size=len(U))
        rng = stream(seed, s, "member")
        member = single.fit(U[rows], data.labels[rows], warm=None, rng=rng)
        found.append(member.predict(T).probability)
    return np.stack(found, axis=1)


def _index(p: float, data: Toy, t: Array, reference: Array, seed: int) -> Index:
    spec = RankClassifier(k=2, dropout=AdaptiveDropout(p=p, s0=PASSES, s_max=PASSES))
    fitted = spec.fit(
        waves(data.u), data.labels, warm=None, rng=stream(seed, 0, "dropout-reference-fit")
    )
    gain = fitted.predict(waves(t)).epistemic
    return Index(
        p=p,
        gain=gain,
        pearson=float(pearsonr(reference, gain).statistic),
        spearman=float(spearmanr(reference, gain).statistic),
        bias=float(np.mean(gain - reference)),
        ratio=float(gain.mean() / reference.mean()),
    )
