"""Water at reservoir pressure and the rock around it: the material constants of the case.

Density and viscosity are fits to IAPWS-97 at 300 bar between 10 and 210 degrees Celsius, with
x = (T - 273.15 K) / 100 K:  rho = 1017.75 - 25.04 x - 20.85 x^2 kg/m3 (within 0.15 %) and
mu = 2.6214e-5 exp(565.52 / (T - 137.66)) Pa s (within 0.4 %). The heat capacity is constant: its
mean between the injected and the initial temperature differs from 4,190 J/kg/K by 0.1 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.checks import positive
from neuropareto.space import Array


@dataclass(frozen=True)
class Fluid:
    """Water: heat capacity in J/kg/K, conductivity in W/m/K, injected temperature in K."""

    heat_capacity: float = 4190.0
    conductivity: float = 0.65
    injected: float = 293.15

    def __post_init__(self) -> None:
        positive(self.heat_capacity, "Fluid.heat_capacity")
        positive(self.conductivity, "Fluid.conductivity")
        if not 274.0 <= self.injected <= 480.0:
            raise ValueError(
                f"Fluid.injected must lie in [274, 480] K, where the water properties hold, got "
                f"{self.injected}."
            )

    def density(self, temperature: Array) -> Array:
        """rho(T) in kg/m3; any shape."""
        x = (temperature - 273.15) / 100.0
        return np.asarray(1017.75 - (25.04 + 20.85 * x) * x, dtype=np.float64)

    def mobility(self, temperature: Array) -> Array:
        """rho(T) / mu(T) in s/m2: kilograms per second for a unit of pressure and k A / d."""
        viscosity = 2.6214e-5 * np.exp(565.52 / (temperature - 137.66))
        return np.asarray(self.density(temperature) / viscosity, dtype=np.float64)


@dataclass(frozen=True)
class Rock:
    """Rock and initial state.

    ``permeability`` of the matrix in m2, ``porosity``, ``conductivity`` in W/m/K and
    ``heat_capacity`` in J/m3/K of the grains, ``aperture`` of all fractures in m, the initial
    ``temperature`` in K and ``pressure`` in Pa.
    """

    permeability: float = 1e-14
    porosity: float = 0.05
    conductivity: float = 2.5
    heat_capacity: float = 2.65e6
    aperture: float = 0.5e-3
    temperature: float = 473.15
    pressure: float = 3e7

    def __post_init__(self) -> None:
        for name in ("permeability", "conductivity", "heat_capacity", "aperture", "pressure"):
            positive(getattr(self, name), f"Rock.{name}")
        if not 0.0 < self.porosity < 1.0:
            raise ValueError(f"Rock.porosity must lie in (0, 1), got {self.porosity}.")
        if not 274.0 <= self.temperature <= 480.0:
            raise ValueError(
                f"Rock.temperature must lie in [274, 480] K, where the water properties hold, "
                f"got {self.temperature}."
            )

    @property
    def fracture_permeability(self) -> float:
        """The cubic law, k = b^2 / 12, in m2."""
        return self.aperture**2 / 12.0

    def bulk_conductivity(self, fluid: Fluid) -> float:
        """(1 - phi) lambda_rock + phi lambda_water in W/m/K."""
        return (1 - self.porosity) * self.conductivity + self.porosity * fluid.conductivity

    def bulk_heat_capacity(self, fluid: Fluid) -> float:
        """(1 - phi) C_rock + phi rho c_p in J/m3/K, with the water at the initial temperature."""
        return (1 - self.porosity) * self.heat_capacity + self.porosity * self.water_heat_capacity(
            fluid
        )

    def water_heat_capacity(self, fluid: Fluid) -> float:
        """rho c_p of the water in J/m3/K at the initial temperature."""
        return float(fluid.density(np.array(self.temperature))) * fluid.heat_capacity
