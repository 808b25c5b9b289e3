from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Legendre

from neuropareto.space import Array
from neuropareto.surrogate.structured.additive import Own, Shared, mixing
from neuropareto.surrogate.structured.corners import Corners
from neuropareto.surrogate.structured.interactions import Pair, Residual
from neuropareto.surrogate.structured.kernel import Kernel
from neuropareto.surrogate.structured.modulation import (
    ProductOfModulators,
    SumOfModulators,
    Unmodulated,
    unwarped,
    warped,
)
from neuropareto.surrogate.structured.parameters import Table, Values
from neuropareto.surrogate.structured.placed import HIGH, LOW, Placed
from neuropareto.surrogate.structured.points import DEGREE, Points, legendre
from neuropareto.surrogate.structured.term import Additive, Term
from neuropareto.surrogate.structured.waves import CommonPhase, OwnPhase
from neuropareto.surrogate.structured.weights import Sparse, Tight

TERMS: dict[str, Term] = {
    "own tight": Own(Tight()),
    "own sparse": Own(Sparse()),
    "shared": Shared(),
    "corners tight": Corners(Tight()),
    "corners sparse": Corners(Sparse()),
    "placed": Placed(unsure=False),
    "placed, unsure": Placed(),
    "own phase": OwnPhase(),
    "common phase": CommonPhase(),
    "pair 1": Pair(Tight(), 1),
    "pair 2": Pair(Sparse(), 2),
    "residual": Residual(),
    "sum": SumOfModulators((1, 3)),
    "product": ProductOfModulators((3, 0, 1)),
    "unmodulated": Unmodulated(),
}


def points(n: int, d: int, seed: int = 0) -> Points:
    return Points.of(torch.tensor(np.random.default_rng(seed).random((n, d))))


def drawn(term: Term | Kernel, d: int, seed: int) -> Values:
    table = Table(term.parameters(d)) if term.parameters(d) else None
    if table is None:
        return {}
    noise = np.random.default_rng(seed).normal(scale=0.4, size=len(table.low))
    return table.split(
        torch.tensor(np.clip(table.flat(table.start()) + noise, table.low, table.high))
    )


@pytest.fixture(params=TERMS)
def term(request: pytest.FixtureRequest) -> Term:
    return TERMS[request.param]


def phi(k: int, u: float) -> float:
    return math.sqrt(2 * k + 1) * float(Legendre.basis(k)(2 * u - 1))


def corners_by_loops(name: str, P: Values, u: Array, v: Array) -> float:
    p = {k: x.numpy() for k, x in P.items()}
    w = np.exp(p["weight"])
    w = w / (len(u) if name == "corners tight" else w.sum())
    waves = range(DEGREE, 25)
    whole = sum(k**-4.0 for k in waves)
    total = sum(
        w[i] * 2.0 * k**-4.0 / whole
        * math.cos(math.pi * k * u[i]) * math.cos(math.pi * k * v[i])
        for i in range(len(u)) for k in waves
    )  # fmt: skip
    return float(np.exp(p["corner"][0]) * total)


