"""Logits (R, B, C) and targets -> the loss of every replica, and what its score is summed up from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.nn.stacked.batch import StackedBatch


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Per graph (R, B); 0 where there is no graph."""

    loss: Tensor
    """times its weight"""
    weight: Tensor
    hit: Tensor
    """1 for the right class; the squared error of a value, in double precision"""

    @property
    def mean(self) -> Tensor:
        """(R) the loss that is minimised; 0 for a replica without graphs"""
        total = self.weight.sum(1)
        return self.loss.sum(1) / torch.where(total > 0, total, 1)


def judge(logits: Tensor, batch: StackedBatch, class_weights: Tensor | None) -> Judged:
    """Cross-entropy for classes, weighed by class_weights (R, C) where given; squared error for values."""
    exists = batch.exists
    if batch.target.is_floating_point():
        error = torch.where(exists, logits[..., 0] - batch.target, 0)
        return Judged(error.square(), exists.float(), error.detach().double().square())
    target = batch.target[..., None]
    loss = -logits.log_softmax(2).gather(2, target)[..., 0]
    weight = exists.float()
    if class_weights is not None:
        weight = weight * class_weights.gather(1, batch.target)
    right = (logits.argmax(2) == batch.target) & exists
    return Judged(torch.where(exists, loss * weight, 0), weight, right.double())


class Tally:
    """Sums over the steps of an epoch, on the device."""

    def __init__(self, replicas: int, device: torch.device) -> None:
        self.sums = torch.zeros(5, replicas, dtype=torch.float64, device=device)
        """losses times weights, weights, graphs, hits, and the mean losses of steps times their graphs"""

    @torch.no_grad()
    def add(self, judged: Judged, exists: Tensor, active: Tensor) -> None:
        graphs = exists.sum(1)
        each = (judged.loss.sum(1), judged.weight.sum(1), graphs, judged.hit.sum(1), judged.mean * graphs)
        self.sums.add_(torch.where(active, torch.stack([one.double() for one in each]), 0))
