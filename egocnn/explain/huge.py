"""One huge graph and a model -> a portion with its contributions, from one pass over the graph in blocks of nodes.

To trace evidence back takes all layers at once, and to grow a part asks the networks again and again; neither is to be
had for a graph of fifty thousand nodes. Here a node contributes what it holds where it is read out
(:mod:`egocnn.explain.evidence`), for the output or against it, made to add up like all contributions. Critical is what
:func:`concentrated` finds. What is predicted without it, or with nothing else, is not measured.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.data.subgraphs import keep_nodes
from egocnn.encode.blocks import BlockedBatch, batch_in_blocks
from egocnn.encode.patches import NODES_AT_ONCE
from egocnn.explain.additive import contributions, handed_to_edges
from egocnn.explain.evidence import margins
from egocnn.explain.portion import Portion, mean_in_groups, symmetric_nodes
from egocnn.explain.question import Question
from egocnn.explain.selection.grow import ALIKE, CONCENTRATED
from egocnn.model import Model, check_finite
from egocnn.nn import EgoCNN, Output, Pool
from egocnn.nn.engines.reference import blocks
from egocnn.nn.readout import by_column

TECHNIQUE = "contributions where they are read out"
MOST_CRITICAL = 300  # Nodes of a critical structure: of a huge graph more are no part to look at.


@torch.no_grad()
def huge_portion(model: Model, graph: Graphs, classes: Ints | None, device: torch.device) -> Portion:
    """A collection of one graph, and the class to explain, by default the predicted one"""
    batch = batch_in_blocks(model.encoder, model.config, graph, device)
    outputs, held = [], np.zeros((graph.n_nodes, model.n_outputs))
    for network in model.networks:
        kept: list[Any] = []
        output: Output = network(replace(batch, kept=kept))
        outputs.append(output.output)
        held += _held(network, replace(batch, kept=kept), output.pooled[0]).cpu().numpy()
        kept.clear()  # the inputs among them know their batch: a circle, which would keep all layers
    mean = torch.stack(outputs).mean(dim=0)
    check_finite(mean.double().cpu().numpy(), graph.names)
    of_class = mean.argmax(dim=1) if classes is None else torch.from_numpy(classes).to(device)
    one = model.encode(keep_nodes(graph, np.arange(graph.n_nodes) == 0)).to(device).batch(torch.arange(1))
    question = Question(model.networks, one, of_class, model)
    nobody = question.answer(torch.zeros_like(one.attributes[:, :0].sum(dim=1)))  # alike for all graphs
    answer, base = (found.double().cpu().numpy() for found in (question.of_outputs(mean.double()), nobody))
    of_nodes = mean_in_groups(held[:, int(of_class)], symmetric_nodes(model.encoder.told_apart(graph)))
    nodes = contributions(graph, of_nodes, of_nodes, answer - base)
    found = {"nodes": nodes, "edges": handed_to_edges(graph, nodes), "output": answer, "base": base}
    each = torch.stack(outputs).double().cpu().numpy()
    return Portion(
        model=model, graphs=graph, outputs_of_each=each, classes=of_class.cpu().numpy(), question=lambda _: question,
        trace=None, **found,
    )  # fmt: skip


def _held(network: EgoCNN, batch: BlockedBatch, pooled: Tensor) -> Tensor:
    """(N, C) what the nodes hold for the margin of every class, or for the value, in the layers that are read out"""
    with torch.enable_grad():
        read = pooled.detach().requires_grad_()
        logits = network.head(read[None])
        several = [margins(logits, torch.tensor([c], device=logits.device)).sum() for c in range(logits.shape[1])]
        above = torch.stack([torch.autograd.grad(each, read, retain_graph=True)[0] for each in several])  # (C, ...)
    assert batch.kept is not None
    layers = batch.kept if network.config.jump else batch.kept[-2 if network.counted else -1 :]
    widths = [h[slice(0, 1)].shape[1] for h in layers]
    columns = len(pooled) // sum(widths)  # of the readout, for each of a layer
    found = pooled.new_zeros(len(batch.table), len(above))
    parts = (torch.split(each, [columns * width for width in widths], dim=-1) for each in (above, pooled))
    for number, (h, slope, taken) in enumerate(zip(layers, *parts, strict=True)):
        if network.counted and number == len(layers) - 1:
            slope, taken = by_column(slope, columns), by_column(taken, columns)
        if isinstance(network.readout, Pool):
            _add(found, h, network.readout.kind.split("+"), slope, taken)
        else:  # of the nodes ranked first, all that there is
            of_each = (slope * taken).view(len(slope), columns, -1).sum(dim=2).t()
            first = torch.from_numpy(batch.order.nodes[:columns].astype(np.int64)).to(found.device)
            found.index_add_(0, first, of_each[: len(first)])
    return found


def _add(found: Tensor, h: Tensor, kinds: list[str], slope: Tensor, taken: Tensor) -> None:
    """Add what the nodes hold of one layer (N, D), given the slope (C, ...) of what was pooled and its values"""
    of_sum, of_largest = slope.new_zeros(2, len(slope), slope.shape[1] // len(kinds))
    largest = torch.full_like(of_sum[0], torch.inf)
    for kind, above, value in zip(kinds, slope.chunk(len(kinds), 1), taken.chunk(len(kinds)), strict=True):
        if kind == "max":
            of_largest, largest = above, value.to(h[slice(0, 1)].dtype).float()
        else:  # the log of 1 + a sum grows with the sum the less, the more there is
            of_sum += above / {"mean": len(found), "log": value.abs().exp(), "sum": 1.0}[kind]
    several = torch.zeros_like(of_largest[0], dtype=torch.int64)  # nodes that attain the maximum share it
    for here in blocks(len(found), NODES_AT_ONCE):
        several += (h[here].float() >= largest).sum(dim=0)
    for here in blocks(len(found), NODES_AT_ONCE):
        rows = h[here].float()
        found[here] += rows @ of_sum.t() + (rows * (rows >= largest)) @ (of_largest / several.clamp(min=1)).t()


def concentrated(graph: Graphs, score: Floats) -> Bools:
    """(N) the connected part that grows from the node of the highest score over the highest next to it, until it holds
    most of all that is positive; empty where :data:`MOST_CRITICAL` nodes do not. Nodes that score alike join together,
    so that the numbers of the nodes do not matter."""
    chosen, enough = np.zeros(len(score), bool), CONCENTRATED * np.maximum(score, 0).sum()
    together = np.flatnonzero(score >= (1 - ALIKE) * score.max())
    frontier: list[tuple[float, int]] = []
    while len(together) and chosen.sum() + len(together) <= MOST_CRITICAL and score[together[0]] > 0:
        chosen[together] = True
        if score[chosen].sum() >= enough:
            return chosen
        for node in together.tolist():
            for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist():
                if not chosen[other]:
                    heapq.heappush(frontier, (-score[other], other))
        while frontier and chosen[frontier[0][1]]:
            heapq.heappop(frontier)
        best, alike = frontier[0][0] if frontier else 0.0, set[int]()
        while frontier and frontier[0][0] <= (1 - ALIKE) * best:
            alike.add(heapq.heappop(frontier)[1])
        together = np.array(sorted(n for n in alike if not chosen[n]), np.int64)
    return np.zeros(len(score), bool)
