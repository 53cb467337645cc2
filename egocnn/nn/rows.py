"""What happens to the rows of a batch between two layers: batch norm, rectifier and dropout.

Rows are nodes or graphs. Packed rows are all real. Rows of several networks are padded to one number
(:mod:`egocnn.nn.stacked`), where norms leave the padding out and dropout does not depend on it.
"""

from __future__ import annotations

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor, nn


class Rows(Protocol):
    """``layer`` numbers the places where activations are dropped: 0 is the embedding."""

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        """The batch norm alone."""
        ...

    def drop(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Tensor: ...

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:
        """Batch norm, rectifier and dropout, in one pass where the engine has one."""
        ...


class PackedRows:
    """Every row is one of a graph."""

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        normed: Tensor = norm(y)
        return normed

    def drop(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Tensor:  # noqa: ARG002 — torch's dropout counts itself
        dropped: Tensor = dropout(h)
        return dropped

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:
        return self.drop(F.relu(norm(y)), dropout, layer)


PACKED = PackedRows()
