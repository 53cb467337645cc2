"""A trained network -> the same function of plain tensors, in operations that every runtime has.

Embedding-bags, segments and custom operators become gathers, matrix products and scatters; every batch norm is folded
into the filters before it; dropout is gone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.interop.onnx.inputs import inputs_of
from egocnn.nn.conv import EgoConv, fold
from egocnn.nn.embed import PatchySan
from egocnn.nn.readout import counted, log_of, turned
from egocnn.model import Predictor

Read = Mapping[str, Tensor]
"""the inputs by name"""


class PlainNetwork(nn.Module):
    """A trained network as a function of plain tensors, which is what becomes an ONNX file.

    A classifier answers with logits (B, C) and calibrated probabilities (B, C), a regressor with the standardised
    value (B, 1) and the value in the unit of its target (B).

    Arguments:
        predictor: What a fitted estimator holds as ``predictor_``.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import PlainNetwork
        >>> PlainNetwork(model.predictor_).answers
        ('logits', 'probabilities')
    """

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.names = tuple(each.name for each in inputs_of(predictor))
        self.is_classifier = bool(predictor.class_names)
        self.answers = ("logits", "probabilities") if self.is_classifier else ("standardised", "value")
        self.temperature, self.config = predictor.temperature, predictor.config
        self.mean, self.scale = predictor.preparation.target_mean, predictor.preparation.target_scale
        self.counted = predictor.network.counted
        network = copy.deepcopy(predictor.network).cpu().float().eval()
        with torch.no_grad():
            self.embed = _PlainPatches(network.embed) if isinstance(network.embed, PatchySan) else None
            self.layers = nn.ModuleList(_PlainLayer(conv) for conv in network.convs)
            weight, bias = _fold_before(network.pool_norm, network.hidden.weight.T, network.hidden.bias)
            self.hidden = _Dense(*fold(network.norm, weight, bias))
            self.out = _Dense(network.out.weight.T, network.out.bias)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Predict.

        Arguments:
            inputs: What :func:`egocnn.interop.onnx.inputs_of` lists, in that order.

        Returns:
            The two answers named in ``answers``.
        """
        read = dict(zip(self.names, inputs, strict=True))
        given = "adjacency" if self.config.embedding == "adjacency" else "attributes"
        h = read[given] if self.embed is None else self.embed(read)  # (N, D)
        reached = [h]
        for layer in self.layers:
            h = layer(h, read)
            reached.append(h)
        pooled = [read_out(h, read, self.config) for h in (reached if self.config.jump else [h])]
        if self.counted:
            label = read["node_label"]
            none = torch.zeros((label.shape[0], 0))
            own = counted(label, read.get("attributes", none), self.counted)
            pooled.append(turned(read_out(own, read, self.config), self.counted))
        graph = torch.cat(pooled, dim=1)
        answer: Tensor = self.out(F.relu(self.hidden(graph)))
        if self.is_classifier:
            return answer, torch.softmax(answer / self.temperature, dim=1)
        return answer, answer[:, 0].double() * self.scale + self.mean


class _Dense(nn.Module):
    """(n, D) -> (n, D')"""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = _kept(weight), _kept(bias)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class _PlainPatches(nn.Module):
    """:class:`~egocnn.nn.PatchySan`, a node's entries summed by a scatter"""

    def __init__(self, embed: PatchySan) -> None:
        super().__init__()
        table, bias = fold(embed.norm, embed.table, embed.bias)
        filters, _ = fold(embed.norm, embed.attributes, embed.bias)
        self.slots = embed.slots
        self.table, self.bias = _kept(table), _kept(bias)
        self.filters = _kept(filters.flatten(0, 1)) if filters.numel() else None

    def forward(self, read: Read) -> Tensor:
        rows = self.table.index_select(0, read["entry_row"]) * read["entry_weight"][:, None]
        h = add_up(rows, read["entry_node"], read["neighbours"].shape[0]) + self.bias
        if self.filters is not None:
            h = h + gather(read["attributes"], read["neighbours"], self.slots - 1) @ self.filters
        return F.relu(h)


class _PlainLayer(nn.Module):
    """:class:`~egocnn.nn.EgoConv` as its equation reads, the neighbours beyond K beside it"""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        assert isinstance(conv, EgoConv)
        weight, bias = fold(conv.norm, conv.weight, conv.bias)
        self.k, self.activation = conv.k, conv.activation
        self.weight, self.bias = _kept(weight.flatten(0, 1)), _kept(bias)
        self.rest = None if conv.rest is None else _kept(fold(conv.norm, conv.rest, conv.bias)[0])

    def forward(self, h: Tensor, read: Read) -> Tensor:
        y = gather(h, read["neighbours"], self.k) @ self.weight + self.bias
        if self.rest is not None:
            beyond = add_up(h.index_select(0, read["rest_source"]), read["rest_owner"], h.shape[0])
            y = y + (beyond * read["rest_share"][:, None]) @ self.rest
        return F.relu(y) if self.activation else y


def gather(h: Tensor, neighbours: Tensor, k: int) -> Tensor:
    """(N, D), (N, K) -> (N, (k + 1) D): every node and its first k neighbours end to end, zeros where absent"""
    padded = torch.cat([h, h.new_zeros(1, h.shape[1])])
    table = neighbours[:, :k]
    named = torch.where(table < 0, h.shape[0], table).flatten()  # the last row for all that are absent
    return torch.cat([h, padded.index_select(0, named).reshape(-1, k * h.shape[1])], dim=1)


def add_up(rows: Tensor, owner: Tensor, size: int) -> Tensor:
    """(n, D), (n) -> (size, D)"""
    return rows.new_zeros(size, rows.shape[1]).scatter_add(0, owner[:, None].expand(-1, rows.shape[1]), rows)


def read_out(h: Tensor, read: Read, config: ModelConfig) -> Tensor:
    """(N, D) -> (B, ...), zeros for a graph without nodes"""
    graph_of, counts = read["graph_of"], read["node_counts"]
    B, S, D = counts.shape[0], config.sort_nodes, h.shape[1]
    if config.readout == "sort":
        kept = read["position"] < S
        slot = torch.where(kept, graph_of * S + read["position"], B * S)  # the last row is thrown away
        return add_up(h, slot, B * S + 1)[:-1].reshape(-1, S * D)
    return torch.cat([_pool(h, graph_of, counts, kind) for kind in config.readout.split("+")], dim=1)


def _pool(h: Tensor, graph_of: Tensor, counts: Tensor, kind: str) -> Tensor:
    if kind == "max":
        lowest = h.new_full((counts.shape[0], h.shape[1]), torch.finfo(h.dtype).min)
        largest = lowest.scatter_reduce(0, graph_of[:, None].expand(-1, h.shape[1]), h, "amax")
        return torch.where(counts[:, None] > 0, largest, 0.0)
    total = add_up(h, graph_of, counts.shape[0])
    if kind == "mean":
        return total / counts.clamp(min=1)[:, None]
    return log_of(total) if kind == "log" else total


def _fold_before(norm: nn.Module, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Filters (D, D') and bias (D') that do in one step what they and the norm before them do in evaluation."""
    if not isinstance(norm, nn.BatchNorm1d):
        return weight, bias
    scale, shift = fold(norm, weight.new_ones(len(weight)), weight.new_zeros(len(weight)))
    return scale[:, None] * weight, shift @ weight + bias


def _kept(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.detach().clone().contiguous(), requires_grad=False)
