"""A trained model as a module of tensors: x, edge_index, batch -> logits (B, C), open to PyTorch Geometric's masks."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.encode.batch import Batch
from egocnn.explain.inputs import find_places
from egocnn.errors import ConfigError
from egocnn.data.graphs import Graph, Graphs
from egocnn.nn import EgoCNN, EgoConv, PatchySan
from egocnn.nn.readout import in_bins
from egocnn.encode.patches import PatchShape
from egocnn.model import Predictor
from egocnn.interop.pyg.masks import EdgeMask, empty_layer, mask_in
from egocnn.interop.pyg.tensors import to_data, to_graphs


def as_module(model: Any) -> EgoModule:
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
        torch.Size([3, 2])
    """
    predictor = getattr(model, "predictor_", model)
    if not isinstance(predictor, Predictor):
        raise ConfigError(f"a fitted estimator or a predictor is needed, not {type(model).__name__}")
    return EgoModule(predictor)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What the network reads of the graphs, masks left aside."""

    batch: Batch
    ego: Tensor
    """(N, at least K + 1 and P) every node and its ranked neighbours; -1 where absent"""
    rows: Tensor
    """(S) Patchy-San's entries that speak of edges: rows of its table"""
    weight: Tensor
    """(S)"""
    offsets: Tensor
    """(N) where the entries of each node start"""
    u: Tensor
    v: Tensor
    """(S) the ends of the edges"""


class EgoModule(nn.Module):
    """A trained model as a plain module over tensors, open to the masks of PyTorch Geometric's explainers.

    :mod:`egocnn.interop.pyg.tensors` says what the tensors hold; :meth:`to_data` makes them. On tensors of real graphs the
    outputs are those of ``Predictor.outputs``. The weights are a copy and frozen: no explainer changes the model.

    **The graph is read hard.** Neighbours are ranked, and edges labelled, by the graph that the tensors describe: a
    node's label is the largest entry of its row in size, so no soft mask changes a rank. Only labels that are all zeros
    do: the node's is unknown, as an unseen one would be. Attributes decide between nodes that are alike in all else;
    given as ``node_attr``, they do so whatever a mask has made of them in x. Where labels are degrees, nodes are ranked
    by those of ``edge_index``.

    **Nodes.** What is read of a node, its label in every Patchy-San slot it fills and its attributes, is taken from x
    with the value it has there: masks on x multiply through, and gradients reach every entry of x. A masked
    node is not deleted: its edges stay. A masked attribute is 0 in its own unit, not the mean of the training graphs.

    **Edges.** A mask that PyTorch Geometric sets for the edge from m to n multiplies all that n reads of m: its label
    and attributes in Patchy-San's slots, its embedding in every ego-convolution, its entry in the adjacency embedding.
    The mean over neighbours beyond K counts masked ones too.
    Entries of Patchy-San's adjacency tensor have no direction and take the mean of both. With all masks at 0 the
    nodes stand alone. What is read of neighbours several hops away (``max_hops``) crosses no edge of its own and is
    not masked; edge_attr and edge_weight pass no gradients. A module of the user's own in place of the embedding
    meets masks in attributes and adjacency alone.

    Arguments:
        predictor: What a fitted estimator holds; :func:`as_module` takes either.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.pyg import EgoModule
        >>> EgoModule(model.predictor_).to_data(graphs[:2]).num_nodes
        23
    """

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.network: EgoCNN = copy.deepcopy(predictor.network).requires_grad_(False)
        self.predictor = replace(predictor, network=self.network)
        self.edge_masks = empty_layer()
        self._last: tuple[Graphs, _Reading] | None = None
        self.eval()

    def to_data(self, graphs: Graphs | Graph) -> Any:
        """The graphs as one ``torch_geometric.data.Data``; see :func:`egocnn.interop.pyg.tensors.to_data`.

        Arguments:
            graphs: A collection, or one graph of it.

        Returns:
            The tensors that :meth:`forward` takes, and ``y`` where it is known.
        """
        return to_data(self.predictor, graphs)

    def to_graphs(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        node_attr: Tensor | None = None,
    ) -> Graphs:
        """The graphs that the tensors are read as.

        Arguments:
            x: (N, labels + attributes) labels one-hot, then the attributes.
            edge_index: (2, M) every edge in both directions.
            batch: (N) the graph of every node, ascending (default: all are one graph).
            edge_attr: (M, edge labels) one-hot, where the model reads edge labels.
            edge_weight: (M) where edges have weights.
            node_attr: (N, attributes) what nodes are ranked by, whatever a mask has made of x.

        Returns:
            One graph for every number in ``batch``.

        Raises:
            DataError: a tensor is not of the shape that the model reads.
        """
        return to_graphs(self.predictor.preparation, x, edge_index, batch, edge_attr, edge_weight, node_attr)

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
            Logits (B, C), or (B, 1) standardised values.
        """
        reading = self._read(self.to_graphs(x, edge_index, batch, edge_attr, edge_weight, node_attr), x.device)
        mask = mask_in(self.edge_masks)
        edges = None if mask is None else EdgeMask.of(edge_index, mask, len(x))
        gate = None if edges is None else _gate(edges, reading.ego)
        network = self.network
        x = self._standardise(x)
        h = network.dropout(self._embed(x, reading, edges, gate))  # (N, D)
        reached = [h]
        for conv in network.convs:
            assert isinstance(conv, EgoConv)
            h = network.dropout(_convolve(conv, h, reading, edges, gate))
            reached.append(h)
        reached[-1] = self.edge_masks(h)
        return network.head(network.read_out(reached, reading.batch, self._counted(x) if network.counted else None))

    def _standardise(self, x: Tensor) -> Tensor:
        """Labels as they are, attributes by the training graphs' mean and deviation, as the network reads them."""
        ours, kind = self.predictor.preparation, self.network.out.weight.dtype
        labels, attributes = torch.tensor_split(x, [len(ours.node_label_names)], dim=1)
        mean, scale = (torch.from_numpy(values).to(x.device) for values in (ours.attr_mean, ours.attr_scale))
        return torch.cat([labels.to(kind), ((attributes - mean) / scale).to(kind)], dim=1)

    def _counted(self, x: Tensor) -> Tensor:
        """What each node adds to the counts of the inputs: :func:`egocnn.nn.readout.counted`, of soft labels"""
        labels, attributes = torch.tensor_split(x, [len(self.predictor.preparation.node_label_names)], dim=1)
        return torch.cat([in_bins(attributes), labels], dim=1)

    def _embed(self, x: Tensor, reading: _Reading, edges: EdgeMask | None, gate: Tensor | None) -> Tensor:
        batch, embed = reading.batch, self.network.embed
        labels = len(self.predictor.preparation.node_label_names)
        if isinstance(embed, PatchySan):
            weight = reading.weight if edges is None else reading.weight * edges.between(reading.u, reading.v)
            return _embed_patches(embed, self._shape, x, replace(reading, weight=weight), gate)
        K = batch.adjacency.shape[1]
        adjacency = batch.adjacency if gate is None else batch.adjacency * gate[:, 1 : K + 1]
        h: Tensor = embed(replace(batch, attributes=x[:, labels:], adjacency=adjacency))
        return h

    @property
    def _shape(self) -> PatchShape:
        return self.predictor.preparation.shape(self.predictor.config)

    def _read(self, graphs: Graphs, device: torch.device) -> _Reading:
        """Explainers ask for the same graphs hundreds of times on end: the last reading is kept."""
        if self._last is not None and _same(graphs, self._last[0]) and self._last[1].ego.device == device:
            return self._last[1]
        config = self.predictor.config
        prepared = self.predictor.prepare(graphs).to(device)
        batch = prepared.batch(torch.arange(len(graphs), device=device))
        width = max(*config.layer_k, config.slots - 1)
        table = self.predictor.preparation.neighbours(graphs, config, width).to(device)
        ego = torch.cat([torch.arange(len(table), device=device)[:, None], table.long()], dim=1)
        places = find_places(batch, self._shape, ego[:, : config.slots])
        is_edge = places.is_edge
        counts = torch.bincount(places.owner[is_edge], minlength=len(ego))
        weight = torch.ones(len(is_edge), device=device) if batch.bags.weight is None else batch.bags.weight
        reading = _Reading(
            batch=batch,
            ego=ego,
            rows=batch.bags.rows.long()[is_edge],
            weight=weight[is_edge],
            offsets=counts.cumsum(0) - counts,
            u=places.u[is_edge],
            v=places.v[is_edge],
        )
        self._last = graphs, reading
        return reading


