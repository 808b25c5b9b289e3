"""Does the classifier's information gain point at candidates that would reduce the IGD?

Appendix "Linking classifier epistemic signal to exploration utility". Notation: u (p,) information
gain of the candidates of a pool, IGD_pot (p,) the IGD that each would take away if it were
evaluated, known because the truth is. The paper claims u >= C_7 IGD_pot - eps_mi in expectation.
Since u >= 0, this holds for any C_7 once eps_mi >= C_7 max IGD_pot; so what is measured is the
rank correlation, and the largest C_7 that needs no eps_mi.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from neuropareto.analysis.observation import ObservedRound, ObservedRun, described, read_all
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.space import Array


@dataclass(frozen=True, eq=False)
class Link:
    """The link between signals of the pool and the IGD potential, round by round.

    ``information`` (T,) and ``promise`` (T,) are Spearman correlations of the information gain and
    of minus the expected rank class with the potential, NaN in a round in which one of them is
    constant. ``slope`` (T,) is the least squares slope of u on the potential, ``slack`` (T,) the
    smallest eps_mi with which the inequality holds at that slope (0 if the slope is not positive),
    ``idle`` (T,) the eps_mi from which on it holds for any u >= 0; ``free`` (T,) is the largest
    C_7 that needs no slack, and ``useful`` (T,) the share of candidates with a potential at all.
    """

    information: Array
    promise: Array
    slope: Array
    slack: Array
    idle: Array
    free: Array
    useful: Array

    @property
    def median(self) -> float:
        """The median correlation of information gain and potential; NaN if no round has one."""
        known = self.information[np.isfinite(self.information)]
        return float(np.median(known)) if len(known) else float("nan")

    @property
    def positive(self) -> tuple[int, int]:
        """Rounds with a positive correlation, and rounds that have one."""
        known = np.isfinite(self.information)
        return int((self.information[known] > 0).sum()), int(known.sum())

    @property
    def verdict(self) -> str:
        """In one sentence, whether the information gain pointed at improvement."""
        ahead, of = self.positive
        strength = "no" if not self.median > 0.1 else "weak" if self.median < 0.4 else "clear"
        return (
            f"Information gain shows {strength} positive link with the IGD reduction of candidates: "
            f"median Spearman correlation {self.median:.3f}, positive in {ahead} of {of} rounds."
        )


def potential(candidates: Array, known: Array, front: Array) -> Array:
    """IGD(known) - IGD(known + c) for each candidate c alone, (p,), never negative.

    = mean over front points s of max(min_i ||s - known_i|| - ||s - c||, 0). Paper: IGD_pot of
    Eq. mi_igd. ``candidates`` (p, m), ``known`` (n, m), ``front`` (s, m).
    """
    now = cdist(front, known).min(axis=1)
    gain = np.zeros(len(candidates))
    for start in range(0, len(candidates), 512):  # blocks bound the memory
        block = candidates[start : start + 512]
        gain[start : start + 512] = np.maximum(now[None] - cdist(block, front), 0.0).mean(axis=1)
    return gain


def spearman(a: Array, b: Array) -> float:
    """The rank correlation with ties averaged; NaN if either is constant."""
    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else float("nan")


def link(runs: Sequence[ObservedRun]) -> Link:
    """The link in every round of some runs. Paper: Eq. mi_igd."""
    rows = [_one(observed, run.truth) for run in runs for observed in run.rounds]
    return Link(*np.array(rows, dtype=np.float64).T)


def _one(observed: ObservedRound, front: Array) -> tuple[float, ...]:
    u, pot = observed.information, potential(observed.pool, observed.known, front)
    classes = np.arange(1, observed.probability.shape[1] + 1)
    centred = pot - pot.mean()
    spread = float(centred @ centred)
    slope = float(centred @ u) / spread if spread > 0 else 0.0
    useful = pot > 0
    return (
        spearman(u, pot),
        spearman(-(observed.probability @ classes), pot),
        slope,
        float(np.max(max(slope, 0.0) * pot - u).clip(0.0)),
        max(slope, 0.0) * float(pot.max()),
        float((u[useful] / pot[useful]).min()) if useful.any() else float("nan"),
        float(useful.mean()),
    )


def table(found: Link, title: str) -> Table:
    """One row a round."""
    columns = (
        "round", "useful\ncandidates", "Spearman\ninformation", "Spearman\npredicted rank",
        "slope", "eps_mi\nneeded", "eps_mi\nidle", "C_7\nfree",
    )  # fmt: skip
    rows = []
    for t in range(len(found.information)):
        figures = (
            found.information, found.promise, found.slope, found.slack, found.idle, found.free,
        )  # fmt: skip
        values = [number(float(part[t]), 3) for part in figures]
        rows.append(items(str(t + 1), f"{found.useful[t]:.0%}", *values))
    return Table(title, columns, tuple(rows), (found.verdict,))


def command(argv: Sequence[str]) -> int:
    """``neuropareto analyse information``: the link in observed runs."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse information", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="files of `analyse observe`")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    runs = read_all(options.runs)
    title = f"Information gain and IGD potential: {described(runs)}"
    print(render(table(link(runs), title), options.format), end="")
    return 0
