"""The one training loop: prepared graphs + a network -> the network with its best weights, and the history.

Every random choice of epoch e follows from (seed, e) alone. A run that is killed and resumed from its last
checkpoint therefore ends with the same weights as an unbroken one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.errors import DataError
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.train.memory import Lesson, by_halves

NODES_AT_ONCE = 1 << 15
"""Nodes per batch where nothing is learned: bounds the memory."""

WARM_UP = 0.05
"""Share of all steps over which the learning rate rises."""

NOTICEABLE = 1e-3
"""Where the validation part is all but learned, ever smaller losses are no reason to go on."""

STEEPEST = 1.0
"""Gradients longer than this are shortened to it: one odd batch must not throw a deep network off."""


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


@dataclass(slots=True)
class Progress:
    """Everything that must survive a crash: weights, best weights, optimiser and history."""

    network: EgoCNN
    optimizer: torch.optim.AdamW
    best: dict[str, Tensor]
    history: History


Report = Callable[[History, TrainConfig], None]
Keep = Callable[[Progress], None]
RunEpoch = Callable[[int], Epoch]
"""Trains through the epoch of this number, scores it, and leaves the progress as it is after it."""
Data = TypeVar("Data", bound=Batchable)
Engine = Callable[[Progress, Data, Data, TrainConfig], RunEpoch]
"""How epochs are computed: :func:`batch_by_batch`, :mod:`egocnn.train.engines.recorded.alone`, or :mod:`egocnn.train.engines.distributed.fit`."""


def fit(
    network: EgoCNN,
    train: Data,
    validation: Data,
    config: TrainConfig,
    *,
    engine: Engine[Data] | None = None,
    resume: Callable[[Progress], None] | None = None,
    keep: Keep | None = None,
    report: Report | None = None,
) -> History:
    """Train until the epochs or the patience run out, or Ctrl-C; leave the best weights in the network.

    ``engine`` computes the epochs, by default :func:`batch_by_batch`; ``resume`` fills a fresh :class:`Progress` from
    a checkpoint, ``keep`` stores it after every epoch, ``report`` tells the user.
    """
    network = network.to(choose_device(config.device))
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    progress = Progress(network, optimizer, _copy(network.state_dict()), History())
    if resume is not None:
        resume(progress)
    history = progress.history
    try:
        run = (engine or batch_by_batch)(progress, train, validation, config)
        while len(history.epochs) < config.epochs and history.stale < config.patience:
            improved = history.add(run(len(history.epochs) + 1), window=config.window(len(validation)))
            if improved:
                progress.best = _copy(network.state_dict())
            if keep is not None:
                keep(progress)
            if report is not None:
                report(history, config)
    except KeyboardInterrupt:
        history.interrupted = True
    network.load_state_dict(progress.best)
    network.eval()
    return history


def batch_by_batch(progress: Progress, train: Batchable, validation: Batchable, config: TrainConfig) -> RunEpoch:
    """The plain way: every batch is cut out, sent through the network and forgotten; in parts where memory is short."""
    device = choose_device(config.device)
    train, validation = train.to(device), validation.to(device)
    weights = class_weights(train, progress.network.out.out_features) if config.class_weights else None

    def forward(chosen: Tensor) -> tuple[Tensor, Tensor]:
        batch = train.batch(chosen)
        assert batch.target is not None
        with arithmetic(config, device):
            outputs = progress.network(batch).output
        return outputs.float(), batch.target

    lesson = Lesson(progress.network, forward, partial(loss_of, weights=weights), partial(weight_of, weights=weights))
    return epoch_by_epoch(
        progress,
        config,
        lambda epoch: _train_epoch(progress, train, lesson, config, epoch),
        lambda: evaluate(progress.network, validation, weights=weights),
    )


def epoch_by_epoch(
    progress: Progress,
    config: TrainConfig,
    train: Callable[[int], tuple[float, float]],
    validate: Callable[[], tuple[float, float]],
) -> RunEpoch:
    """Train, then validate, both giving loss and score; all random numbers of an epoch follow from its number."""
    device = choose_device(config.device)

    def run(epoch: int) -> Epoch:
        started = time.perf_counter()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(epoch_seed(config.seed, epoch))
            train_loss, train_score = train(epoch)
            loss, score = validate()
        return Epoch(
            epoch=epoch,
            learning_rate=progress.optimizer.param_groups[0]["lr"],
            train_loss=train_loss,
            train_score=train_score,
            validation_loss=loss,
            validation_score=score,
            seconds=time.perf_counter() - started,
        )

    return run


def _train_epoch(
    progress: Progress, train: Batchable, lesson: Lesson, config: TrainConfig, epoch: int
) -> tuple[float, float]:
    batches = shuffled(train, config)
    results = Scores()
    for number, chosen in enumerate(batches):
        set_rate(progress.optimizer, (epoch - 1 + number / len(batches)) / config.epochs, config)
        nodes = (train.node_ptr[chosen + 1] - train.node_ptr[chosen]).sum()
        learn_norms(progress.network, graphs=len(chosen), nodes=int(nodes))
        results.add(*lesson.learn(chosen))
        step_down(progress)
    return results.loss, results.score


def shuffled(train: Batchable, config: TrainConfig) -> tuple[Tensor, ...]:
    """The numbers of all graphs in random order, cut into batches."""
    order = torch.randperm(len(train), device="cpu").to(train.node_ptr.device)
    return torch.tensor_split(order, math.ceil(len(train) / config.batch_size))  # equal sizes: no batch of one


def learn_norms(network: EgoCNN, *, graphs: int, nodes: int) -> None:
    """Training mode, as far as a batch of this size allows."""
    network.train(nodes > 1)  # a single node has no spread for the norms to learn
    for norm in (network.pool_norm, network.norm):
        norm.train(network.training and graphs > 1)  # nor has a single graph for those of the head


def descend(progress: Progress, loss: Tensor) -> None:
    """One step down the slope of the loss."""
    progress.optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    step_down(progress)


def step_down(progress: Progress) -> None:
    """One step down the slope that the gradients tell."""
    torch.nn.utils.clip_grad_norm_(progress.network.parameters(), STEEPEST)
    progress.optimizer.step()


@torch.no_grad()
def evaluate(network: EgoCNN, data: Batchable, *, weights: Tensor | None = None) -> tuple[float, float]:
    """Loss and score (accuracy, or R²) in evaluation mode."""
    if data.target is None:
        raise DataError("these graphs have no target to compare with")
    outputs = predict(network, data)
    results = Scores()
    results.add(outputs, data.target, loss_of(outputs, data.target, weights))
    return results.loss, results.score


@torch.no_grad()
def predict(network: EgoCNN, data: Batchable) -> Tensor:
    """The network's outputs (G, C) for all graphs, in order; full precision, evaluation mode."""
    network.eval()

    def run(chosen: Tensor) -> Tensor:
        logits: Tensor = network(data.batch(chosen)).output
        return logits

    return torch.cat([logits for chosen in portions(data) for logits in by_halves(run, chosen)])


