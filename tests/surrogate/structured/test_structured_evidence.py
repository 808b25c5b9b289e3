from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.structured.conditioned import Conditioned, posterior
from neuropareto.surrogate.structured.evidence import Evidence, noise
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.parameters import (
    HalfCauchy,
    Normal,
    Parameter,
    SparseScale,
    Table,
    Values,
)
from neuropareto.surrogate.structured.placed import Placed
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.warp import Inverse, Units, standardised

D = 4


def points(n: int, d: int, seed: int = 0) -> Points:
    return Points.of(torch.tensor(np.random.default_rng(seed).random((n, d))))


def outputs(U: Array) -> Array:
    return np.asarray(np.exp(2.0 * U[:, 0]) * (1.0 + U.sum(axis=1)))


def evidence_of(kernel: Kernel, n: int = 14) -> Evidence:
    X = points(n, D)
    y = outputs(X.U.numpy())
    return Evidence(kernel, X, Units.of(y).scaled(y))


def jittered(evidence: Evidence, seed: int = 1) -> Array:
    table = evidence.table
    step = np.random.default_rng(seed).normal(scale=0.1, size=len(table.low))
    return np.asarray(np.clip(table.flat(table.start()) + step, table.low, table.high))


def test_the_loss_is_minus_the_log_density_of_the_scaled_outputs(kernel: Kernel) -> None:
    evidence = evidence_of(kernel)
    P = evidence.table.split(torch.tensor(jittered(evidence)))
    z, jacobian, _, _ = standardised(P, evidence.v)
    C = kernel.against(P, evidence.X)(evidence.X)[0] + noise(P) * torch.eye(len(z))
    density = multivariate_normal.logpdf(z.numpy(), np.zeros(len(z)), C.numpy())
    expected = -density - float(jacobian) + float(evidence.table.penalty(P))
    # The loss leaves out the constant of the normal density.
    constant = 0.5 * len(z) * math.log(2 * math.pi)
    assert evidence.loss(P) == pytest.approx(expected - constant, rel=1e-7)


def test_the_gradient_is_that_of_finite_differences(kernel: Kernel) -> None:
    evidence = evidence_of(kernel)
    theta = jittered(evidence)
    value, gradient = evidence.loss_and_gradient(theta)
    split = evidence.table.split
    assert value == pytest.approx(evidence.loss(split(torch.tensor(theta))), rel=1e-12)

    def loss(at: Array) -> float:
        return evidence.loss(split(torch.tensor(at)))

    together = evidence.table.mask(evidence.table.together)
    steps = 1e-5 * np.eye(len(theta))
    numeric = [(loss(theta + e) - loss(theta - e)) / 2e-5 for e in steps[together]]
    np.testing.assert_allclose(gradient[together], numeric, atol=2e-6, rtol=1e-5)
    assert (gradient[~together] == 0.0).all()  # places are held while all others move


