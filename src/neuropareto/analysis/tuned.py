"""A tuned configuration with its evidence, as a value, as JSON and as a page of Markdown.

The JSON holds the algorithm as a study does (:mod:`neuropareto.study.spec`); :func:`tuned_algorithm`
builds it without pickle, for :func:`neuropareto.minimize`, a ``Study`` or an ``Optimizer``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neuropareto.analysis.cost import TUNED, Cost
from neuropareto.analysis.knobs import Configuration, Value
from neuropareto.bench.layout import Table, items, number, render
from neuropareto.neuropareto import NeuroPareto
from neuropareto.study.algorithms import algorithm_in
from neuropareto.study.spec import describe


@dataclass(frozen=True)
class Evidence:
    """What is known of one configuration: its place, and named figures that led to it."""

    place: int
    said: str
    stage: str
    configuration: dict[str, Value]
    figures: dict[str, float]


@dataclass(frozen=True)
class Safeguard:
    """A condition under which the result can be relied on, whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str


@dataclass(frozen=True)
class Tuned:
    """The chosen configuration of a pipeline, how it was found, and what that cost."""

    how: str
    problem: str
    configuration: Configuration
    algorithm: NeuroPareto
    evidence: tuple[Evidence, ...]
    cost: Cost
    safeguards: tuple[Safeguard, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "how": self.how,
            "problem": self.problem,
            "configuration": self.configuration.values,
            "cost": asdict(self.cost),
            "safeguards": [asdict(guard) for guard in self.safeguards],
            "evidence": [asdict(row) for row in self.evidence],
            "notes": list(self.notes),
            "algorithm": describe(self.algorithm),
        }

    def markdown(self) -> str:
        """A page: the choice, the evidence, the safeguards, the cost."""
        names = tuple(dict.fromkeys(key for row in self.evidence for key in row.figures))
        rows = [
            items(
                row.place, row.stage, row.said,
                *(number(row.figures.get(name, float("nan"))) for name in names),
            )
            for row in self.evidence
        ]  # fmt: skip
        table = Table(
            "Evidence, best first", ("place", "stage", "configuration", *names), tuple(rows)
        )
        settings = ", ".join(f"{k} = {v:g}" for k, v in self.configuration.settings)
        lines = [
            f"# Tuned on {self.problem} ({self.how})", "",
            f"Chosen: {self.evidence[0].said if self.evidence else '-'}.", "",
            f"All settings: {settings}.", "",
            render(table, "markdown"),
        ]  # fmt: skip
        if self.safeguards:
            lines += ["**Safeguards**", ""]
            lines += [
                f"- {guard.name}: {'holds' if guard.holds else 'DOES NOT HOLD'}. {guard.seen}"
                for guard in self.safeguards
            ]
            lines.append("")
        transfer, refine, total = self.cost.texts()
        if self.how == "two-stage":
            lines.append(
                f"Cost: {transfer} to transfer, {refine} to refine, {total} in all of "
                f"{self.cost.budget} evaluations; {self.cost.seconds:.0f} s of our own."
            )
        lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def save(self, folder: Path) -> Path:
        """Write ``tuned.json`` and ``tuned.md`` into a folder; the path of the first."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            (TUNED, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"),
            ("tuned.md", self.markdown()),
        ):
            temporary = folder / f".{name}.new"
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(folder / name)
        return folder / TUNED


def tuned_algorithm(path: str | Path) -> NeuroPareto:
    """The algorithm of a ``tuned.json``; raises ValueError if it holds none."""
    made = algorithm_in(Path(path))
    if not isinstance(made, NeuroPareto):
        raise ValueError(f"{path} describes {type(made).__name__}, not a NeuroPareto.")
    return made