def law_by_loops(name: str, P: Values, u: Array, v: Array) -> float:
    """Shapes less their means by quadrature, and the law's slope in c by differences."""
    p = {k: x.numpy() for k, x in P.items()}
    c, d = p["place"], len(u)
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def mean(f: Callable[[float], float], at: float) -> float:
        cut = min(max(at, 0.0), 1.0)
        return sum(
            0.5 * (b - a) * w * f(a + 0.5 * (b - a) * (x + 1.0))
            for a, b in ((0.0, cut), (cut, 1.0))
            for x, w in zip(nodes, weights, strict=True)
        )

    def shape(k: int, x: float, at: float) -> float:
        def bare(y: float) -> float:
            return abs(y - at) if k == 0 else (y - at) * abs(y - at)

        return phi(k - 1, x) if k > 1 else bare(x) - mean(bare, at)

    def power(m: int, at: float) -> float:
        return phi(m, (at - LOW) / (HIGH - LOW)) if m else 1.0

    def z(k: int, m: int, x: Array) -> float:
        return sum(shape(k, x[i], c[i]) * power(m, c[i]) for i in range(d)) / math.sqrt(d)

    def law(x: float, at: float) -> float:
        B = p["law"].reshape(2 + DEGREE, -1)
        return float(
            sum(
                B[k, m] * shape(k, x, at) * power(m, at)
                for k in range(B.shape[0])
                for m in range(B.shape[1])
            )
        )

    def moved(x: float, at: float) -> float:
        return (law(x, at + 1e-6) - law(x, at - 1e-6)) / 2e-6 / math.sqrt(12.0)

    known = sum(
        math.exp(p["placed"][0] + p["placed_shape"][k] + p["placed_power"][m])
        * z(k, m, u)
        * z(k, m, v)
        for k in range(2 + DEGREE)
        for m in range(4)
    )
    if name == "placed":
        return known
    return known + sum(moved(u[i], c[i]) * moved(v[i], c[i]) for i in range(d))


def by_loops(name: str, P: Values, u: Array, v: Array) -> float:
    """The formulas of the docstrings, variable by variable."""
    p = {k: x.numpy() for k, x in P.items()}
    d = len(u)
    e = np.exp
    if name.startswith("own "):
        if name == "own phase":
            nu = e(p["frequency"][0])
            return float(
                e(p["wave"][0])
                / d
                * sum(math.cos(2 * math.pi * nu * (u[i] - v[i])) for i in range(d))
            )
        w = e(p["weight"]) / d if name == "own tight" else e(p["weight"]) / e(p["weight"]).sum()
        M = mixing(P).numpy()
        S = M @ M.T
        total = 0.0
        for i in range(d):
            for k in range(DEGREE):
                for j in range(DEGREE):
                    total += w[i] * S[k, j] * phi(k + 1, u[i]) * phi(j + 1, v[i])
        return float(e(p["own"][0]) * total)
    if name == "shared":
        return float(
            sum(
                e(p["shared"][0] + p["shared_degree"][k])
                * sum(phi(k + 1, x) for x in u) * sum(phi(k + 1, x) for x in v) / d
                for k in range(DEGREE)
            )
        )  # fmt: skip
    if name == "common phase":
        a = 2 * math.pi * e(p["frequency"][0])
        sums = [sum(f(a * x) for x in w) for f in (math.cos, math.sin) for w in (u, v)]
        return float(e(p["common_wave"][0]) / d * (sums[0] * sums[1] + sums[2] * sums[3]))
    if name.startswith("pair"):
        w = e(p["weight"]) / d if name == "pair 1" else e(p["weight"]) / e(p["weight"]).sum()
        z = [
            sum(
                w[i] * e(p["pair_degree"][k]) * phi(k + 1, u[i]) * phi(k + 1, v[i])
                for k in range(len(p["pair_degree"]))
            )
            for i in range(d)
        ]
        return float(sum(z[i] * z[j] for j in range(d) for i in range(j)))
    if name == "residual":
        far = sum(((u[i] - v[i]) / e(p["lengthscale"][i])) ** 2 for i in range(d))
        return float(e(p["residual"][0] - 0.5 * far))
    if name == "unmodulated":
        return 1.0
    J = TERMS[name].J  # type: ignore[attr-defined]
    T = []
    for c, j in enumerate(J):
        a, b = e(p["warp_a"][c]), e(p["warp_b"][c])
        s, t = (1 - (1 - x[j] ** a) ** b for x in (u, v))
        smooth = sum(e(-0.5 * k) * phi(k + 1, s) * phi(k + 1, t) for k in range(DEGREE))
        rough = e(-0.5 * ((s - t) / e(p["rough_length"][0])) ** 2)
        T.append(e(p["modulator"][c]) * smooth + e(p["rough"][c]) * rough)
    return float(1 + sum(T)) if name == "sum" else float(np.prod([1 + t for t in T]))


