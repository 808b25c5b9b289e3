"""Money: what an interval of heat, pumping and water is worth, and the two objectives.

Per interval of dt seconds:  E = dt sum q_p c_p (T_p - T_inj),  W = dt / eta [sum q_i / 1000
(p_i - p0)+ + sum q_p / 900 (p0 - p_p)+],  cash = heat price E - power price W - water price dt sum q_i.
f1 discounts the cash of the early intervals to today, f2 adds up that of the late ones as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.checks import not_negative
from neuropareto.problems.geothermal.schedule import Schedule
from neuropareto.space import Array

YEAR = 365.25
JOULES_PER_MWH = 3.6e9


@dataclass(frozen=True)
class Economics:
    """Prices: heat and pumping power in $/MWh, water in $/t injected; ``discount`` per year and
    the efficiency of the pumps.
    """

    heat: float = 20.0
    power: float = 100.0
    water: float = 0.25
    discount: float = 0.08
    efficiency: float = 0.75

    def __post_init__(self) -> None:
        for name in ("heat", "power", "water", "discount"):
            not_negative(getattr(self, name), f"Economics.{name}")
        if not 0.0 < self.efficiency <= 1.0:
            raise ValueError(f"Economics.efficiency must lie in (0, 1], got {self.efficiency}.")


@dataclass(frozen=True, eq=False)
class Ledger:
    """The account of a run, per interval (t,): heat and pumping in MWh, water in t, cash in M$."""

    heat: Array
    pumping: Array
    water: Array
    cash: Array

    def objectives(self, schedule: Schedule, economics: Economics) -> Array:
        """(f1, f2) in M$: discounted early cash and undiscounted late cash, both to maximise."""
        years = (np.arange(schedule.intervals) + 0.5) * schedule.days / YEAR
        early = slice(0, schedule.early)
        worth = self.cash[early] / (1.0 + economics.discount) ** years[early]
        return np.array([worth.sum(), self.cash[schedule.early :].sum()])


def pumping_power(
    injection: Array, production: Array, excess: Array, drawdown: Array, efficiency: float
) -> Array:
    """Pump power in W per interval (t,); rates (t, i) and (t, p) in kg/s, pressures in Pa."""
    up = (injection / 1000.0 * np.maximum(excess, 0.0)).sum(axis=1)
    down = (production / 900.0 * np.maximum(drawdown, 0.0)).sum(axis=1)
    return np.asarray((up + down) / efficiency, dtype=np.float64)


def ledger(heat: Array, power: Array, injected: Array, dt: float, prices: Economics) -> Ledger:
    """The account from heat in J, pump power in W and injected kg/s, each (t,)."""
    megawatt_hours = heat / JOULES_PER_MWH
    pumping = power * dt / JOULES_PER_MWH
    water = injected * dt / 1000.0
    cash = prices.heat * megawatt_hours - prices.power * pumping - prices.water * water
    return Ledger(megawatt_hours, pumping, water, cash / 1e6)
