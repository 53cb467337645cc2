"""One huge graph and a model -> a portion with its contributions, from one pass over the graph in blocks of nodes.

To trace evidence back takes all layers at once, and to grow a part asks again and again: too much for a huge graph. A
node contributes what it holds where it is read out (:mod:`egocnn.explain.evidence`), made to add up as ever."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.blocks import BlockedBatch, batch_in_blocks
from egocnn.encode.patches import NODES_AT_ONCE
from egocnn.explain.additive import contributions, handed_to_edges
from egocnn.explain.evidence import margins
from egocnn.explain.portion import Portion, mean_in_groups, symmetric_groups
from egocnn.explain.question import Question
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.nn.engines.reference import blocks
from egocnn.nn.readout import Pool, by_column


@torch.no_grad()
def huge_portion(model: Model, graph: Graphs, classes: Ints | None, device: torch.device) -> Portion:
    """A collection of one graph, and the class to explain, by default the predicted one"""
    batch = replace(batch_in_blocks(model.encoder, model.config, graph, device), kept=[])
    outputs, held = [], np.zeros((graph.n_nodes, model.n_outputs))
    for network in model.networks:
        output, found = _read(network.to(device).eval(), batch)
        outputs.append(output)
        held += found.cpu().numpy()
    each, nobody = torch.split(torch.stack(outputs).double(), 1, dim=1)
    of_class = each.mean(dim=0).argmax(dim=1) if classes is None else torch.from_numpy(classes).to(device)
    question = Question(model.networks, batch, of_class, model)
    answer, base = (question.of_outputs(several.mean(dim=0)).cpu().numpy() for several in (each, nobody))
    of_nodes = mean_in_groups(held[:, int(of_class)], symmetric_groups(model.encoder.told_apart(graph))[0])
    nodes = contributions(graph, of_nodes, of_nodes, answer - base)
    return Portion(
        model=model, graphs=graph, outputs_of_each=each.cpu().numpy(), classes=of_class.cpu().numpy(), output=answer,
        base=base, whole=question, question=lambda *_: question, known={}, nodes=nodes,
        edges=handed_to_edges(graph, nodes), is_huge=True,
    )  # fmt: skip


def _read(network: EgoCNN, batch: BlockedBatch) -> tuple[Tensor, Tensor]:
    """Outputs (2, C) of the graph and of no nodes, and what each node holds (N, C) in the layers that are read out"""
    output, kept, readout = network(batch), batch.kept, network.readout
    assert kept is not None
    assert isinstance(readout, Pool)
    kinds, C, N = readout.kind.split("+"), output.output.shape[1], len(batch.table)
    with torch.enable_grad():
        read = output.pooled.detach().requires_grad_()
        answers = margins(network.head(read).expand(C, -1), torch.arange(C, device=read.device))
        slopes = torch.cat([torch.autograd.grad(each, read, retain_graph=True)[0] for each in answers])
    layers = kept if network.config.jump else kept[-2 if network.counted else -1 :]
    sizes = [len(kinds) * h[slice(0, 1)].shape[1] for h in layers]
    found = slopes.new_zeros(N, C)
    parts = torch.split(slopes, sizes, 1), torch.split(output.pooled[0], sizes)
    for h, slope, taken in zip(layers, *parts, strict=True):
        if not isinstance(h, Tensor):  # the inputs
            slope, taken = by_column(slope, len(kinds)), by_column(taken, len(kinds))
        of_sum, of_largest = slopes.new_zeros(2, C, slope.shape[1] // len(kinds))
        largest = torch.full_like(of_sum[0], torch.inf)
        for kind, above, value in zip(kinds, slope.chunk(len(kinds), 1), taken.chunk(len(kinds)), strict=True):
            if kind == "max":
                of_largest, largest = above, value.to(h[slice(0, 1)].dtype).float()
            else:  # the log of 1 + a sum grows with the sum the less, the more there is
                of_sum = of_sum + above / (value.abs().exp() if kind == "log" else N if kind == "mean" else 1)
        several = torch.stack([(h[here].float() >= largest).sum(dim=0) for here in blocks(N, NODES_AT_ONCE)]).sum(dim=0)
        of_largest = of_largest / several.clamp(min=1)  # nodes that attain a maximum share it
        for here in blocks(N, NODES_AT_ONCE):
            rows = h[here].float()
            found[here] += rows @ of_sum.t() + (rows * (rows >= largest)) @ of_largest.t()
    kept.clear()  # before the next network: they take half of the memory
    return torch.cat([output.output, network.head(torch.zeros_like(output.pooled))]), found
