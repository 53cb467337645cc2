"""A trained model and graphs -> one CriticalStructure per graph, all graphs of a batch together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from egocnn.explain.contributions import EdgeNumbers
from egocnn.explain.select import select_nodes
from egocnn.explain.structure import CriticalStructure, Fidelity, Trace
from egocnn.explain.techniques import TECHNIQUES, ExplainedBatch, occlude
from egocnn.model import Model, check_finite
from egocnn.nn import Output
from egocnn.nn.device import choose_device
from egocnn.nn.memory import by_halves
from egocnn.nn.predict import portions

NEAR = 0.1
"""A value counts as unchanged while it moves by no more than this share of the targets' standard deviation."""


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
    ``fidelity=False`` saves the two further predictions per graph. ``report`` is called with the number of graphs done.
    """
    config = config or ExplainConfig()
    chosen_classes = _class_numbers(predictor, len(graphs), classes)
    found: list[CriticalStructure] = []
    for portion in _portions(predictor, graphs, chosen_classes, config, attention, device):
        portion.check_finite()
        critical = select_nodes(portion.graphs, portion.nodes, config, portion.keeps_prediction)
        found += portion.structures(critical, portion.fidelity(critical) if fidelity else None, config.technique)
        if report is not None:
            report(len(found))
    return found


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


def _portions(
    model: Model,
    graphs: Graphs,
    classes: Ints | None,
    config: ExplainConfig,
    attention: AttentionHead | None,
    device: str,
) -> Iterator[_Portion]:
    """As many graphs at once as the device holds, with their importances."""
    if len(graphs) == 0:
        return
    place, encoder = choose_device(device), model.encoder
    data, network = model.encode(graphs).to(place), model.network.to(place).eval()
    attention = None if attention is None else attention.to(place)

    @torch.no_grad()
    def importances(chosen: torch.Tensor) -> _Portion:
        some, batch = chosen.cpu().numpy(), data.batch(chosen)
        part = graphs[some]
        output: Output = network(batch)
        of_class = output.output.argmax(dim=1) if classes is None else torch.from_numpy(classes[some]).to(place)
        numbers, outputs = of_class.cpu().numpy(), output.output.double().cpu().numpy()
        check_finite(outputs, part.names)
        if config.technique == "occlusion":
            nodes, edges = occlude(model, part, numbers, device=device)
            return _Portion(model, device, part, outputs, numbers, nodes, edges, None)
        found = TECHNIQUES[config.technique](
            ExplainedBatch(
                network=network,
                batch=batch,
                output=output,
                classes=of_class,
                places=batch.places(encoder.shape(model.config)),
                edges=EdgeNumbers.of(part, place),
                attention=attention,
                settings=config,
            )
        )
        (nodes, edges), *trace = (
            (n.double().cpu().numpy(), e.double().cpu().numpy()) for n, e in ((found.nodes, found.edges), *found.trace)
        )
        layers = Trace(np.stack([n for n, _ in trace]), np.stack([e for _, e in trace])) if trace else None
        return _Portion(model, device, part, outputs, numbers, nodes, edges, layers).symmetric()

    for chosen in portions(data):
        yield from by_halves(importances, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Portion:
    """Some graphs with what the model predicts for them and why."""

    model: Model
    device: str
    graphs: Graphs
    outputs: Floats
    """(B, C)"""
    classes: Ints
    """(B) the explained ones"""
    nodes: Floats
    """(N) importances"""
    edges: Floats
    """(E) importances"""
    trace: Trace | None

    def symmetric(self) -> _Portion:
        """Nodes of the same colour share their importance alike, and so do like edges between such nodes.

        Symmetric neighbours have to be ranked one before the other, by node id, and so meet different filters on the
        way back. Which is which means nothing, and renumbering the nodes must not change the explanation.
        """
        graphs, trace = self.model.encoder.renamed(self.graphs), self.trace
        group = _group_numbers(graphs.graph_of, stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS))
        low, high = np.sort(group[graphs.edges], axis=1).T
        once = graphs.entry_node <= graphs.indices
        described = [column[once] for column in (graphs.edge_label, graphs.edge_weight) if column is not None]
        pair = _group_numbers(low, high, graphs.edges[:, 0] == graphs.edges[:, 1], *described)
        return replace(
            self,
            nodes=_mean_in_groups(self.nodes, group),
            edges=_mean_in_groups(self.edges, pair),
            trace=trace and Trace(_mean_in_groups(trace.nodes, group), _mean_in_groups(trace.edges, pair)),
        )

    def check_finite(self) -> None:
        """Refuse importances that are not numbers any more, though what was predicted is one."""
        wrong = np.flatnonzero(~np.isfinite(self.nodes))
        if len(wrong):
            name = self.graphs.names[int(self.graphs.graph_of[wrong[0]])]
            raise DataError(
                f"graph {name!r}: the importance of a node is not a finite number; its numbers are too large"
            )

    def predictions(self, outputs: Floats) -> Floats:
        """(B, C) probabilities, or (B, 1) values in the unit of the target"""
        if self.model.class_names:
            return torch.softmax(torch.from_numpy(outputs) / self.model.temperature, dim=1).numpy()
        return self.model.encoder.to_value(torch.from_numpy(outputs)).numpy()

    def keeps_prediction(self, numbers: Ints, chosen: Bools) -> Bools:
        """Whether each of these graphs is still predicted as it was with nothing but the chosen nodes (N)."""
        nodes = np.isin(self.graphs.graph_of, numbers)
        outputs = self.model.outputs(keep_nodes(self.graphs[numbers], chosen[nodes]), device=self.device)
        before = self.outputs[numbers]
        if self.model.class_names:
            same: Bools = outputs.argmax(axis=1) == before.argmax(axis=1)
            return same
        return np.less_equal(np.abs(outputs - before)[:, 0], NEAR)

    def fidelity(self, chosen: Bools) -> list[Fidelity]:
        """What is predicted for every graph without the chosen nodes (N), and with nothing else."""
        column = self.classes if self.model.class_names else np.zeros_like(self.classes)
        row = np.arange(len(self.graphs))
        both = Graphs.concat([keep_nodes(self.graphs, nodes) for nodes in (~chosen, chosen)])  # ranked once, not twice
        outputs = self.model.outputs(both, device=self.device).astype(np.float64)
        removed, kept = np.split(self.predictions(outputs), 2)
        return [Fidelity(float(r), float(k)) for r, k in zip(removed[row, column], kept[row, column], strict=True)]

    def structures(self, chosen: Bools, fidelity: list[Fidelity] | None, technique: str) -> Iterator[CriticalStructure]:
        """One record per graph; ``chosen`` (N): the critical nodes."""
        graphs, trace = self.graphs, self.trace
        names, predictions = self.model.class_names, self.predictions(self.outputs)
        first_edge = np.searchsorted(graphs.graph_of[graphs.edges[:, 0]], np.arange(len(graphs) + 1))
        for g, graph in enumerate(graphs):
            nodes = slice(int(graphs.node_ptr[g]), int(graphs.node_ptr[g + 1]))
            edges = slice(int(first_edge[g]), int(first_edge[g + 1]))
            best = int(predictions[g].argmax())
            critical = chosen[nodes]
            yield CriticalStructure(
                graph=graph,
                predicted=names[best] if names else float(predictions[g, 0]),
                probability=float(predictions[g, best]) if names else None,
                explained=names[int(self.classes[g])] if names else None,
                technique=technique,
                node_importance=self.nodes[nodes],
                edge_importance=self.edges[edges],
                critical_nodes=np.flatnonzero(critical),
                critical_edges=np.flatnonzero(critical[graph.edges].all(axis=1)),
                fidelity=None if fidelity is None else fidelity[g],
                trace=None if trace is None else Trace(trace.nodes[:, nodes], trace.edges[:, edges]),
            )


def _group_numbers(*columns: NDArray[Any]) -> Ints:
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
