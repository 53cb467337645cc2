"""A trained model and graphs -> one CriticalStructure per graph, all graphs of a batch together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.data.subgraphs import keep_nodes
from egocnn.encode.colours import initial_colours, stable_colours
from egocnn.encode.ranking import MOST_ROUNDS
from egocnn.errors import ConfigError, DataError
from egocnn.explain.attention import AttentionHead
from egocnn.explain.layers import run_layers
from egocnn.explain.occlusion import occlude
from egocnn.explain.select import select_nodes
from egocnn.explain.structure import CriticalStructure, Fidelity, Trace
from egocnn.explain.sums import EdgeNumbers
from egocnn.explain.techniques import BACKWARD, Question
from egocnn.model import Model, check_finite
from egocnn.nn.device import choose_device
from egocnn.nn.memory import by_halves
from egocnn.nn.predict import portions

NEAR = 0.1
"""A value counts as kept while it moves by no more than this share of the targets' standard deviation."""


def explain(
    predictor: Model,
    graphs: Graphs,
    config: ExplainConfig | None = None,
    *,
    classes: str | Sequence[str] | None = None,
    attention: AttentionHead | None = None,
    fidelity: bool = True,
    device: str = "auto",
    report: Callable[[int], None] | None = None,
) -> list[CriticalStructure]:
    """The critical structure of every graph, in order.

    ``classes``: the class to explain, by name, one for all graphs or one for each; the predicted ones by default.
    ``fidelity=False`` saves the two further predictions per graph. ``report`` hears how many graphs are done.
    """
    config = config or ExplainConfig()
    asked = _class_numbers(predictor, len(graphs), classes)
    found: list[CriticalStructure] = []
    for some, outputs, importance in _importances(predictor, graphs, asked, config, attention, device):
        part = graphs[some]
        _check_importance(part, importance)
        model = _Model(predictor, part, outputs, importance.classes, device)
        chosen = select_nodes(part, importance.nodes, config, model.keeps)
        faithful = model.fidelity(chosen) if fidelity else None
        found += _records(part, model, importance, chosen, faithful, config.technique)
        if report is not None:
            report(len(found))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Importance:
    classes: Ints
    """(B)"""
    nodes: Floats
    """(N)"""
    edges: Floats
    """(E)"""
    trace: Trace | None


def _importances(
    predictor: Model,
    graphs: Graphs,
    asked: Ints | None,
    config: ExplainConfig,
    attention: AttentionHead | None,
    device: str,
) -> Iterator[tuple[Ints, Floats, _Importance]]:
    """Portion by portion: numbers of the graphs, outputs (B, C), importances."""
    if len(graphs) == 0:
        return
    place, known = choose_device(device), predictor.encoder
    data, network = predictor.encode(graphs).to(place), predictor.network.to(place).eval()
    attention = None if attention is None else attention.to(place)

    @torch.no_grad()
    def answer(chosen: torch.Tensor) -> tuple[Ints, Floats, _Importance]:
        some, batch = chosen.cpu().numpy(), data.batch(chosen)
        part = graphs[some]
        layers = run_layers(network, batch)
        logits = layers.logits
        classes = logits.argmax(dim=1) if asked is None else torch.from_numpy(asked[some]).to(place)
        numbers, outputs = classes.cpu().numpy(), logits.double().cpu().numpy()
        check_finite(outputs, part.names)
        if config.technique == "occlusion":
            nodes, edges = occlude(predictor, part, numbers, device=device)
            return some, outputs, _Importance(numbers, nodes, edges, None)
        question = Question(
            layers=layers,
            classes=classes,
            places=batch.places(known.shape(predictor.config)),
            edges=EdgeNumbers.of(part, place),
            attention=attention,
            settings=config,
        )
        found = BACKWARD[config.technique](question)
        trace = [(n.double().cpu().numpy(), e.double().cpu().numpy()) for n, e in found.trace]
        importance = _Importance(
            numbers,
            found.nodes.double().cpu().numpy(),
            found.edges.double().cpu().numpy(),
            Trace(np.stack([n for n, _ in trace]), np.stack([e for _, e in trace])) if trace else None,
        )
        return some, outputs, _even_out(known.renamed(part), importance)

    for chosen in portions(data):
        yield from by_halves(answer, chosen)


def _check_importance(graphs: Graphs, importance: _Importance) -> None:
    """Refuse importances that are not numbers any more, though what was predicted is one."""
    wrong = np.flatnonzero(~np.isfinite(importance.nodes))
    if len(wrong):
        name = graphs.names[int(graphs.graph_of[wrong[0]])]
        raise DataError(f"graph {name!r}: the importance of a node is not a finite number; its numbers are too large")


