"""Machine elements and structures of the RE suite: formulas, variables, limits.

Each function maps X (n, d) to (F, S): the original objectives F (n, m) and the slacks S (n, c) of
the original constraints, satisfied where S >= 0. Symbols are those of the engineering literature
the suite (Tanabe, Ishibuchi, "An easy-to-use real-world multi-objective problem suite", 2020)
draws on. Integer and catalogue dimensions are real variables that are rounded inside, as there.
"""

from __future__ import annotations

import numpy as np

from neuropareto.space import Array

# The suite's programs list "3,10" where 3.10 was meant; kept, since published values have it.
BAR_AREAS = np.array(
    [
        0.2, 0.31, 0.4, 0.44, 0.6, 0.62, 0.79, 0.8, 0.88, 0.93, 1.0, 1.2, 1.24, 1.32, 1.4, 1.55,
        1.58, 1.6, 1.76, 1.8, 1.86, 2.0, 2.17, 2.2, 2.37, 2.4, 2.48, 2.6, 2.64, 2.79, 2.8, 3.0,
        3.08, 3.16, 3.41, 3.52, 3.6, 3.72, 3.95, 3.96, 4.0, 4.03, 4.2, 4.34, 4.4, 4.65, 4.74, 4.8,
        4.84, 5.0, 5.28, 5.4, 5.53, 5.72, 6.0, 6.16, 6.32, 6.6, 7.11, 7.2, 7.8, 7.9, 8.0, 8.4,
        8.69, 9.0, 9.48, 10.0, 10.27, 11.0, 11.06, 11.85, 12.0, 13.0, 14.0, 15.0,
    ]
)  # fmt: skip
WIRE_DIAMETERS = np.array(
    [
        0.009, 0.0095, 0.0104, 0.0118, 0.0128, 0.0132, 0.014, 0.015, 0.0162, 0.0173, 0.018, 0.02,
        0.023, 0.025, 0.028, 0.032, 0.035, 0.041, 0.047, 0.054, 0.063, 0.072, 0.08, 0.092, 0.105,
        0.12, 0.135, 0.148, 0.162, 0.177, 0.192, 0.207, 0.225, 0.244, 0.263, 0.283, 0.307, 0.331,
        0.362, 0.394, 0.4375, 0.5,
    ]
)  # fmt: skip


def _nearest(values: Array, x: Array) -> Array:
    # The lower of two equally near values, as a search for the first smallest difference gives.
    middles = (values[1:] + values[:-1]) / 2
    return values[np.searchsorted(middles, x, side="left")]


def _table(*columns: Array) -> Array:
    return np.column_stack(np.broadcast_arrays(*columns))


def four_bar_truss(X: Array) -> tuple[Array, Array]:
    """RE21: volume and displacement of a four-bar truss; areas x (cm^2)."""
    force, young, length = 10.0, 2.0e5, 200.0
    x1, x2, x3, x4 = X.T
    root = np.sqrt(2.0)
    volume = length * (2.0 * x1 + root * x2 + np.sqrt(x3) + x4)
    give = 2.0 / x1 + 2.0 * root / x2 - 2.0 * root / x3 + 2.0 / x4
    return _table(volume, force * length / young * give), np.zeros((len(X), 0))


def reinforced_beam(X: Array) -> tuple[Array, Array]:
    """RE22: cost of a reinforced concrete beam; steel area, width, depth."""
    steel = _nearest(BAR_AREAS, X[:, 0])
    # The box starts at width 0, where the formulas divide by it.
    width, depth = np.maximum(X[:, 1], 1e-12), X[:, 2]
    cost = 29.4 * steel + 0.6 * width * depth
    moment = steel * depth - 7.735 * steel**2 / width - 180.0
    return cost[:, None], _table(moment, 4.0 - depth / width)


def pressure_vessel(X: Array) -> tuple[Array, Array]:
    """RE23: cost of a pressure vessel; shell and head thickness (1/16 in), radius, length."""
    shell, head = 0.0625 * np.round(X[:, 0]), 0.0625 * np.round(X[:, 1])
    r, length = X[:, 2], X[:, 3]
    welding = 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    cost = 0.6224 * shell * r * length + 1.7781 * head * r**2 + welding
    volume = np.pi * r**2 * length + 4.0 / 3.0 * np.pi * r**3
    return cost[:, None], _table(shell - 0.0193 * r, head - 0.00954 * r, volume - 1_296_000.0)


def hatch_cover(X: Array) -> tuple[Array, Array]:
    """RE24: weight of a hatch cover; flange thickness and beam height."""
    flange, height = X.T
    young = 700_000.0
    bending, shear = 4500.0 / (flange * height), 1800.0 / height
    buckling = young * flange**2 / 100.0
    deflection = 562_000.0 / (young * flange * height**2)
    slacks = _table(
        1.0 - bending / 700.0,
        1.0 - shear / 450.0,
        1.0 - deflection / 1.5,
        1.0 - bending / buckling,
    )
    return (flange + 120.0 * height)[:, None], slacks


