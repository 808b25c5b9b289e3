"""The two-stage re-tuning protocol, on a problem whose evaluations are dear.

Appendix "Practicality of Hyper-Parameter Re-Tuning". All trials share the start design's archive and
random streams: a trial fits its configuration's models there, proposes ONE point, and has it
evaluated; equal proposals share one evaluation. Every pilot evaluation is fresh for every
configuration's surrogate, so all of them are judged on all. Stage 1 tries at most 15 transferred
configurations; stage 2, if the validation signal is weak, at most 9 random ones around the best.
Nothing is wasted: start design and pilot are ordinary evaluations of the run that follows.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from neuropareto.analysis import judging
from neuropareto.analysis.cost import Cost, allowed
from neuropareto.analysis.journal import Journal
from neuropareto.analysis.knobs import Configuration, nearby, present
from neuropareto.analysis.tuned import Safeguard, Tuned
from neuropareto.archive import Archive
from neuropareto.neuropareto import NeuroPareto
from neuropareto.optimizer import start_design_size
from neuropareto.problem import Problem, signs
from neuropareto.randomness import Streams, stream
from neuropareto.space import Array
from neuropareto.study.spec import describe
from neuropareto.surrogate.contract import Fitted

JOURNAL = "journal.jsonl"
REFINE = ("auto", "always", "never")
PASSES = (4, 6, 8)
"""Values of S_0 that the refinement tries; the paper says 4 to 8."""
WEIGHTS = (0.25, 0.5, 1.0)
"""Values of lambda_div that the refinement tries: half, all and double of the default."""


@dataclass(frozen=True)
class Retuning:
    """Settings of the protocol.

    ``budget`` is the lifetime in evaluations, start design and pilot included. ``transferred`` are
    the candidates, best first; only as many as :func:`~neuropareto.analysis.cost.allowed` says are
    tried. ``threshold`` is the validation signal (rank correlation of predictions and held-out
    evaluations) below which "auto" refines. ``source`` is (objectives, budget) of the tasks on
    which the candidates did well, for the safeguard of continuity.
    """

    pipeline: NeuroPareto
    transferred: tuple[Configuration, ...]
    budget: int
    seed: int = 0
    n_initial: int | None = None
    refine: str = "auto"
    threshold: float = 0.5
    source: tuple[int, int] = (2, 300)

    def __post_init__(self) -> None:
        if not self.transferred:
            raise ValueError("Re-tuning needs at least one transferred configuration.")
        if self.refine not in REFINE:
            raise ValueError(f"refine must be one of {', '.join(REFINE)}, got {self.refine!r}.")
        if not -1 <= self.threshold <= 1:
            raise ValueError(f"The threshold is a correlation, -1 to 1, got {self.threshold}.")

    def start_size(self, d: int) -> int:
        """Evaluations of the start design: the usual ones unless said otherwise."""
        return start_design_size(d, self.budget) if self.n_initial is None else self.n_initial


def retune(
    plan: Retuning,
    problem: Problem,
    folder: Path,
    *,
    told: Callable[[str], None] = lambda text: None,
) -> Tuned:
    """Run what is left of the protocol on a problem; returns the configuration and its evidence.

    The journal lies in ``folder`` with every evaluation in it. ValueError if it belongs to another
    job, if the budget does not reach beyond the start design, or if hardly any evaluation succeeds.
    """
    most, start = allowed(plan.budget), plan.start_size(problem.d)
    if start + most.total > plan.budget or start < 4:
        raise ValueError(
            f"A budget of {plan.budget} must hold the start design ({start}, at least 4) and the "
            f"pilot ({most.total}); raise it or lower n_initial."
        )
    journal = Journal(folder / JOURNAL, _about(plan, problem))
    pilot = _Pilot(plan, problem, journal, told, _started(plan, problem, journal, start, told))
    trials = [pilot.trial(c, "transfer") for c in plan.transferred[: most.transfer]]
    verdict = pilot.judged(trials)
    signal = pilot.signal(verdict.best)
    if plan.refine == "always" or (plan.refine == "auto" and signal < plan.threshold):
        around = refinements(
            verdict.best, [t.configuration for t in trials], plan.pipeline, most.refine,
            rng=stream(plan.seed, 0, "refinement"),
        )  # fmt: skip
        trials += [pilot.trial(c, "refine") for c in around]
        verdict = pilot.judged(trials)
    return _finished(plan, problem, folder, verdict, signal, pilot.cost)


def evaluations(folder: Path) -> tuple[Array, Array, Array]:
    """Every successful evaluation of a tuning, start design first: X (n, d), F (n, m), G (n, c).

    In the user's units and directions, for ``optimizer.tell(X, F)`` or ``study.tell(X, F)`` of the
    run that follows.
    """
    lines = (folder / JOURNAL).read_text(encoding="utf-8").splitlines()[1:]
    good = [e for e in map(json.loads, lines) if e["F"] is not None and not e.get("shared")]
    X, F, G = (np.array([e[key] for e in good], dtype=np.float64) for key in ("x", "F", "G"))
    return X, F, G


def refinements(
    best: Configuration,
    tried: list[Configuration],
    pipeline: NeuroPareto,
    n: int,
    *,
    rng: np.random.Generator,
) -> list[Configuration]:
    """At most n random configurations that differ from ``best`` in M_ind, S_0 and lambda_div.

    M_ind takes its present and the two nearby values, S_0 and lambda_div short sets; knobs that the
    pipeline lacks stay out, configurations that were tried are left out.
    """
    has = present(pipeline).values
    axes: dict[str, tuple[float, ...]] = {}
    if "inducing" in has:
        now = best.values.get("inducing", has["inducing"])
        axes["inducing"] = (now, *nearby("inducing", now))
    if "s0" in has:
        axes["s0"] = PASSES
    if "diversity_weight" in has:
        axes["diversity_weight"] = WEIGHTS
    complete = [Configuration.of({**has, **c.values}) for c in tried]
    whole = [
        Configuration.of({**has, **best.values, **dict(zip(axes, values, strict=True))})
        for values in product(*axes.values())
    ]
    fresh = [c for c in whole if c not in complete]
    return [fresh[i] for i in rng.permutation(len(fresh))[:n]]


@dataclass(frozen=True)
class _Pilot:
    """The trials on one archive; each is looked up in the journal before it is run."""

    plan: Retuning
    problem: Problem
    journal: Journal
    told: Callable[[str], None]
    archive: Archive
    models: dict[str, Fitted] = field(default_factory=dict)

    def trial(self, configuration: Configuration, stage: str) -> judging.Trial:
        known = self.journal.found(kind="trial", configuration=configuration.values)
        if known is None:
            self.told(f"{stage}: {configuration.said(self.plan.pipeline)}")
            known = {"kind": "trial", "stage": stage, "configuration": configuration.values}
            known |= self._tried(configuration.algorithm(self.plan.pipeline))
            self.journal.append(known)
        sign = signs(self.problem.directions, self.problem.n_objectives)
        return judging.Trial(
            configuration, str(known["stage"]), np.array(known["u"]),
            None if known["F"] is None else sign * np.array(known["F"]), known["loss"],
            known["F"] is not None and all(g <= 0 for g in known["G"]),
        )  # fmt: skip

    def _tried(self, algorithm: NeuroPareto) -> dict[str, Any]:
        began = time.perf_counter()
        proposal = algorithm.propose(
            self.archive, 1, pending=np.empty((0, self.archive.d)), memory=None, rng=self._streams
        )
        x = self.problem.space.from_unit(proposal.U)[0]
        notes: Mapping[str, Any] = proposal.notes.get("classifier", {})
        own = {
            "u": self.problem.space.to_unit(x[None])[0].tolist(), "x": x.tolist(),
            "loss": notes.get("held_out_loss"), "seconds": time.perf_counter() - began,
        }  # fmt: skip
        same = self.journal.found(kind="trial", x=x.tolist())
        result = (
            {"F": same["F"], "G": same["G"], "shared": True}
            if same is not None
            else {**_evaluated(self.problem, x), "shared": False}
        )
        return {**own, **result}

    @property
    def _streams(self) -> Streams:
        # One round for all: configurations that agree in a stage have the same draws there.
        return Streams(self.plan.seed, 1)

    def judged(self, trials: list[judging.Trial]) -> judging.Verdict:
        return judging.judged(
            trials, self.archive, self.plan.pipeline, models=self.models, rng=self._streams
        )

    def signal(self, best: Configuration) -> float:
        return judging.validation_signal(best, self.archive, self.plan.pipeline, rng=self._streams)

    @property
    def cost(self) -> Cost:
        """Evaluations of both stages that were really made, and seconds spent on proposals."""
        spent, seconds = {"transfer": 0, "refine": 0}, 0.0
        for entry in self.journal.entries:
            if entry["kind"] == "trial":
                spent[entry["stage"]] += not entry["shared"]
                seconds += float(entry["seconds"])
        return Cost(spent["transfer"], spent["refine"], self.plan.budget, seconds)


def _started(
    plan: Retuning,
    problem: Problem,
    journal: Journal,
    n: int,
    told: Callable[[str], None],
) -> Archive:
    """The start design evaluated, point by point; its archive."""
    X = problem.space.from_unit(
        problem.space.latin_hypercube(n, rng=stream(plan.seed, 0, "start-design"))
    )
    done = [entry for entry in journal.entries if entry["kind"] == "start"]
    if len(done) < n:
        told(f"start design: {n - len(done)} evaluations")
    for x in X[len(done) :]:
        entry = {"kind": "start", "x": x.tolist(), **_evaluated(problem, x)}
        journal.append(entry)
        done.append(entry)
    good = [entry for entry in done if entry["F"] is not None]
    if len(good) < 4:
        raise ValueError(
            f"Only {len(good)} of {n} evaluations of the start design succeeded; the first error: "
            f"{next((e['error'] for e in done if e['F'] is None), '')}"
        )
    F = signs(problem.directions, problem.n_objectives) * np.array([e["F"] for e in good])
    G = np.array([e["G"] for e in good]) if problem.n_constraints else None
    return Archive.of(problem.space.to_unit(np.array([e["x"] for e in good])), F, G)


def _evaluated(problem: Problem, x: Array) -> dict[str, Any]:
    """One evaluation as a journal keeps it: F in the user's directions, or None and the error."""
    try:
        outcome = problem.objective(x[None])
    except Exception:  # any error of the user's function is a failed evaluation
        return {"F": None, "G": None, "error": traceback.format_exc(limit=-1)[-500:]}
    F, G = outcome if isinstance(outcome, tuple) else (outcome, np.empty((1, 0)))
    values = np.asarray(F, dtype=np.float64).reshape(-1)
    limits = np.asarray(G, dtype=np.float64).reshape(-1)
    if not (np.isfinite(values).all() and np.isfinite(limits).all()):
        return {"F": None, "G": None, "error": "the objective returned NaN or inf"}
    return {"F": values.tolist(), "G": limits.tolist(), "error": ""}