def _even_out(graphs: Graphs, importance: _Importance) -> _Importance:
    """Nodes that no colour tells apart share their importance alike, and so do like edges between such nodes.

    Symmetric neighbours have to be ranked one before the other, by node id, and so meet different filters on the way
    back. Which is which means nothing, and renumbering the nodes must not change the answer.
    """
    group = _classes(graphs.graph_of, stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS))
    low, high = np.sort(group[graphs.edges], axis=1).T
    once = graphs.entry_node <= graphs.indices
    described = [column[once] for column in (graphs.edge_label, graphs.edge_weight) if column is not None]
    pair = _classes(low, high, graphs.edges[:, 0] == graphs.edges[:, 1], *described)
    trace = importance.trace
    return _Importance(
        importance.classes,
        _mean_in_groups(importance.nodes, group),
        _mean_in_groups(importance.edges, pair),
        trace and Trace(_mean_in_groups(trace.nodes, group), _mean_in_groups(trace.edges, pair)),
    )


def _classes(*columns: NDArray[Any]) -> Ints:
    """(n) the same number where all columns (n) agree"""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, value = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (len(value) + 1) + value, return_inverse=True)
    return number


def _mean_in_groups(values: Floats, group: Ints) -> Floats:
    """(..., n) -> (..., n), every value the mean of its group"""
    size = np.bincount(group)
    rows = [np.bincount(group, weights=row)[group] / size[group] for row in np.atleast_2d(values)]
    mean: Floats = np.stack(rows).reshape(values.shape)
    return mean


def _class_numbers(predictor: Model, n_graphs: int, classes: str | Sequence[str] | None) -> Ints | None:
    names = predictor.class_names
    if classes is None:
        return None if names else np.zeros(n_graphs, np.int64)
    if not names:
        raise ConfigError("this model predicts a value; there is no class to explain")
    wanted = [classes] * n_graphs if isinstance(classes, str) else list(map(str, classes))
    if len(wanted) != n_graphs:
        raise ConfigError(f"{len(wanted)} classes for {n_graphs} graphs")
    for name in wanted:
        if name not in names:
            raise ConfigError(f"the model knows no class {name!r}; it knows {', '.join(names)}")
    return np.array([names.index(name) for name in wanted], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """What the model says of these graphs, whole and cut."""

    predictor: Model
    graphs: Graphs
    outputs: Floats
    """(B, C)"""
    classes: Ints
    """(B) the explained ones"""
    device: str

    def said(self, outputs: Floats) -> Floats:
        """(B, C) probabilities, or (B, 1) values in the unit of the target"""
        if self.predictor.class_names:
            logits = torch.from_numpy(outputs) / self.predictor.temperature
            return torch.softmax(logits, dim=1).numpy()
        return self.predictor.encoder.to_value(torch.from_numpy(outputs)).numpy()

    def keeps(self, numbers: Ints, chosen: Bools) -> Bools:
        """Whether each of these graphs is still predicted as it was with nothing but the chosen nodes (N)."""
        part = self.graphs[numbers]
        nodes = np.isin(self.graphs.graph_of, numbers)
        outputs = self.predictor.outputs(keep_nodes(part, chosen[nodes]), device=self.device)
        before = self.outputs[numbers]
        if self.predictor.class_names:
            same: Bools = outputs.argmax(axis=1) == before.argmax(axis=1)
            return same
        return np.less_equal(np.abs(outputs - before)[:, 0], NEAR)

    def fidelity(self, chosen: Bools) -> list[Fidelity]:
        column = self.classes if self.predictor.class_names else np.zeros_like(self.classes)
        row = np.arange(len(self.graphs))
        both = Graphs.concat([keep_nodes(self.graphs, nodes) for nodes in (~chosen, chosen)])  # ranked once, not twice
        outputs = self.predictor.outputs(both, device=self.device).astype(np.float64)
        removed, kept = np.split(self.said(outputs), 2)
        return [Fidelity(float(r), float(k)) for r, k in zip(removed[row, column], kept[row, column], strict=True)]


def _records(
    graphs: Graphs,
    model: _Model,
    importance: _Importance,
    chosen: Bools,
    fidelity: list[Fidelity] | None,
    technique: str,
) -> Iterator[CriticalStructure]:
    names, said = model.predictor.class_names, model.said(model.outputs)
    edge_graph = graphs.graph_of[graphs.edges[:, 0]]
    first_edge = np.searchsorted(edge_graph, np.arange(len(graphs) + 1))
    trace = importance.trace
    for g, graph in enumerate(graphs):
        nodes = slice(int(graphs.node_ptr[g]), int(graphs.node_ptr[g + 1]))
        edges = slice(int(first_edge[g]), int(first_edge[g + 1]))
        best = int(said[g].argmax())
        critical = chosen[nodes]
        yield CriticalStructure(
            graph=graph,
            predicted=names[best] if names else float(said[g, 0]),
            probability=float(said[g, best]) if names else None,
            explained=names[int(importance.classes[g])] if names else None,
            technique=technique,
            node_importance=importance.nodes[nodes],
            edge_importance=importance.edges[edges],
            critical_nodes=np.flatnonzero(critical),
            critical_edges=np.flatnonzero(critical[graph.edges].all(axis=1)),
            fidelity=None if fidelity is None else fidelity[g],
            trace=None if trace is None else Trace(trace.nodes[:, nodes], trace.edges[:, edges]),
        )
