"""Vehicles, rockets, ships and basins of the RE suite: response surfaces and design formulas.

Each function maps X (n, d) to (F, S): the original objectives F (n, m) and the slacks S (n, c) of
the original constraints, satisfied where S >= 0. Response surfaces are tables of monomials: "13"
is x1 x3 and "" the constant. Source as in :mod:`neuropareto.problems.machines`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuropareto.space import Array

Monomials = Mapping[str, float]


def _surface(terms: Monomials, V: Mapping[str, Array]) -> Array:
    """The sum of coefficient times the product of the variables named by each key; (n,)."""
    n = len(next(iter(V.values())))
    total = np.zeros(n)
    for variables, coefficient in terms.items():
        value = np.full(n, coefficient)
        for name in variables:
            value = value * V[name]
        total += value
    return total


def _surfaces(tables: tuple[Monomials, ...], V: Mapping[str, Array]) -> Array:
    return np.column_stack([_surface(terms, V) for terms in tables])


def _numbered(X: Array) -> dict[str, Array]:
    return {str(j + 1): X[:, j] for j in range(X.shape[1])}


_CRASH: tuple[Monomials, ...] = (
    {"": 1640.2823, "1": 2.3573285, "2": 2.3220035, "3": 4.5688768, "4": 7.7213633, "5": 4.4559504},
    {
        "": 6.5856, "1": 1.15, "2": -1.0427, "3": 0.9738, "4": 0.8364, "14": -0.3695,
        "15": 0.0861, "24": 0.3628, "11": -0.1106, "33": -0.3437, "44": 0.1764,
    },
    {
        "": -0.0551, "1": 0.0181, "2": 0.1024, "3": 0.0421, "12": -0.0073, "23": 0.024,
        "24": -0.0118, "34": -0.0204, "35": -0.008, "22": -0.0241, "44": 0.0109,
    },
)  # fmt: skip

# a: hydrogen flow angle, h: hydrogen area, o: oxygen area, p: oxidizer post tip thickness.
_INJECTOR: tuple[Monomials, ...] = (
    {
        "": 0.692, "a": 0.477, "h": -0.687, "o": -0.080, "p": -0.0650, "aa": -0.167,
        "ha": -0.0129, "hh": 0.0796, "oa": -0.0634, "oh": -0.0257, "oo": 0.0877,
        "pa": -0.0521, "ph": 0.00156, "po": 0.00198, "pp": 0.0184,
    },
    {
        "": 0.153, "a": -0.322, "h": 0.396, "o": 0.424, "p": 0.0226, "aa": 0.175,
        "ha": 0.0185, "hh": -0.0701, "oa": -0.251, "oh": 0.179, "oo": 0.0150,
        "pa": 0.0134, "ph": 0.0296, "po": 0.0752, "pp": 0.0192,
    },
    {
        "": 0.370, "a": -0.205, "h": 0.0307, "o": 0.108, "p": 1.019, "aa": -0.135,
        "ha": 0.0141, "hh": 0.0998, "oa": 0.208, "oh": -0.0301, "oo": -0.226,
        "pa": 0.353, "po": -0.0497, "pp": -0.423, "haa": 0.202, "oaa": -0.281,
        "hha": -0.342, "hho": -0.245, "ooh": 0.281, "ppa": -0.184, "hao": -0.281,
    },
)  # fmt: skip

_SIDE_IMPACT_FORCE: Monomials = {"": 4.72, "4": -0.5, "23": -0.19}
_PILLAR_SPEED: Monomials = {"": 10.58, "12": -0.674, "2": -0.67275}
_DOOR_SPEED: Monomials = {"": 16.45, "37": -0.489, "56": -0.843}
_SIDE_IMPACT_MASS: Monomials = {
    "": 1.98, "1": 4.9, "2": 6.67, "3": 6.98, "4": 4.01, "5": 1.78, "6": 0.00001, "7": 2.73,
}  # fmt: skip
# Loads on the dummy, each with the limit it must stay below.
_SIDE_IMPACT_LOADS: tuple[tuple[float, Monomials], ...] = (
    (1.0, {"": 1.16, "24": -0.3717, "3": -0.0092928}),
    (
        0.32,
        {"": 0.261, "12": -0.0159, "1": -0.06486, "27": -0.019, "35": 0.0144, "6": 0.0154464},
    ),
    (
        0.32,
        {
            "": 0.214, "5": 0.00817, "1": -0.045195 - 0.0135168, "26": 0.03099, "27": -0.018,
            "3": 0.007176 + 0.023232, "56": -0.00364, "22": -0.018,
        },
    ),
    (0.32, {"": 0.74, "2": -0.61, "3": -0.031296, "7": -0.031872, "22": 0.227}),
    (32.0, {"": 28.98, "3": 3.818, "12": -4.2, "6": 1.27296, "7": -2.68065}),
    (32.0, {"": 33.86 + 1.45728, "3": 2.95, "12": -5.057, "2": -3.795, "7": -3.4431}),
    (32.0, {"": 46.36, "2": -9.9, "1": -4.4505}),
    (4.0, _SIDE_IMPACT_FORCE),
    (9.9, _PILLAR_SPEED),
    (15.7, _DOOR_SPEED),
)  # fmt: skip

# Full side-impact model: s, t material strengths, b barrier height, p barrier hitting position.
_CAR_CAB_MASS: Monomials = {**_SIDE_IMPACT_MASS, "5": 1.75}
_CAR_CAB: tuple[tuple[float, Monomials], ...] = (
    (1.0, {"": 1.16, "24": -0.3717, "2b": -0.00931, "3t": -0.484, "6b": 0.01343}),
    (
        0.32,
        {
            "": 0.261, "12": -0.0159, "1s": -0.188, "27": -0.019, "35": 0.0144,
            "5b": 0.87570001, "6t": 0.08045, "sp": 0.00139, "bp": 0.00001575,
        },
    ),
    (
        0.32,
        {
            "": 0.214, "5": 0.00817, "1s": -0.131, "1t": -0.0704, "26": 0.03099, "27": -0.018,
            "3s": 0.0208, "3t": 0.121, "56": -0.00364, "5b": 0.0007715, "6b": -0.0005354,
            "sp": 0.00121, "tb": 0.00184, "22": -0.018,
        },
    ),
    (
        0.32,
        {"": 0.74, "2": -0.61, "3s": -0.163, "3b": 0.001232, "7t": -0.166, "22": 0.227},
    ),
    (
        # The mean of upper, middle and lower rib deflection.
        3.0 * 32.0,
        {
            "": 28.98 + 33.86 + 46.36, "3": 3.818 + 2.95, "12": -4.2 - 5.057,
            "5b": 0.0207 - 0.0215, "6t": 6.63, "7s": -7.77 - 9.98, "tb": 0.32, "b": 0.1792,
            "2s": -11.0, "st": 22.0, "2": -9.9, "1s": -12.9, "3b": 0.1107,
        },
    ),
    (4.0, {"": 4.72, "4": -0.5, "23": -0.19, "4b": -0.0122, "6b": 0.009325, "pp": 0.000191}),
    (9.9, {"": 10.58, "12": -0.674, "2s": -1.95, "3b": 0.02054, "4b": -0.0198, "6b": 0.028}),
    (
        15.7,
        {"": 16.45, "37": -0.489, "56": -0.843, "tb": 0.0432, "tp": -0.0556, "pp": -0.000786},
    ),
)  # fmt: skip


def crashworthiness(X: Array) -> tuple[Array, Array]:
    """RE34: mass, acceleration and toe-board intrusion of a vehicle front; five thicknesses."""
    return _surfaces(_CRASH, _numbered(X)), np.zeros((len(X), 0))


def rocket_injector(X: Array) -> tuple[Array, Array]:
    """RE37: face temperature, combustion length and tip temperature of a rocket injector."""
    V = dict(zip("ahop", X.T, strict=True))
    return _surfaces(_INJECTOR, V), np.zeros((len(X), 0))


def side_impact(X: Array) -> tuple[Array, Array]:
    """RE41, CRE31: mass, pubic force and mean pillar speed in a side impact; 7 thicknesses."""
    V = _numbered(X)
    speed = (_surface(_PILLAR_SPEED, V) + _surface(_DOOR_SPEED, V)) / 2.0
    F = np.column_stack([_surface(_SIDE_IMPACT_MASS, V), _surface(_SIDE_IMPACT_FORCE, V), speed])
    return F, np.column_stack([limit - _surface(load, V) for limit, load in _SIDE_IMPACT_LOADS])


def car_cab(X: Array) -> tuple[Array, Array]:
    """RE91: mass and eight relative loads of a car cab in a side impact.

    The suite draws material strengths and barrier positions at random in every call; here they
    are at their means (0.345, 0.192, 0, 0), so that equal points have equal values.
    """
    n = len(X)
    V = _numbered(X) | {"s": np.full(n, 0.345), "t": np.full(n, 0.192)}
    V |= {"b": np.zeros(n), "p": np.zeros(n)}
    loads = [np.maximum(0.0, _surface(load, V) / limit) for limit, load in _CAR_CAB]
    return np.column_stack([_surface(_CAR_CAB_MASS, V), *loads]), np.zeros((n, 0))


def bulk_carrier(X: Array) -> tuple[Array, Array]:
    """RE42, CRE32: transport cost, light weight and -cargo of a bulk carrier.

    Variables: length, beam, depth, draft (m), speed (knots), block coefficient. The days at sea
    are (5000/24) times the speed, as in the suite's programs.
    """
    length, beam, depth, draft, speed, block = X.T
    displacement = 1.025 * length * beam * draft * block
    froude = 0.5144 * speed / np.sqrt(9.8065 * length)
    a = 4977.06 * block**2 - 8105.61 * block + 4456.51
    b = -10847.2 * block**2 + 12817.0 * block - 6960.32
    power = displacement ** (2.0 / 3.0) * speed**3 / (a + b * froude)
    outfit = length**0.8 * beam**0.6 * depth**0.3 * block**0.1
    steel = 0.034 * length**1.7 * beam**0.7 * depth**0.4 * block**0.5
    light = steel + outfit + 0.17 * power**0.9
    deadweight = displacement - light
    ship_cost = 1.3 * (2000.0 * steel**0.85 + 3500.0 * outfit + 2400.0 * power**0.8)
    sea_days = 5000.0 / 24.0 * speed
    fuel_per_day = 0.19 * power * 24.0 / 1000.0 + 0.2
    cargo = deadweight - fuel_per_day * (sea_days + 5.0) - 2.0 * np.sqrt(deadweight)
    trips = 350.0 / (sea_days + 2.0 * (cargo / 8000.0 + 0.5))
    voyage = 1.05 * fuel_per_day * sea_days * 100.0 + 6.3 * deadweight**0.8
    annual_cost = 0.2 * ship_cost + 40_000.0 * deadweight**0.3 + voyage * trips
    annual_cargo = cargo * trips
    metacentre = 0.53 * draft + (0.085 * block - 0.002) * beam**2 / (draft * block)
    slacks = np.column_stack(
        [
            length / beam - 6.0,
            15.0 - length / depth,
            19.0 - length / draft,
            0.45 * deadweight**0.31 - draft,
            0.7 * depth + 0.7 - draft,
            500_000.0 - deadweight,
            deadweight - 3000.0,
            0.32 - froude,
            metacentre - 1.0 - 0.52 * depth - 0.07 * beam,
        ]
    )
    return np.column_stack([annual_cost / annual_cargo, light, -annual_cargo]), slacks


def storm_drainage(X: Array) -> tuple[Array, Array]:
    """RE61, CRE51: five costs and damages of a storm drainage system; storage, rates."""
    storage, treatment, overflow = X.T
    inverse = 1.0 / (storage * treatment)
    area = 2289.0
    F = np.column_stack(
        [
            106_780.37 * (treatment + overflow) + 61_704.67,
            3000.0 * storage,
            305_700.0 * area * treatment / (0.06 * area) ** 0.65,
            250.0 * area * np.exp(-39.75 * treatment + 9.9 * overflow + 2.74),
            25.0 * (1.39 * inverse + 4940.0 * overflow - 80.0),
        ]
    )
    slacks = np.column_stack(
        [
            1.0 - (0.00139 * inverse + 4.94 * overflow - 0.08),
            1.0 - (0.000306 * inverse + 1.082 * overflow - 0.0986),
            50_000.0 - (12.307 * inverse + 49_408.24 * overflow + 4051.02),
            16_000.0 - (2.098 * inverse + 8046.33 * overflow - 696.71),
            10_000.0 - (2.138 * inverse + 7883.39 * overflow - 705.04),
            2000.0 - (0.417 * storage * treatment + 1721.26 * overflow - 136.54),
            550.0 - (0.164 * inverse + 631.13 * overflow - 54.48),
        ]
    )
    return F, slacks
