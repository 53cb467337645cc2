from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import Attributes, PatchySan
from tests.support.networks import doubled, randomise, whole_batch
from tests.support.samples import cycle, one_graph
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model


def layer_for(encoder: Encoder, config: ModelConfig, width: int = 3) -> PatchySan:
    layer = PatchySan(encoder.shape(config), attributes=len(encoder.attr_mean), width=width, k=config.k)
    randomise(layer)
    return layer.double().eval()


@settings(max_examples=80)
@given(random_graphs(unseen=True), st.integers(1, 5), st.integers(1, 4))
def test_the_layer_is_a_linear_filter_bank_over_the_dense_tensor(graphs: Graphs, slots: int, k: int) -> None:
    """The paper's equation 2: the labelled adjacency tensor of the first slots, times a filter, norm and rectifier."""
    config = plain_model(slots=slots, k=k)
    encoder = Encoder.fit(graphs, config)
    layer, shape = layer_for(encoder, config), encoder.shape(config)
    batch = doubled(whole_batch(graphs, encoder, config))
    table = encoder.ranking.neighbours(graphs, max(slots, 1))
    edge_filter, label_filter = layer.table.detach()[: shape.edge_rows], layer.table.detach()[shape.edge_rows :]

    y = layer.bias.detach().repeat(graphs.n_nodes, 1)
    for node in range(graphs.n_nodes):
        around = [node, *table[node, : slots - 1].tolist()]
        tensor = torch.zeros(slots, slots, max(shape.edge_labels, 1), dtype=torch.float64)
        for i, one in enumerate(around):
            for j, other in enumerate(around):
                for entry in range(int(graphs.indptr[one]), int(graphs.indptr[one + 1])) if one >= 0 else ():
                    label = 0 if graphs.edge_label is None else int(graphs.edge_label[entry])
                    if graphs.indices[entry] == other and label >= 0:
                        tensor[i, j, label] = 1 if graphs.edge_weight is None else float(graphs.edge_weight[entry])
        y[node] += tensor[shape.pairs].flatten() @ edge_filter
        for slot, source in enumerate(around):
            if source >= 0 and graphs.node_label is not None and graphs.node_label[source] >= 0:
                y[node] += label_filter[slot * shape.node_labels + int(graphs.node_label[source])]
            if source >= 0 and slot <= k:
                y[node] += batch.attributes[source] @ layer.attributes.detach()[slot]
    norm = layer.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    y = (y - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias
    torch.testing.assert_close(layer(batch).detach(), y.detach().clamp(min=0))


def test_only_the_rows_of_entries_that_exist_are_trained() -> None:
    graphs = one_graph(4, cycle(0, 1, 2, 3))
    config = plain_model(slots=4, k=3)
    encoder = Encoder.fit(graphs, config)
    layer = layer_for(encoder, config)
    batch = doubled(whole_batch(graphs, encoder, config))
    (gradient,) = torch.autograd.grad(layer(batch).sum() + layer.table.sum() * 0, layer.table)
    touched = set(torch.nonzero(gradient.abs().sum(1)).flatten().tolist())
    # of the pairs (0,0) (0,1) (0,2) (0,3) (1,1) (1,2) ... only (0,1) and (0,2) are edges in a ring of four
    assert touched <= {1, 2}


def test_attributes_reach_no_farther_than_the_neighbours_of_a_batch() -> None:
    shape = Encoder.fit(one_graph(2, [(0, 1)]), plain_model()).shape(plain_model(slots=10))
    assert PatchySan(shape, attributes=2, width=3, k=4).attributes.shape == (5, 2, 3)
    assert PatchySan(shape, attributes=2, width=3, k=16).attributes.shape == (10, 2, 3)


def test_graphs_without_edges_and_labels_are_read_too() -> None:
    graphs = Graphs.from_edges(node_counts=[2, 1], edges=np.zeros((0, 2), int))
    config = plain_model(slots=3, k=2)
    encoder = Encoder.fit(graphs, config)
    out = layer_for(encoder, config)(doubled(whole_batch(graphs, encoder, config)))
    assert out.shape == (3, 3)
    assert torch.equal(out[0], out[2])


def test_attributes_are_passed_on_as_the_batch_holds_them() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2)], edge_weight=[2, 3], node_attr=[[1], [2], [6]])
    config = plain_model(slots=1, k=2)
    batch = whole_batch(graphs, Encoder.fit(graphs, config), config)
    torch.testing.assert_close(Attributes()(batch), batch.attributes)
    assert batch.attributes.shape == (3, 1)
