"""One step of all replicas: the graphs chosen for it -> parameters changed, losses added up; nothing read back. On a
GPU the step is recorded once per batch shape as a CUDA graph and then replayed, at the cost of one launch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from egocnn.config import Precision, TrainConfig
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn.engines.padded import Mode
from egocnn.nn.rows import Learning
from egocnn.nn.stacked import StackedBatch, StackedNetwork
from egocnn.train.engines.common import is_lower, present_nodes
from egocnn.train.engines.recorded.adamw import StackedAdamW
from egocnn.train.engines.recorded.batches import BatchShape, EpochPlan, batch_of

WARM_UP = 2  # Runs before a step is recorded: kernels are compiled and libraries set up in them.


class RecordedStep(ABC):
    """A step, recorded and replayed on a GPU; its number is counted on the device, so that a replayed one moves on."""

    def __init__(
        self, data: EncodedGraphs, network: StackedNetwork, chosen: Tensor, class_weights: Tensor | None, pool: Any
    ) -> None:
        self._data, self._network, self._class_weights, self._pool = data, network, class_weights, pool
        self._device = device = data.node_ptr.device
        self._chosen = chosen.to(device)  # (S, R, B) of all steps
        self.number = torch.zeros(1, dtype=torch.int64, device=device)
        self.enabled = torch.ones((), dtype=torch.bool, device=device)
        """false in warm-up, when a step computes everything and changes nothing"""
        self.sums = torch.zeros(5, chosen.shape[1], dtype=torch.float64, device=device)
        """losses times weights, weights, graphs, hits, and the mean losses of steps times their graphs"""
        self._recordings: dict[BatchShape, torch.cuda.CUDAGraph] = {}

    def restart(self) -> None:
        """Begin with the first step again, and with empty sums."""
        self.number.zero_()
        self.sums.zero_()

    def free(self) -> None:
        """Drop all recordings: they hold memory of the GPU."""
        self._recordings.clear()

    def __call__(self, shape: BatchShape) -> None:
        if self._device.type != "cuda":
            self._compute(shape)
            return
        if shape not in self._recordings:
            self._recordings[shape] = self._record(shape)
        self._recordings[shape].replay()

    @abstractmethod
    def _compute(self, shape: BatchShape) -> None: ...

    def _batch(self, shape: BatchShape) -> StackedBatch:
        return batch_of(self._data, self._chosen.index_select(0, self.number)[0], shape)

    @torch.no_grad()
    def _count(self, found: tuple[Tensor, Tensor, Tensor], exists: Tensor, active: Tensor) -> None:
        """Add what :func:`graph_losses` has found to the sums of the active replicas (R), and go on to the next step"""
        (loss, weight, hit), graphs = found, exists.sum(1)
        each = (loss.sum(1), weight.sum(1), graphs, hit.sum(1), mean_loss(loss, weight) * graphs)
        self.sums.add_(torch.where(active, torch.stack([one.double() for one in each]), 0))
        self.number.add_(self.enabled)

    def _record(self, shape: BatchShape) -> torch.cuda.CUDAGraph:
        self.enabled.fill_(False)
        aside = _recording_stream(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self._compute(shape)
        torch.cuda.current_stream(self._device).wait_stream(aside)
        self.enabled.fill_(True)
        graph = torch.cuda.CUDAGraph()
        # relaxed: a kernel may be met here for the first time, and loading it is allowed only so
        with torch.cuda.graph(graph, pool=self._pool, stream=aside, capture_error_mode="relaxed"):
            self._compute(shape)
        return graph


class StackedPresence:
    """:func:`~egocnn.train.engines.common.present_in` for R replicas: the same nodes, without waiting for the device.
    Replicas count graphs and nodes in their own collections, which begin somewhere in the tensors of all."""

    def __init__(self, seeds: Tensor, first_graph: Tensor, node_ptr: Tensor, config: TrainConfig) -> None:
        """seeds (R), first_graph (R): where the graphs that each replica learns from begin; node_ptr of all graphs"""
        self._seeds, self._config = seeds[:, None], config
        self._first_graph, self._first_node = first_graph[:, None], node_ptr[first_graph][:, None]
        self.epoch = torch.zeros((), dtype=torch.int64, device=seeds.device)
        """on the device, since a step that was recorded in one epoch is replayed in all"""

    def of(self, batch: StackedBatch) -> Tensor:
        """(R, M) whether each node is there; not padding, and all nodes of a replica that would be left with under 2"""
        graph = batch.graph.gather(1, batch.graph_of.clamp(max=len(batch) - 1)) - self._first_graph
        node = batch.node - self._first_node
        there = present_nodes(self._seeds, self.epoch, graph, node, self._config) & batch.present
        return torch.where(there.sum(1, keepdim=True) < 2, batch.present, there)


class TrainingStep(RecordedStep):
    """Forward, backward and update; ``chosen`` (S, R, B) says how large the plans of epochs are."""

    def __init__(
        self, *own: Any, optimizer: StackedAdamW, seeds: Tensor, presence: StackedPresence | None, precision: Precision
    ) -> None:
        super().__init__(*own)
        self._optimizer, self._seeds, self._presence = optimizer, seeds, presence
        self._lower_precision = is_lower(precision, self._device)
        self._parameters = list(self._network.parameters.values())
        self._rates = torch.zeros(self._chosen.shape[:2], dtype=torch.float64, device=self._device)

    def begin(self, plan: EpochPlan) -> None:
        """Take up an epoch."""
        self._chosen.copy_(torch.from_numpy(plan.chosen))
        self._rates.copy_(torch.from_numpy(plan.learning_rate))
        if self._presence is not None:
            self._presence.epoch.fill_(plan.number)
        self.restart()

    def _compute(self, shape: BatchShape) -> None:
        rate = self._rates.index_select(0, self.number)[0]
        batch = self._batch(shape)
        active = batch.exists.any(1) & self.enabled
        rows = max(shape.nodes, batch.exists.shape[1])
        dropout = self._network.draw(self._seeds, self._optimizer.steps, rows=rows)
        there = None if self._presence is None else self._presence.of(batch)
        mode = Mode.of(batch.present if there is None else there, active, parts=there is not None)
        # recorded casts must be replayed every time, so none may come from the cache
        with torch.autocast("cuda", torch.bfloat16, enabled=self._lower_precision, cache_enabled=False):
            logits = self._network.logits(batch, Learning(mode, dropout), there)
        found = graph_losses(logits, batch, self._class_weights, self._network.network.widths)
        gradients = torch.autograd.grad(mean_loss(*found[:2]).sum(), self._parameters)
        self._optimizer.step(gradients, rate, active)
        self._count(found, batch.exists, active)


class EvaluationStep(RecordedStep):
    """Forward in evaluation mode, in full precision, over the same portions in every epoch."""

    _outputs: Tensor | None = None  # (S, R, B, C) of all steps

    @torch.no_grad()
    def _compute(self, shape: BatchShape) -> None:
        batch = self._batch(shape)
        logits = self._network.logits(batch)
        if self._outputs is None:
            self._outputs = torch.zeros(len(self._chosen), *logits.shape, device=self._device)
        self._outputs.index_copy_(0, self.number, logits[None].float())
        self._count(
            graph_losses(logits, batch, self._class_weights, self._network.network.widths), batch.exists, self.enabled
        )

    def outputs_and_targets(self, r: int) -> tuple[Tensor, Tensor]:
        """(G, C) and (G) of all graphs of a replica, once every step has been computed"""
        assert self._outputs is not None
        assert self._data.target is not None
        there = self._chosen[:, r] >= 0
        return self._outputs[:, r][there], self._data.target[self._chosen[:, r][there]]


def graph_losses(
    logits: Tensor, batch: StackedBatch, class_weights: Tensor | None, widths: Sequence[int] = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (R, B, C) -> for every graph (R, B) its loss times its weight, its weight, and whether it is a hit. The
    loss is cross-entropy for classes, weighed by class_weights (R, C) where given, and squared error for values. A hit
    is 1 for the right class, or the squared error of a value in double precision. All are 0 where no graph is. Of
    several targets, each with as many columns as ``widths`` has, the loss is that of
    :class:`egocnn.train.metrics.SeveralTargets`, whose weights are given, and stands for the hit, too."""
    exists = batch.exists
    if class_weights is not None and widths:
        total = torch.zeros_like(logits[..., 0])
        weights, blocks = (torch.split(each, list(widths), -1) for each in (class_weights, logits))
        for own, block, values in zip(weights, blocks, batch.target.unbind(2), strict=True):
            known, is_class = values.nan_to_num(), own.shape[1] > 1
            column = known.long() * is_class  # of a value there is one
            loss = -block.log_softmax(2).gather(2, column[..., None])[..., 0] if is_class else block[..., 0] - known
            each = loss if is_class else loss.square()
            total = total + torch.where(exists & ~values.isnan(), each * own.gather(1, column), 0)
        return (mean := total / len(widths)), exists.float(), mean.detach().double()
    if batch.target.is_floating_point():
        error = torch.where(exists, logits[..., 0] - batch.target, 0)
        return error.square(), exists.float(), error.detach().double().square()
    loss = -logits.log_softmax(2).gather(2, batch.target[..., None])[..., 0]
    weight = exists.float()
    if class_weights is not None:
        weight = weight * class_weights.gather(1, batch.target)
    right = (logits.argmax(2) == batch.target) & exists
    return torch.where(exists, loss * weight, 0), weight, right.double()


def mean_loss(loss: Tensor, weight: Tensor) -> Tensor:
    """(R) the loss that is minimised; 0 for a replica without graphs"""
    total = weight.sum(1)
    return loss.sum(1) / torch.where(total > 0, total, 1)


@cache
def _recording_stream(device: torch.device) -> Any:
    """One stream for all recordings: torch keeps tens of megabytes for matrix products on every stream it has seen."""
    cuda: Any = torch.cuda  # its streams have no types
    return cuda.Stream(device)
