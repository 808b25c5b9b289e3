"""Temperature scaling and the measures of calibration (sections "Temperature calibration" and
"Empirical calibration validation").

Notation: n points, S stochastic passes, K classes; logits (n, S, K), probability (n, K), labels
(n,) in 1..K. A calibration turns held-out logits into a ``Scaling``: ``Temperature`` is the paper's,
``MatrixScaling`` ours where one temperature cannot serve all classes, ``Uncalibrated`` the null
object. The confidence of a prediction is its largest probability, its accuracy whether that class
is the label; ECE, MCE and ACE compare the two in bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, softmax
from scipy.stats import rankdata

from neuropareto.space import Array

Labels = npt.NDArray[np.integer]


def tempered(logits: Array, temperature: float) -> Array:
    """Probabilities exp(z_k / T) / sum_j exp(z_j / T) along the last axis.

    Paper: Eq. temp_softmax. Shapes (..., K) -> (..., K).
    """
    return np.asarray(softmax(np.asarray(logits, dtype=np.float64) / temperature, axis=-1))


def mean_nll(logits: Array, labels: Labels, temperature: float) -> float:
    """Average of -log p(y | x) with p the mean over passes of the tempered softmax.

    Paper: the objective of Eq. temp_opt with the predictor of Eq. mc_temp_predict. Logits
    (n, S, K), labels (n,) in 1..K.
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    log_p = scaled - logsumexp(scaled, axis=-1, keepdims=True)
    chosen = log_p[np.arange(len(labels)), :, np.asarray(labels) - 1]
    return float(-np.mean(logsumexp(chosen, axis=1) - np.log(chosen.shape[1])))


class Scaling(Protocol):
    """A map of logits that was fitted to held-out ones."""

    @property
    def temperature(self) -> float:
        """The temperature, or the one that scales as much on the average of the classes."""
        ...

    def applied(self, logits: Array) -> Array:
        """Calibrated logits, (..., K) -> (..., K); their softmax is the prediction."""
        ...


class Calibration(Protocol):
    """How held-out logits become a scaling."""

    def scaling(self, logits: Array, labels: Labels) -> Scaling:
        """The scaling for held-out logits (n, S, K) and labels (n,); n may be 0."""
        ...


@dataclass(frozen=True)
class Tempered:
    """z -> z / T. Paper: Eq. temp_softmax."""

    temperature: float

    def applied(self, logits: Array) -> Array:
        """Logits over the temperature."""
        return logits / self.temperature


@dataclass(frozen=True, eq=False)
class Affine:
    """z -> A (z - mean_k z_k) + b with ``matrix`` A (K, K) and ``shift`` b (K,)."""

    matrix: Array
    shift: Array

    @property
    def temperature(self) -> float:
        """K / trace(A): for A = I / T it is T."""
        return float(len(self.matrix) / np.trace(self.matrix))

    def applied(self, logits: Array) -> Array:
        """Centred, mixed and shifted logits."""
        return np.asarray(_centred(logits) @ self.matrix.T + self.shift)


@dataclass(frozen=True)
class Temperature:
    """T = argmin of the held-out negative log-likelihood, in [1 / limit, limit].

    Paper: Eqs. temp_softmax, temp_opt. A log-normal prior around T = 1 with standard deviation
    ``prior_std`` of log T weighs about as much as one observation: it decides when nothing is held
    out or every held-out label is right, and vanishes as data come in.
    """

    prior_std: float = 1.0
    limit: float = 20.0

    def __post_init__(self) -> None:
        if not (self.prior_std > 0 and self.limit > 1):
            raise ValueError(
                f"Temperature needs prior_std > 0 and limit > 1, got {self.prior_std} and "
                f"{self.limit}."
            )

    def scaling(self, logits: Array, labels: Labels) -> Tempered:
        """Division by the most probable temperature."""
        return Tempered(self.temperature(logits, labels))

    def temperature(self, logits: Array, labels: Labels) -> float:
        """The most probable temperature for held-out logits (n, S, K) and labels (n,)."""
        n = len(labels)
        if n == 0:
            return 1.0

        def loss(log_t: float) -> float:
            prior = 0.5 * (log_t / self.prior_std) ** 2 / n
            return mean_nll(logits, labels, float(np.exp(log_t))) + prior

        reach = float(np.log(self.limit))
        found = minimize_scalar(
            loss, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-4}
        )
        return float(np.exp(found.x))


