"""Any finished or running optimisation as one small value: from a record, a folder of them, a study.

The notes of a run (what the algorithm told in each round) are the same everywhere; only the place
they are kept in differs. Notation: n successful evaluations, m objectives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuropareto.archive import Archive
from neuropareto.bench.record import ENDING, Record, read
from neuropareto.bench.records import Records
from neuropareto.problem import Problem, signs
from neuropareto.space import Array
from neuropareto.study.file import read as read_study_file
from neuropareto.study.study import Study


@dataclass(frozen=True, eq=False)
class Run:
    """What the analysis of a run needs: who ran on what, the rounds' notes, and the evaluations.

    ``F`` (n, m) are the objectives with the sense of minimisation, the first ``n_initial`` of them
    from the start design. ``seconds`` is the whole wall time. ``archive`` is None where the points
    themselves were not kept; ``problem`` is there if it can be evaluated again for free.
    """

    task: str
    algorithm: str
    seed: int
    notes: tuple[Mapping[str, Any], ...]
    F: Array
    n_initial: int
    seconds: float
    archive: Archive | None = None
    problem: Problem | None = None

    @classmethod
    def of(cls, record: Record) -> Run:
        """The run of a benchmark record."""
        cell = record.cell
        return cls(
            task=f"{cell.task.name} {cell.task.d}D",
            algorithm=cell.algorithm,
            seed=cell.seed,
            notes=record.notes,
            F=record.minimised,
            n_initial=cell.task.n_initial,
            seconds=record.seconds,
            archive=record.archive() if record.whole else None,
            problem=cell.task.instance(cell.seed),
        )


def runs_of(path: str | Path) -> list[Run]:
    """The runs at ``path``: a record, a folder of records, a study file or a study's database.

    Raises ValueError if there are none.
    """
    path = Path(path)
    if path.suffix == ENDING:
        return [Run.of(read(path))]
    if path.suffix == ".toml":
        return [_of_study(read_study_file(path).store)]
    if path.is_file():
        return [_of_study(path)]
    if not path.is_dir():
        raise ValueError(f"There is no {str(path)!r}; name a record, a folder or a study.")
    if (path / "study.toml").exists():
        return runs_of(path / "study.toml")
    found = [Run.of(entry.read()) for entry in Records([path])]
    if not found:
        raise ValueError(f"{str(path)!r} holds neither records nor a study.toml.")
    return found


def noted(runs: list[Run], key: str) -> dict[tuple[str, str], list[Run]]:
    """Runs by (task, algorithm), only those whose rounds noted ``key``; ValueError if none did."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if any(key in note for note in run.notes):
            groups.setdefault((run.task, run.algorithm), []).append(run)
    if not groups:
        names = ", ".join(sorted({run.algorithm for run in runs}))
        raise ValueError(f"No round of these runs noted {key!r}; they are runs of {names}.")
    return groups


def _of_study(store: Path) -> Run:
    with Study.view(store) as study:
        result, described = study.result(), study.description
        archive = study.optimizer.archive
        F = signs(described.directions, len(described.objectives)) * result.F
        name = described.name or store.stem
        return Run(
            f"{name} {described.space.d}D", described.algorithm_name, described.seed,
            result.notes, F, described.n_initial, result.seconds, archive,
        )  # fmt: skip
