"""The surrogate exam: what every implementation of ``Surrogate.fit`` and of its result must do.

Shapes and signs of the posterior, determinism, purity, draws and gradients that agree with the
posterior, equivariance to units, tiny and degenerate data, warm starts that survive storage and
may be useless, notes that are JSON, immutable inputs, untouched global generators, errors at the
border, and that something is learnt. Notation: U (n, d) in the unit cube, F (n, m).
"""

from __future__ import annotations

import io
import json
import random
from dataclasses import FrozenInstanceError, fields

import numpy as np
import torch

from neuropareto.memory import Memory
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate


def smooth(n: int, d: int, seed: int = 0, noise: float = 0.0) -> tuple[Array, Array]:
    """n points and two smooth objectives of them, with normal noise; read-only."""
    rng = np.random.default_rng([seed, n, d])
    U = rng.random((n, d))
    bend = 3.0 + np.sin(3.0 * U[:, 0]) + U.mean(axis=1)
    F = np.stack([bend, -20.0 * (U[:, -1] - 0.3) ** 2 + 5.0 * U[:, 0]], axis=1)
    F = F + noise * F.std(axis=0) * rng.standard_normal(F.shape)
    U.setflags(write=False)
    F.setflags(write=False)
    return U, F


def stored(memory: Memory) -> Memory:
    """``memory`` after a round trip through a file without pickle."""
    file = io.BytesIO()
    np.savez(file, **dict(memory))  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as read:
        return {name: read[name] for name in read.files}


def check_surrogate(spec: Surrogate) -> None:
    """Run the whole exam."""
    U, F = smooth(40, 3, noise=0.05)
    before = _global_states()
    fitted = _fitted(spec, U, F)
    V = smooth(12, 3, seed=1)[0]
    check_posterior(fitted.posterior(V), 12, 2)
    check_draws(fitted, V)
    check_gradient(fitted, V)
    assert _global_states() == before, "fit or a prediction touched a global generator"
    json.dumps(dict(fitted.notes), allow_nan=False)
    _check_frozen(spec)
    _check_purity(spec, fitted, U, F)
    _check_warm(spec, fitted)
    _check_units(spec, fitted, U, F)
    _check_awkward_data(spec)
    _check_border(spec)
    _check_learning(spec)


def check_posterior(posterior: Posterior, n: int, m: int) -> None:
    """Shapes, finite numbers and positive variances of one posterior."""
    for name in ("mean", "epistemic", "aleatoric"):
        values: Array = getattr(posterior, name)
        assert values.shape == (n, m), f"{name} has shape {values.shape}, not {(n, m)}"
        assert values.dtype == np.float64, f"{name} has dtype {values.dtype}, not float64"
        assert np.isfinite(values).all(), f"{name} is not finite"
    assert (posterior.epistemic > 0).all(), "an epistemic variance is not positive"
    assert (posterior.aleatoric > 0).all(), "an aleatoric variance is not positive"


def check_draws(fitted: Fitted, U: Array, n: int = 2000) -> None:
    """Joint draws have the posterior's moments and are smooth functions of the point."""
    posterior = fitted.posterior(U)
    drawn = fitted.samples(U, n, rng=np.random.default_rng(1))
    assert drawn.shape == (n, *posterior.mean.shape), f"draws have shape {drawn.shape}"
    assert np.isfinite(drawn).all(), "a draw is not finite"
    std = np.sqrt(posterior.epistemic)
    # Deviations of the whole model count too: a mean that is off by far less than them is right.
    floor = 0.02 * np.abs(posterior.mean - posterior.mean.mean(axis=0)).max(axis=0)
    off = np.abs(drawn.mean(axis=0) - posterior.mean) / (std + floor)
    assert off.max() < 0.25, f"the draws' mean is {off.max():.2f} deviations off"
    ratio = (drawn.std(axis=0) + 0.1 * floor) / (std + 0.1 * floor)
    assert ratio.min() > 0.7 and ratio.max() < 1.4, (
        f"the draws' deviation is {ratio.min():.2f} to {ratio.max():.2f} times the posterior's"
    )
    again = fitted.samples(U, 5, rng=np.random.default_rng(2))
    same = fitted.samples(U, 5, rng=np.random.default_rng(2))
    assert np.array_equal(again, same), "the same generator must give the same draws"
    near = np.clip(U[:1] + 1e-6, 0.0, 1.0)
    pair = fitted.samples(np.concatenate([U[:1], near]), 400, rng=np.random.default_rng(3))
    gap = np.abs(pair[:, 0] - pair[:, 1]).max(axis=0)
    assert (gap < 0.3 * std[0] + floor).all(), "draws are not joint: neighbours differ widely"


def check_gradient(fitted: Fitted, U: Array, step: float = 1e-4) -> None:
    """``mean_gradient`` is the derivative of the posterior's mean."""
    U = np.clip(U, 2.0 * step, 1.0 - 2.0 * step)
    G = fitted.mean_gradient(U)
    n, d = U.shape
    assert G.shape == (n, fitted.posterior(U).mean.shape[1], d), f"gradient has shape {G.shape}"
    shifts = step * np.eye(d)
    ahead = fitted.posterior((U[:, None] + shifts).reshape(-1, d)).mean.reshape(n, d, -1)
    behind = fitted.posterior((U[:, None] - shifts).reshape(-1, d)).mean.reshape(n, d, -1)
    slope = ((ahead - behind) / (2.0 * step)).transpose(0, 2, 1)
    scale = np.abs(slope).max(axis=(0, 2), keepdims=True) + 1e-9
    worst = float((np.abs(G - slope) / scale).max())
    assert worst < 1e-3, f"the gradient differs from finite differences by {worst:.1e} of its size"


