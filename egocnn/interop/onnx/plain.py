"""A trained model -> the same networks of plain tensors, in operations that every runtime has.

A network is the one that trains and predicts (:meth:`egocnn.nn.EgoCNN.forward`). What differs lies below its layers:
embedding-bags, segments and custom operators become gathers, matrix products and scatters.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from egocnn.interop.onnx.inputs import inputs_of
from egocnn.model import Model
from egocnn.nn import Output
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.nn.readout import log_of


class PlainNetwork(nn.Module):
    """A trained model as a function of plain tensors, which is what becomes an ONNX file.

    A classifier answers with logits (B, C) and calibrated probabilities (B, C), a regressor with the standardised
    value (B, 1) and the value in the unit of its target (B): the mean over the networks. Where there are several, the
    last answer is their ``spread`` (B), as :meth:`egocnn.model.Model.spread` has it.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import PlainNetwork
        >>> PlainNetwork(model.model_).answers
        ('logits', 'probabilities', 'spread')
    """

    def __init__(self, predictor: Model) -> None:
        super().__init__()
        self.names = tuple(each.name for each in inputs_of(predictor))
        self.is_classifier = bool(predictor.class_names)
        self.answers: tuple[str, ...] = ("logits", "probabilities") if self.is_classifier else ("standardised", "value")
        if len(predictor.networks) > 1:
            self.answers = (*self.answers, "spread")
        self.temperature, self.noise, self.spread_scale = predictor.temperature, predictor.noise, predictor.spread_scale
        self.mean, self.scale = predictor.encoder.target_mean, predictor.encoder.target_scale
        self.networks = nn.ModuleList(copy.deepcopy(predictor.networks)).cpu().float().eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Predict.

        Arguments:
            inputs: What :func:`egocnn.interop.onnx.inputs_of` lists, in that order.

        Returns:
            The answers named in ``answers``.
        """
        batch = portable_batch(dict(zip(self.names, inputs, strict=True)))
        outputs: list[Output] = [network(batch) for network in self.networks]
        each = torch.stack([output.output for output in outputs])
        answer = each.mean(dim=0)
        if self.is_classifier:
            found = answer, torch.softmax(answer / self.temperature, dim=1)
        else:
            found = answer, answer[:, 0].double() * self.scale + self.mean
        return found if len(outputs) == 1 else (*found, self._spread(each, answer))

    def _spread(self, each: Tensor, mean: Tensor) -> Tensor:
        """(R, B, C), (B, C) -> (B)"""
        if not self.is_classifier:
            values = each[:, :, 0].double()
            variance = (values - values.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)
            return (self.noise**2 + self.spread_scale**2 * variance).sqrt() * self.scale
        of_class = mean.argmax(dim=1, keepdim=True).expand(len(each), -1, -1)
        p = torch.softmax(each / self.temperature, dim=2).gather(2, of_class)[:, :, 0]
        return ((p - p.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)).sqrt()


def portable_batch(read: Mapping[str, Tensor]) -> Batch:
    """The inputs by name -> a batch; what this model does not read is left empty"""
    neighbours, none = read["neighbours"], torch.zeros(0, dtype=torch.int64)
    return _PortableBatch(
        neighbours=Neighbours(neighbours),
        bags=Bags(rows=read.get("entry_row", none), offsets=none, weight=read.get("entry_weight")),
        entry_node=read.get("entry_node", none),
        node_label=read.get("node_label", none),
        attributes=read.get("attributes", torch.zeros((neighbours.shape[0], 0))),
        place=read.get("position", none),
        graph_of=read["graph_of"],
        node_counts=read["node_counts"],
        target=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PortableBatch(Batch):
    """A batch whose sums are scatters; ``place`` is the rank of each node among those of its own graph."""

    entry_node: Tensor  # (S) the node around which each entry was read

    def ranked(self, k: int) -> Neighbours:
        return Neighbours(self.neighbours.table[:, :k])

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: PatchShape) -> Tensor:  # noqa: ARG002
        weight = self.bags.weight
        rows = table.index_select(0, self.bags.rows)
        rows = rows if weight is None else rows * weight[:, None]
        h = add_up(rows, self.entry_node, self.neighbours.table.shape[0])
        if attributes.shape[1]:
            h = h + self.slot_attributes(attributes)
        return h + bias

    def pool(self, h: Tensor, kind: str) -> Tensor:
        return torch.cat([self._pool(h, each) for each in kind.split("+")], dim=1)

    def _pool(self, h: Tensor, kind: str) -> Tensor:
        graphs = self.node_counts.shape[0]
        if kind == "max":
            lowest = h.new_full((graphs, h.shape[1]), torch.finfo(h.dtype).min)
            largest = lowest.scatter_reduce(0, self.graph_of[:, None].expand(-1, h.shape[1]), h, "amax")
            return torch.where(self.node_counts[:, None] > 0, largest, 0.0)
        total = add_up(h, self.graph_of, graphs)
        if kind == "mean":
            return total / self.node_counts.clamp(min=1)[:, None]
        return log_of(total) if kind == "log" else total

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        graphs = self.node_counts.shape[0]
        slot = torch.where(self.place < nodes, self.graph_of * nodes + self.place, graphs * nodes)
        return add_up(h, slot, graphs * nodes + 1)[:-1].reshape(-1, nodes * h.shape[1])  # the last row is thrown away


def add_up(rows: Tensor, owner: Tensor, size: int) -> Tensor:
    """(n, D), (n) -> (size, D)"""
    return rows.new_zeros(size, rows.shape[1]).scatter_add(0, owner[:, None].expand(-1, rows.shape[1]), rows)