@pytest.mark.parametrize("name", TERMS)
def test_a_term_is_its_formula(name: str) -> None:
    A, B = points(3, 5, 1), points(4, 5, 2)
    P = drawn(TERMS[name], 5, 3)
    K = TERMS[name].against(P, B)(A)[0].numpy()
    formula = {"corners": corners_by_loops, "placed": law_by_loops}.get(
        name[:7].rstrip(","), by_loops
    )
    loops = [[formula(name, P, u, v) for v in B.U.numpy()] for u in A.U.numpy()]
    rough = 1e-6 if name == "placed, unsure" else 1e-9  # slopes by differences
    np.testing.assert_allclose(K, loops, rtol=rough, atol=1e-2 * rough)


def test_the_diagonal_is_that_of_the_matrix(term: Term) -> None:
    A = points(6, 5)
    P = drawn(term, 5, 4)
    K = term.against(P, A)(A)[0]
    np.testing.assert_allclose(term.diagonal(P, A).numpy(), K.diagonal().numpy(), atol=1e-10)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_every_term_is_positive_semidefinite(seed: int) -> None:
    A = points(12, 4, seed)
    for term in TERMS.values():
        K = term.against(drawn(term, 4, seed), A)(A)[0].numpy()
        np.testing.assert_allclose(K, K.T, atol=1e-10)
        assert np.linalg.eigvalsh(K).min() > -1e-9 * max(1.0, K.diagonal().max())


def test_a_contraction_has_the_gradient_of_the_contracted_matrix(term: Term) -> None:
    X = points(7, 4)
    P = {k: v.clone().requires_grad_() for k, v in drawn(term, 4, 5).items()}
    if not P:
        assert float(term.contraction(P, torch.ones(7, 7), X, torch.ones(7, 7))) == 0.0
        return
    R = torch.tensor(np.random.default_rng(6).normal(size=(7, 7)))
    G = R + R.T
    weighed = (G * term.against(P, X)(X)[0]).sum()
    slow = torch.autograd.grad(weighed, list(P.values()), materialize_grads=True)
    fixed = {k: v.detach() for k, v in P.items()}
    value = term.contraction(P, G, X, term.against(fixed, X)(X)[0])
    fast = torch.autograd.grad(value, list(P.values()), materialize_grads=True)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-8)


def test_a_pull_is_the_slope_of_the_weighted_matrix(term: Term) -> None:
    slope_is_autograds(term, seed=11)


def test_the_pull_of_a_kernel_is_the_slope_of_the_weighted_matrix(kernel: Kernel) -> None:
    slope_is_autograds(kernel, seed=12)


def slope_is_autograds(term: Term | Kernel, seed: int) -> None:
    A, B = points(5, 4, seed), points(6, 4, seed + 1)
    P = drawn(term, 4, seed)
    C = torch.tensor(np.random.default_rng(seed).normal(size=(5, 6)))
    U = A.U.clone().requires_grad_()
    K, _ = term.against(P, B)(Points.of(U))
    flat = (C * K).sum() + 0.0 * U.sum()  # a constant term has no path to U
    (slow,) = torch.autograd.grad(flat, U)
    np.testing.assert_allclose(term.against(P, B)(A)[1](C).numpy(), slow.numpy(), atol=1e-9)


def test_slopes_are_finite_at_the_ends_of_the_cube(kernel: Kernel) -> None:
    A = Points.of(torch.tensor([[0.0] * 4, [1.0] * 4, [0.0, 1.0, 1e-12, 1.0 - 1e-12]]).double())
    _, pull = kernel.against(drawn(kernel, 4, 13), points(6, 4))(A)
    assert torch.isfinite(pull(torch.ones(3, 6, dtype=torch.float64))).all()


