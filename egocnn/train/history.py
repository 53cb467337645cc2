"""What every epoch of a training came to: epochs -> the best one, and how long ago the last gain was. The networks of
one model have a history each; :func:`mean_history` is what they came to on the average."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from egocnn.config import LOWER_IS_BETTER, TrainConfig

SCORES = ("train_loss", "train_score", "validation_loss", "validation_score")
NOTICEABLE = 1e-3  # Where the validation part is all but learned, ever smaller losses are no reason to go on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One line of the history. Scores are accuracies, R² of values, or the loss of several targets; in validation what
    ``monitor`` says, negated in a training where lower is better."""

    epoch: int
    learning_rate: float
    train_loss: float
    train_score: float
    validation_loss: float
    validation_score: float
    seconds: float

    def beats(self, other: "Epoch | None") -> bool:
        """A better validation score, or the same score with a lower loss."""
        own = (self.validation_score, -self.validation_loss)
        return other is None or own > (other.validation_score, -other.validation_loss)


@dataclass(slots=True)
class History:
    """All epochs of a training, the best of them, and whether Ctrl-C has ended it."""

    epochs: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    interrupted: bool = False
    monitor: str = ""  # what the scores in validation are
    averaged: "tuple[History, ...]" = ()  # where this is the mean of several networks: their own histories

    @property
    def of_each(self) -> "tuple[History, ...]":
        """The history of every network of the model."""
        return self.averaged or (self,)

    def add(self, epoch: Epoch, *, window: int = 1) -> bool:
        """Append; true if this epoch is the best so far, by the mean of as many scores as the window is long."""
        self.epochs.append(epoch)
        merit = self._merit(epoch, window)
        is_best = math.isfinite(merit[1]) and (self.best is None or merit > self._merit(self.best, window))
        if is_best:
            self.best = epoch
        return is_best

    def _merit(self, epoch: Epoch, window: int) -> tuple[float, float]:
        """Mean validation score of this epoch and those before it, then their mean loss negated: more is better"""
        last = self.epochs[max(0, epoch.epoch - window) : epoch.epoch]
        return fmean(own.validation_score for own in last), -fmean(own.validation_loss for own in last)

    @property
    def stale(self) -> int:
        """Epochs since the last noticeable gain: a better score, or a loss lower by more than ``NOTICEABLE``."""
        score, loss, at = -math.inf, math.inf, 0
        for epoch in self.epochs:
            if epoch.validation_score > score or epoch.validation_loss < loss - NOTICEABLE:
                score, loss, at = max(score, epoch.validation_score), min(loss, epoch.validation_loss), epoch.epoch
        return len(self.epochs) - at

    def in_unit(self, scale: float = 1.0) -> "History":
        """As people read it: scores of which lower is better as they are, errors in the unit of the target."""
        if self.monitor not in LOWER_IS_BETTER:
            return self
        factor = -scale if self.monitor in ("rmse", "mae") else -1.0
        epochs = [replace(epoch, validation_score=factor * epoch.validation_score) for epoch in self.epochs]
        best = None if self.best is None else epochs[self.best.epoch - 1]
        return replace(self, epochs=epochs, best=best, averaged=tuple(own.in_unit(scale) for own in self.averaged))

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        best = self.best.epoch if self.best else None
        return {"epochs": [asdict(e) for e in self.epochs], "best": best, "monitor": self.monitor}

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> "History":
        """What :meth:`to_plain` was made of."""
        epochs = [Epoch(**e) for e in plain["epochs"]]
        best = None if plain["best"] is None else epochs[plain["best"] - 1]
        return History(epochs, best, monitor=plain["monitor"])


def mean_history(histories: Sequence[History]) -> History:
    """What the networks of a model came to on the average; one that has stopped counts as it was last. The seconds of
    an epoch are those of all networks together."""
    if len(histories) == 1:
        return histories[0]
    interrupted, own = any(each.interrupted for each in histories), tuple(histories)
    mean = History(interrupted=interrupted, monitor=own[0].monitor, averaged=own)
    begun = [each.epochs for each in histories if each.epochs]
    for number in range(1, 1 + max(map(len, begun), default=0)):
        rows = [epochs[min(number, len(epochs)) - 1] for epochs in begun]
        running = [row for row in rows if row.epoch == number]
        scores = {name: fmean(getattr(row, name) for row in rows) for name in SCORES}  # the same in any order
        seconds = math.fsum(row.seconds for row in running)
        mean.add(Epoch(epoch=number, learning_rate=running[0].learning_rate, seconds=seconds, **scores))
    return mean


Report = Callable[[History, TrainConfig], None]
"""Called after every epoch with the history of a network, or the mean of several."""
