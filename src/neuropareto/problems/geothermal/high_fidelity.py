"""Re-score schedules with open-darts, a full simulator of the field, in a process of its own.

open-darts solves the compressible flow and energy equations with IAPWS-97 water, fully coupled and
implicit, on the same nodes and connections; cap and base rock are ordinary nodes there. It is
GPLv3 and is never imported here: a child Python (any that has open-darts 2.0.0) reads the
connection list from one .npz file and writes temperatures, enthalpies and pressures of the wells to
another. The money is ours, E = dt sum q_p (h_p - h_inj) with the real enthalpy of water.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuropareto.problems.geothermal.economics import Ledger, ledger, pumping_power
from neuropareto.problems.geothermal.reservoir import Reservoir
from neuropareto.problems.geothermal.wells import Rates
from neuropareto.space import Array

SCRIPT = Path(__file__).with_name("darts_child.py")
VARIABLE = "NEUROPARETO_DARTS_PYTHON"
"""The environment variable that may name an interpreter with open-darts."""


class DartsUnavailable(RuntimeError):
    """No interpreter with open-darts was found, or it did not finish."""


@dataclass(frozen=True, eq=False)
class DartsOutcome:
    """What open-darts found for n schedules.

    ``objectives`` (n, 2) in M$, NaN where a run failed; ``ledgers``; ``production_temperature``
    (n, t, p) in K and ``pressure`` (n, t, w) in bar, means over each interval; ``seconds`` (n,);
    ``failures``, the reason for each run that failed, by its number.
    """

    objectives: Array
    ledgers: tuple[Ledger, ...]
    production_temperature: Array
    pressure: Array
    seconds: Array
    failures: dict[int, str]


def rescore(
    reservoir: Reservoir,
    schedules: Sequence[npt.ArrayLike | Rates],
    *,
    python: str | None = None,
    timeout: float | None = None,
) -> DartsOutcome:
    """Simulate n schedules (decisions in [0, 1] or :class:`Rates`) with open-darts.

    ``python`` is the interpreter; by default that of $NEUROPARETO_DARTS_PYTHON or this one.
    ``timeout`` is in seconds for all runs together. Raises ValueError for a bad schedule and
    :class:`DartsUnavailable` if open-darts is not installed there or the process fails.
    """
    rates = [reservoir.rates(s) for s in schedules]
    if not rates:
        raise ValueError("Give at least one schedule to simulate.")
    with tempfile.TemporaryDirectory(prefix="neuropareto-darts-") as folder:
        source, target = Path(folder, "input.npz"), Path(folder, "output.npz")
        np.savez(source, **_case(reservoir, rates))  # type: ignore[arg-type]
        _run([_interpreter(python), "-I", str(SCRIPT), str(source), str(target)], folder, timeout)
        if not target.exists():
            raise DartsUnavailable("open-darts ended without writing a result.")
        with np.load(target, allow_pickle=False) as data:
            temperature, pressure = data["temperature"], data["pressure"]
            gain = data["enthalpy_gain"]
            seconds, reasons = data["seconds"], [str(r) for r in data["reasons"]]
    ledgers = tuple(_ledger(reservoir, r, gain[k], pressure[k]) for k, r in enumerate(rates))
    return DartsOutcome(
        np.array([x.objectives(reservoir.schedule, reservoir.economics) for x in ledgers]),
        ledgers,
        temperature,
        pressure / 1e5,
        seconds,
        {k: reason for k, reason in enumerate(reasons) if reason},
    )


def available(python: str | None = None) -> bool:
    """True if the interpreter (see :func:`rescore`) can import open-darts."""
    try:
        code = "import darts.engines, iapws"
        _run([_interpreter(python), "-I", "-c", code], tempfile.gettempdir(), 120.0)
    except DartsUnavailable:
        return False
    return True


def _interpreter(python: str | None) -> str:
    return python or os.environ.get(VARIABLE) or sys.executable


def _run(command: list[str], folder: str, timeout: float | None) -> None:
    # One thread: the default of one per core is slower on systems of this size.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DartsUnavailable(f"open-darts did not run with {command[0]}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise DartsUnavailable(
            f"open-darts did not run with {command[0]} ({' '.join(last)}); install it there with: "
            f"pip install 'neuropareto[darts]', or name another interpreter in {VARIABLE}."
        )


def _case(reservoir: Reservoir, rates: list[Rates]) -> dict[str, npt.NDArray[np.generic]]:
    """The input of the child process, in SI units."""
    disc, rock, fluid = reservoir.discretisation, reservoir.rock, reservoir.fluid
    network, c = disc.network, disc.network.connections
    columns = _columns(reservoir)
    cells = network.grid.n**2
    porosity = np.full(network.nodes, rock.porosity)
    grains = np.full(network.nodes, rock.heat_capacity)
    volume = network.volume.copy()
    # Half of a segment's node is open and its solid half holds no heat, so that nothing is
    # divided by 1 - porosity = 0; the volume of water is right.
    porosity[cells:], grains[cells:] = 0.5, 1e-6
    volume[cells:] *= 2.0
    volume[network.fixed > 0] *= 1e6
    layers = len(columns["volume"])
    return {
        "left": np.concatenate([c.left, columns["left"].astype(np.intp)]),
        "right": np.concatenate([c.right, columns["right"].astype(np.intp)]),
        "transmissibility": np.concatenate([c.transmissibility, columns["transmissibility"]]),
        "conductance": np.concatenate([c.conductance, columns["conductance"]]),
        "porosity": np.concatenate([porosity, np.full(layers, 1e-4)]),
        "volume": np.concatenate([volume, columns["volume"]]),
        "rock_heat_capacity": np.concatenate([grains, np.full(layers, rock.heat_capacity)]),
        "well_node": network.completions.node,
        "well_index": network.completions.index,
        "injection": np.array([r.injection for r in rates]),
        "production": np.array([r.production for r in rates]),
        "pressure": np.array(rock.pressure),
        "temperature": np.array(rock.temperature),
        "injected": np.array(fluid.injected),
        "days": np.array(reservoir.schedule.days),
        "step": np.array(reservoir.schedule.days / reservoir.schedule.steps),
        "fixed": np.concatenate([network.fixed, np.zeros(layers)]),
    }


def _columns(reservoir: Reservoir) -> dict[str, Array]:
    """Cap and base rock as nodes below each other: their volumes and connections."""
    network, geometry = reservoir.discretisation.network, reservoir.geometry
    above = np.flatnonzero(network.cover_area > 0)
    area = 2.0 * network.cover_area[above]
    thickness = np.array([geometry.thickness, *geometry.cover])
    parts: dict[str, list[Array]] = {k: [] for k in ("left", "right", "factor", "volume")}
    for k, layer in enumerate(geometry.cover):
        below = network.nodes + k * len(above) + np.arange(len(above))
        parts["left"].append(above.astype(np.float64))
        parts["right"].append(below.astype(np.float64))
        parts["factor"].append(area / (0.5 * (thickness[k] + layer)))
        parts["volume"].append(area * layer)
        above = below
    joined = {k: np.concatenate([np.zeros(0), *v]) for k, v in parts.items()}
    # Pores that are cut off would lose their pressure as they cool: the cover is tight, not closed.
    joined["transmissibility"] = 1e-20 * joined["factor"]
    joined["conductance"] = reservoir.rock.conductivity * joined["factor"]
    return joined


def _ledger(reservoir: Reservoir, rates: Rates, gain: Array, pressure: Array) -> Ledger:
    schedule, split = reservoir.schedule, rates.injection.shape[1]
    excess = pressure - reservoir.rock.pressure
    power = pumping_power(
        rates.injection,
        rates.production,
        excess[:, :split],
        -excess[:, split:],
        reservoir.economics.efficiency,
    )
    heat = schedule.seconds * (rates.production * gain).sum(axis=1)
    injected = rates.injection.sum(axis=1)
    return ledger(heat, power, injected, schedule.seconds, reservoir.economics)
