"""A trained model as a module of tensors: x, edge_index, batch -> logits (B, C), open to PyTorch Geometric's masks. Its
``set_masks`` leaves a number per column of ``edge_index`` in message-passing layers: the module holds an empty one.

Our techniques as one of PyTorch Geometric's explainer algorithms: such a module and tensors -> an Explanation."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import ExplainConfig, Technique
from egocnn.data.graphs import Graph, Graphs
from egocnn.errors import ConfigError
from egocnn.explain import explain
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.interop.pyg.tensors import class_of, inheriting, to_data, to_graphs
from egocnn.model import Model, check_finite, model_of
from egocnn.nn import EgoCNN, Output
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.nn.readout import in_bins

log = logging.getLogger(__name__)


def as_module(model: Any) -> "EgoModule":
    """A trained model as PyTorch Geometric sees models.

    Arguments:
        model: A fitted estimator, or the predictor inside it.

    Returns:
        A module over ``x``, ``edge_index`` and ``batch``, with a frozen copy of the weights.

    Raises:
        ConfigError: ``model`` is neither.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.pyg import as_module
        >>> module = as_module(model)
        >>> data = module.to_data(graphs[:3])
        >>> module(data.x, data.edge_index, data.batch).shape
        torch.Size([3, 2])"""
    return EgoModule(model_of(model))


@dataclass(frozen=True, slots=True, eq=False)
class _Maskable:
    """A batch with an entry for everything that a mask might let through."""

    batch: Batch
    rows: Tensor  # (S) rows of Patchy-San's table: an entry for every edge, and for every label that a slot might have
    offsets: Tensor  # (N) where the entries of each node start
    order: Tensor  # (S) the entries in the order of their nodes; unsorted, those of edges come first
    edge_weight: Tensor  # (edge entries)
    u: Tensor
    v: Tensor  # (edge entries) the ends of the edges
    node: Tensor  # (filled slots) the node around which the slot is
    slot: Tensor  # (filled slots) 0 for the node itself
    holds: Tensor  # (filled slots) the node in the slot

    @staticmethod
    def of(batch: Batch, shape: PatchShape) -> "_Maskable":
        places, device, weight = batch.places(shape), batch.bags.rows.device, batch.bags.weight
        is_edge = places.is_edge
        itself = torch.arange(len(batch.place), device=device)[:, None]
        slots = torch.cat([itself, batch.neighbours.table[:, : shape.slots - 1].long()], dim=1)
        node, slot = torch.nonzero(slots >= 0, as_tuple=True)
        labels = torch.arange(shape.node_labels, device=device)
        label_rows = (shape.edge_rows + slot[:, None] * shape.node_labels + labels).flatten()
        owner = torch.cat([places.owner[is_edge], node.repeat_interleave(shape.node_labels)])
        order = torch.argsort(owner, stable=True)
        counts = torch.bincount(owner, minlength=len(slots))
        rows = torch.cat([batch.bags.rows.long()[is_edge], label_rows])[order]
        weight = torch.ones(len(batch.bags.rows), device=device) if weight is None else weight
        edges = {"u": places.u[is_edge], "v": places.v[is_edge], "edge_weight": weight[is_edge]}
        filled = {"node": node, "slot": slot, "holds": slots[node, slot]}
        return _Maskable(batch=batch, rows=rows, offsets=counts.cumsum(0) - counts, order=order, **edges, **filled)


class _EdgeMasks(nn.Module):
    """Returns embeddings (N, D) unchanged: explainers that learn from embeddings hook message-passing layers."""

    def forward(self, h: Tensor) -> Tensor:
        return h

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_edge_mask":
            # never a parameter: the module's own would have to stay one, and cut off gradients of later masks
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeMask:
    """The mask of every edge, in both directions; the same for both where ``edge_index`` has but one of them."""

    key: Tensor  # source N + target, ascending
    value: Tensor
    n_nodes: int

    @staticmethod
    def of(edge_index: Tensor, mask: Tensor, n_nodes: int) -> "EdgeMask":
        """edge_index (2, M), mask (M); columns that say the same edge again are averaged"""
        source, target = edge_index.long()
        key, back = source * n_nodes + target, target * n_nodes + source
        alone = ~torch.isin(back, key)
        key, mask = torch.cat([key, back[alone]]), torch.cat([mask, mask[alone]])
        unique, column, count = torch.unique(key, return_inverse=True, return_counts=True)
        return EdgeMask(unique, mask.new_zeros(len(unique)).index_add(0, column, mask) / count, n_nodes)

    def along(self, source: Tensor, target: Tensor) -> Tensor:
        """(...) the mask of each edge from source to target; 1 where there is no such edge"""
        if len(self.key) == 0:
            return self.value.new_ones(source.shape)
        wanted = source * self.n_nodes + target
        at = torch.searchsorted(self.key, wanted).clamp(max=len(self.key) - 1)
        return torch.where((self.key[at] == wanted) & (source >= 0), self.value[at], 1.0)

    def between(self, u: Tensor, v: Tensor) -> Tensor:
        """(...) the mean of both directions"""
        return (self.along(u, v) + self.along(v, u)) / 2


class EgoModule(nn.Module):
    """A trained model as a plain module over tensors, open to the masks of PyTorch Geometric's explainers.

    :mod:`egocnn.interop.pyg.tensors` says what the tensors hold; :meth:`to_data` makes them. On tensors of real graphs
    the outputs are those of ``Model.outputs``. The weights are a copy and frozen: no explainer changes the model.

    **The graph is read hard.** Neighbours are ranked, and edges labelled, by the graph that the tensors describe: a
    node's label is the largest entry of its row in size, so no soft mask changes a rank. Only labels that are all zeros
    do: the node's is unknown, as an unseen one would be. Attributes decide between nodes that are alike in all else;
    given as ``node_attr``, they do so whatever a mask has made of them in x. Where labels are degrees, nodes are ranked
    by those of ``edge_index``.

    **Nodes.** What is read of a node, its label in every Patchy-San slot it fills and its attributes, is taken from x
    with the value it has there: masks on x multiply through, and gradients reach every entry of x. A masked
    node is not deleted: its edges stay. A masked attribute is 0 in its own unit, not the mean of the training graphs.

    **Edges.** A mask that PyTorch Geometric sets for the edge from m to n multiplies all that n reads of m: its label
    and attributes in Patchy-San's slots, and its embedding in every ego-convolution.
    Entries of Patchy-San's adjacency tensor have no direction and take the mean of both. With all masks at 0 the
    nodes stand alone. edge_attr and edge_weight pass no gradients. A module of the user's own in place of the
    embedding meets masks in attributes alone.

    Arguments:
        predictor: What a fitted estimator holds; :func:`as_module` takes either.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.pyg import EgoModule
        >>> EgoModule(model.model_).to_data(graphs[:2]).num_nodes
        23"""

    def __init__(self, predictor: Model) -> None:
        super().__init__()
        networks: tuple[EgoCNN, ...] = copy.deepcopy(predictor.networks)
        self.networks = nn.ModuleList(networks).requires_grad_(False)
        self.predictor = replace(predictor, networks=networks)
        self.edge_masks: nn.Module = inheriting(_EdgeMasks, "nn", "MessagePassing")()
        self._cached: tuple[str, _Maskable] | None = None
        self.eval()

    def to_data(self, graphs: Graphs | Graph) -> Any:
        """The graphs as one ``torch_geometric.data.Data``; see :func:`egocnn.interop.pyg.tensors.to_data`.

        Arguments:
            graphs: A collection, or one graph of it.

        Returns:
            The tensors that :meth:`forward` takes, and ``y`` where it is known."""
        return to_data(self.predictor, graphs)

    def to_graphs(self, x: Tensor, edge_index: Tensor, **tensors: Tensor | None) -> Graphs:
        """The graphs that the tensors are read as.

        Arguments:
            x: (N, labels + attributes) labels one-hot, then the attributes.
            edge_index: (2, M) every edge in both directions.
            tensors: ``batch``, ``edge_attr``, ``edge_weight`` and ``node_attr``, as :meth:`forward` takes them.

        Returns:
            One graph for every number in ``batch``.

        Raises:
            DataError: a tensor is not of the shape that the model reads."""
        return to_graphs(self.predictor.encoder, x, edge_index, **tensors)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        node_attr: Tensor | None = None,
    ) -> Tensor:
        """Predict, with every mask that PyTorch Geometric has set.

        Arguments:
            x: (N, labels + attributes) labels one-hot, then the attributes.
            edge_index: (2, M) every edge in both directions.
            batch: (N) the graph of every node, ascending (default: all are one graph).
            edge_attr: (M, edge labels) one-hot, where the model reads edge labels.
            edge_weight: (M) where edges have weights.
            node_attr: (N, attributes) what nodes are ranked by, whatever a mask has made of x.

        Returns:
            Logits (B, C), or (B, 1) standardised values; the mean over the networks."""
        more = {"batch": batch, "edge_attr": edge_attr, "edge_weight": edge_weight, "node_attr": node_attr}
        compiler: Any = torch.compiler  # parts of it have no types; to read graphs is no work for it
        reading, mean, scale = compiler.disable(self._encode)(x, edge_index, **more)
        mask = self.edge_masks.__dict__["_edge_mask"]  # (M) what set_masks has left, None after clear_masks
        if mask is not None and self.edge_masks.__dict__["_apply_sigmoid"]:
            mask = mask.sigmoid()
        edges = None if mask is None else EdgeMask.of(edge_index, mask, len(x))
        # labels as they are, attributes by the training graphs' mean and deviation, as the network reads them
        ours, kind = self.predictor.encoder, self.predictor.networks[0].out.weight.dtype
        labels, attributes = torch.tensor_split(x, [len(ours.node_label_names) + len(ours.node_words)], dim=1)
        masked = self._masked(reading, labels.to(kind), ((attributes - mean) / scale).to(kind), edges)
        outputs: list[Output] = [network(masked) for network in self.networks]
        # explainers that learn from embeddings hook this layer
        self.edge_masks(torch.cat([output.layers[-1] for output in outputs], dim=1))
        found = torch.stack([output.output for output in outputs]).mean(dim=0)
        if not compiler.is_compiling():  # a compiled module has looked at its inputs alone
            check_finite(found.detach().cpu().numpy())
        return found

    def _masked(self, reading: _Maskable, labels: Tensor, attributes: Tensor, edges: EdgeMask | None) -> Batch:
        """The batch with nodes as x has them, multiplied by the masks of the edges"""
        batch, weight, seen = reading.batch, reading.edge_weight.to(labels), labels[reading.holds]
        if edges is not None:
            table = batch.neighbours.table.long()
            gate = edges.along(table, torch.arange(len(table), device=table.device)[:, None].expand_as(table))
            batch = replace(batch, neighbours=Neighbours(batch.neighbours.table, gate=gate))
            weight = weight * edges.between(reading.u, reading.v)
            let_through = torch.cat([gate.new_ones(len(gate), 1), gate], dim=1)[reading.node, reading.slot]
            seen = seen * let_through[:, None].to(labels)
        weights = torch.cat([weight.to(labels), seen.flatten()])[reading.order]
        bags = Bags(rows=reading.rows, offsets=reading.offsets, weight=weights)
        counted = self.predictor.networks[0].counted
        inputs = torch.cat([in_bins(attributes), labels], dim=1)[:, :counted] if counted else None
        return replace(batch, attributes=attributes, inputs=inputs, bags=bags)

    def _encode(self, x: Tensor, edge_index: Tensor, **tensors: Tensor | None) -> tuple[_Maskable, Tensor, Tensor]:
        """The graphs behind the tensors, and mean and scale of attributes. Explainers predict the same graphs hundreds
        of times in a row: the last are cached."""
        graphs, ours = self.to_graphs(x, edge_index, **tensors), self.predictor.encoder
        key = f"{x.device} {graphs.digest}"
        if self._cached is None or self._cached[0] != key:
            batch = self.predictor.encode(graphs).to(x.device).batch(torch.arange(len(graphs), device=x.device))
            self._cached = key, _Maskable.of(batch, ours.shape(self.predictor.config))
        mean, scale = (torch.from_numpy(values).to(x.device) for values in (ours.attr_mean, ours.attr_scale))
        return self._cached[1], mean, scale


class _EgoExplainer(nn.Module):
    """Explains the predictions of an :class:`~egocnn.interop.pyg.EgoModule` by egocnn's own techniques.

    ``node_mask`` (N, 1) and ``edge_mask`` (M), in the order of ``edge_index``, are importances between 0 and 1, which
    is what thresholds, subgraphs and metrics expect: what speaks against the explained class is 0, and the
    largest of every graph is 1. For a regressor it is the size that counts, raised or lowered. The importances
    themselves, signed, stand beside them as ``node_importance`` (N) and ``edge_importance`` (M).

    Arguments:
        technique: How importance is found.
        attention: The trained attention layers, one for each network, for the paper's technique.
        settings: Further fields of :class:`~egocnn.config.ExplainConfig`.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from torch_geometric.explain import Explainer
        >>> from egocnn.interop.pyg import EgoExplainer, as_module
        >>> module = as_module(model)
        >>> config = {"mode": "multiclass_classification", "task_level": "graph"}
        >>> config |= {"return_type": "raw"}
        >>> masks = {"node_mask_type": "object", "edge_mask_type": "object"}
        >>> how = {"explanation_type": "model", "model_config": config, **masks}
        >>> explainer = Explainer(module, algorithm=EgoExplainer(), **how)
        >>> data = module.to_data(graphs[:1])
        >>> explainer(data.x, data.edge_index, batch=data.batch).node_mask.shape
        torch.Size([11, 1])"""

    explainer_config: Any
    model_config: Any

    def __init__(self, technique: Technique = "contributions", *, attention: Any = None, **settings: Any) -> None:
        super().__init__()
        self.settings = ExplainConfig(technique=technique, **settings)
        self.attention: Sequence[AttentionHead] | None = attention

    def supports(self) -> bool:
        """Graphs as wholes, outputs as the module gives them, a class among several or a value, nodes and edges.

        Returns:
            Whether it can explain with these settings; if not, the log says which one it cannot."""
        nodes = self.explainer_config.node_mask_type
        for name, found, known in (
            ("task_level", self.model_config.task_level.value, ("graph",)),
            ("mode", self.model_config.mode.value, ("multiclass_classification", "regression")),
            ("return_type", self.model_config.return_type.value, ("raw",)),
            ("node_mask_type", "object" if nodes is None else nodes.value, ("object",)),
        ):
            if found not in known:
                log.error("EgoExplainer: %s must be %s, got %s", name, " or ".join(known), found)
                return False
        return True

    def forward(
        self, model: nn.Module, x: Tensor, edge_index: Tensor, *, target: Tensor, index: Any = None, **tensors: Any
    ) -> Any:
        """Explain; called by ``torch_geometric.explain.Explainer``.

        Arguments:
            model: What :func:`~egocnn.interop.pyg.as_module` made.
            x: (N, labels + attributes) as the module reads them.
            edge_index: (2, M) every edge in both directions.
            target: (B) the number of the class to explain, per graph.
            index: Explain these graphs only; all others get zeros.
            tensors: What else the module takes, ``batch`` say.

        Returns:
            An ``Explanation`` with masks and importances."""
        if not isinstance(model, EgoModule):
            raise ConfigError(f"EgoExplainer explains what as_module makes, not {type(model).__name__}")
        graphs = model.to_graphs(x, edge_index, **tensors)
        classes = self._classes(model.predictor.class_names, target)
        how: dict[str, Any] = {"attention": self.attention, "fidelity": False, "device": x.device.type}
        structures = explain(model.predictor, graphs, self.settings, classes=classes, **how)
        device, graph_of = x.device, torch.from_numpy(graphs.graph_of).to(x.device)
        graph_of_edges = graph_of[edge_index[0]]
        parts = ([getattr(each, name) for each in structures] for name in ("node_importance", "edge_importance"))
        nodes, edges = (torch.from_numpy(np.concatenate([np.zeros(0), *each])).float().to(device) for each in parts)
        # the position in graphs.edges of every column, whichever way round
        own = torch.from_numpy(graphs.edges.astype(np.int64)).to(x.device)
        low, high = edge_index.long().sort(dim=0).values
        edges = edges[torch.searchsorted(own[:, 0] * len(x) + own[:, 1], low * len(x) + high)]
        if index is not None:
            chosen = torch.zeros(len(graphs), device=x.device)
            chosen[torch.as_tensor(index, device=x.device).reshape(-1)] = 1
            nodes, edges = nodes * chosen[graph_of], edges * chosen[graph_of_edges]
        found = class_of("explain", "Explanation")(node_importance=nodes, edge_importance=edges)
        if self.explainer_config.node_mask_type is not None:
            found.node_mask = self._mask(nodes, graph_of, len(graphs))[:, None]
        if self.explainer_config.edge_mask_type is not None:
            found.edge_mask = self._mask(edges, graph_of_edges, len(graphs))
        return found

    def _classes(self, names: Sequence[str], target: Tensor) -> list[str] | None:
        if self._is_value == bool(names):
            what = f"one of {len(names)} classes" if names else "a value"
            raise ConfigError(f"the mode is {self.model_config.mode.value}, but the model predicts {what}")
        if not names:
            return None
        numbers = target.reshape(-1).tolist()
        if not all(0 <= number < len(names) for number in numbers):
            raise ConfigError(f"the target must be class numbers from 0 to {len(names) - 1}, got {numbers}")
        return [names[number] for number in numbers]

    def _mask(self, importance: Tensor, graph_of: Tensor, n_graphs: int) -> Tensor:
        size = importance.abs() if self._is_value else importance.clamp(min=0)
        largest = size.new_zeros(n_graphs).scatter_reduce(0, graph_of, size, "amax")
        return size / largest.clamp(min=torch.finfo(size.dtype).tiny)[graph_of]

    @property
    def _is_value(self) -> bool:
        return bool(self.model_config.mode.value == "regression")