def test_the_gradient_by_places_is_that_of_finite_differences(kernel: Kernel) -> None:
    evidence = evidence_of(kernel.with_places(Placed(unsure=False)))
    theta = jittered(evidence)
    moving = frozenset({"place"})
    known = evidence.kernel.resting(evidence.table.split(torch.tensor(theta)), evidence.X, moving)
    assert known  # what does not depend on places is computed once
    value, gradient = evidence.loss_and_gradient(theta, moving, known)
    split, places = evidence.table.split, evidence.table.mask(moving)
    assert value == pytest.approx(evidence.loss(split(torch.tensor(theta))), rel=1e-12)

    def loss(at: Array) -> float:
        return evidence.loss(split(torch.tensor(at)))

    steps = 1e-6 * np.eye(len(theta))[places]
    numeric = [(loss(theta + e) - loss(theta - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(gradient[places], numeric, atol=1e-5, rtol=1e-4)
    assert (gradient[~places] == 0.0).all()


def test_steps_of_places_leave_all_else_where_it_is(kernel: Kernel) -> None:
    evidence = evidence_of(kernel.with_places(Placed(unsure=False)))
    P = evidence.table.start()
    better, loss = evidence.improved(P, 5, frozenset({"place"}))
    assert loss < evidence.loss(P)
    moved = {name for name in P if not torch.equal(P[name], better[name])}
    assert moved == {"place"}


def test_a_scan_equals_single_losses(kernel: Kernel) -> None:
    evidence = evidence_of(kernel)
    P = evidence.table.start()
    changes: list[Values] = [
        {"noise": P["noise"] - 1.0},
        {"own": P["own"] + 0.5, "noise": P["noise"] - 1.0},
        {"residual": P["residual"] + 1.0},
    ]
    singly = [evidence.loss(evidence.table.start(P | c)) for c in changes]
    assert evidence.scan(P, changes) == pytest.approx(singly, rel=1e-12)


def test_steps_lower_the_loss_and_stay_in_the_box(kernel: Kernel) -> None:
    evidence = evidence_of(kernel)
    P = evidence.table.start()
    better, loss = evidence.improved(P, 8)
    theta = evidence.table.flat(better)
    assert loss < evidence.loss(P)
    assert loss == pytest.approx(evidence.loss(better), rel=1e-9)
    assert (theta >= evidence.table.low).all() and (theta <= evidence.table.high).all()


def test_the_posterior_is_that_of_a_direct_solve(kernel: Kernel) -> None:
    X, A = points(14, D), points(5, D, 9)
    y = outputs(X.U.numpy())
    P = evidence_of(kernel).table.start()
    model = Conditioned.on(kernel, P, X, y)
    mean, deviation = model.moments(A)
    units = Units.of(y)
    z = standardised(P, units.scaled(y))[0].numpy()
    C = kernel.against(P, X)(X)[0].numpy() + float(noise(P)) * np.eye(14)
    k = kernel.against(P, X)(A)[0].numpy()
    np.testing.assert_allclose(mean.numpy(), k @ np.linalg.solve(C, z), rtol=1e-5, atol=1e-7)
    S = kernel.against(P, A)(A)[0].numpy() - k @ np.linalg.solve(C, k.T)
    np.testing.assert_allclose(deviation.numpy() ** 2, S.diagonal(), rtol=1e-4, atol=1e-7)
    joint_mean, joint = model.joint(A)
    np.testing.assert_allclose(joint.numpy(), S, atol=1e-6)
    np.testing.assert_allclose(joint_mean.numpy(), mean.numpy(), rtol=1e-12)


def test_leave_one_out_density_equals_explicit_refits(kernel: Kernel) -> None:
    X = points(12, D)
    y = outputs(X.U.numpy())
    P = evidence_of(kernel).table.start()
    model = Conditioned.on(kernel, P, X, y)
    z, jacobian, _, _ = standardised(P, Units.of(y).scaled(y))
    C = kernel.against(P, X)(X)[0].numpy() + float(noise(P)) * np.eye(12)
    densities = []
    for i in range(12):
        rest = np.arange(12) != i
        k = C[i, rest]
        mean = k @ np.linalg.solve(C[np.ix_(rest, rest)], z.numpy()[rest])
        variance = C[i, i] - k @ np.linalg.solve(C[np.ix_(rest, rest)], k)
        densities.append(norm.logpdf(float(z[i]), mean, math.sqrt(variance)))
    expected = float(np.mean(densities)) + float(jacobian) / 12
    assert model.density == pytest.approx(expected, rel=1e-4)


def test_the_warp_jacobian_is_that_of_finite_differences() -> None:
    P = {"output_warp": torch.tensor([0.3], dtype=torch.float64)}
    v = torch.tensor([0.0, 0.4, 1.1, 2.7, 3.3], dtype=torch.float64)
    z, jacobian, centre, spread = standardised(P, v)
    assert float(z.mean()) == pytest.approx(0.0, abs=1e-12)
    assert float(z.square().mean()) == pytest.approx(1.0)
    inverse = Inverse(Units(0.0, 1.0, False), math.exp(0.3), float(centre), float(spread))
    slopes = [(float(inverse.value(x + 1e-6)) - float(inverse.value(x - 1e-6))) / 2e-6 for x in z]
    np.testing.assert_allclose(inverse.slope(z).numpy(), slopes, rtol=1e-6)
    assert float(jacobian) == pytest.approx(-float(np.log(slopes).sum()), rel=1e-6)


def test_the_inverse_warp_returns_the_data() -> None:
    y = np.array([3.0, -1.0, 8.0, 2.5])
    units = Units.of(y)
    P = {"output_warp": torch.tensor([-1.0], dtype=torch.float64)}
    v = units.scaled(y)
    inverse = Inverse.of(P, v, units)
    z = standardised(P, v)[0]
    np.testing.assert_allclose(inverse.value(z).numpy(), y, rtol=1e-9)
    assert (inverse.deviation(z, torch.tensor(0.1)) > 0).all()


def test_an_almost_linear_warp_keeps_deviations() -> None:
    y = np.linspace(0.0, 10.0, 20)
    units = Units.of(y)
    P = {"output_warp": torch.tensor([5.0], dtype=torch.float64)}
    v = units.scaled(y)
    inverse = Inverse.of(P, v, units)
    z = standardised(P, v)[0]
    expected = 0.2 * float(y.std())
    np.testing.assert_allclose(
        inverse.deviation(z, torch.tensor(0.2)).numpy(), expected, rtol=0.03
    )


def test_a_posterior_has_an_image_for_every_point(kernel: Kernel) -> None:
    X = points(10, D)
    y = outputs(X.U.numpy())
    model = Conditioned.on(kernel, evidence_of(kernel).table.start(), X, y)
    said = posterior((model, model), np.array([1.0, 3.0]), X.U.numpy()[:4])
    np.testing.assert_allclose(said.epistemic[:, 1], 9.0 * said.epistemic[:, 0])
    assert (said.aleatoric > 0).all() and np.isfinite(said.mean).all()


def test_broken_covariances_count_as_very_bad_and_raise_when_conditioned(kernel: Kernel) -> None:
    evidence = evidence_of(kernel)
    P = evidence.table.start()
    broken = P | {"constant": torch.tensor([math.nan], dtype=torch.float64)}
    assert evidence.loss(broken) >= 1e9
    with pytest.raises(NumericalFailure):
        Conditioned.on(kernel, broken, evidence.X, outputs(evidence.X.U.numpy()))


def test_priors_are_the_densities_they_say() -> None:
    x, zero = torch.tensor([0.5, -1.5], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    normal = -norm.logpdf(x.numpy(), 0, 2.0).sum() + norm.logpdf(0, 0, 2.0) * 2
    assert float(Normal(2.0).penalty(x, zero)) == pytest.approx(normal)
    # A half-Cauchy on s = e^x has density 2 / (pi (1 + s^2)) ds, ds = s dx.
    s = np.exp(x.numpy())
    cauchy = -np.log(s / (1 + s**2)).sum()
    assert float(HalfCauchy().penalty(x, zero)) == pytest.approx(cauchy)
    assert float(SparseScale(2.0).penalty(x, zero)) == pytest.approx(normal + s.sum())


def test_a_table_takes_over_what_fits_and_nothing_else() -> None:
    table = Table(
        {
            "a": Parameter.alike(2, 0.5, -1.0, 1.0, Normal(1.0)),
            "b": Parameter.alike(1, 0.0, -1.0, 1.0, Normal(1.0)),
        }
    )
    known = {"a": torch.tensor([9.0, 0.0]), "b": torch.zeros(3), "c": torch.zeros(1)}
    start = table.start({k: v.double() for k, v in known.items()})
    assert start["a"].tolist() == [1.0, 0.0] and start["b"].tolist() == [0.0]
    assert table.flat(start).tolist() == [1.0, 0.0, 0.0]
