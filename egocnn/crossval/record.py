"""Scores of all folds -> one record, and a table for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The model that the validation part chose, and its one look at the test fold."""

    fold: int
    """from 1"""
    score: float
    """accuracy, or R² where a value is predicted"""
    validation_score: float
    restart: int
    """which of the restarts was chosen, from 1"""
    best_epoch: int
    epochs: int
    test_graphs: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Scores over all folds, with what is needed to judge and to repeat them."""

    model: str
    data: str
    protocol: str
    score: str
    """what is measured: accuracy or r2"""
    mean: float
    std: float
    """of the folds around their mean (n - 1)"""
    interval: tuple[float, float]
    """95% confidence interval of the mean, by Student's t over the folds"""
    folds: tuple[Fold, ...]
    seconds: float
    preparing_seconds: float
    training_seconds: float
    testing_seconds: float
    parameters: int
    """of the largest model: folds may differ in the labels they know"""
    seed: int
    restarts: int
    stacked: bool
    peak_megabytes: float | None
    """of the GPU's memory, or of this process's where the CPU computes; None where the system does not say"""
    settings: dict[str, Any]
    machine: str
    versions: dict[str, str]

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """A table for people."""
        yield "fold   test  validation  restart  best epoch  graphs"
        for f in self.folds:
            yield (
                f"{f.fold:4} {f.score:6.4f}  {f.validation_score:10.4f}  {f.restart:7}  {f.best_epoch:10}"
                f"  {f.test_graphs:6}"
            )
        low, high = self.interval
        name = "accuracy" if self.score == "accuracy" else "R²"
        yield f"{name} {self.mean:.4f} ± {self.std:.4f} (95% interval of the mean: {low:.4f} to {high:.4f})"
        yield (
            f"{len(self.folds)} folds × {self.restarts} restart{'' if self.restarts == 1 else 's'}"
            f" in {self.seconds:.1f} s ({self.preparing_seconds:.1f} preparing, {self.training_seconds:.1f} training"
            f"{', stacked' if self.stacked else ''}), {self.parameters:,} parameters"
        )


def summary(scores: Sequence[float]) -> tuple[float, float, tuple[float, float]]:
    """Mean, standard deviation and the confidence interval of the mean."""
    from scipy.stats import t

    n = len(scores)
    mean, std = float(np.mean(scores)), float(np.std(scores, ddof=1))
    reach = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * std / math.sqrt(n)
    return mean, std, (mean - reach, mean + reach)
