"""Graphs -> the plain arrays that an exported model reads, by name; and what each of them means."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.model import Model
from egocnn.nn.batch import Batch

Kind = Literal["int64", "float32"]

WHERE = {
    "neighbours": "neighbours.table",
    **{"entry_row": "bags.rows", "entry_node": "bags.owner", "entry_weight": "bags.weight"},
}
"""The attributes of a batch that hold the arrays; others have the names of the arrays."""


@dataclass(frozen=True, slots=True)
class Input:
    """One array: its name, what its axes count, the type of its numbers, and what they say."""

    name: str
    """as in the file"""
    axes: tuple[str | int, ...]
    """a word for what may be of any length, a number for what the model fixes"""
    kind: Kind
    """the type of its numbers"""
    meaning: str
    """what they say"""


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
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_of
        >>> [each.name for each in inputs_of(model.model_)][:2]
        ['neighbours', 'entry_row']
    """
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


def inputs_for(predictor: Model, graphs: Graphs) -> dict[str, NDArray[Any]]:
    """What an exported model reads of these graphs: ``session.run(None, inputs_for(predictor, graphs))``.

    Everything before the network happens here: labels are counted by the names of the training graphs, neighbours
    ranked by their colours, attributes standardised. Nodes are numbered through all graphs.

    Arguments:
        predictor: The model that was exported.
        graphs: Graphs to predict.

    Returns:
        Arrays by name.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from egocnn.interop.onnx import inputs_for
        >>> inputs_for(model.model_, graphs[:2])["neighbours"].shape
        (23, 16)
    """
    wanted = inputs_of(predictor)
    batch = predictor.encode(graphs).batch(torch.arange(len(graphs)))
    return {each.name: _array(batch, each) for each in wanted}


def _array(batch: Batch, wanted: Input) -> NDArray[Any]:
    match wanted.name:
        case "entry_weight" if batch.bags.weight is None:
            values = torch.ones(len(batch.bags.rows))
        case "position":
            values = _positions(batch.place, batch.node_counts)
        case name:
            values = attrgetter(WHERE.get(name, name))(batch)
    if len(wanted.axes) == 2:
        values = values[:, : wanted.axes[1]]  # a batch may bring more neighbours, for Patchy-San, than layers read
    return values.numpy().astype(wanted.kind)


def _positions(place: Tensor, node_counts: Tensor) -> Tensor:
    """(N) places among all nodes -> places among the nodes of the same graph"""
    graph_of = np.repeat(np.arange(len(node_counts)), node_counts)
    position = torch.empty_like(place)
    first = torch.repeat_interleave(node_counts.cumsum(0) - node_counts, node_counts)
    position[np.lexsort((place, graph_of))] = torch.arange(len(place)).to(place) - first.to(place)
    return position
