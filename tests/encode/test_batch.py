import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn.batch import Batch
from tests.support.networks import tensors_of
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model


def bags_of(batch: Batch) -> list[list[tuple[int, float]]]:
    """Per node: its table rows and their weights."""
    bags, ends = batch.bags, [*batch.bags.offsets.tolist()[1:], len(batch.bags.rows)]
    weight = torch.ones(len(bags.rows)) if bags.weight is None else bags.weight
    return [
        list(zip(bags.rows[a:b].tolist(), weight[a:b].tolist(), strict=True))
        for a, b in zip(bags.offsets.tolist(), ends, strict=True)
    ]


@settings(max_examples=60)
@given(random_graphs(max_graphs=5, classes=True), st.data())
def test_a_batch_holds_the_chosen_graphs_as_if_they_stood_alone(graphs: Graphs, data: st.DataObject) -> None:
    config = plain_model(k=3, slots=3)
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=6))
    encoder = Encoder.fit(graphs, config)
    batch = encoder.apply(graphs, config).batch(torch.tensor(chosen))
    alone = encoder.apply(graphs[chosen], config).batch(torch.arange(len(chosen)))
    assert len(batch) == len(chosen)
    for name in ("node_label", "attributes", "place", "graph_of", "node_counts", "target"):
        torch.testing.assert_close(getattr(batch, name), getattr(alone, name), rtol=0, atol=0)
    torch.testing.assert_close(batch.neighbours.table, alone.neighbours.table, rtol=0, atol=0)
    assert bags_of(batch) == bags_of(alone)
    assert batch.graph_of.tolist() == np.repeat(np.arange(len(chosen)), graphs.node_counts[chosen]).tolist()


def test_nodes_that_are_left_out_leave_no_gap_in_the_ranking_of_their_graph() -> None:
    graphs = Graphs.from_edges(node_counts=[5, 4], edges=np.array([(0, 1), (1, 2), (2, 3), (2, 4), (5, 6), (6, 7)]))
    config = plain_model(k=2, slots=2)
    prepared = Encoder.fit(graphs, config).apply(graphs, config)
    there = torch.tensor([True, False, True, True, True, False, True, True, False])
    whole, part = (prepared.batch(torch.arange(2), chosen).place for chosen in (None, there))
    for nodes in (slice(0, 4), slice(4, 6)):
        assert part[nodes].tolist() == whole[there][nodes].argsort().argsort().tolist()


def test_a_prepared_collection_knows_its_size_and_moves_as_a_whole() -> None:
    graphs = Graphs.from_edges(node_counts=[5, 1], edges=np.array([[0, 1], [0, 2], [0, 3]]), edge_weight=np.ones(3))
    config = plain_model(k=1, slots=2)
    prepared = Encoder.fit(graphs, config).apply(graphs, config)
    assert len(prepared) == 2
    assert prepared.target is None
    found = [tensor for _, tensor in tensors_of(prepared)]
    assert prepared.megabytes == sum(t.numel() * t.element_size() for t in found) / 1e6
    moved = [tensor.device.type for _, tensor in tensors_of(prepared.to(torch.device("meta")))]
    assert moved == ["meta"] * len(found)
    batch = prepared.batch(torch.zeros(0, dtype=torch.long))
    assert (len(batch), len(batch.graph_of), tuple(batch.neighbours.table.shape)) == (0, 0, (0, 1))
    assert batch.target is None


def test_a_batch_moves_with_all_that_is_in_it() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2)], node_label=["C", "C", "O"])
    batch = Encoder.fit(graphs, ModelConfig()).apply(graphs, ModelConfig()).batch(torch.arange(1))
    moved = batch.to("meta")
    assert {moved.neighbours.table.device.type, moved.bags.rows.device.type, moved.place.device.type} == {"meta"}
    assert len(batch.to("cpu")) == 1
    assert torch.equal(batch.to("cpu").neighbours.table, batch.neighbours.table)
