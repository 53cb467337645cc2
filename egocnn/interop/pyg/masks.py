"""PyTorch Geometric's edge masks: where its explainers put them, and the mask of any edge by its ends.

Its ``set_masks`` looks for message-passing layers and leaves one number per column of ``edge_index`` in each. Ours has
no such layer, so the module holds an empty one to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from egocnn.interop.pyg.library import inheriting


class _EdgeMasks(nn.Module):
    """Returns embeddings (N, D) unchanged: explainers that learn from embeddings hook message-passing layers."""

    def forward(self, h: Tensor) -> Tensor:
        return h

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_edge_mask":
            # never a parameter: the module's own would have to stay one, and cut off gradients of later masks
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)


def empty_layer() -> nn.Module:
    """A message-passing layer that does nothing but hold masks."""
    made: nn.Module = inheriting(_EdgeMasks, "nn", "MessagePassing")()
    return made


def mask_in(layer: nn.Module) -> Tensor | None:
    """(M) what ``set_masks`` has left there, None after ``clear_masks``"""
    mask: Tensor | None = layer.__dict__["_edge_mask"]
    return mask.sigmoid() if mask is not None and layer.__dict__["_apply_sigmoid"] else mask


@dataclass(frozen=True, slots=True, eq=False)
class EdgeMask:
    """The mask of every edge, in both directions; the same for both where ``edge_index`` has but one of them."""

    key: Tensor  # source N + target, ascending
    value: Tensor
    n_nodes: int

    @staticmethod
    def of(edge_index: Tensor, mask: Tensor, n_nodes: int) -> EdgeMask:
        """edge_index (2, M), mask (M); columns that say the same edge again are averaged"""
        source, target = edge_index.long()
        key, back = source * n_nodes + target, target * n_nodes + source
        alone = ~torch.isin(back, key)
        key, mask = torch.cat([key, back[alone]]), torch.cat([mask, mask[alone]])
        unique, column, count = torch.unique(key, return_inverse=True, return_counts=True)
        return EdgeMask(unique, mask.new_zeros(len(unique)).index_add(0, column, mask) / count, n_nodes)

    def along(self, source: Tensor, target: Tensor) -> Tensor:
        """(...) the mask of each edge from source to target; 1 where there is no such edge"""
        if len(self.key) == 0:
            return self.value.new_ones(source.shape)
        wanted = source * self.n_nodes + target
        at = torch.searchsorted(self.key, wanted).clamp(max=len(self.key) - 1)
        return torch.where((self.key[at] == wanted) & (source >= 0), self.value[at], 1.0)

    def between(self, u: Tensor, v: Tensor) -> Tensor:
        """(...) the mean of both directions"""
        return (self.along(u, v) + self.along(v, u)) / 2
