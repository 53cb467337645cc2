r"""Evidence: what the embeddings that are read out hold for a class, or for a predicted value.

The question put to the network is the margin of a class over all others,

.. math:: y_c = z_c - \log \sum_{c' \ne c} e^{z_{c'}}

for two classes the difference of their logits; for a regressor it is the predicted value itself. With
:math:`p^{(l)}` what the readout took of layer l, the evidence of its unit d at node n is

.. math:: E^{(l)}_{n,d} = \frac{\partial y}{\partial p^{(l)}_d} \, s^{(l)}_{n,d} \, h^{(l)}_{n,d}

where s is the share of node n in what was taken: for the maximum, 1 over the number of nodes that attain it.
Nodes that are symmetric attain it together; the gradient would go to whichever rounding favours.
Only the deepest layer L is read out, and has evidence, unless the network has jumping knowledge: then every layer has,
the embedding (l = 0) included."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from egocnn.nn import EgoCNN, Output, Pool, SortPool
from egocnn.nn.batch import Batch
from egocnn.nn.engines.cpu import Plan
from egocnn.nn.readout import by_column

SAME = 1e-5  # Relative difference up to which two activations count as equal: rounding of float32 over a few layers.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardPass:
    """A batch with everything the network computed for it, and the classes whose evidence is traced."""

    network: EgoCNN
    batch: Batch
    output: Output
    classes: Tensor  # (B) class numbers; of no meaning for a regressor

    @property
    def h(self) -> tuple[Tensor, ...]:
        """(N, D) for every layer: the embedding ``h[0]`` to the deepest ``h[L]``"""
        return self.output.layers

    @property
    def read(self) -> tuple[Tensor, ...]:
        """The layers that the readout reads: all of ``h`` with jumping knowledge, else the deepest alone."""
        return self.h if self.network.config.jump else self.h[-1:]

    @property
    def plan(self) -> Plan:
        """Which products of nodes and filters each node adds up."""
        ranked = self.batch.ranked(self.network.config.k)
        return ranked.plan or Plan.of(ranked.table)


def margins(logits: Tensor, classes: Tensor) -> Tensor:
    """(B, C) logits, (B) class numbers -> (B) margins; (B, 1) values of a regressor -> (B) the values"""
    if logits.shape[1] == 1:
        return logits[:, 0]
    own = torch.nn.functional.one_hot(classes, logits.shape[1]).bool()
    return logits[own] - logits.masked_fill(own, -torch.inf).logsumexp(dim=1)


def margin(
    network: EgoCNN, batch: Batch, classes: Tensor, factor: Tensor | None = None, of_inputs: Tensor | None = None
) -> Tensor:
    """The margins (B) as a function of everything in the batch that asks for a gradient.

    ``factor`` (N) scales the nodes' embeddings, ``of_inputs`` (N) what their labels and attributes count."""
    if of_inputs is not None:
        batch = replace(batch, inputs=batch.inputs_of(network.counted) * of_inputs[:, None])
    embedded = None if factor is None else network.embed(batch) * factor[:, None]
    output: Output = network(batch, embedded=embedded)
    return margins(output.output, classes)


def evidence(traced: ForwardPass) -> tuple[Tensor, ...]:
    """(N, D) for every layer that is read out, the deepest last"""
    return tuple(slope * h for slope, h in zip(slopes(traced), traced.read, strict=True))


def slopes(traced: ForwardPass) -> tuple[Tensor, ...]:
    """(N, D) for every layer that is read out, the deepest last: how much the margin of a graph rises with what its
    nodes hold there, all other layers left as they are"""
    readout, above = traced.network.readout, _above(traced)
    return tuple(_below(readout, h, traced.batch, part) for h, part in zip(traced.read, above, strict=False))


def evidence_of_inputs(traced: ForwardPass) -> Tensor:
    """(N, columns) where inputs are counted: the evidence of each node's own, read with no layer between"""
    network, batch = traced.network, traced.batch
    above = _above(traced)[-1]
    inputs = batch.inputs_of(network.counted)
    return inputs * _below(network.readout, inputs, batch, by_column(above, above.shape[1] // network.counted))


def _above(traced: ForwardPass) -> tuple[Tensor, ...]:
    """(B, ...) for every layer that is read out, the deepest last, and then for the inputs if they are counted: how
    much the margin rises with what the readout took there"""
    network = traced.network
    with torch.enable_grad():
        pooled = traced.output.pooled.detach().requires_grad_()
        (above,) = torch.autograd.grad(margins(network.head(pooled), traced.classes).sum(), pooled)
    widths = [h.shape[1] for h in traced.read] + ([network.counted] if network.counted else [])
    columns = pooled.shape[1] // sum(widths)  # of the readout, for each of a layer
    return torch.split(above, [columns * width for width in widths], dim=1)


def _below(readout: Pool | SortPool, h: Tensor, batch: Batch, above: Tensor) -> Tensor:
    """The slope (B, ...) of what the readout took -> the slope (N, D) of what it took it from"""
    if not isinstance(readout, Pool):
        with torch.enable_grad():
            below = h.detach().requires_grad_()
            (through,) = torch.autograd.grad((readout(below, batch) * above).sum(), below)
        return through
    kinds = readout.kind.split("+")
    parts = dict(zip(kinds, above.chunk(len(kinds), dim=1), strict=True))
    below = parts.get("sum", h.new_zeros(len(batch), h.shape[1]))
    if "mean" in parts:
        below = below + parts["mean"] / batch.node_counts.clamp(min=1)[:, None]
    if "log" in parts:
        below = below + parts["log"] / (1 + batch.pool(h, "sum").abs())
    below = below.index_select(0, batch.graph_of)  # alike for all nodes of a graph
    if "max" in parts:  # shared by all nodes that attain it
        largest = batch.pool(h, "max")
        attained = (largest - SAME * largest.abs()).index_select(0, batch.graph_of).le_(h)
        share = parts["max"] / batch.pool(attained, "sum").clamp(min=1)
        below = below.addcmul_(attained, share.index_select(0, batch.graph_of))
    return below
