"""Readouts: node embeddings (N, D) -> one vector per graph (B, D or more)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from egocnn.config import Readout

if TYPE_CHECKING:
    from egocnn.nn.batch import Batch

BINS = 16  # Of the histogram of an attribute.
REACH = 3.0  # Standard deviations to either side of the mean that a histogram tells apart.


class Pool(nn.Module):
    """Maximum, mean, sum or log of 1 + the sum over the nodes of every graph, or several of these side by side.

    Arguments:
        kind: ``max``, ``mean``, ``sum``, ``log``, or several joined by a plus sign.

    Example:
        >>> from egocnn.nn import Pool
        >>> Pool("mean+max").kind
        'mean+max'"""

    def __init__(self, kind: Readout) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, h: Tensor, batch: "Batch") -> Tensor:
        """One row per graph.

        Arguments:
            h: (N, D) node embeddings.
            batch: The graphs of these nodes.

        Returns:
            (B, D), or (B, n D) where n kinds stand side by side."""
        return batch.pool(h, self.kind)


class SortPool(nn.Module):
    """The paper's flatten, made independent of node numbers: the S first-ranked nodes of a graph, end to end.

    Smaller graphs are filled up with zeros; of larger ones the nodes ranked last are left out.

    Shapes: (N, D) -> (B, S D)

    Arguments:
        nodes: How many nodes are kept per graph (S).

    Example:
        >>> from egocnn.nn import SortPool
        >>> SortPool(64).nodes
        64"""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes

    def forward(self, h: Tensor, batch: "Batch") -> Tensor:
        """One row per graph.

        Arguments:
            h: (N, D) node embeddings.
            batch: The graphs of these nodes, which knows their ranks.

        Returns:
            (B, S D) numbers."""
        return batch.first_ranked(h, self.nodes)


def first_of_each(h: Tensor, place: Tensor, graph_of: Tensor, graphs: int, nodes: int) -> Tensor:
    """(..., N, D), places in the rankings of their own graphs (..., N) -> (..., B, nodes D): of every graph the nodes
    ranked first, then zeros. Padding names graph B."""
    *several, _, D = h.shape
    slot = torch.where((place < nodes) & (graph_of < graphs), graph_of * nodes + place, graphs * nodes)
    flat = h.new_zeros(*several, graphs * nodes + 1, D)  # the last row takes what is left out
    flat = flat.scatter(-2, slot[..., None].expand_as(h), h)
    return flat[..., :-1, :].reshape(*several, graphs, nodes * D)


def counted(label: Tensor, attributes: Tensor, columns: int) -> Tensor:
    """What nodes add to the counts of the inputs: labels (...), standardised attributes (..., A) -> (..., columns): the
    bins of every attribute, then a 1 for the label, if known. A network of fewer labels has the first columns."""
    bins = in_bins(attributes)
    labels = torch.arange(columns - bins.shape[-1], device=label.device)
    return torch.cat([bins, (label[..., None] == labels).to(bins)], dim=-1)


def in_bins(attributes: Tensor) -> Tensor:
    """(..., A) -> (..., A BINS). Bins stand at even distances; a value between two falls to both, more to the nearer
    one. So the shares of a value add up to 1, their mean over the nodes is a histogram, and their sum counts nodes."""
    centres = torch.linspace(-REACH, REACH, BINS, dtype=attributes.dtype, device=attributes.device)
    away = (attributes.clamp(-REACH, REACH)[..., None] - centres).abs() * ((BINS - 1) / (2 * REACH))
    return (1 - away).clamp(min=0).flatten(-2)


def by_column(x: Tensor, columns: int) -> Tensor:
    """Flattened matrices, row after row -> the same, column after column: (..., r c) -> (..., c r)"""
    return x.reshape(*x.shape[:-1], -1, columns).transpose(-1, -2).flatten(-2)


def pool(h: Tensor, graph_of: Tensor, node_counts: Tensor, kind: str, presence: Tensor | None = None) -> Tensor:
    """Reduce the consecutive rows of every graph: (N, D), (N), (B) -> (B, D for each kind, joined by +); zeros for a
    graph without nodes. ``presence`` (N): how far the nodes are there, by which h has been multiplied already. A mean
    is taken over as many nodes as there are in all, and a node that is not there attains no maximum."""
    pooled, total = [], None
    for each in kind.split("+"):
        if each == "max":
            there = None if presence is None or presence.all() else presence.nonzero().flatten()
            rows = (h, graph_of) if there is None else (h.index_select(0, there), graph_of[there])
            pooled.append(largest(*rows, node_counts.shape[0]))
            continue
        total = sums(h, graph_of, node_counts) if total is None else total
        if each == "mean":
            nodes = node_counts if presence is None else sums(presence[:, None], graph_of, node_counts)[:, 0]
            pooled.append(total / torch.where(nodes > 0, nodes, 1).to(total.dtype)[:, None])
        else:
            pooled.append(log_of(total) if each == "log" else total)
    return torch.cat(pooled, dim=1) if len(pooled) > 1 else pooled[0]


def sums(h: Tensor, graph_of: Tensor, node_counts: Tensor) -> Tensor:
    """(N, D) -> (B, D)"""
    # shape[0], and not len(): torch.export leaves it open
    if h.device.type == "cpu":  # a tenth of the time, to the same bits
        return h.new_zeros(node_counts.shape[0], h.shape[1]).index_add(0, graph_of, h)
    return torch.segment_reduce(h, "sum", lengths=node_counts, axis=0, unsafe=True)


class _Largest(torch.autograd.Function):
    """The maximum over the rows of every graph: (N, D) -> (B, D), zeros where there are none; its gradient is shared
    alike by all rows that attain it, as symmetric nodes do. Backward, torch's ``segment_reduce`` hands a negative
    gradient to each such row in full, and ``scatter_reduce`` takes four times as long."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, graph_of: Tensor, graphs: int) -> Tensor:
        zeros = h.new_zeros(graphs, h.shape[1])
        largest = zeros.scatter_reduce(0, graph_of[:, None].expand_as(h), h, "amax", include_self=False)
        ctx.save_for_backward(h, graph_of, largest)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        h, graph_of, largest = ctx.saved_tensors
        with torch.no_grad():  # in place: a mask that is cast takes six times as long
            attained = largest.index_select(0, graph_of).eq_(h)
        several = torch.zeros_like(largest).index_add_(0, graph_of, attained).clamp_(min=1)
        return attained.mul_((gradients[0] / several).index_select(0, graph_of)), None, None


largest: Callable[[Tensor, Tensor, int], Tensor] = _Largest.apply


def log_of(total: Tensor) -> Tensor:
    """The log of 1 + a sum; mirrored below 0, where only sums of what is not rectified lie: attributes, edge weights"""
    return torch.log1p(total.clamp(min=0)) - torch.log1p(torch.relu(-total))
