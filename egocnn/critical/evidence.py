r"""Evidence: what the embeddings of the deepest layer hold for a class, or for a predicted value.

The question put to the network is the margin of a class over all others,

.. math:: y_c = z_c - \log \sum_{c' \ne c} e^{z_{c'}}

for two classes the difference of their logits; for a regressor it is the predicted value itself. With p the
pooled embedding of the graph, the evidence of unit d at node n is

.. math:: E_{n,d} = \frac{\partial y}{\partial p_d} \, s_{n,d} \, h^{(L)}_{n,d}

where s is the share of node n in what the readout took: for the maximum, 1 over the number of nodes that attain it.
Nodes that are symmetric attain it together; the gradient would go to whichever rounding favours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from egocnn.batching import Batch
from egocnn.critical.layers import Layers
from egocnn.nn import EgoCNN, Pool
from egocnn.nn.readout import pool

SAME = 1e-5
"""Relative difference up to which two activations count as equal: rounding of float32 over a few layers."""


def margins(logits: Tensor, classes: Tensor) -> Tensor:
    """(B, C) logits, (B) class numbers -> (B) margins; (B, 1) values of a regressor -> (B) the values"""
    if logits.shape[1] == 1:
        return logits[:, 0]
    own = torch.nn.functional.one_hot(classes, logits.shape[1]).bool()
    return logits[own] - logits.masked_fill(own, -torch.inf).logsumexp(dim=1)


def margin(network: EgoCNN, batch: Batch, classes: Tensor, factor: Tensor | None = None) -> Tensor:
    """The margins (B) as a function of everything in the batch that asks for a gradient.

    ``factor`` (N) scales the nodes' embeddings.
    """
    h = network.embed(batch)
    h = h if factor is None else h * factor[:, None]
    for conv in network.convs:
        h = conv(h, batch.neighbours)
    return margins(network.head(network.readout(h, batch)), classes)


def evidence(layers: Layers, classes: Tensor) -> Tensor:
    """(N, D) for the given class of every graph (B)"""
    return slope(layers, classes) * layers.h[-1]


def slope(layers: Layers, classes: Tensor) -> Tensor:
    """(N, D) how much the margin of a graph rises with each deepest embedding of its nodes"""
    network, batch, h = layers.network, layers.batch, layers.h[-1]
    with torch.enable_grad():
        pooled = network.readout(h, batch).detach().requires_grad_()
        (above,) = torch.autograd.grad(margins(network.head(pooled), classes).sum(), pooled)
        if not isinstance(network.readout, Pool):
            below = h.detach().requires_grad_()
            (through,) = torch.autograd.grad((network.readout(below, batch) * above).sum(), below)
            return through
    kinds = network.readout.kind.split("+")
    parts = above.chunk(len(kinds), dim=1)
    return sum((_through(kind, h, batch, part) for kind, part in zip(kinds, parts, strict=True)), torch.zeros_like(h))


def _through(kind: str, h: Tensor, batch: Batch, above: Tensor) -> Tensor:
    """The slope (B, D) of what was pooled -> the slope (N, D) of what it was pooled from"""
    if kind == "max":
        return above[batch.graph_of] * _shares_of_maximum(h, batch)
    if kind == "mean":
        above = above / batch.node_counts.clamp(min=1)[:, None]
    return above[batch.graph_of]


def _shares_of_maximum(h: Tensor, batch: Batch) -> Tensor:
    """(N, D) 1 over the number of nodes of the graph that attain its maximum, 0 for all others"""
    largest = pool(h, batch.node_counts, "max")
    attained = (h >= (largest - SAME * largest.abs())[batch.graph_of]).to(h.dtype)
    return attained / pool(attained, batch.node_counts, "sum").clamp(min=1)[batch.graph_of]