@dataclass(frozen=True)
class MatrixScaling:
    """A = s I + D and b of z -> A z + b that minimise the held-out negative log-likelihood.

    Priors: log s normal with standard deviation ``prior_std``, the K^2 entries of D and the K of b
    normal around 0 with ``mixing_std`` and ``shift_std``. With D = b = 0 it is temperature scaling;
    it helps where some classes are easy to tell and others are not, which no single temperature can
    express: the easy ones come out too unsure and the hard ones too sure.
    """

    prior_std: float = 1.0
    mixing_std: float = 0.3
    shift_std: float = 1.0
    limit: float = 20.0

    def __post_init__(self) -> None:
        if min(self.prior_std, self.mixing_std, self.shift_std) <= 0 or self.limit <= 1:
            raise ValueError(
                f"MatrixScaling needs positive standard deviations and limit > 1, got "
                f"{self.prior_std}, {self.mixing_std}, {self.shift_std} and {self.limit}."
            )

    def scaling(self, logits: Array, labels: Labels) -> Affine:
        """The most probable affine map for held-out logits (n, S, K) and labels (n,)."""
        k = logits.shape[2]
        if len(labels) == 0:
            return Affine(np.eye(k), np.zeros(k))
        z, y = _centred(logits), np.asarray(labels) - 1
        spread = np.concatenate(
            [[self.prior_std], np.full(k * k, self.mixing_std), np.full(k, self.shift_std)]
        )

        def loss(x: Array) -> tuple[float, Array]:
            value, slope = _affine_nll(x, z, y)
            return value + 0.5 * float(np.sum((x / spread) ** 2)), slope + x / spread**2

        reach = float(np.log(self.limit))
        bounds = [(-reach, reach)] + [(None, None)] * (len(spread) - 1)
        found = minimize(
            loss, np.zeros(len(spread)), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 200},
        )  # fmt: skip
        return Affine(*_unpacked(found.x, k))


@dataclass(frozen=True)
class Uncalibrated:
    """No temperature scaling: T = 1 whatever was held out."""

    def scaling(self, logits: Array, labels: Labels) -> Tempered:
        """Division by 1."""
        return Tempered(1.0)

    def temperature(self, logits: Array, labels: Labels) -> float:
        """Always 1."""
        return 1.0


@dataclass(frozen=True)
class Reliability:
    """The data of a reliability diagram over the bins that hold points, each field (b,).

    ``lower`` and ``upper`` bound each bin of confidence; ``confidence`` and ``accuracy`` are the
    averages of its ``count`` points. A calibrated model lies on the diagonal.
    """

    lower: Array
    upper: Array
    confidence: Array
    accuracy: Array
    count: npt.NDArray[np.int64]

    @property
    def gap(self) -> Array:
        """|accuracy - confidence| of each bin, (b,)."""
        return np.abs(self.accuracy - self.confidence)

    @property
    def error(self) -> float:
        """The gap averaged over points: the calibration error of these bins."""
        return float(np.average(self.gap, weights=self.count))


def reliability(probability: Array, labels: Labels, bins: int = 15) -> Reliability:
    """Confidence against accuracy in ``bins`` equally wide bins of confidence.

    Probability (n, K), labels (n,) in 1..K. Raises ValueError on wrong shapes or n = 0.
    """
    confidence, right = _confidence(probability, labels, bins)
    # Bins are open on the left, so that confidence 1 falls into the last one.
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    used, place = np.unique(place, return_inverse=True)
    return _averaged(confidence, right, place, used / bins, (used + 1) / bins)