def _finished(
    plan: Retuning,
    problem: Problem,
    folder: Path,
    verdict: judging.Verdict,
    signal: float,
    cost: Cost,
) -> Tuned:
    m, budget = plan.source
    most = allowed(plan.budget)
    guards = (
        Safeguard(
            "comparable number of objectives", problem.n_objectives <= m + 1,
            f"This problem has {problem.n_objectives}; the candidates come from {m}.",
        ),
        Safeguard(
            "comparable budget", 2 * plan.budget >= budget,
            f"This one is {plan.budget}; the candidates come from {budget}.",
        ),
        Safeguard(
            "comparable noise", verdict.noise <= 0.1,
            f"The surrogate takes {100 * verdict.noise:.1f} % of the objectives' variance for "
            "noise; the candidates come from problems without.",
        ),
        Safeguard(
            "validation signal in the transfer stage", signal >= plan.threshold,
            f"Rank correlation of predictions and held-out evaluations {signal:.2f}, threshold "
            f"{plan.threshold:g}; refinement: {plan.refine}"
            + (", done." if any(t.stage == "refine" for t in verdict.trials) else ", not done."),
        ),
        Safeguard(
            "pilot within its allowance", cost.total <= most.total,
            f"{cost.total} evaluations, at most {most.total} of {plan.budget}.",
        ),
    )  # fmt: skip
    idle = verdict.idle(plan.pipeline)
    notes = [
        "One evaluation a configuration tells little: a place or two in the order is chance.",
        *([f"Made no difference to any proposal: {', '.join(idle)}."] if idle else []),
    ]
    if not all(guard.holds for guard in guards[:3]):
        notes.append("The task differs much from the earlier ones: plan a larger pilot study.")
    tuned = Tuned(
        "two-stage", problem.name, verdict.best, verdict.best.algorithm(plan.pipeline),
        verdict.evidence(plan.pipeline), cost, guards, tuple(notes),
    )  # fmt: skip
    tuned.save(folder)
    return tuned


def _about(plan: Retuning, problem: Problem) -> dict[str, Any]:
    return {
        "how": "two-stage",
        "problem": problem.name,
        "d": problem.d,
        "objectives": problem.n_objectives,
        "pipeline": describe(plan.pipeline),
        "transferred": [c.values for c in plan.transferred],
        "budget": plan.budget,
        "seed": plan.seed,
        "n_initial": plan.start_size(problem.d),
    }
