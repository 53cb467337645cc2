"""Rows of Patchy-San's tables of R networks -> the slots whose nodes they describe. The labels of folds may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.nn.embed import PatchShape


@dataclass(frozen=True, slots=True, eq=False)
class StackedPatchShape:
    """The :class:`egocnn.nn.embed.PatchShape` of every network."""

    slots: int
    node_labels: Tensor  # (R, 1), at least 1
    edge_labels: Tensor  # (R, 1), at least 1

    @staticmethod
    def of(shapes: Sequence[PatchShape], device: torch.device) -> StackedPatchShape:
        labels = torch.tensor([[each.node_labels, each.edge_labels] for each in shapes], device=device).clamp(min=1)
        return StackedPatchShape(shapes[0].slots, labels[:, :1], labels[:, 1:])

    def ends(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (R, E) -> the slots that an edge joins; for the label of a node its slot twice"""
        # made on the device: a step that is recorded may not wait for the host
        first, second = torch.triu_indices(self.slots, self.slots, device=rows.device)
        edge_rows = len(first) * self.edge_labels
        is_edge = rows < edge_rows
        pair = torch.where(is_edge, rows // self.edge_labels, 0)
        slot = (rows - edge_rows) // self.node_labels
        return torch.where(is_edge, first[pair], slot), torch.where(is_edge, second[pair], slot)
