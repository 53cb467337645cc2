"""A trained model -> the same networks of plain tensors, in operations that every runtime has; graphs -> these tensors.
A network is the one that trains and predicts; below its layers, embedding-bags, segments and custom operators become
gathers, matrix products and scatters."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from egocnn.encode.encoder import TargetScale
from egocnn.errors import ConfigError
from egocnn.model import FITTED, Model, model_of
from egocnn.nn import Output
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.show.streaming import read_as_trained

WHERE = {"neighbours": "neighbours.table", "entry_row": "bags.rows", "entry_node": "bags.owner", "position": "place"}
"""of the batch, for inputs that are not named as there"""


@dataclass(frozen=True, slots=True)
class Input:
    """One array: its name, what its axes count, the type of its numbers, and what they say."""

    name: str  # as in the file
    axes: tuple[str | int, ...]  # a word for what may be of any length, a number for what the model fixes
    kind: Literal["int64", "float32"]  # the type of its numbers
    meaning: str  # what they say


def inputs_of(predictor: Model) -> tuple[Input, ...]:
    """The arrays that an exported model reads; a setting that reads no array asks for none.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.

    Returns:
        One record per array, in order.

    Raises:
        ConfigError: the model has an embedding module of its author's own.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_of
        >>> [each.name for each in inputs_of(model.model_)][:2]
        ['neighbours', 'entry_row']"""
    if predictor.custom_embedding:
        raise ConfigError("this model reads nodes through a module of its author, which has no form in ONNX")
    config = predictor.config
    K, A = config.k, len(predictor.encoder.attr_mean)
    found = [Input("neighbours", ("nodes", K), "int64", "ranked neighbours of every node; -1 where absent")]
    if config.embedding == "patchy-san":
        found += [
            Input("entry_row", ("entries",), "int64", "row of Patchy-San's table, one for each entry of each patch"),
            Input("entry_node", ("entries",), "int64", "node around which the entry was found, ascending"),
            Input("entry_weight", ("entries",), "float32", "weight of the edge that the entry stands for; else 1"),
        ]
    if A:
        found.append(Input("attributes", ("nodes", A), "float32", "(attribute - attr_mean) / attr_scale"))
    if predictor.networks[0].counted:
        found.append(Input("node_label", ("nodes",), "int64", "number of the node's label; -1: unknown"))
    if config.readout == "sort":
        found.append(Input("position", ("nodes",), "int64", "rank of the node among the nodes of its graph, from 0"))
    return (
        *found,
        Input("graph_of", ("nodes",), "int64", "number of the graph that each node belongs to, ascending"),
        Input("node_counts", ("graphs",), "int64", "nodes of every graph"),
    )


def inputs_for(predictor: Any, graphs: Any) -> dict[str, NDArray[Any]]:
    """What an exported model reads of these graphs: ``session.run(None, inputs_for(predictor, graphs))``.

    Everything before the network happens here: labels are counted by the names of the training graphs, neighbours
    ranked by their colours, attributes standardised. Nodes are numbered through all graphs.

    Arguments:
        predictor: The model that was exported, or the estimator that holds it.
        graphs: Graphs to predict: anything that :func:`egocnn.read` takes.

    Returns:
        Arrays by name.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_for
        >>> inputs_for(model.model_, graphs[:2])["neighbours"].shape
        (23, 16)"""
    predictor = model_of(predictor)
    graphs = read_as_trained(graphs, predictor)
    batch = predictor.encode(graphs).batch(torch.arange(len(graphs)))
    return {each.name: _array(batch, each) for each in inputs_of(predictor)}


def _array(batch: Batch, wanted: Input) -> NDArray[Any]:
    if wanted.name == "entry_weight":
        values = torch.ones(len(batch.bags.rows)) if batch.bags.weight is None else batch.bags.weight
    else:
        values = attrgetter(WHERE.get(wanted.name, wanted.name))(batch)
    if len(wanted.axes) == 2:
        values = values[:, : wanted.axes[1]]  # a batch may bring more neighbours, for Patchy-San, than layers read
    return values.numpy().astype(wanted.kind)


class PlainNetwork(nn.Module):
    """A trained model as a function of plain tensors, which is what becomes an ONNX file.

    A classifier answers with logits (B, C) and calibrated probabilities (B, C), a regressor with the standardised
    value (B, 1) and the value in the unit of its target (B): the mean over the networks. Where there are several, the
    last answer is their ``spread`` (B), as :meth:`egocnn.model.Model.spread` has it. Of several targets these are the
    answers for each, after its name: ``toxic.probabilities``.

    Arguments:
        predictor: What a fitted estimator holds as ``model_``.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2).fit(graphs)
        >>> from egocnn.interop.onnx import PlainNetwork
        >>> PlainNetwork(model.model_).answers
        ('logits', 'probabilities', 'spread')"""

    def __init__(self, predictor: Model) -> None:
        super().__init__()
        self.names = tuple(each.name for each in inputs_of(predictor))
        known, fitted = predictor.encoder, {name: getattr(predictor, name) for name in FITTED}
        one = TargetScale("", known.class_names, known.target_mean, known.target_scale, **fitted)
        self.targets = known.targets_of or (one,)
        self.answers: tuple[str, ...] = ()
        for one in self.targets:
            own = ["logits", "probabilities"] if one.class_names else ["standardised", "value"]
            own += ["spread"] if len(predictor.networks) > 1 else []
            self.answers += tuple(f"{one.name}.{each}" if one.name else each for each in own)
        self.networks = nn.ModuleList(copy.deepcopy(predictor.networks)).cpu().float().eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Predict.

        Arguments:
            inputs: What :func:`egocnn.interop.onnx.inputs_of` lists, in that order.

        Returns:
            The answers named in ``answers``."""
        batch = portable_batch(dict(zip(self.names, inputs, strict=True)))
        outputs: list[Output] = [network(batch) for network in self.networks]
        each = torch.stack([output.output for output in outputs])
        found: list[Tensor] = []
        widths = [len(one.class_names) or 1 for one in self.targets]
        for one, own in zip(self.targets, torch.split(each, widths, dim=2), strict=True):
            answer = own.mean(dim=0)
            value = answer[:, 0].double() * one.target_scale + one.target_mean
            found += [answer, torch.softmax(answer / one.temperature, dim=1) if one.class_names else value]
            found += [_spread(one, own, answer)] if len(outputs) > 1 else []
        return tuple(found)


