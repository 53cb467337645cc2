"""The techniques by name: a batch on its way through the network -> importance of every node and edge, signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from egocnn.config import ExplainConfig
from egocnn.errors import ConfigError
from egocnn.explain.attention import AttentionHead
from egocnn.explain.backtrack import Rule, backtrack, relevance, transposed
from egocnn.explain.evidence import SAME, evidence, evidence_of_inputs, margin, slopes
from egocnn.explain.inputs import Entries, hand_down, is_opaque, put, transpose_down, values
from egocnn.explain.layers import Layers
from egocnn.explain.sums import EdgeNumbers, to_graph
from egocnn.nn import EgoCNN
from egocnn.nn.batch import Batch, Places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Why does the network see these classes in these graphs?"""

    layers: Layers
    classes: Tensor
    """(B) class numbers; of no meaning for a regressor"""
    places: Places
    edges: EdgeNumbers
    attention: AttentionHead | None
    settings: ExplainConfig

    @property
    def network(self) -> EgoCNN:
        return self.layers.network

    @property
    def batch(self) -> Batch:
        return self.layers.batch


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    nodes: Tensor
    """(N)"""
    edges: Tensor
    """(E)"""
    trace: tuple[tuple[Tensor, Tensor], ...] = ()
    """nodes and edges after the deepest layer, after every layer below, and at the input; a layer below that is read
    out counts with its own evidence"""


def by_relevance(question: Question) -> Answer:
    """Ours: the class's own evidence handed down by the relevance rule; see :mod:`egocnn.explain.backtrack`.

    Evidence against a class counts ``against`` times: every network holds much of it, for reasons that have
    nothing to do with the graph at hand, and at full weight it drowns what spoke for the class. What raised and what
    lowered a predicted value counts alike.
    """
    settings, network, batch = question.settings, question.network, question.batch
    own = [_weighed(question, each) for each in evidence(question.layers, question.classes)]
    trace, held = _sweep(question, own, relevance(settings.gamma))
    entries = hand_down(network, batch, question.places, held, settings.gamma)
    if network.counted:
        counted = _weighed(question, evidence_of_inputs(question.layers, question.classes))
        entries = replace(entries, whole=entries.whole + counted.sum(dim=1))
    return _finish(question, entries, trace)


def _weighed(question: Question, found: Tensor) -> Tensor:
    """Evidence for a class as it is, evidence against it as much as it counts"""
    if question.network.out.out_features == 1:
        return found
    return torch.where(found > 0, found, question.settings.against * found)


def by_attention(question: Question) -> Answer:
    """The paper's: the deepest embeddings scaled by attention, then transposed convolutions down to the input.

    Neighbourhoods whose attention stays below ``attention_threshold`` times the graph's largest are left out. Layers
    below the deepest have no attention of their own, also where the network reads them out.
    """
    if question.attention is None:
        raise ConfigError("the paper's technique needs an attention layer; fit one with fit_attention")
    return _transposed_from(question, question.attention.scores(question.layers.h[-1], question.batch))


def by_grad_cam(question: Question) -> Answer:
    """Grad-CAM in place of the attention layer, as in the authors' code; of the deepest embeddings, too."""
    layers = question.layers
    counts = question.batch.node_counts.clamp(min=1)[:, None]
    steep = slopes(layers, question.classes)[-1]
    mean = steep.new_zeros(len(counts), steep.shape[1]).index_add(0, question.batch.graph_of, steep) / counts
    weight = (layers.h[-1] * mean[question.batch.graph_of]).sum(dim=1).clamp(min=0)
    return _transposed_from(question, weight)


def by_gradient(question: Question) -> Answer:
    """The input times the gradient of the class's margin with respect to it."""
    given = values(question.network, question.batch)
    return _finish(question, _gradient(question, given).times(given))


def by_integrated_gradients(question: Question) -> Answer:
    """The gradient averaged on the way from an empty input to the given one, times the input.

    The importances of a graph add up to its margin less that of the empty input, up to the error of ``steps`` steps.
    """
    given = values(question.network, question.batch)
    steps = question.settings.steps
    total: Entries | None = None
    for step in range(steps):
        share = (step + 0.5) / steps
        gradient = _gradient(question, given.scaled(share)).scaled(1 / steps)
        total = gradient if total is None else total.plus(gradient)
    assert total is not None
    return _finish(question, total.times(given))


BACKWARD: dict[str, Callable[[Question], Answer]] = {
    "relevance": by_relevance,
    "paper": by_attention,
    "grad-cam": by_grad_cam,
    "gradient": by_gradient,
    "integrated-gradients": by_integrated_gradients,
}
"""All but occlusion, which asks the whole model again and again: :mod:`egocnn.explain.occlusion`."""


def _gradient(question: Question, entries: Entries) -> Entries:
    asked = entries.asking_for_gradients()
    parts = [part for part in asked.parts if part.requires_grad]
    if not parts:  # graphs without nodes
        return entries.scaled(0)
    with torch.enable_grad():
        factor = asked.whole if is_opaque(question.network) else None
        of_inputs = asked.whole if question.network.counted else None
        total = margin(question.network, put(question.batch, asked), question.classes, factor, of_inputs).sum()
        found = iter(torch.autograd.grad(total, parts, allow_unused=True, materialize_grads=True))
    return Entries(*(next(found) if part.requires_grad else torch.zeros_like(part) for part in asked.parts))


def _transposed_from(question: Question, weight: Tensor) -> Answer:
    """Scale the deepest embeddings by weights (N), then undo the layers."""
    batch = question.batch
    largest = weight.new_zeros(len(batch)).scatter_reduce(0, batch.graph_of, weight, "amax")
    weight = weight / largest.clamp(min=torch.finfo(weight.dtype).tiny)[batch.graph_of]
    least = question.settings.attention_threshold * (1 - SAME)  # rounding must not part symmetric nodes
    weight = torch.where(weight >= least, weight, 0)
    trace, held = _sweep(question, (question.layers.h[-1] * weight[:, None],), transposed)
    return _finish(question, transpose_down(question.network, batch, question.places, held), trace)


def _sweep(question: Question, own: Sequence[Tensor], rule: Rule) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """From the deepest layer to the embeddings: the trace so far, and what these hold (N, D)"""
    batch, held = question.batch, own[-1]
    crossed = held.new_zeros(len(question.edges.key))
    trace = [(held.sum(dim=1), crossed)]
    for step in backtrack(question.layers, own, rule):
        crossed = crossed + question.edges.crossings(batch.neighbours.table, step.crossed)
        if batch.rest is not None:
            crossed = crossed + question.edges.add_up(batch.rest.owner, batch.rest.source, step.beyond)
        held = step.nodes
        trace.append((held.sum(dim=1), crossed))
    return trace, held


def _finish(question: Question, entries: Entries, trace: Sequence[tuple[Tensor, Tensor]] = ()) -> Answer:
    nodes, edges = to_graph(entries, question.batch, question.places, question.edges)
    return Answer(nodes, edges, (*trace, (nodes, edges)) if trace else ())