def coil_spring(X: Array) -> tuple[Array, Array]:
    """RE25: wire volume of a compression spring; coils, coil diameter, wire diameter.

    The suite's fifth constraint, free length - travel - solid length >= 0, is an identity here
    (its value is 0 but for rounding) and is left out.
    """
    coils, coil, wire = np.round(X[:, 0]), X[:, 1], _nearest(WIRE_DIAMETERS, X[:, 2])
    full, preload, shear_modulus = 1000.0, 300.0, 11.5e6
    index = coil / wire
    wahl = (4.0 * index - 1.0) / (4.0 * index - 4.0) + 0.615 / index
    rate = shear_modulus * wire**4 / (8.0 * coils * coil**3)
    solid = 1.05 * (coils + 2.0) * wire
    free = full / rate + solid
    travel = (full - preload) / rate
    slacks = _table(
        189_000.0 - 8.0 * wahl * full * coil / (np.pi * wire**3),
        14.0 - free,
        index - 3.0,
        6.0 - preload / rate,
        1.25 - travel,
    )
    return (np.pi**2 * coil * wire**2 * (coils + 2.0) / 4.0)[:, None], slacks


def two_bar_truss(X: Array) -> tuple[Array, Array]:
    """RE31, CRE21: volume and stress of a two-bar truss; two areas and the joint's height."""
    a1, a2, y = X.T
    long, short = np.sqrt(16.0 + y**2), np.sqrt(1.0 + y**2)
    volume, stress = a1 * long + a2 * short, 20.0 * long / (a1 * y)
    slacks = _table(0.1 - volume, 1e5 - stress, 1e5 - 80.0 * short / (y * a2))
    return _table(volume, stress), slacks


def welded_beam(X: Array) -> tuple[Array, Array]:
    """RE32, CRE22: cost and deflection of a welded beam; weld height, length, depth, thickness."""
    weld, length, depth, thickness = X.T
    load, arm, young, shear_modulus = 6000.0, 14.0, 30e6, 12e6
    cost = 1.10471 * weld**2 * length + 0.04811 * depth * thickness * (14.0 + length)
    deflection = 4.0 * load * arm**3 / (young * thickness * depth**3)
    reach = ((weld + depth) / 2.0) ** 2
    radius = np.sqrt(length**2 / 4.0 + reach)
    polar = 2.0 * np.sqrt(2.0) * weld * length * (length**2 / 12.0 + reach)
    torsion = load * (arm + length / 2.0) * radius / polar
    direct = load / (np.sqrt(2.0) * weld * length)
    shear = np.sqrt(direct**2 + direct * torsion * length / radius + torsion**2)
    stress = 6.0 * load * arm / (thickness * depth**2)
    slenderness = 1.0 - depth / (2.0 * arm) * np.sqrt(young / (4.0 * shear_modulus))
    buckling = 4.013 * young * depth * thickness**3 / 6.0 / arm**2 * slenderness
    slacks = _table(13_600.0 - shear, 30_000.0 - stress, thickness - weld, buckling - load)
    return _table(cost, deflection), slacks


def disc_brake(X: Array) -> tuple[Array, Array]:
    """RE33, CRE23: mass and stopping time of a disc brake; radii, force, number of surfaces."""
    inner, outer, force, surfaces = X.T
    gap = outer - inner
    # Equal radii give a ring without area; the pressure on it is kept large but finite.
    area = np.where(gap == 0.0, 1e-12, gap) * (outer + inner)
    lever = (outer**2 + outer * inner + inner**2) / (outer + inner)
    slacks = _table(
        gap - 20.0,
        0.4 - force / (3.14 * area),
        1.0 - 2.22e-3 * force * lever / area,
        2.66e-2 * force * surfaces * lever - 900.0,
    )
    mass = 4.9e-5 * area * (surfaces - 1.0)
    time = 9.82e6 / (force * surfaces * lever)
    return _table(mass, time), slacks


def speed_reducer(X: Array) -> tuple[Array, Array]:
    """RE35, CRE24: weight and shaft stress of a speed reducer; 7 dimensions, teeth rounded."""
    face, module, teeth, l1, l2, d1, d2 = X.T
    teeth = np.round(teeth)
    gear = 0.7854 * face * module**2 * (10.0 * teeth**2 / 3.0 + 14.933 * teeth - 43.0934)
    shafts = 7.477 * (d1**3 + d2**3) + 0.7854 * (l1 * d1**2 + l2 * d2**2)
    weight = gear - 1.508 * face * (d1**2 + d2**2) + shafts
    arm = module * teeth
    stress1 = np.sqrt((745.0 * l1 / arm) ** 2 + 1.69e7) / (0.1 * d1**3)
    stress2 = np.sqrt((745.0 * l2 / arm) ** 2 + 1.575e8) / (0.1 * d2**3)
    slacks = _table(
        1.0 / 27.0 - 1.0 / (face * module * arm),
        1.0 / 397.5 - 1.0 / (face * arm**2),
        1.0 / 1.93 - l1**3 / (arm * d1**4),
        1.0 / 1.93 - l2**3 / (arm * d2**4),
        40.0 - arm,
        12.0 - face / module,
        face / module - 5.0,
        l1 - 1.9 - 1.5 * d1,
        l2 - 1.9 - 1.1 * d2,
        1300.0 - stress1,
        1100.0 - stress2,
    )
    return _table(weight, stress1), slacks


def gear_train(X: Array) -> tuple[Array, Array]:
    """RE36, CRE25: ratio error and largest gear of a gear train; four rounded tooth numbers."""
    T = np.round(X)
    error = np.abs(6.931 - T[:, 2] / T[:, 0] * (T[:, 3] / T[:, 1]))
    return _table(error, T.max(axis=1)), (0.5 - error / 6.931)[:, None]