def _check_frozen(spec: Surrogate) -> None:
    name = fields(spec)[0].name if fields(spec) else ""  # type: ignore[arg-type]
    if name:
        try:
            setattr(spec, name, getattr(spec, name))
        except FrozenInstanceError:
            return
        raise AssertionError("the spec must be a frozen dataclass")


def _check_purity(spec: Surrogate, fitted: Fitted, U: Array, F: Array) -> None:
    V = smooth(30, U.shape[1], seed=2)[0]
    first = fitted.posterior(V)
    fitted.samples(V[:3], 4, rng=np.random.default_rng(0))
    fitted.mean_gradient(V[:3])
    fitted.posterior(U)
    _same(first, fitted.posterior(V.copy()), "the same points asked again")
    _same(first, _fitted(spec, U, F).posterior(V), "the same fit")
    some = fitted.posterior(V[::3])
    assert np.allclose(some.mean, first.mean[::3], rtol=1e-6, atol=1e-9 * np.abs(F).max()), (
        "a prediction for a point depends on the points asked with it"
    )
    check_posterior(fitted.posterior(V[:0]), 0, F.shape[1])


def _check_warm(spec: Surrogate, fitted: Fitted) -> None:
    for name, values in fitted.warm.items():
        assert values.dtype.kind in "biuf", f"warm {name!r} has dtype {values.dtype}"
    more, their = smooth(50, 3, noise=0.05)
    live, saved = fitted.warm, stored(fitted.warm)
    _same(
        _fitted(spec, more, their, live).posterior(more),
        _fitted(spec, more, their, saved).posterior(more),
        "a stored and a live warm start",
    )
    wider, its = smooth(20, 4)
    check_posterior(_fitted(spec, wider, its, saved).posterior(wider), 20, 2)
    check_posterior(_fitted(spec, wider, its[:, :1], saved).posterior(wider), 20, 1)
    broken = {k: np.full_like(v, np.nan) if v.dtype.kind == "f" else v for k, v in saved.items()}
    check_posterior(_fitted(spec, more, their, broken).posterior(more), 50, 2)


def _check_units(spec: Surrogate, fitted: Fitted, U: Array, F: Array) -> None:
    V = smooth(10, U.shape[1], seed=4)[0]
    plain = fitted.posterior(V)
    scaled = _fitted(spec, U, 1e3 * F - 7e3).posterior(V)
    gap = np.abs(scaled.mean - (1e3 * plain.mean - 7e3)) / (1e3 * F.std(axis=0))
    assert gap.max() < 0.05, f"other units change the prediction by {gap.max():.3f} deviations"
    ratio = np.sqrt(scaled.variance / plain.variance) / 1e3
    assert ratio.min() > 0.7 and ratio.max() < 1.4, "other units change the relative uncertainty"


def _check_awkward_data(spec: Surrogate) -> None:
    U, F = smooth(25, 3)
    wide, its = smooth(5, 40)
    cases: dict[str, tuple[Array, Array]] = {
        "one point": (U[:1], F[:1]),
        "two points": (U[:2], F[:2]),
        "fewer points than variables": (wide, its),
        "a constant objective": (U, np.stack([F[:, 0], np.full(25, 3.0)], axis=1)),
        "repeated points": (np.repeat(U[:5], 5, axis=0), np.repeat(F[:5], 5, axis=0)),
        "huge values": (U, 1e12 * F),
        "tiny values": (U, 1e-12 * F),
        "one wild value": (U, np.where(np.arange(25)[:, None] == 7, 1e6, F)),
        "one variable": (U[:, :1], F),
        "one objective": (U, F[:, :1]),
    }
    for what, (points, values) in cases.items():
        V = np.random.default_rng(0).random((4, points.shape[1]))
        try:
            fitted = _fitted(spec, points, values)
            check_posterior(fitted.posterior(V), 4, values.shape[1])
            drawn = fitted.samples(V, 3, rng=np.random.default_rng(0))
            assert np.isfinite(drawn).all(), "a draw is not finite"
            assert np.isfinite(fitted.mean_gradient(V)).all(), "a gradient is not finite"
            json.dumps(dict(fitted.notes), allow_nan=False)
        except (AssertionError, ValueError) as failure:
            raise AssertionError(f"with {what}: {failure}") from failure


def _check_border(spec: Surrogate) -> None:
    U, F = smooth(6, 2)
    for points, values in ((U, F[:5]), (U[:0], F[:0]), (U[:, 0], F)):
        try:
            _fitted(spec, points, values)
        except ValueError:
            continue
        raise AssertionError(f"shapes {points.shape} and {values.shape} must be a ValueError")


def _check_learning(spec: Surrogate) -> None:
    U, F = smooth(60, 3)
    V, truth = smooth(200, 3, seed=5)
    fitted = _fitted(spec, U, F)
    error = ((fitted.posterior(V).mean - truth) ** 2).mean(axis=0) / truth.var(axis=0)
    assert (error < 0.5).all(), f"an easy problem was not learnt: 1 - R2 is {error.round(3)}"


def _fitted(spec: Surrogate, U: Array, F: Array, warm: Memory | None = None) -> Fitted:
    return spec.fit(U, F, warm=warm, rng=np.random.default_rng(5))


def _same(a: Posterior, b: Posterior, what: str) -> None:
    same = np.array_equal(a.mean, b.mean) and np.array_equal(a.epistemic, b.epistemic)
    assert same and np.array_equal(a.aleatoric, b.aleatoric), (
        f"{what} must give the same posterior"
    )


def _global_states() -> tuple[str, str, bytes]:
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002
    return repr(legacy), repr(random.getstate()), torch.get_rng_state().numpy().tobytes()
