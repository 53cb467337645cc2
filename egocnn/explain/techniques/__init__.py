"""The techniques by name: a batch that went through the network -> importance of every node and edge, signed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Floats, Ints
from egocnn.data.collection import without_each_edge, without_each_node
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.explain.backtrack import EdgeNumbers, Entries, backtrack, gradient, through_embedding, to_graph, values
from egocnn.explain.evidence import SAME, ForwardPass, evidence, evidence_of_inputs, margins, slopes
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.model import Model
from egocnn.nn.batch import Places

NODES_AT_ONCE = 1 << 17  # Nodes of the copies that occlusion holds in memory together.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplainedBatch(ForwardPass):
    """What a technique reads: the forward pass, and what leads from its numbers back to nodes and edges."""

    places: Places
    edges: EdgeNumbers
    attention: AttentionHead | None
    settings: ExplainConfig


@dataclass(frozen=True, slots=True, eq=False)
class Importances:
    """What a technique finds."""

    nodes: Tensor  # (N)
    edges: Tensor  # (E)
    # nodes and edges after the deepest layer, every layer below (with its own evidence where read out), and the input
    trace: tuple[tuple[Tensor, Tensor], ...] = ()
    read_out: Tensor | None = None  # (N) the evidence that each node holds in all layers that are read out


def by_relevance(batch: ExplainedBatch, against: float | None = None) -> Importances:
    """The class's own evidence handed down by the relevance rule; see :mod:`egocnn.explain.backtrack`. Evidence against
    a class counts ``against`` times: every network holds much of it that has nothing to do with this graph, and at full
    weight it drowns what spoke for the class. What raised and what lowered a predicted value counts alike."""
    if against is None:
        against = 1.0 if batch.network.out.out_features == 1 else batch.settings.against

    def weighed(found: Iterable[Tensor]) -> list[Tensor]:
        return [each if against == 1 else torch.where(each > 0, each, against * each) for each in found]

    own = weighed(evidence(batch))
    trace, entries = _down_to_entries(batch, own, batch.settings.gamma)
    read_out = torch.stack([each.sum(dim=1) for each in own]).sum(dim=0)
    if batch.network.counted:
        (counted,) = (each.sum(dim=1) for each in weighed([evidence_of_inputs(batch)]))
        entries, read_out = replace(entries, whole=entries.whole + counted), read_out + counted
    return replace(_importances(batch, entries, trace), read_out=read_out)


def by_attention(batch: ExplainedBatch) -> Importances:
    """The paper's: the deepest embeddings scaled by attention, then transposed convolutions down to the input.
    Neighbourhoods whose attention stays below ``attention_threshold`` times the graph's largest are left out. Layers
    below the deepest have no attention of their own, also where the network reads them out."""
    if batch.attention is None:
        raise ConfigError("the paper's technique needs an attention layer; fit one with fit_attention")
    return _transposed_from(batch, batch.attention.scores(batch.h[-1], batch.batch))


def by_grad_cam(batch: ExplainedBatch) -> Importances:
    """Grad-CAM in place of the attention layer, as in the authors' code; of the deepest embeddings, too."""
    mean = batch.batch.pool(slopes(batch)[-1], "mean")[batch.batch.graph_of]
    return _transposed_from(batch, (batch.h[-1] * mean).sum(dim=1).clamp(min=0))


def by_gradient(batch: ExplainedBatch) -> Importances:
    """The input times the gradient of the class's margin with respect to it."""
    given = values(batch.network, batch.batch)
    return _importances(batch, gradient(batch, given).map(torch.mul, given))


def by_integrated_gradients(batch: ExplainedBatch) -> Importances:
    """The gradient averaged on the way from an empty input to the given one, times the input. The importances of a
    graph add up to its margin less that of the empty input, up to the error of ``steps`` steps."""
    given, steps = values(batch.network, batch.batch), batch.settings.steps
    total = given.scaled(0)
    for step in range(steps):
        slope = gradient(batch, given.scaled((step + 0.5) / steps))
        total = total.map(torch.add, slope.scaled(1 / steps))
    return _importances(batch, total.map(torch.mul, given))


TECHNIQUES: dict[str, Callable[[ExplainedBatch], Importances]] = {  # occlusion needs the whole model: occlude()
    "contributions": partial(by_relevance, against=1.0),  # at full weight both ways: only where they stand is asked
    "relevance": by_relevance,
    "paper": by_attention,
    "grad-cam": by_grad_cam,
    "gradient": by_gradient,
    "integrated-gradients": by_integrated_gradients,
}


def _transposed_from(batch: ExplainedBatch, weight: Tensor) -> Importances:
    """Scale the deepest embeddings by weights (N), then undo the layers."""
    graph_of = batch.batch.graph_of
    largest = weight.new_zeros(len(batch.batch)).scatter_reduce(0, graph_of, weight, "amax")
    weight = weight / largest.clamp(min=torch.finfo(weight.dtype).tiny)[graph_of]
    least = batch.settings.attention_threshold * (1 - SAME)  # rounding must not part symmetric nodes
    weight = torch.where(weight >= least, weight, 0)
    trace, entries = _down_to_entries(batch, (batch.h[-1] * weight[:, None],), None)
    return _importances(batch, entries, trace)


def _down_to_entries(
    batch: ExplainedBatch, own: Sequence[Tensor], gamma: float | None
) -> tuple[list[tuple[Tensor, Tensor]], Entries]:
    """From the deepest layer to the input: the trace down to the embeddings, and importances of the entries."""
    held, (node, near, _) = own[-1], batch.plan.pairs
    crossed, numbers = held.new_zeros(len(batch.edges.key)), batch.edges.find(node, near)
    trace = [(held.sum(dim=1), crossed)]
    for held, step in backtrack(batch, own, gamma):
        crossed = crossed + batch.edges.add_up(numbers, step)
        trace.append((held.sum(dim=1), crossed))
    return trace, through_embedding(batch.network, batch.batch, held, gamma)


def _importances(batch: ExplainedBatch, entries: Entries, trace: Sequence[tuple[Tensor, Tensor]] = ()) -> Importances:
    nodes, edges = to_graph(entries, batch.places, batch.edges)
    return Importances(nodes, edges, (*trace, (nodes, edges)) if trace else ())


def occlude(model: Model, graphs: Graphs, classes: Ints, *, device: str) -> tuple[Floats, Floats]:
    """Exact occlusion: importances of nodes (N) and edges (E) for one class of every graph (B). The importance of a
    node or an edge is what the margin of the class loses when it is taken out of its graph. Nothing is approximated:
    neighbours are ranked anew in every cut graph. One prediction for each makes it slow."""

    def margins_of(some: Graphs, of_class: Ints) -> Floats:
        outputs = torch.from_numpy(model.outputs(some, device=device)).double()
        found: Floats = margins(outputs, torch.from_numpy(of_class)).numpy()
        return found

    def losses(owner: Ints, cut: Callable[[Ints], Graphs]) -> Floats:
        size = np.cumsum(graphs.node_counts[owner])
        portions = np.split(np.arange(len(owner)), np.flatnonzero(np.diff(size // NODES_AT_ONCE)) + 1)
        found = (whole[owner[some]] - margins_of(cut(some), classes[owner[some]]) for some in portions if len(some))
        return np.concatenate([np.zeros(0), *found])

    edges, whole = graphs.edges, margins_of(graphs, classes)
    return (
        losses(graphs.graph_of, lambda some: without_each_node(graphs, some)),
        losses(graphs.graph_of[edges[:, 0]], lambda some: without_each_edge(graphs, edges[some])),
    )