def _embed_patches(embed: PatchySan, shape: PatchShape, x: Tensor, reading: _Reading, gate: Tensor | None) -> Tensor:
    """Patchy-San with its labels read from x: a table row for every (slot, label), times x there -> (N, D)"""
    h = F.embedding_bag(
        reading.rows, embed.table, reading.offsets, mode="sum", per_sample_weights=reading.weight.to(x.dtype)
    )
    slots = reading.ego[:, : shape.slots]
    read = _gather(x, slots, gate)  # (N, P, labels + attributes)
    h = h + read[:, :, : shape.node_labels].flatten(1) @ embed.table[shape.edge_rows :]
    if embed.attributes.shape[1]:
        h = h + read[:, : embed.slots, shape.node_labels :].flatten(1) @ embed.attributes.flatten(0, 1)
    return F.relu(embed.norm(h + embed.bias))


def _convolve(conv: EgoConv, h: Tensor, reading: _Reading, edges: EdgeMask | None, gate: Tensor | None) -> Tensor:
    rest = reading.batch.rest
    if edges is None:
        unmasked: Tensor = conv(h, reading.batch.neighbours, rest)
        return unmasked
    read = _gather(h, reading.ego[:, : conv.k + 1], gate)
    y = read.flatten(1) @ conv.weight.flatten(0, 1) + conv.bias
    if rest is not None and conv.rest is not None:
        through = edges.along(rest.source, rest.owner).to(h.dtype)[:, None]
        summed = torch.zeros_like(h).index_add(0, rest.owner, through * h[rest.source])
        y = y + (summed * rest.share[:, None]) @ conv.rest
    y = conv.norm(y)
    return F.relu(y) if conv.activation else y


def _gather(h: Tensor, ego: Tensor, gate: Tensor | None) -> Tensor:
    """(N, D), (N, n) -> (N, n, D), zeros where absent"""
    read = torch.cat([h, h.new_zeros(1, h.shape[1])])[ego]  # -1 names the last row
    return read if gate is None else read * gate[:, : ego.shape[1], None].to(h.dtype)


def _gate(edges: EdgeMask, ego: Tensor) -> Tensor:
    """(N, n) what is let through to every node from itself, which is all, and from its ranked neighbours"""
    through = edges.along(ego[:, 1:], ego[:, :1].expand(-1, ego.shape[1] - 1))
    return torch.cat([through.new_ones(len(ego), 1), through], dim=1)


def _same(one: Graphs, other: Graphs) -> bool:
    columns = ("node_ptr", "indptr", "indices", "node_label", "edge_label", "edge_weight", "node_attr")
    pairs = [(getattr(one, name), getattr(other, name)) for name in columns]
    return all(a is b or (a is not None and b is not None and a.shape == b.shape and (a == b).all()) for a, b in pairs)
