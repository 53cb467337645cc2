"""The usual ways to explain a GINE network: a trained network + graphs -> importances and the time they took.

What is explained are the log-odds of one class, the one that is asked for or the predicted one, or the predicted value.
GNNExplainer and PGExplainer are PyTorch Geometric's own, explain classes alone, and maximise the likelihood of the
class instead.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Floats, pointers
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.gine import GINE, FittedGINE, Inputs, logits_of, portions, seeded
from lab.truths import Importance, edges_from_nodes, nodes_from_edges

NODES_AT_ONCE = 1 << 14  # Nodes of all copies of a graph that occlusion reads together.

Found: TypeAlias = tuple[Tensor | None, Tensor | None]
"""Importance of the nodes (N) and of the adjacency entries (M); None: the technique does not say."""
Technique: TypeAlias = Callable[[Inputs, Tensor], Found]
"""Graphs and the class to explain in each (B) -> what was found."""


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    importances: list[Importance]  # one per graph
    milliseconds: float  # of explaining, per graph
    training_seconds: float = 0.0  # what the explainer itself had to learn before


# ── PyTorch Geometric's own ───────────────────────────────────────────────────────────────────────────


def gnn_explainer(
    model: FittedGINE, graphs: Graphs, *, target: str | None = None, seed: int = 0, epochs: int = 100
) -> Explained:
    """Masks of nodes and edges, learned for each graph anew (Ying et al., NeurIPS 2019)."""
    from torch_geometric.explain import GNNExplainer

    # masks leave parameters behind on the layers, which would cut off the gradients of the next explainer
    network = deepcopy(model.network)

    def technique(inputs: Inputs, classes: Tensor) -> Found:
        torch.manual_seed(seed)  # the answer for a graph must not depend on those before it
        edges = "object" if inputs.edge_index.shape[1] else None
        explainer = _explainer(network, GNNExplainer(epochs=epochs), node_mask_type="object", edge_mask_type=edges)
        found = explainer(inputs.x, inputs.edge_index, target=classes, **_columns(inputs))
        return found.node_mask[:, 0], found.edge_mask if edges else inputs.x.new_zeros(0)

    return _explain(model, graphs, target, technique, singly=True)


def pg_explainer(
    model: FittedGINE,
    graphs: Graphs,
    *,
    training: Graphs,
    target: str | None = None,
    seed: int = 0,
    epochs: int = 30,
    batch_size: int = 32,
) -> Explained:
    """Masks of edges, by a network that learns on the graphs ``training`` to give them (Luo et al., NeurIPS 2020).

    It knows edges alone: a node is as important as its edges on average.
    """
    from torch_geometric.explain import PGExplainer

    network = deepcopy(model.network)
    prepared = model.prepare(training)
    started = time.perf_counter()
    with seeded(seed, model.device), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # PyG's own, about its loss
        algorithm = PGExplainer(epochs=epochs).to(model.device)
        # its penalty adds up over all edges it is given, meant for one graph a step
        algorithm.coeffs = algorithm.coeffs | {"edge_size": algorithm.coeffs["edge_size"] / batch_size}
        explainer = _explainer(network, algorithm, node_mask_type=None, edge_mask_type="object")
        for epoch in range(epochs):
            for chosen in torch.split(torch.randperm(len(prepared)), batch_size):
                inputs = model.inputs(prepared[chosen.numpy()])
                if inputs.edge_index.shape[1]:
                    classes = _classes(model, inputs, None)  # it learns what makes the network say what it says
                    algorithm.train(epoch, network, inputs.x, inputs.edge_index, target=classes, **_columns(inputs))
    training_seconds = time.perf_counter() - started

    def technique(inputs: Inputs, classes: Tensor) -> Found:
        if not inputs.edge_index.shape[1]:
            return None, inputs.x.new_zeros(0)
        found = explainer(inputs.x, inputs.edge_index, target=classes, **_columns(inputs))
        return None, found.edge_mask

    return _explain(model, graphs, target, technique, training_seconds=training_seconds)


def _explainer(network: GINE, algorithm: Any, **masks: str | None) -> Any:
    from torch_geometric.explain import Explainer

    return Explainer(
        model=network,
        algorithm=algorithm,
        explanation_type="phenomenon",  # explain the class that is given
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
        **masks,
    )


def _columns(inputs: Inputs) -> dict[str, Any]:
    return {"edge_attr": inputs.edge_attr, "batch": inputs.graph_of, "n_graphs": inputs.n_graphs}


# ── by gradients ──────────────────────────────────────────────────────────────────────────────────────


def integrated_gradients(model: FittedGINE, graphs: Graphs, *, target: str | None = None, steps: int = 50) -> Explained:
    """Gradients along the straight way from inputs that are all zero, times the inputs (Sundararajan et al., 2017).

    Over the nodes and edges of a graph the importances add up to what its labels and attributes change in the
    log-odds.
    """

    def technique(inputs: Inputs, classes: Tensor) -> Found:
        x_sum, edge_sum = torch.zeros_like(inputs.x), torch.zeros_like(inputs.edge_attr)
        for step in range(steps):
            share = (step + 0.5) / steps
            x = (inputs.x * share).requires_grad_()
            edge_attr = (inputs.edge_attr * share).requires_grad_()
            logits = model.network(x, inputs.edge_index, edge_attr, inputs.graph_of, inputs.n_graphs)
            by_x, by_edge = torch.autograd.grad(_log_odds(logits, classes).sum(), (x, edge_attr))
            x_sum += by_x
            edge_sum += by_edge
        return (inputs.x * x_sum).sum(1) / steps, (inputs.edge_attr * edge_sum).sum(1) / steps

    return _explain(model, graphs, target, technique, add_directions=True)


def cam(model: FittedGINE, graphs: Graphs, *, target: str | None = None) -> Explained:
    """The last embedding of a node times the gradient of the log-odds by it.

    For a mean or sum readout and a linear head that is the node's own share of the log-odds, CAM (Zhou et al.,
    2016); for others it is Grad-CAM (Selvaraju et al., 2017), node by node. It knows
    nodes alone: an edge is as important as its ends on average.
    """

    def technique(inputs: Inputs, classes: Tensor) -> Found:
        with torch.no_grad():
            h = model.network.encode(inputs.x, inputs.edge_index, inputs.edge_attr)
        h.requires_grad_()
        logits = model.network.classify(h, inputs.graph_of, inputs.n_graphs)
        (gradient,) = torch.autograd.grad(_log_odds(logits, classes).sum(), h)
        return (h.detach() * gradient).sum(1), None

    return _explain(model, graphs, target, technique)


# ── by trying ─────────────────────────────────────────────────────────────────────────────────────────


def occlusion(model: FittedGINE, graphs: Graphs, *, target: str | None = None) -> Explained:
    """What the log-odds lose when a node is deleted, and when an edge is; all copies of a graph at once."""

    @torch.no_grad()
    def technique(inputs: Inputs, classes: Tensor) -> Found:
        n_nodes, n_entries = len(inputs.x), inputs.edge_index.shape[1]
        source, sink = inputs.edge_index
        device = inputs.x.device
        key = torch.minimum(source, sink) * n_nodes + torch.maximum(source, sink)
        edges, edge_of = torch.unique(key, return_inverse=True)
        keep_node = torch.ones(n_nodes + len(edges), n_nodes, dtype=torch.bool, device=device)
        keep_node[:n_nodes].fill_diagonal_(False)
        keep_entry = torch.ones(n_nodes + len(edges), n_entries, dtype=torch.bool, device=device)
        keep_entry[:n_nodes] = keep_node[:n_nodes, source] & keep_node[:n_nodes, sink]
        keep_entry[n_nodes + edge_of, torch.arange(n_entries, device=device)] = False
        at_once = max(1, NODES_AT_ONCE // n_nodes)
        copies = zip(torch.split(keep_node, at_once), torch.split(keep_entry, at_once), strict=True)
        logits = torch.cat([logits_of(model.network, _copies(inputs, nodes, entries)) for nodes, entries in copies])
        whole = _log_odds(logits_of(model.network, inputs), classes)
        loss = whole - _log_odds(logits, classes.expand(len(logits)))
        return loss[:n_nodes], loss[n_nodes:][edge_of]

    return _explain(model, graphs, target, technique, singly=True)


def _copies(inputs: Inputs, keep_node: Tensor, keep_entry: Tensor) -> Inputs:
    """One graph as many times as there are rows (V, N), (V, M) that say what to keep of it."""
    n_copies, n_nodes = keep_node.shape
    place = torch.cumsum(keep_node.flatten(), 0) - 1
    first = torch.arange(n_copies, device=place.device)[:, None] * n_nodes
    ends = [place[(end + first)[keep_entry]] for end in inputs.edge_index]
    copy, node = torch.nonzero(keep_node, as_tuple=True)
    entry = torch.nonzero(keep_entry, as_tuple=True)[1]
    return Inputs(inputs.x[node], torch.stack(ends), inputs.edge_attr[entry], copy, n_copies)


# ── what they share ───────────────────────────────────────────────────────────────────────────────────


def _explain(
    model: FittedGINE,
    graphs: Graphs,
    target: str | None,
    technique: Technique,
    *,
    singly: bool = False,
    add_directions: bool = False,
    training_seconds: float = 0.0,
) -> Explained:
    """Run a technique on one graph after the other, or on many at once, and take the time.

    An edge is the mean of its two directions, or their sum.
    """
    prepared = model.prepare(graphs)
    pieces = (prepared[[g]] for g in range(len(graphs))) if singly else portions(prepared)
    importances: list[Importance] = []
    seconds = 0.0
    model.network.eval()
    with seeded(0, model.device):
        for piece in pieces:
            inputs = model.inputs(piece)
            classes = _classes(model, inputs, target)
            if inputs.x.is_cuda:
                torch.cuda.synchronize()  # what came before is not the technique's doing
            started = time.perf_counter()
            nodes, entries = (_array(values) for values in technique(inputs, classes))
            seconds += time.perf_counter() - started
            importances += _by_graph(piece, nodes, entries, 1.0 if add_directions else 0.5)
    return Explained(importances, 1000 * seconds / max(1, len(graphs)), training_seconds)


def _array(values: Tensor | None) -> Floats | None:
    return None if values is None else values.detach().cpu().numpy().astype(np.float64)


def _by_graph(graphs: Graphs, nodes: Floats | None, entries: Floats | None, share: float) -> list[Importance]:
    edges = None if entries is None else _by_edge(graphs, entries, share)
    first = pointers(np.bincount(graphs.graph_of[graphs.edges[:, 0]], minlength=len(graphs)))
    found = []
    for g, graph in enumerate(graphs):
        own_nodes = None if nodes is None else nodes[graphs.node_ptr[g] : graphs.node_ptr[g + 1]]
        own_edges = None if edges is None else edges[first[g] : first[g + 1]]
        if own_nodes is None:
            assert own_edges is not None
            own_nodes = nodes_from_edges(graph, own_edges)
        if own_edges is None:
            own_edges = edges_from_nodes(graph, own_nodes)
        found.append(Importance(own_nodes, own_edges))
    return found


def _by_edge(graphs: Graphs, entries: Floats, share: float) -> Floats:
    """Both directions of an edge put together, (M) -> (E); a self-loop has but one entry, which counts whole."""
    node, neighbour = graphs.entry_node.astype(np.int64), graphs.indices
    key = np.minimum(node, neighbour) * graphs.n_nodes + np.maximum(node, neighbour)
    _, edge_of = np.unique(key, return_inverse=True)  # ascending, as graphs.edges are
    edges = np.zeros(int(edge_of.max(initial=-1)) + 1)
    np.add.at(edges, edge_of, entries * np.where(node == neighbour, 1.0, share))
    return edges


@torch.no_grad()
def _classes(model: FittedGINE, inputs: Inputs, target: str | None) -> Tensor:
    """(B) the class to explain in each graph"""
    if target is None:
        return logits_of(model.network, inputs).argmax(1)
    if target not in model.class_names:
        raise DataError(f"no class is called {target!r}; there are {', '.join(model.class_names)}")
    return torch.full((inputs.n_graphs,), model.class_names.index(target), device=inputs.x.device)


def _log_odds(logits: Tensor, classes: Tensor) -> Tensor:
    """The class against all others, (B, C), (B) -> (B); the output itself where it is a value"""
    if logits.shape[1] == 1:
        return logits[:, 0]
    is_class = torch.nn.functional.one_hot(classes, logits.shape[1]).bool()
    return logits[is_class] - logits.masked_fill(is_class, -torch.inf).logsumexp(1)
