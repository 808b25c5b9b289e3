"""What tuning costs in evaluations, counted and as it was (Table refinement_cost_revised).

The paper counts one evaluation for each configuration: 15 transferred are "approximately five per
cent of a 300-evaluation budget", and its exhaustive grid, whose values multiply to 3072
configurations, "roughly three thousand". The allowance keeps the table's shares for other budgets.
This module is light: the benchmark's tables read it without waiting for torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRANSFERRED, REFINED = 15, 9
"""Configurations that the two stages evaluate at most."""
SHARES = (0.05, 0.03)
"""Shares of a 300-evaluation budget that these are; smaller budgets allow fewer configurations."""
PRINTED_GRID = 3072
"""Configurations of the printed grid: 8 (classifier), 16 (deep GP), 6 (network), 4 (dropout)."""
TUNED = "tuned.json"


@dataclass(frozen=True)
class Cost:
    """Evaluations of the user's problem in both stages, of a lifetime budget; seconds of our own."""

    transfer: int
    refine: int
    budget: int
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """Both stages."""
        return self.transfer + self.refine

    def said(self, n: int) -> str:
        """A count with its share of the budget, as the paper prints it: "15 (5%)"."""
        return f"{n} ({100 * n / self.budget:.3g}%)"

    def texts(self) -> tuple[str, str, str]:
        """Transfer, refine and total."""
        return self.said(self.transfer), self.said(self.refine), self.said(self.total)


def allowed(budget: int) -> Cost:
    """The most evaluations that re-tuning may take of a lifetime of ``budget`` evaluations.

    min(15, 5 % of the budget) to transfer (at least one), min(9, 3 %) to refine.
    """
    if budget < 1:
        raise ValueError(f"A lifetime budget is at least one evaluation, got {budget}.")
    # Shares are exact hundredths; rounding guards 0.03 * 300 = 8.999... against floor.
    most = [int(round(share * budget, 9)) for share in SHARES]
    return Cost(max(1, min(TRANSFERRED, most[0])), min(REFINED, most[1]), budget)


@dataclass(frozen=True)
class Measured:
    """What one finished re-tuning really took."""

    problem: str
    cost: Cost


def measured(folders: Iterable[Path]) -> tuple[Measured, ...]:
    """The costs of finished two-stage tunings (``tuned.json``) below some folders, by path."""
    found = []
    for path in sorted({p for folder in folders for p in folder.rglob(TUNED)}):
        told: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if told.get("how") == "two-stage":
            found.append(Measured(str(told["problem"]), Cost(**told["cost"])))
    return tuple(found)
