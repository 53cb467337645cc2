"""Every neural rival learns what it should, the same way every time, and stumbles over no odd graph."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")
pytest.importorskip("igraph", reason="igraph is not installed")

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.gine import Inputs, make_inputs
from lab.rivals.networks import RIVALS, Design, NetworkSystem, Settings
from lab.rivals.networks.convolutions import Diffusion
from lab.rivals.networks.diffpool import build_diffpool, densify
from lab.rivals.networks.encoding import Encoding, Shape
from lab.rivals.networks.layers import Network
from lab.rivals.networks.recurrent import ColumnNetwork, MessagePassing
from lab.rivals.networks.rivals import DCNN, DIFFPOOL, GIN, SPATIAL_GCN
from lab.rivals.rival import Rival
from tests.support.invariance import relabel
from tests.support.samples import as_list, molecules, one_graph
from tests.support.tiny import oxygens

CPU = torch.device("cpu")
each_rival = pytest.mark.parametrize("rival", RIVALS, ids=[rival.name for rival in RIVALS])


def chains(n_graphs: int, *, marked: str, seed: int) -> Graphs:
    """Chains of 6 to 9 nodes with two O among their C, and a class that only their places tell.

    ``neighbours``: whether the two are joined. ``ends``: whether they are the two ends.
    """
    random = np.random.default_rng(seed)
    counts = random.integers(6, 10, n_graphs)
    first = np.cumsum(counts) - counts
    target = np.arange(n_graphs) % 2
    label = np.zeros(int(counts.sum()), np.int32)
    for start, count, is_marked in zip(first, counts, target, strict=True):
        if marked == "neighbours":
            at = int(random.integers(1, count - 4))
            places = [at, at + 1] if is_marked else [at, at + 3]
        else:
            places = [0, count - 1] if is_marked else list(random.choice(np.arange(1, count - 1), 2, replace=False))
        label[start + np.array(places)] = 1
    edges = [np.arange(f, f + c - 1)[:, None] + [0, 1] for f, c in zip(first, counts, strict=True)]
    return Graphs.from_edges(
        node_counts=counts,
        edges=np.concatenate(edges),
        node_label=label,
        node_label_names=("C", "O"),
        target=target,
        class_names=("no", "yes"),
    )


def short(rival: Rival, *, seed: int = 0, epochs: int = 40) -> NetworkSystem:
    """The rival as it is, trained for fewer epochs."""
    system = rival.build(seed)
    assert isinstance(system, NetworkSystem)
    settings = replace(system.design.settings, epochs=epochs, patience=epochs)
    if rival is DCNN:
        settings = replace(settings, learning_rate=5e-2)
    return NetworkSystem(replace(system.design, settings=settings), seed=seed, device="cpu")


@cache
def trained(rival: Rival) -> NetworkSystem:
    marked = "ends" if rival is DCNN else "neighbours"
    learned, validation = chains(96, marked=marked, seed=0), chains(24, marked=marked, seed=1)
    return short(rival, epochs=12 if rival.name.endswith("convolutions") else 25).fit(learned, validation)


@each_rival
def test_a_rival_learns_where_labels_lie(rival: Rival) -> None:
    marked = "ends" if rival is DCNN else "neighbours"
    test, validation = chains(60, marked=marked, seed=2), chains(24, marked=marked, seed=1)
    system = trained(rival)
    assert np.mean(system.predict(test) == test.target) > 0.9
    assert system.validation_accuracy == np.mean(system.predict(validation) == validation.target)  # of the best epoch
    assert system.parameters == sum(p.numel() for p in system.network.parameters()) > 0
    one, other = (system.logits(graphs) for graphs in (test, relabel(test)[0]))  # whatever the numbers of the nodes
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_diffusion_sees_degrees_but_not_which_labels_are_joined() -> None:
    joined, apart, ends = (
        one_graph(8, [(i, i + 1) for i in range(7)], node_label=["O" if i in where else "C" for i in range(8)])
        for where in ((2, 3), (2, 5), (0, 7))
    )
    network = Diffusion(replace(Shape.of(joined), classes=2), hops=1)
    one, other, third = (network.diffuse(make_inputs(graphs, CPU)) for graphs in (joined, apart, ends))
    torch.testing.assert_close(one, other)
    assert third[0, 1, 1] == pytest.approx(1 / 8)  # of two ends each is seen by half a node
    assert one[0, 1, 1] == pytest.approx(2 / 8)


@each_rival
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(rival: Rival) -> None:
    graphs = chains(12, marked="neighbours", seed=0)
    one, same, other = (short(rival, seed=s, epochs=1).fit(graphs[:8], graphs[8:]).logits(graphs) for s in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def strange() -> Graphs:
    """A label that training never saw, no edges at all, no nodes at all, a self-loop, and the hub of a large star."""
    return Graphs.from_edges(
        node_counts=[3, 2, 0, 1, 400, 0],
        edges=np.array([[0, 1], [1, 2], [5, 5], *([6, leaf] for leaf in range(7, 406))]),
        node_label=np.array([0, 1, 2, *[0] * 403]),
        node_label_names=("C", "O", "Xe"),
    )


@each_rival
def test_odd_graphs_are_judged_alike_alone_and_among_others(rival: Rival) -> None:
    graphs, system = strange(), trained(rival)
    together = system.logits(graphs)
    assert together.shape == (6, 2)
    assert torch.isfinite(together).all()
    for g in range(len(graphs)):
        torch.testing.assert_close(system.logits(graphs[[g]])[0], together[g], rtol=1e-3, atol=1e-4)
    assert system.predict(graphs[:0]).shape == (0,)


@each_rival
def test_odd_graphs_and_every_kind_of_column_can_be_learned_from(rival: Rival) -> None:
    odd = strange().replace(target=np.arange(6) % 2, class_names=("no", "yes"))
    for graphs in (odd, Graphs.concat([molecules()[[0, 2]]] * 4).replace(part=None)):
        assert torch.isfinite(short(rival, epochs=1).fit(graphs, graphs).logits(graphs)).all()


def test_training_graphs_alone_decide_which_degrees_are_labels_and_how_attributes_are_scaled() -> None:
    star = one_graph(5, [(0, i) for i in range(1, 5)])
    inputs = make_inputs(Encoding.fit(one_graph(3, [(0, 1), (0, 2)])).encode(star), CPU)
    assert inputs.x.tolist() == [[0, 0, 1], *[[0, 1, 0]] * 4]  # 4 neighbours are more than any node in training had
    learned = one_graph(4, [(0, 1)], node_attr=[[1, 7], [3, 7], [1, 7], [3, 7]])
    other = one_graph(2, [(0, 1)], node_attr=[[6, 8], [2, 7]])
    assert as_list(Encoding.fit(learned).encode(other).node_attr) == [[4, 1], [0, 0]]


def test_training_stops_when_patience_runs_out_and_leaves_random_numbers_as_they_were() -> None:
    graphs = chains(12, marked="neighbours", seed=0)
    slow = Design(short(SPATIAL_GCN).design.build, Settings(epochs=50, patience=2, learning_rate=1e-9))
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    assert NetworkSystem(slow, device="cpu").fit(graphs[:8], graphs[8:]).epochs < 50
    assert torch.equal(torch.rand(1), expected)


def test_what_cannot_be_learned_from_is_refused() -> None:
    graphs = chains(8, marked="neighbours", seed=0)
    large = Graphs.from_edges(node_counts=[5000, 3], edges=np.array([[0, 1]])).replace(
        target=np.array([0, 1]), class_names=("a", "b")
    )
    for rival, learned, validation, rule in (
        (GIN, oxygens(), oxygens(), "no classes"),
        (GIN, graphs, graphs[:0], "validation graphs of known classes"),
        (DIFFPOOL, large, large, r"DiffPool on graphs of 5000 nodes needs dense matrices of about 23\.8 GiB"),
    ):
        with pytest.raises(DataError, match=rule):
            rival.build(0).fit(learned, validation)
    with pytest.raises(DataError, match="other node labels than these: training had some, these have none"):
        Encoding.fit(molecules()).encode(one_graph(2, [(0, 1)]))


def _molecule_inputs() -> tuple[Shape, Inputs]:
    graphs = molecules().replace(edge_weight=None)
    encoded = Encoding.fit(graphs).encode(graphs)
    return Shape.of(encoded), make_inputs(encoded, CPU)


def test_a_matrix_for_each_kind_of_edge_hears_what_a_matrix_for_each_edge_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape, inputs = _molecule_inputs()
    torch.manual_seed(0)
    network = MessagePassing(shape, steps=1, width=4, dropout=0)
    h = torch.randn(len(inputs.x), 4)
    kinds, kind = torch.unique(inputs.edge_attr, dim=0, return_inverse=True)
    assert len(kinds) == 3
    expected = network.conv(h, inputs.edge_index, inputs.edge_attr)
    torch.testing.assert_close(network.hear(h, inputs, kinds, kind), expected)
    few = network(inputs)
    monkeypatch.setattr("lab.rivals.networks.recurrent.MOST_KINDS", 2)  # with more, each edge has its matrix
    torch.testing.assert_close(network(inputs), few)


def test_columns_hear_the_mean_over_the_neighbours_of_each_relation() -> None:
    star = one_graph(4, [(0, 1), (0, 2), (0, 3)], node_label=list("abcd"), edge_label=["double", "double", "single"])
    network = ColumnNetwork(replace(Shape.of(star), classes=2), layers=1, width=4, dropout=0)
    with torch.no_grad():
        network.embed.weight.copy_(torch.eye(4))
        for layer in (network.embed, network.own):
            layer.bias.zero_()
        network.own.weight.zero_()
        network.own.bias[4:] = 100.0  # gates wide open: what comes out is the candidate
        network.context.weight.zero_()
        network.context.weight[:4, :4] = torch.eye(4)  # double
        network.context.weight[:4, 4:] = 10 * torch.eye(4)  # single
        network.head = torch.nn.Sequential()
    seen = network(make_inputs(star, CPU))[0] * 4  # the sum over the nodes

    assert seen.tolist() == pytest.approx([1 / 2 + 1 / 2 + 10 / 2, 1 / 4, 1 / 4, 10 / 2])


def test_dense_matrices_hold_every_graph_and_diffpool_also_learns_its_clusters() -> None:
    x, adjacency, mask = densify(make_inputs(molecules(), CPU))
    assert x.shape == (3, 4, 5)
    assert mask.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]
    assert adjacency[0].tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert adjacency[2, 3].tolist() == [0, 0, 0, 1]
    assert torch.equal(x[2], make_inputs(molecules(), CPU).x[4:])
    shape, inputs = _molecule_inputs()
    network, target = build_diffpool(shape).eval(), torch.tensor([0, 1, 0])
    assert network.loss(inputs, target) > Network.loss(network, inputs, target)
