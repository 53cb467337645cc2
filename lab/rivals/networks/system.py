"""One training loop for every network: graphs with classes -> the weights of the best validation epoch -> classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError
from egocnn.nn.device import choose_device
from egocnn.train.validation import check_targets
from lab.rivals.gine import make_inputs, seeded
from lab.rivals.networks.encoding import Encoding, Shape
from lab.rivals.networks.layers import Network

STEEPEST = 1.0  # Gradients longer than this are shortened to it.


class BatchSource(Protocol):
    """Graphs made ready once, from which every batch is cut."""

    def cut(self, chosen: Ints, device: torch.device) -> Any:
        """What the network's ``forward`` takes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FlatSource:
    """For networks that pass messages along edges."""

    graphs: Graphs

    def cut(self, chosen: Ints, device: torch.device) -> Any:
        return make_inputs(self.graphs[chosen], device)


def read_flat(encoded: Graphs, shape: Shape) -> BatchSource:  # noqa: ARG001 - other readers need the shape
    return FlatSource(encoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a network is trained."""

    epochs: int = 100
    patience: int = 20  # Epochs without a better validation result after which training stops.
    batch_size: int = 32
    learning_rate: float = 3e-3
    weight_decay: float = 1e-4

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1 or self.batch_size < 1:
            raise ConfigError(f"epochs, patience and batch_size must be at least 1, got {self}")
        if self.learning_rate <= 0 or self.weight_decay < 0:
            raise ConfigError(f"learning_rate must be above 0 and weight_decay at least 0, got {self}")


@dataclass(frozen=True, slots=True)
class Design:
    """A kind of network: how it is built, what it reads, how it is trained."""

    build: Callable[[Shape], Network]
    settings: Settings = Settings()
    read: Callable[[Graphs, Shape], BatchSource] = read_flat


class NetworkSystem:
    """A :class:`~lab.rivals.rival.RivalModel` around one network.

    Trained with AdamW until the epochs or the patience run out; the epoch with the best accuracy on the validation
    graphs, and of equals the one with the least loss, is kept. On a CPU the same seed gives the same weights.
    """

    def __init__(self, design: Design, *, seed: int = 0, device: str = "auto") -> None:
        self.design = design
        self.seed = seed
        self.device = device
        self.parameters: int | None = None
        self.epochs = 0
        """passes over the training graphs"""
        self.validation_accuracy = math.nan
        self._fitted: tuple[Encoding, Shape, Network] | None = None

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        if not graphs.is_classification:
            raise DataError("these graphs have no classes to tell apart")
        check_targets(graphs)
        settings, device = self.design.settings, choose_device(self.device)
        encoding = Encoding.fit(graphs)
        learned, chosen_by = encoding.encode(graphs), encoding.encode(validation)
        if len(chosen_by) == 0 or chosen_by.target is None or (chosen_by.target < 0).any():
            raise DataError("the best epoch is chosen by validation graphs of known classes; there are none")
        shape = Shape.of(learned)
        with seeded(self.seed, device):
            network = self.design.build(shape).to(device)
            most_nodes = max(shape.most_nodes, int(chosen_by.node_counts.max()))
            network.check_size(most_nodes, settings.batch_size, device)
            source, judge = self.design.read(learned, shape), self.design.read(chosen_by, shape)
            optimizer = torch.optim.AdamW(
                network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
            )
            target, judged_target = _targets(learned, device), _targets(chosen_by, device)
            best, kept, best_epoch, epoch = (-math.inf, -math.inf), _copy(network), 0, 0
            while epoch < settings.epochs and epoch - best_epoch < settings.patience:
                epoch += 1
                _train_epoch(network, optimizer, source, target, settings.batch_size)
                judged = _judge(_logits(network, judge, len(chosen_by), settings.batch_size, shape), judged_target)
                if judged > best:
                    best, kept, best_epoch = judged, _copy(network), epoch
        network.load_state_dict(kept)
        network.eval()
        self._fitted = encoding, shape, network
        self.parameters = sum(p.numel() for p in network.parameters() if p.requires_grad)
        self.epochs, self.validation_accuracy = epoch, best[0]
        return self

    def predict(self, graphs: Graphs) -> Ints:
        predicted: Ints = self.logits(graphs).argmax(1).numpy()
        return predicted

    @property
    def network(self) -> Network:
        return self._trained()[2]

    def logits(self, graphs: Graphs) -> Tensor:
        """(G, C)"""
        encoding, shape, network = self._trained()
        encoded, batch_size = encoding.encode(graphs), self.design.settings.batch_size
        device = next(network.parameters()).device
        network.check_size(int(encoded.node_counts.max(initial=0)), batch_size, device)
        with seeded(self.seed, device):
            return _logits(network, self.design.read(encoded, shape), len(encoded), batch_size, shape).cpu()

    def _trained(self) -> tuple[Encoding, Shape, Network]:
        if self._fitted is None:
            raise ConfigError("fit must come before predict")
        return self._fitted


def _train_epoch(
    network: Network, optimizer: torch.optim.Optimizer, source: BatchSource, target: Tensor, batch_size: int
) -> None:
    network.train()
    order = torch.randperm(len(target))
    for chosen in torch.tensor_split(order, math.ceil(len(target) / batch_size)):  # equal sizes: no batch of one
        loss = network.loss(source.cut(chosen.numpy(), target.device), target[chosen.to(target.device)])
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(network.parameters(), STEEPEST)
        optimizer.step()


@torch.no_grad()
def _logits(network: Network, source: BatchSource, count: int, batch_size: int, shape: Shape) -> Tensor:
    network.eval()
    device = next(network.parameters()).device

    def portions() -> Iterator[Tensor]:
        yield torch.zeros(0, shape.classes, device=device)
        for first in range(0, count, batch_size):
            yield network(source.cut(np.arange(first, min(first + batch_size, count)), device))

    return torch.cat(list(portions()))


def _judge(logits: Tensor, target: Tensor) -> tuple[float, float]:
    """Accuracy, then the likelihood: more is better."""
    loss = float(F.cross_entropy(logits, target))
    accuracy = float((logits.argmax(1) == target).double().mean())
    return accuracy, -loss if math.isfinite(loss) else -math.inf


def _targets(graphs: Graphs, device: torch.device) -> Tensor:
    assert graphs.target is not None
    return torch.from_numpy(graphs.target.astype(np.int64)).to(device)


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