def _spread(target: TargetScale, each: Tensor, mean: Tensor) -> Tensor:
    """(R, B, C), (B, C) -> (B)"""
    if not target.class_names:
        values = each[:, :, 0].double()
        variance = (values - values.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)
        return (target.noise**2 + target.spread_scale**2 * variance).sqrt() * target.target_scale
    of_class = mean.argmax(dim=1, keepdim=True).expand(len(each), -1, -1)
    p = torch.softmax(each / target.temperature, dim=2).gather(2, of_class)[:, :, 0]
    return ((p - p.mean(dim=0)).square().sum(dim=0) / (len(each) - 1)).sqrt()


def portable_batch(read: Mapping[str, Tensor]) -> Batch:
    """The inputs by name -> a batch; what this model does not read is left empty"""
    neighbours, none = read["neighbours"], torch.zeros(0, dtype=torch.int64)
    bags = Bags(rows=read.get("entry_row", none), offsets=none, weight=read.get("entry_weight"))
    attributes = read.get("attributes", torch.zeros((neighbours.shape[0], 0)))
    columns: dict[str, Any] = {"place": read.get("position", none), "target": None}
    columns |= {name: read.get(name, none) for name in ("entry_node", "node_label", "graph_of", "node_counts")}
    return _PortableBatch(neighbours=Neighbours(neighbours), bags=bags, attributes=attributes, **columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PortableBatch(Batch):
    """A batch whose sums are scatters."""

    entry_node: Tensor  # (S) the node around which each entry was read

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: PatchShape) -> Tensor:  # noqa: ARG002
        weight = self.bags.weight
        rows = table.index_select(0, self.bags.rows)
        rows = rows if weight is None else rows * weight[:, None]
        h = add_up(rows, self.entry_node, self.neighbours.table.shape[0])
        if attributes.shape[1]:
            h = h + self.slot_attributes(attributes)
        return h + bias

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        graphs = self.node_counts.shape[0]
        slot = torch.where(self.place < nodes, self.graph_of * nodes + self.place, graphs * nodes)
        return add_up(h, slot, graphs * nodes + 1)[:-1].reshape(-1, nodes * h.shape[1])  # the last row is thrown away


def add_up(rows: Tensor, owner: Tensor, size: int) -> Tensor:
    """(n, D), (n) -> (size, D)"""
    return rows.new_zeros(size, rows.shape[1]).scatter_add(0, owner[:, None].expand(-1, rows.shape[1]), rows)