def portions(data: Batchable) -> Iterator[Tensor]:
    """All graphs in order, cut so that no portion has many more than ``NODES_AT_ONCE`` nodes."""
    cut = torch.div(data.node_ptr[1:] - 1, NODES_AT_ONCE, rounding_mode="floor")
    _, counts = torch.unique_consecutive(cut, return_counts=True)
    yield from torch.split(torch.arange(len(data), device=data.node_ptr.device), counts.tolist())


class Scores:
    """Loss and score over batches, summed up on the device without waiting for it."""

    def __init__(self) -> None:
        self._outputs: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._losses: list[Tensor] = []

    def add(self, outputs: Tensor, target: Tensor, loss: Tensor) -> None:
        self._outputs.append(outputs)
        self._targets.append(target)
        self._losses.append(loss * len(target))

    @property
    def loss(self) -> float:
        return float(torch.stack(self._losses).sum()) / sum(map(len, self._targets))

    @property
    def score(self) -> float:
        outputs, target = torch.cat(self._outputs), torch.cat(self._targets)
        if not target.is_floating_point():
            return float((outputs.argmax(1) == target).double().mean())
        rest = (outputs[:, 0] - target).double().square().sum()
        spread = (target - target.mean()).double().square().sum()
        return float(1 - rest / spread) if spread > 0 else 0.0


def loss_of(outputs: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy for classes, mean squared error for (standardised) values."""
    if target.is_floating_point():
        return F.mse_loss(outputs[:, 0], target)
    return F.cross_entropy(outputs, target, weight=weights)


def weight_of(target: Tensor, weights: Tensor | None) -> Tensor | float:
    """What the graphs count together in the mean that the loss is."""
    return len(target) if weights is None else weights[target].sum()


def set_rate(optimizer: torch.optim.Optimizer, done: float, config: TrainConfig) -> None:
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate * rate(done, config)


def rate(done: float, config: TrainConfig) -> float:
    """Share of the full learning rate after this share of all steps: a short rise, then a cosine to zero."""
    if config.schedule == "constant":
        return 1.0
    return min(1.0, (done + 1e-3) / WARM_UP) * (1 + math.cos(math.pi * done)) / 2


def choose_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise DataError("--device cuda: this machine has no CUDA device that torch can use")
    return torch.device(device)


def arithmetic(config: TrainConfig, device: torch.device) -> Any:
    """bfloat16 matrix products pay on a GPU; a CPU always computes in float32."""
    if device.type == "cuda" and config.precision in ("auto", "bfloat16"):
        return torch.autocast("cuda", torch.bfloat16)
    return nullcontext()


def class_weights(train: Batchable, n_classes: int) -> Tensor | None:
    if train.target is None or train.target.is_floating_point():
        return None
    counts = torch.bincount(train.target, minlength=n_classes).clamp(min=1)
    return len(train.target) / (n_classes * counts.float())


def epoch_seed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _copy(state: dict[str, Any]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in state.items()}