def adaptive_reliability(probability: Array, labels: Labels, bins: int = 15) -> Reliability:
    """Confidence against accuracy in ``bins`` bins that hold about equally many points.

    Equal confidences stay in one bin, so the result does not depend on the order of the points.
    A bin reaches from the smallest to the largest confidence in it.
    """
    confidence, right = _confidence(probability, labels, bins)
    place = ((rankdata(confidence) - 0.5) * bins / len(confidence)).astype(np.int64)
    place = np.unique(place, return_inverse=True)[1]
    lower, upper = np.ones(place.max() + 1), np.zeros(place.max() + 1)
    np.minimum.at(lower, place, confidence)
    np.maximum.at(upper, place, confidence)
    return _averaged(confidence, right, place, lower, upper)


def ece(probability: Array, labels: Labels, bins: int = 15) -> float:
    """Expected calibration error: sum over bins of (n_b / n) |accuracy_b - confidence_b|."""
    return reliability(probability, labels, bins).error


def mce(probability: Array, labels: Labels, bins: int = 15) -> float:
    """Maximum calibration error: the largest |accuracy_b - confidence_b| of any bin."""
    return float(reliability(probability, labels, bins).gap.max())


def ace(probability: Array, labels: Labels, bins: int = 15) -> float:
    """Adaptive calibration error: as :func:`ece`, in bins of equal mass."""
    return adaptive_reliability(probability, labels, bins).error


def _centred(logits: Array) -> Array:
    """Logits with mean 0 over the classes: softmax does not see the mean, a matrix would."""
    z = np.asarray(logits, dtype=np.float64)
    return np.asarray(z - z.mean(axis=-1, keepdims=True))


def _unpacked(x: Array, k: int) -> tuple[Array, Array]:
    """x = (log s, D, b) as the matrix s I + D and the shift b."""
    return np.exp(x[0]) * np.eye(k) + x[1 : 1 + k * k].reshape(k, k), x[1 + k * k :]


def _affine_nll(x: Array, z: Array, y: Labels) -> tuple[float, Array]:
    """Sum of -log mean_s softmax(A z_s + b)_y over the points and its gradient in x."""
    n, passes, k = z.shape
    matrix, shift = _unpacked(x, k)
    scores = z @ matrix.T + shift
    # In place and without SciPy's logsumexp, which takes twice as long on arrays this small.
    scores -= scores.max(axis=-1, keepdims=True)
    at_label = scores[np.arange(n), :, y]
    error = np.exp(scores, out=scores)
    mass = error.sum(axis=-1)
    chosen = at_label - np.log(mass)
    error /= mass[:, :, None]
    error[np.arange(n), :, y] -= 1.0
    # A pass counts by its share in the probability of the label.
    likeliest = chosen.max(axis=1, keepdims=True)
    share = np.exp(chosen - likeliest)
    total = share.sum(axis=1, keepdims=True)
    error *= (share / total)[:, :, None]
    by_matrix = error.reshape(-1, k).T @ z.reshape(-1, k)
    slope = np.concatenate(
        [[np.exp(x[0]) * np.trace(by_matrix)], by_matrix.ravel(), error.sum(axis=(0, 1))]
    )
    return float(np.sum(np.log(passes) - likeliest - np.log(total))), slope


def _averaged(
    confidence: Array, right: Array, place: npt.NDArray[np.int64], lower: Array, upper: Array
) -> Reliability:
    count = np.bincount(place)
    return Reliability(
        lower=lower,
        upper=upper,
        confidence=np.bincount(place, weights=confidence) / count,
        accuracy=np.bincount(place, weights=right) / count,
        count=count,
    )


def _confidence(probability: Array, labels: Labels, bins: int) -> tuple[Array, Array]:
    """The largest probability of each point, and 1 where its class is the label, else 0."""
    p, y = np.asarray(probability, dtype=np.float64), np.asarray(labels)
    if p.ndim != 2 or y.shape != (len(p),) or len(p) == 0:
        raise ValueError(
            f"Calibration needs probabilities (n, K) and labels (n,) with n >= 1, got shapes "
            f"{p.shape} and {y.shape}."
        )
    if y.min() < 1 or y.max() > p.shape[1]:
        raise ValueError(
            f"Labels must lie in 1..{p.shape[1]}, one class per column, got {y.min()}..{y.max()}."
        )
    if bins < 1:
        raise ValueError(f"A reliability diagram needs at least one bin, got {bins}.")
    return p.max(axis=1), (p.argmax(axis=1) + 1 == y).astype(np.float64)
