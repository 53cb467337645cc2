"""What every epoch of a training came to: epochs -> the best one, and how long ago the last gain was."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from egocnn.config import TrainConfig

NOTICEABLE = 1e-3
"""Where the validation part is all but learned, ever smaller losses are no reason to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One line of the history. Scores are accuracies, or R² where a value is predicted."""

    epoch: int
    learning_rate: float
    train_loss: float
    train_score: float
    validation_loss: float
    validation_score: float
    seconds: float

    def beats(self, other: Epoch | None) -> bool:
        """A better validation score, or the same score with a lower loss."""
        if other is None:
            return True
        return (self.validation_score, -self.validation_loss) > (other.validation_score, -other.validation_loss)


@dataclass(slots=True)
class History:
    epochs: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    interrupted: bool = False

    def add(self, epoch: Epoch, *, window: int = 1) -> bool:
        """Append; true if this epoch is the best so far, by the mean of as many scores as the window is long."""
        self.epochs.append(epoch)
        standing = self._standing(epoch, window)
        if math.isfinite(standing[1]) and (self.best is None or standing > self._standing(self.best, window)):
            self.best = epoch
            return True
        return False

    def _standing(self, epoch: Epoch, window: int) -> tuple[float, float]:
        """Mean validation score of this epoch and those before it, then their mean loss turned round: more is better"""
        last = self.epochs[max(0, epoch.epoch - window) : epoch.epoch]
        # fsum: the same scores in another order are the same
        score, loss = (math.fsum(e.validation_score for e in last), math.fsum(e.validation_loss for e in last))
        return score / len(last), -loss / len(last)

    @property
    def stale(self) -> int:
        """Epochs since the last noticeable gain: a better score, or a loss lower by more than ``NOTICEABLE``."""
        score, loss, at = -math.inf, math.inf, 0
        for epoch in self.epochs:
            if epoch.validation_score > score or epoch.validation_loss < loss - NOTICEABLE:
                score, loss = max(score, epoch.validation_score), min(loss, epoch.validation_loss)
                at = epoch.epoch
        return len(self.epochs) - at

    def to_plain(self) -> dict[str, Any]:
        return {"epochs": [asdict(e) for e in self.epochs], "best": self.best.epoch if self.best else None}

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> History:
        epochs = [Epoch(**e) for e in plain["epochs"]]
        return History(epochs, None if plain["best"] is None else epochs[plain["best"] - 1])


Report = Callable[[History, TrainConfig], None]
"""Told after every epoch how far a network has come."""
