"""The hypervolume bound of observed runs: constants, errors by round, the bound, what chance adds.

Appendix "Full derivation of the finite-budget HV bound". Notation: R runs of T rounds. Expectations
are means over the runs. Nothing here asserts the paper's inequalities: each is held against the
measurement and the report says whether it was kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuropareto.analysis.accumulation import Growth, cumulative, growth
from neuropareto.analysis.bound import Bound, concentration, prefactor
from neuropareto.analysis.estimates import (
    ReplacementLoss,
    Sensitivity,
    replacement_loss,
    sensitivity,
)
from neuropareto.analysis.fidelity import Fidelity, measured
from neuropareto.analysis.martingale import MartingaleCheck, envelope, martingale_check
from neuropareto.analysis.observation import ObservedRun, described, read_all
from neuropareto.analysis.round_errors import RoundErrors, round_errors
from neuropareto.analysis.schedule import inducing_points
from neuropareto.bench.layout import FORMS, Table, items, number, render
from neuropareto.randomness import stream
from neuropareto.space import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_RHO = 0.01
"""The prefactor divides by rho; a median of 0 stands for "less than this"."""


@dataclass(frozen=True, eq=False)
class BoundReport:
    """Everything that the bound is made of, for R runs on one problem; ``errors`` (R lists of T)."""

    runs: tuple[ObservedRun, ...]
    sensitivity: Sensitivity
    loss: ReplacementLoss
    fidelity: Fidelity
    errors: tuple[tuple[RoundErrors, ...], ...]
    bound: Bound
    envelope: float
    reached: float
    martingale: MartingaleCheck | None
    growth: Growth | None
    delta: float

    @property
    def rounds(self) -> int:
        """T, the rounds that all runs have."""
        return self.bound.rounds

    def mean(self, name: str) -> Array:
        """The mean over the runs of one field of :class:`RoundErrors`, (T,)."""
        rows = [[float(getattr(e, name)) for e in run[: self.rounds]] for run in self.errors]
        return np.asarray(np.mean(rows, axis=0))

    @property
    def kept(self) -> bool:
        """Whether the mean final hypervolume is at least the bound."""
        return self.reached >= self.bound.value

    @property
    def oracle_reach(self) -> float:
        """HV_0 plus the oracle's gains of all rounds, which the paper's proof replaces by HV*.

        Each gain is counted from the archive of its round, so what the run left lying in one round
        is counted again in the next: the sum may be above HV* as well as below.
        """
        return self.bound.start + float(self.mean("oracle").sum())


def report(
    runs: Sequence[ObservedRun], *, seed: int = 0, noise_std: float = 0.0, delta: float = 0.05
) -> BoundReport:
    """Measure the bound on observed runs of one problem.

    ``noise_std`` is the sigma of the observations (0: the truth was told), ``delta`` the probability
    that is left to chance, used for every tail. Paper: Prop. hv_bound_app, Eq. hv_bound_refined_app.
    """
    lipschitz = sensitivity(runs, rng=stream(seed, 0, "sensitivity"))
    loss = replacement_loss(runs, rng=stream(seed, 0, "replacement-loss"))
    rho = measured(runs)
    errors = tuple(
        tuple(
            round_errors(o, run.reference, sensitivity=lipschitz.value, loss=loss.value)
            for o in run.rounds
        )
        for run in runs
    )
    T = min(len(run) for run in errors)
    total = np.mean([[e.total for e in run[:T]] for run in errors], axis=0)
    B = prefactor(
        sensitivity=lipschitz.value, diameter=sqrt(runs[0].d), m=runs[0].m,
        rho=min(max(rho.median, LEAST_RHO), 1.0), noise_std=noise_std, tail=delta,
    )  # fmt: skip
    volumes = np.array([run.volumes[: T + 1] for run in runs])
    c = envelope(
        sensitivity=lipschitz.value, worst=max(e.worst for run in errors for e in run),
        loss=loss.value, noise_std=noise_std, tail=delta,
    )  # fmt: skip
    return BoundReport(
        tuple(runs), lipschitz, loss, rho, errors,
        Bound(runs[0].best, float(volumes[:, 0].mean()), float(total.sum()), B, T),
        c,
        float(volumes[:, -1].mean()),
        martingale_check(np.diff(volumes, axis=1), c, delta=delta) if len(runs) > 1 else None,
        growth(total) if T > 2 else None,
        delta,
    )  # fmt: skip


def tables(found: BoundReport) -> tuple[Table, Table, Table]:
    """Constants, errors by round, and the bound with what is to be said about it."""
    return _constants(found), _rounds(found), _bound(found)


def _constants(found: BoundReport) -> Table:
    s, h, r = found.sensitivity, found.loss, found.fidelity
    rows = (
        items("L_H", number(s.value), f"95 % quantile of {s.samples}, {s.silent:.0%} of them 0"),
        items("", number(s.needed), f"would be needed: {s.violated:.1%} of real errors break L_H"),
        items("H_max", number(h.value), f"largest of {h.trials} replacements, mean {h.mean:.3g}"),
        items("rho", number(r.median, 3), f"median of {r.scenarios - r.empty} scenarios"),
        items("", number(r.rho, 3), f"of the {r.held_out} held-out ones"),
        items("D_X", number(sqrt(found.runs[0].d)), "diagonal of the unit cube"),
        items("B", number(found.bound.prefactor), "prefactor"),
        items("M_ind", str(inducing_points(found.rounds)), "T^(1/3), the paper's schedule"),
    )  # fmt: skip
    title = f"Constants of the hypervolume bound: {described(found.runs)}"
    return Table(title, ("constant", "value", "how"), rows)


def _rounds(found: BoundReport) -> Table:
    names = (
        "surrogate",
        "classifier",
        "acquisition",
        "misranked",
        "oracle",
        "realised",
        "deficit",
    )
    figures = [found.mean(name) for name in (*names, "total")]
    rows = [
        items(str(t + 1), *(number(float(part[t]), 3) for part in figures))
        for t in range(found.rounds)
    ]
    sums = [number(float(part.sum()), 3) for part in figures]
    sums[names.index("misranked")] = ""
    rows.append(items("sum", *sums))
    covered = [e.covered for run in found.errors for e in run]
    columns = (
        "round", "eps_gp", "eps_class", "eps_acq", "P(mis-rank)", "gain of\noracle",
        "gain", "deficit", "eps_total",
    )  # fmt: skip
    note = f"The deficit is within eps_total in {sum(covered)} of {len(covered)} rounds."
    return Table("Errors by round, means over runs", columns, tuple(rows), (note,))


def _bound(found: BoundReport) -> Table:
    b = found.bound
    chance = concentration(found.loss.value, b.rounds, found.delta)
    wide = concentration(found.envelope, b.rounds, found.delta)
    rows = [
        items("HV* of the true front", number(b.best)),
        items("sum of errors", number(b.errors)),
        items("B sqrt(2 log(2T) / T)", number(b.root)),
        items("the bound", number(b.value)),
        items("hypervolume at the start", number(b.start)),
        items("hypervolume reached (mean)", number(found.reached)),
        items("HV_0 + sum of the oracle's gains", number(found.oracle_reach)),
        items(f"H_max sqrt(2 T log(2 / {found.delta:g}))", number(chance)),
        items("the same with the envelope c", number(wide)),
    ]  # fmt: skip
    return Table("The bound", ("term", "value"), tuple(rows), _sentences(found))


def _sentences(found: BoundReport) -> tuple[str, ...]:
    said = [found.bound.verdict]
    if not found.bound.vacuous:
        said.append("The run kept it." if found.kept else "The run did NOT keep it.")
    gap = found.bound.best - found.oracle_reach
    said.append(
        f"The proof replaces HV_0 and the oracle's gains by HV*; measured, they are {abs(gap):.3g} "
        f"{'short of' if gap > 0 else 'beyond'} it."
    )
    check = found.martingale
    if check is None:
        said.append("Martingale check: needs at least two runs (other seeds of the same problem).")
    else:
        said.append(
            f"Martingale check over {check.runs} runs: largest increment {check.largest:.3g} "
            f"({'within' if check.premise else 'BEYOND'} c = {check.envelope:.3g}), largest |M_T| "
            f"{check.final:.3g} ({'within' if check.conclusion else 'BEYOND'} {check.limit:.3g}), "
            f"correlation of successive increments {check.correlation:.2f}."
        )
    if found.growth is not None:
        g = found.growth
        said.append(
            f"The cumulative error grows more like {g.law} (residuals: {g.logarithmic:.3g} for "
            f"{g.c10:.3g} log t + {g.c11:.3g}, {g.linear:.3g} for a line in t)."
        )
    return tuple(said)


def figure(found: BoundReport) -> Figure:
    """Errors by round, and what they add up to beside the room there is."""
    from neuropareto.bench.figures.style import BLUE, GREEN, GREY, ORANGE, clean, new_figure

    made = new_figure(9.0, 3.6)
    left, right = made.add_subplot(1, 2, 1), made.add_subplot(1, 2, 2)
    t, base = np.arange(1, found.rounds + 1), np.zeros(found.rounds)
    parts = (("surrogate", "eps_gp", BLUE), ("classifier", "eps_class", GREEN),
             ("acquisition", "eps_acq", ORANGE))  # fmt: skip
    for name, label, color in parts:
        values = found.mean(name)
        left.bar(t, values, bottom=base, color=color, label=label, width=0.75)
        base = base + values
    left.plot(t, found.mean("deficit"), "k.-", lw=1, label="deficit")
    left.legend(frameon=False, fontsize=8)
    clean(left, title="What each round loses", x="round t", y="hypervolume")
    right.plot(t, cumulative(found.mean("total")), color=BLUE, lw=2, label="sum of errors")
    right.plot(t, cumulative(found.mean("deficit")), color=GREY, lw=2, label="sum of deficits")
    room = found.bound.best - found.bound.start
    right.axhline(room, color=ORANGE, ls="--", label="HV* − HV at the start")
    right.legend(frameon=False, fontsize=8)
    right.set_ylim(bottom=0.0)
    clean(right, title="Added up (root term left out)", x="round t", y="hypervolume")
    return made


def command(argv: Sequence[str]) -> int:
    """``neuropareto analyse bound``: the bound of observed runs."""
    parser = argparse.ArgumentParser(prog="neuropareto analyse bound", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="files of `analyse observe`")
    parser.add_argument("--delta", type=float, default=0.05, help="left to chance (default: 0.05)")
    parser.add_argument("--noise-std", type=float, default=0.0, help="sigma (default: 0)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw it (.png, .svg)")
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")
    options = parser.parse_args(argv)
    found = report(read_all(options.runs), noise_std=options.noise_std, delta=options.delta)
    print("\n".join(render(part, options.format) for part in tables(found)), end="")
    if options.figure is not None:
        figure(found).savefig(options.figure)
    return 0