@pytest.mark.parametrize("term", [Own(), Shared(), Corners(), Placed(), OwnPhase(), CommonPhase()])
def test_the_curves_add_up_to_the_posterior_mean(term: Additive) -> None:
    X, A = points(8, 3, 7), points(2, 3, 8)
    P = drawn(term, 3, 9)
    a = torch.tensor(np.random.default_rng(10).normal(size=(2, 8)))
    whole = (term.against(P, X)(A)[0] * a).sum(1)
    for row in range(2):
        grid = A.U[row]
        curves = term.curves(P, a, X, grid)[row]  # (d, g): variable i at the place of variable g
        np.testing.assert_allclose(float(curves.diagonal().sum()), float(whole[row]), rtol=1e-9)


def test_legendre_polynomials_are_orthonormal() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(10)
    values = legendre(torch.tensor((nodes + 1) / 2)).numpy()
    np.testing.assert_allclose(
        values.T @ (values * weights[:, None] / 2), np.eye(DEGREE), atol=1e-12
    )


def test_warps_are_monotone_and_invertible() -> None:
    P = {"warp_a": torch.tensor([0.0, 1.3]), "warp_b": torch.tensor([0.7, -1.0])}
    U = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)[:, None].expand(-1, 2)
    T = warped(P, U)
    assert (T.diff(dim=0) > 0).all() and T.min() >= 0 and T.max() <= 1
    back = unwarped(torch.exp(P["warp_a"]), torch.exp(P["warp_b"]), T)
    np.testing.assert_allclose(back.numpy(), U.numpy(), atol=1e-7)


def test_scales_mean_the_same_in_every_dimension() -> None:
    for term in (Own(), Shared(), Corners(), OwnPhase()):
        sizes = []
        for d in (3, 300):
            A = points(400, d)
            P = Table(term.parameters(d)).start()
            sizes.append(float(term.diagonal(P, A).mean()))
        assert abs(math.log(sizes[0] / sizes[1])) < 0.2


def test_the_kernel_composes_its_terms(kernel: Kernel) -> None:
    A, B = points(5, 4, 1), points(6, 4, 2)
    P = drawn(kernel, 4, 3)
    base = torch.exp(P["constant"]) + sum(t.against(P, B)(A)[0] for t in kernel.curved)
    pairs = kernel.pairs[0].against(P, B)(A)[0]
    base = base + torch.exp(P["modulated_pair"]) * pairs
    outer = torch.exp(P["pair"]) * pairs + sum(t.against(P, B)(A)[0] for t in kernel.outer)
    expected = base * kernel.modulation.against(P, B)(A)[0] + outer
    np.testing.assert_allclose(kernel.against(P, B)(A)[0].numpy(), expected.numpy(), rtol=1e-12)
    memo: dict[tuple[int, bytes], torch.Tensor] = {}
    first = kernel.matrix(P, A, memo)
    again = kernel.matrix(P, A, memo)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    np.testing.assert_allclose(kernel.diagonal(P, A).numpy(), first.diagonal().numpy(), rtol=1e-10)


def test_points_keep_their_gradient() -> None:
    U = torch.rand(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    U.requires_grad_()
    assert Points.of(U).Phi.requires_grad


def test_points_keep_the_latest_part_while_its_numbers_stay() -> None:
    X = points(3, 2)
    made: list[float] = []

    def part(x: torch.Tensor) -> torch.Tensor:
        def make() -> torch.Tensor:
            made.append(float(x.detach()))
            return 2.0 * x

        return X.latest("part", (x,), make)

    one, two = torch.ones(1), torch.full((1,), 2.0)
    assert part(one) is part(one.clone()) and made == [1.0]
    assert float(part(two)) == 4.0 and float(part(one)) == 2.0 and made == [1.0, 2.0, 1.0]
    free = torch.ones(1, requires_grad=True)
    assert part(free).requires_grad  # never a kept value without its path to the parameter
    assert not part(one).requires_grad


def test_data_against_itself_is_right_for_two_sets_of_modulators() -> None:
    X = points(5, 4)
    for J in ((0, 1), (2, 3)):
        term = SumOfModulators(J)
        P = drawn(term, 4, 3)
        twin = Points.of(X.U.clone())
        np.testing.assert_allclose(
            term.against(P, X)(X)[0].numpy(), term.against(P, twin)(X)[0].numpy(), rtol=1e-12
        )
