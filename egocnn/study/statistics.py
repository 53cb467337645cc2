"""Scores of folds -> their mean with its interval, and whether two systems truly differ on the same folds. The training
parts of a cross-validation overlap, so its scores are not independent and the plain paired t-test finds differences
that are not there. The corrected resampled test (Nadeau and Bengio, Inference for the generalization error, Machine
Learning 52, 2003) widens the variance of the mean of J differences from s²/J to (1/J + n_test/n_train) s²."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit  # Student's t: distribution and quantiles

from egocnn.data.schema import rule
from egocnn.errors import ConfigError

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """Scores in three numbers."""

    mean: float
    std: float  # of the scores around their mean (n - 1)
    interval: tuple[float, float]  # confidence interval of the mean, by Student's t


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """One system against another on the same folds, by the corrected resampled t-test."""

    difference: float  # mean over the folds, the first system minus the second
    interval: tuple[float, float]  # confidence interval of the difference
    t: float  # infinite where all folds differ by the same amount
    p: float  # two-sided
    folds: int

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"t": self.t if math.isfinite(self.t) else None}  # JSON knows no infinity


def summarise(scores: Sequence[float], *, least: float = -math.inf, most: float = math.inf) -> ScoreSummary:
    """Mean, standard deviation and the interval of the mean; no score is below ``least`` or above ``most``."""
    values = _finite(scores)
    mean, std, n = float(values.mean()), float(values.std(ddof=1)), len(values)
    low, high = _interval(mean, std / math.sqrt(n), n)
    return ScoreSummary(mean=mean, std=std, interval=(max(low, least), min(high, most)))


def corrected_t_test(one: Sequence[float], other: Sequence[float], *, test_over_train: float) -> PairedTest:
    """Compare two systems by fold; ``test_over_train``: graphs tested over graphs trained on, 1/9 for ten folds."""
    needed = "a paired test needs both systems on every fold"
    rule(len(one) == len(other), f"{len(one)} scores against {len(other)}: {needed}")
    rule(0 < test_over_train < math.inf, f"test_over_train must be above 0, got {test_over_train}", ConfigError)
    differences = _finite(np.asarray(one, np.float64) - np.asarray(other, np.float64))
    mean, spread, n = float(differences.mean()), float(differences.std(ddof=1)), len(differences)
    # equal differences leave a spread of rounding errors, which must not count as certainty
    error = spread * math.sqrt(1 / n + test_over_train) if spread > 1e-12 * np.abs(differences).max() else 0.0
    t = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    p = float(2 * stdtr(n - 1, -abs(t)))
    return PairedTest(difference=mean, interval=_interval(mean, error, n), t=t, p=p, folds=n)


def _finite(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    rule(len(values) >= 2, f"{len(values)} score has no spread; at least 2 folds are needed")
    rule(np.isfinite(values).all(), "a score is not finite")
    return values


def _interval(mean: float, error: float, n: int) -> tuple[float, float]:
    reach = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    return mean - reach, mean + reach
