"""A trained model and graphs -> one CriticalStructure per graph, all graphs of a batch together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.blocks import BlockedBatch, batch_in_blocks
from egocnn.encode.patches import NODES_AT_ONCE
from egocnn.errors import ConfigError, rule
from egocnn.explain.additive import contributions, handed_to_edges
from egocnn.explain.backtrack import EdgeNumbers
from egocnn.explain.evidence import margins
from egocnn.explain.portion import Portion, mean_in_groups, mean_over_networks, symmetric_groups
from egocnn.explain.question import Question
from egocnn.explain.structure import CriticalStructure, Trace
from egocnn.explain.techniques import TECHNIQUES, ExplainedBatch, occlude
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.model import Model, check_finite
from egocnn.nn import EgoCNN, Output
from egocnn.nn.device import by_halves, choose_device, one_thread
from egocnn.nn.engines.reference import blocks
from egocnn.nn.predict import distinct, portions
from egocnn.nn.readout import Pool, by_column

FEW = 256  # Nodes up to which a second thread, and looking for those that are alike, cost more than they give.


def explain(
    predictor: Model,
    graphs: Graphs,
    config: ExplainConfig | None = None,
    *,
    target: str | None = None,
    classes: str | Sequence[str] | None = None,
    attention: Sequence[AttentionHead] | None = None,
    fidelity: bool = True,
    device: str = "auto",
    report: Callable[[int], None] | None = None,
) -> list[CriticalStructure]:
    """The critical structure of every graph, in order.

    Importances are the means of those that the networks of the model give. ``attention``: a head for each of them.
    ``target``: which of several the model is asked about, the first by default.
    ``classes``: the class to explain, by name, one for all graphs or one for each; the predicted ones by default.
    ``fidelity=False`` saves the two further predictions per graph. ``report`` is called with the number of graphs done.
    """
    config = config or ExplainConfig()
    if predictor.targets:
        graphs = graphs.of_target(predictor.targets[0] if target is None else target)
    predictor = predictor.of_target(target)
    chosen_classes = _class_numbers(predictor, len(graphs), classes)
    found: list[CriticalStructure] = []
    with one_thread() if graphs.n_nodes <= FEW else nullcontext():
        for portion in _portions(predictor, graphs, chosen_classes, config, attention, device):
            portion.check_finite()
            critical = portion.select(config)
            measured = portion.fidelity(critical) if fidelity and not portion.is_huge else None
            found += portion.structures(critical, measured, config.technique)
            if report is not None:
                report(len(found))
    return found


def _class_numbers(predictor: Model, n_graphs: int, classes: str | Sequence[str] | None) -> Ints | None:
    names = predictor.class_names
    if classes is None:
        return None if names else np.zeros(n_graphs, np.int64)
    rule(names, "this model predicts a value; there is no class to explain", ConfigError)
    wanted = [classes] * n_graphs if isinstance(classes, str) else list(map(str, classes))
    rule(len(wanted) == n_graphs, f"{len(wanted)} classes for {n_graphs} graphs", ConfigError)
    for name in wanted:
        rule(name in names, f"the model knows no class {name!r}; it knows {', '.join(names)}", ConfigError)
    return np.array([names.index(name) for name in wanted], np.int64)


def _portions(
    model: Model, graphs: Graphs, classes: Ints | None, config: ExplainConfig,
    attention: Sequence[AttentionHead] | None, device: str,
) -> Iterator[Portion]:  # fmt: skip
    """As many graphs at once as the device holds, with their importances."""
    if len(graphs) == 0:
        return
    place = choose_device(device)
    in_one_pass = config.technique == "contributions" and model.config.readout != "sort"
    if len(huge := np.flatnonzero(model.is_huge(graphs) & in_one_pass)):
        for first, last in pairwise(sorted({0, *huge.tolist(), *(huge + 1).tolist(), len(graphs)})):
            some, own = graphs[first:last], None if classes is None else classes[first:last]
            if first in huge:
                yield huge_portion(model, some, own, place)
            else:
                yield from _portions(model, some, own, config, attention, device)
        return
    # not moved where it is already: to go through a network takes as long as a part of it computes
    moved = (each if each.out.weight.device == place else each.to(place) for each in model.networks)
    data, networks = model.encode(graphs).to(place), [network.eval() for network in moved]
    heads = [None] * len(networks) if attention is None else [head.to(place) for head in attention]

    @torch.no_grad()
    def importances(chosen: torch.Tensor) -> Portion:
        some, batch = chosen.cpu().numpy(), data.batch(chosen)
        passes: list[Output] = [network(batch) for network in networks]
        outputs = torch.stack([each.output for each in passes])
        mean = outputs.mean(dim=0)
        check_finite(mean.double().cpu().numpy(), [graphs.names[g] for g in some.tolist()])
        of_class = mean.argmax(dim=1) if classes is None else torch.from_numpy(classes[some]).to(place)
        whole, shape = Question(networks, batch, of_class, model), model.encoder.shape(model.config)

        def question(numbers: Ints, there: Bools | None) -> Question:
            wanted = torch.from_numpy(numbers).to(place)
            part = None if there is None else torch.from_numpy(there).to(place)
            seen = networks[0].reads_absent
            parts = data.batch(chosen[wanted], None if seen else part, shape)
            presence = part.to(batch.attributes) if seen and part is not None else None
            if place.type == "cpu" and not seen:
                parts = distinct(parts, model.config.k, model.config.depth, FEW)
            return Question(networks, parts, of_class[wanted], model, presence)

        heads_of = zip(networks, passes, strict=True)  # nothing is read out where no node is present
        nobody = torch.cat([each.head(torch.zeros_like(of.pooled[:1])) for each, of in heads_of]).mean(dim=0).double()
        portion = Portion(
            model=model, graphs=graphs[some], classes=of_class.cpu().numpy(),
            outputs_of_each=outputs.double().cpu().numpy(), output=whole.of_outputs(mean.double()).cpu().numpy(),
            base=whole.of_outputs(nobody.expand(len(some), -1)).cpu().numpy(), whole=whole, question=question,
            known={b"": nobody.cpu().numpy()}, nodes=np.zeros(0), edges=np.zeros(0), trace=None,
        )  # fmt: skip
        if config.technique == "occlusion":
            nodes, edges = occlude(model, portion.graphs, portion.classes, device=device)
            return replace(portion, nodes=nodes, edges=edges)
        places, edge_numbers = batch.places(shape), EdgeNumbers.of(portion.graphs, place)
        found = [
            TECHNIQUES[config.technique](ExplainedBatch(
                network=network, batch=batch, output=output, classes=of_class, places=places, edges=edge_numbers,
                attention=head, settings=config,
            ))
            for network, output, head in zip(networks, passes, heads, strict=True)
        ]  # fmt: skip
        several = zip(*([(each.nodes, each.edges), *each.trace] for each in found), strict=True)
        (nodes, edges), *trace = ([mean_over_networks(kind) for kind in zip(*each, strict=True)] for each in several)
        layers = Trace(np.stack([n for n, _ in trace]), np.stack([e for _, e in trace])) if trace else None
        portion = replace(portion, nodes=nodes, edges=edges, trace=layers).symmetric()
        if config.technique != "contributions":
            return portion
        read_out = mean_over_networks([each.read_out for each in found if each.read_out is not None])
        return portion.adding_up(read_out, config.steps)

    for chosen in portions(data, gradients=True):
        with asking_no_gradients(networks):
            found = list(by_halves(importances, chosen))
        yield from found


@contextmanager
def asking_no_gradients(networks: Sequence[EgoCNN]) -> Iterator[None]:
    """The weights ask for no gradients meanwhile: to compute them takes as long as all the rest."""
    asking = [parameter for network in networks for parameter in network.parameters() if parameter.requires_grad]
    for parameter in asking:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_()


@torch.no_grad()
def huge_portion(model: Model, graph: Graphs, classes: Ints | None, device: torch.device) -> Portion:
    """One huge graph, and the class to explain, by default the predicted one: from one pass over it in blocks of nodes.

    To trace evidence back takes all layers at once, and to grow a part asks again and again: too much for it. A node
    contributes what it holds where it is read out (:mod:`egocnn.explain.evidence`), made to add up as ever."""
    batch = replace(batch_in_blocks(model.encoder, model.config, graph, device), kept=[])
    outputs, held = [], np.zeros((graph.n_nodes, model.n_outputs))
    for network in model.networks:
        output, found = _read_in_one_pass(network.to(device).eval(), batch)
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


def _read_in_one_pass(network: EgoCNN, batch: BlockedBatch) -> tuple[Tensor, Tensor]:
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
