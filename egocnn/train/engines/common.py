"""What the loop and its engines share: the networks to train, how far each has come, and the rules of every epoch. All
random numbers of an epoch follow from the seed of the network and the number of the epoch.

Among the rules is which nodes a training step leaves out. A network that sees parts of graphs while it learns can be
asked what a graph would be without one of its parts. A share of the graphs is shown in part: of each a share of the
nodes, drawn between nothing and ``missing``, is absent. The choice is a hash of seed, epoch and number, so it does not
depend on batches, engines or processes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import unwrap
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from egocnn.config import Precision, TrainConfig
from egocnn.data.arrays import Bools
from egocnn.encode.batch import ranges
from egocnn.nn.batch import Batchable
from egocnn.nn.engines.padded import GOLDEN, mix
from egocnn.nn.model import EgoCNN
from egocnn.train.history import Epoch, History
from egocnn.train.metrics import SeveralTargets

WARM_UP = 0.05  # Share of all steps over which the learning rate rises.
STEEPEST = 1.0  # Gradients longer than this are shortened to it: one odd batch must not throw a deep network off.
IS_PART, SHARE, NODE = range(1, 4)
"""Independent draws: whether a graph is shown in part, how much of it is missing, and which nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One of the R networks that are trained together."""

    network: EgoCNN
    train: Batchable
    validation: Batchable  # the graphs that choose the best epoch
    seed: int

    def weights(self, config: TrainConfig) -> Tensor | SeveralTargets | None:
        """What :func:`egocnn.train.metrics.loss_of` takes: (C) weights that make every class count alike, if wanted."""
        widths, target, C = self.network.widths, self.train.target, self.network.out.out_features
        if widths and target is not None:
            return SeveralTargets.of(widths, target, balanced=config.class_weights)
        if not config.class_weights or target is None or target.is_floating_point():
            return None
        return len(target) / (C * torch.bincount(target, minlength=C).clamp(min=1).float())


@dataclass  # without slots, so that the optimiser is made on demand
class Progress:
    """Everything of a network that must survive a crash: weights, best weights, optimiser and history."""

    network: EgoCNN
    config: TrainConfig
    best: dict[str, Tensor]
    history: History = field(default_factory=History)

    @staticmethod
    def begin(network: EgoCNN, config: TrainConfig) -> "Progress":
        """Before the first epoch."""
        return Progress(network, config, copy_of(network))

    @cached_property
    def optimizer(self) -> "AdamW":
        """Made when it is first asked for: steps that are recorded do without."""
        parameters, rate, decay = list(self.network.parameters()), self.config.learning_rate, self.config.weight_decay
        return AdamW(parameters, lr=rate, weight_decay=decay, fused=parameters[0].device.type == "cpu" or None)

    @property
    def goes_on(self) -> bool:
        """Whether there are epochs left, and patience."""
        return len(self.history.epochs) < self.config.epochs and self.history.stale < self.config.patience


class AdamW(torch.optim.AdamW):
    """torch's own without the wrappers whose first call would import its compiler, which takes seconds."""

    add_param_group: Any = unwrap(torch.optim.AdamW.add_param_group)
    state_dict: Any = unwrap(torch.optim.AdamW.state_dict)
    load_state_dict: Any = unwrap(torch.optim.AdamW.load_state_dict)
    zero_grad: Any = unwrap(torch.optim.AdamW.zero_grad)
    step: Any = torch.no_grad()(unwrap(torch.optim.AdamW.step))


class Engine(Protocol):
    """Computes the epochs of R networks. It is built from members, their progress and the settings."""

    def train_epoch(self, epoch: int, alive: Bools) -> Mapping[int, Epoch]: ...  # of the networks not stopped, (R)
    def keep_best(self, improved: Bools) -> None: ...  # the weights of those (R) whose last epoch is their best
    def update_progress(self) -> None: ...  # of every network, to be stored
    def finish(self) -> None: ...  # leaves the best weights in the networks, and frees what was computed with


Build = Callable[[Sequence[Member], Sequence[Progress], TrainConfig], Engine]


def copy_of(network: EgoCNN) -> dict[str, Tensor]:
    """All weights and buffers as they are now."""
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def epoch_seed(seed: int, *numbers: int) -> int:
    """The seed of an epoch, given by its number; with a rank, that of what one process draws in it."""
    return int(np.random.SeedSequence([seed, *numbers]).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def reseeding(random: torch.Generator | None, device: torch.device) -> Iterator[Callable[[int], object]]:
    """What seeds a generator, by default torch's own; in the end its state is what it was."""
    if random is None:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield torch.manual_seed
        return
    before = random.get_state()
    try:
        yield random.manual_seed
    finally:
        random.set_state(before)


def is_lower(precision: Precision, device: torch.device) -> bool:
    """bfloat16 matrix products pay on a GPU; a CPU always computes in float32."""
    return device.type == "cuda" and precision in ("auto", "bfloat16")


def rate(done: float, config: TrainConfig) -> float:
    """Share of the full learning rate after this share of all steps: a short rise, then a cosine to zero."""
    if config.schedule == "constant":
        return 1.0
    return min(1.0, (done + 1e-3) / WARM_UP) * (1 + math.cos(math.pi * done)) / 2


def present_nodes(seed: Tensor, epoch: Tensor, graph: Tensor, node: Tensor, config: TrainConfig) -> Tensor:
    """(...) whether each node is there, given the numbers of the node and of its graph in their collection"""
    key = mix(mix(seed) + epoch * GOLDEN)
    is_part = _uniform(key, IS_PART, graph) < config.parts
    share = _uniform(key, SHARE, graph) * config.missing
    return ~is_part | (_uniform(key, NODE, node) >= share)


def present_in(data: Batchable, chosen: Tensor, seed: int, epoch: int, config: TrainConfig) -> Tensor | None:
    """(N) which nodes of the chosen graphs are there; None where all are, or hardly any would be"""
    if config.parts == 0 or config.missing == 0:
        return None
    first, counts = data.node_ptr[chosen], data.node_ptr[chosen + 1] - data.node_ptr[chosen]
    of_epoch = torch.tensor([seed, epoch], device=chosen.device)
    there = present_nodes(of_epoch[0], of_epoch[1], chosen.repeat_interleave(counts), ranges(first, counts), config)
    # a single node has no spread for the norms to learn
    return None if there.all() or int(there.sum()) < 2 else there


def _uniform(key: Tensor, stream: int, number: Tensor) -> Tensor:
    """(...) between 0 and 1, independent for every stream and number"""
    bits = mix(mix(key + stream) + number * GOLDEN)
    return ((bits >> 40) & 0xFFFFFF).float() / (1 << 24)
