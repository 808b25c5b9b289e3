"""What was seen during a run on a problem whose truth is known: the values, and their file.

Appendix "Full derivation of the finite-budget HV bound". Notation: t = 1..T rounds, n archive
points, p candidates of the pool, k of them on the shortlist S_t, q chosen, m objectives, K rank
classes. Objectives are minimised. The truth of every candidate is there beside what was believed
of it, so the tools that measure errors are functions of these values. One ``.npz``, no pickle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neuropareto import pareto
from neuropareto.archive import Indices
from neuropareto.space import Array

FORMAT = 1
ENDING = ".observed.npz"


@dataclass(frozen=True, eq=False)
class ObservedRound:
    """One round t: what was known, what was believed of the candidates, and what is true of them.

    ``known`` (n, m) are the archive's objectives when the round began, ``nearby`` (m,) the
    archive's own reference point; ``pool`` (p, m) the true objectives of all candidates,
    ``probability`` (p, K) and ``information`` (p,) what the classifier said of them; ``short`` (k,)
    the shortlist S_t as rows of the pool, ``mean`` (k, m) the surrogate's prediction of it,
    ``chosen`` (q,) rows of the shortlist, ``evaluated`` (q, m) what was told to the optimizer.
    """

    known: Array
    nearby: Array
    pool: Array
    probability: Array
    information: Array
    short: Indices
    mean: Array
    chosen: Indices
    evaluated: Array

    @cached_property
    def front(self) -> Array:
        """The non-dominated part of what was known, P_{t-1}; (f, m)."""
        return np.asarray(self.known[pareto.nondominated(self.known)])

    @property
    def shortlist(self) -> Array:
        """The true objectives of the shortlist S_t, (k, m)."""
        return np.asarray(self.pool[self.short])

    @property
    def choice(self) -> Array:
        """The true objectives of the chosen candidates, (q, m), before any exploration moves them."""
        return np.asarray(self.shortlist[self.chosen])


@dataclass(frozen=True, eq=False)
class ObservedRun:
    """A run: its rounds and what its hypervolume is measured with.

    ``reference`` (m,) is the problem's reference point, ``truth`` (s, m) points of the true front
    and ``best`` their hypervolume HV*. ``skipped`` counts rounds that fell back to quasi-random
    points, of which there is nothing to see.
    """

    problem: str
    algorithm: str
    seed: int
    d: int
    reference: Array
    truth: Array
    best: float
    rounds: tuple[ObservedRound, ...]
    skipped: int = 0
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def m(self) -> int:
        """The number of objectives."""
        return len(self.reference)

    @cached_property
    def volumes(self) -> Array:
        """Hypervolume before each round and after the last, (T + 1,)."""
        sets = [r.known for r in self.rounds]
        sets.append(np.vstack([self.rounds[-1].known, self.rounds[-1].evaluated]))
        return np.array([pareto.hypervolume(F, self.reference) for F in sets])

    def __str__(self) -> str:
        """Problem, size, algorithm, seed and rounds, in one line."""
        n = len(self.rounds[0].known)
        return (
            f"{self.problem}, d = {self.d}, m = {self.m}, {self.algorithm}, seed {self.seed}: "
            f"{n} evaluations, then {len(self.rounds)} rounds of {len(self.rounds[0].chosen)}"
            + (f", {self.skipped} more without models" if self.skipped else "")
        )

    def save(self, path: Path) -> None:
        """Write the run to one ``.npz`` file."""
        head = {
            "format": FORMAT, "problem": self.problem, "algorithm": self.algorithm,
            "seed": self.seed, "d": self.d, "best": self.best, "skipped": self.skipped,
            "rounds": len(self.rounds), "made": dict(self.made),
        }  # fmt: skip
        arrays: dict[str, Any] = {"head": np.array(json.dumps(head))}
        arrays |= {"reference": self.reference, "truth": self.truth}
        for t, observed in enumerate(self.rounds):
            arrays |= {f"{t}/{f.name}": getattr(observed, f.name) for f in fields(observed)}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def described(runs: Sequence[ObservedRun]) -> str:
    """Runs of one problem in one line: the first one's sizes, all seeds."""
    first, others = str(runs[0]), ", ".join(str(run.seed) for run in runs[1:])
    return (
        first.replace(f"seed {runs[0].seed}:", f"seeds {runs[0].seed}, {others}:")
        if others
        else first
    )


def read(path: Path) -> ObservedRun:
    """A run from its file; raises ValueError for a file that is not one."""
    try:
        with np.load(path, allow_pickle=False) as file:
            head = json.loads(str(file["head"]))
            if head["format"] != FORMAT:
                raise ValueError(f"it has format {head['format']}, this version reads {FORMAT}")
            rounds = tuple(
                ObservedRound(*(file[f"{t}/{f.name}"] for f in fields(ObservedRound)))
                for t in range(head["rounds"])
            )
            return ObservedRun(
                head["problem"], head["algorithm"], head["seed"], head["d"], file["reference"],
                file["truth"], head["best"], rounds, head["skipped"], head["made"],
            )  # fmt: skip
    except (KeyError, TypeError, ValueError, BadZipFile) as error:
        raise ValueError(
            f"{path} is not an observed run ({error}); write one with `neuropareto analyse observe`."
        ) from error


def read_all(paths: Sequence[Path]) -> tuple[ObservedRun, ...]:
    """The runs in some files, all on the same problem; a folder stands for the files in it."""
    files = [f for p in paths for f in (sorted(p.glob(f"*{ENDING}")) if p.is_dir() else [p])]
    runs = tuple(read(file) for file in files)
    kinds = {(run.problem, run.d, run.m, run.algorithm) for run in runs}
    if len(kinds) != 1:
        told = "; ".join(sorted(f"{p} d={d} m={m} {a}" for p, d, m, a in kinds)) or "none"
        raise ValueError(
            f"Expected observed runs of one algorithm on one problem, got {told}; name the files "
            "of one problem."
        )
    return runs
