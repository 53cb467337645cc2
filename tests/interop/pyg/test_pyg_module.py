"""Our models as modules of tensors: what they say, and what PyTorch Geometric may mask of them."""

import copy
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import explain as pyg
from torch_geometric.explain.algorithm.utils import set_masks

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import describe_by_degree
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError, DataError, MissingExtraError
from egocnn.explain import explain
from egocnn.interop import pyg as ours
from egocnn.interop.pyg import EgoExplainer, as_module
from egocnn.interop.pyg import module as modules
from egocnn.interop.pyg.module import EdgeMask
from egocnn.interop.pyg.tensors import inheriting
from egocnn.model import Model
from tests.interop.pyg.adapters import (
    adapted,
    alcohol,
    close,
    explainer,
    inputs,
    module,
    run,
    run_masked,
    trained,
    unseen_sizes,
)
from tests.support import tiny
from tests.support.networks import untrained
from tests.support.samples import one_graph, sure
from tests.support.strategies import random_connected, random_graphs, random_trees
from tests.support.tiny import plain_model

CONFIGS = [
    tiny.MODEL,
    plain_model(width=4, depth=1, hidden=4, slots=6, k=2, readout="mean+max"),  # Patchy-San reads beyond the layers
    plain_model(width=4, depth=2, hidden=8, slots=2, k=4, readout="sort", sort_nodes=3),
    plain_model(width=4, depth=1, hidden=4, slots=4, k=4, readout="sum"),
    plain_model(width=4, depth=2, hidden=4, slots=3, k=1, jump=True, head_norm=True, pool_norm=True),
    plain_model(width=4, depth=1, hidden=4, k=2, slots=3, readout="mean", count_inputs=True),
    plain_model(width=4, depth=1, hidden=4, slots=3, k=2, degrees=True, readout="log+max"),
]


@settings(max_examples=25)
@given(random_graphs(unseen=True), st.sampled_from(CONFIGS))
def test_the_module_says_what_the_predictor_says_with_or_without_open_masks(
    graphs: Graphs, config: ModelConfig
) -> None:
    predictor, model, data = adapted(graphs, config)
    outputs = predictor.outputs(graphs, device="cpu")
    assert close(run(model, data), outputs)
    assert close(run(model, data, node_attr=None), outputs)
    assert close(run_masked(model, data, torch.ones(data.edge_index.shape[1])), outputs)


def test_the_module_of_several_networks_says_their_mean() -> None:
    predictor, graphs = trained(), tiny.alcohols()[:5]
    other = Model.build(predictor.config, predictor.encoder)
    several = replace(predictor, networks=(*predictor.networks, *other.networks))
    model = as_module(several)
    assert close(run(model, model.to_data(graphs)), several.outputs(graphs, device="cpu"))
    assert not close(several.outputs(graphs, device="cpu"), predictor.outputs(graphs, device="cpu"))


@settings(max_examples=15)
@given(random_graphs(attributes=True), st.booleans())
def test_attributes_as_embedding_are_read_from_x(graphs: Graphs, labelled_edges: bool) -> None:
    config = plain_model(width=4, depth=1 + labelled_edges, hidden=4, k=3, embedding="attributes")
    predictor, model, data = adapted(graphs, config)
    assert close(run(model, data), predictor.outputs(graphs, device="cpu"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch has deprecated
def test_a_module_can_be_compiled_masks_and_gradients_included() -> None:
    model, data = as_module(trained()), module().to_data(unseen_sizes()[:3])
    mask = torch.linspace(0, 1, data.edge_index.shape[1])
    compiled: Any = torch.compile(model, backend="aot_eager")
    for found, expected in (
        (run(compiled, data), run(model, data)),
        (run_masked(compiled, data, mask), run_masked(model, data, mask)),
    ):
        assert close(found, expected)
    x = data.x.clone().requires_grad_()
    found, expected = (torch.autograd.grad(run(each, data, x=x).sum(), x)[0] for each in (compiled, model))
    assert close(found, expected)
    assert found.any()


@settings(max_examples=20)
@given(random_graphs(), st.sampled_from([*CONFIGS[:2], *CONFIGS[3:5]]))
def test_edges_that_are_all_masked_are_as_good_as_gone(graphs: Graphs, config: ModelConfig) -> None:
    predictor, model, data = adapted(graphs, config)
    edgeless: dict[str, Any] = {
        name: values[:0]
        for name in ("indices", "edge_label", "edge_weight")
        if (values := getattr(graphs, name)) is not None
    }
    alone = graphs.replace(indptr=np.zeros_like(graphs.indptr), **edgeless)
    masked = run_masked(model, data, torch.zeros(data.edge_index.shape[1]))
    assert close(masked, predictor.outputs(alone, device="cpu"))


def test_one_graph_needs_no_batch_and_masks_of_another_graph_do_not_touch_it() -> None:
    graphs = random_trees(2, nodes=8, seed=3)
    model = as_module(untrained(graphs, tiny.MODEL))
    both, first = model.to_data(graphs), model.to_data(graphs[[0]])
    del first["batch"]
    in_second = both.batch[both.edge_index[0]] == 1
    masked = run_masked(model, both, (~in_second).float())
    assert close(masked[:1], run(model, first))
    assert not close(masked[1], run(model, both)[1])


def test_a_row_of_zeros_is_a_node_with_an_unknown_label() -> None:
    graphs = random_trees(3, nodes=8, seed=0)
    _, model, data = adapted(graphs)
    label = sure(graphs.node_label).copy()
    label[[0, 4]] = -1
    data.x[[0, 4]] = 0
    assert close(run(model, data), model.predictor.outputs(graphs.replace(node_label=label), device="cpu"))


def test_a_soft_mask_weakens_a_node_without_changing_ranks() -> None:
    graphs = random_trees(2, nodes=9, seed=1)
    _, model, data = adapted(graphs)
    mask = torch.rand(len(data.x), 1, generator=torch.Generator().manual_seed(0)) * 0.9 + 0.05
    hard, soft = (model.to_graphs(**(inputs(data) | {"x": x})).node_label for x in (data.x, data.x * mask))
    assert hard is not None
    assert soft is not None
    assert np.array_equal(hard, soft)
    whole, gone = run(model, data), run(model, data, x=data.x * 1e-7)
    almost_whole = run(model, data, x=data.x * (1 - 1e-7))
    assert close(whole, almost_whole)
    assert not close(whole, gone)
    assert not close(run(model, data, x=data.x * mask), whole)


@pytest.mark.parametrize("config", [*CONFIGS[:3], CONFIGS[4]])
def test_gradients_reach_every_entry_of_x_and_every_edge_mask(config: ModelConfig) -> None:
    graphs = random_connected(2, nodes=5, extra=3, seed=4)
    random = np.random.default_rng(0)
    graphs = graphs.replace(node_attr=random.normal(3, 2, (graphs.n_nodes, 2)).astype(np.float32))
    model = as_module(untrained(graphs, config)).double()
    data = model.to_data(graphs)
    x = (data.x.double() + 0.01).requires_grad_()  # off the zeros, where a kink may be
    mask = torch.full((data.edge_index.shape[1],), 0.7, dtype=torch.float64).requires_grad_()

    def outputs(x: Tensor, mask: Tensor) -> Tensor:
        set_masks(model, mask, data.edge_index, apply_sigmoid=True)
        return run(model, data, x=x)

    assert torch.autograd.gradcheck(outputs, (x, mask))
    for gradient in torch.autograd.grad(outputs(x, mask).square().sum(), (x, mask)):
        assert (gradient != 0).float().mean() > 0.5


@pytest.mark.parametrize("own", [None, [[float(node), -1.0] for node in range(7)]], ids=["bare", "with attributes"])
def test_what_degrees_say_stands_in_x_and_needs_nothing_in_the_graph(own: Any) -> None:
    edges = np.array([(0, 1), (0, 2), (0, 3), (4, 5), (5, 6)])
    attributes = None if own is None else np.array(own, np.float32)
    known = Graphs.from_edges(
        node_counts=[4, 3], edges=edges, target=np.array([0, 1]), class_names=("no", "yes"), node_attr=attributes
    )
    wide = np.array([(0, leaf) for leaf in range(1, 5)])  # a degree of 4 was never seen
    unknown = Graphs.from_edges(node_counts=[5], edges=wide, node_attr=None if attributes is None else attributes[:5])
    config = plain_model(width=4, depth=2, hidden=4, slots=3, k=2, jump=True, degrees=True)
    predictor = untrained(known, config)
    assert predictor.encoder.node_label_names == ("degree 1", "degree 2", "degree 3")
    model = as_module(predictor)
    assert model.to_data(known).x[:2, :3].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert model.to_data(unknown).x[:2, :3].tolist() == [[0, 0, 0], [1, 0, 0]]
    for graphs in (known, unknown):
        outputs = predictor.outputs(graphs, device="cpu")
        data = model.to_data(graphs)
        described = sure(describe_by_degree(graphs).node_attr)
        assert close(data.x[:, 3:], described)
        assert close(run(model, data), outputs)
        assert close(run_masked(model, data, torch.ones(data.edge_index.shape[1])), outputs)
        assert close(run(model, model.to_data(graphs[0])), outputs[:1])
        assert not close(run(model, data, x=torch.cat([data.x[:, :-5], 0 * data.x[:, -5:]], dim=1)), outputs)
        found = explainer(EgoExplainer(), model)(**inputs(data))
        wanted = np.concatenate([structure.node_importance for structure in explain(predictor, graphs)])
        assert close(found.node_importance, wanted)


def test_the_mask_of_an_edge_has_a_direction_defaults_to_the_other_one_and_edges_may_be_given_one_way() -> None:
    edge_index = torch.tensor([[0, 1, 1, 1, 2], [1, 0, 2, 2, 2]])
    mask = EdgeMask.of(edge_index, torch.tensor([0.1, 0.5, 0.2, 0.4, 0.9]), 3)
    assert close(mask.along(torch.tensor([0, 1]), torch.tensor([1, 0])), [0.1, 0.5])
    assert close(mask.between(torch.tensor([0, 1]), torch.tensor([1, 0])), [0.3, 0.3])
    assert close(mask.along(torch.tensor([1, 2]), torch.tensor([2, 1])), [0.3, 0.3])  # given twice, one way
    assert close(mask.along(torch.tensor([2, 0, -1]), torch.tensor([2, 2, 1])), [0.9, 1, 1])  # a loop, no edge, no node
    data = alcohol()
    once = data.edge_index[0] < data.edge_index[1]
    assert close(module()(data.x, data.edge_index[:, once]), run(module(), data))


def test_data_hold_labels_in_the_order_of_the_model_and_what_is_to_be_predicted() -> None:
    graphs = unseen_sizes()
    assert graphs.target is not None
    other_order = graphs.with_names(nodes=("O", "H", "C"), classes=("alcohol", "alkane"))
    data, ours = module().to_data(other_order), trained().encoder
    names = np.array(graphs.node_label_names)[sure(graphs.node_label)]
    assert np.array(ours.node_label_names)[data.x.argmax(1).numpy()].tolist() == names.tolist()
    classes = np.array(graphs.class_names)[graphs.target]
    assert np.array(ours.class_names)[data.y.numpy()].tolist() == classes.tolist()
    assert (run(module(), data).argmax(1) == data.y).all()
    assert data.node_truth.shape == (graphs.n_nodes,)
    assert data.edge_truth.shape == (data.edge_index.shape[1],)
    unknown = graphs.replace(target=np.where(np.arange(len(graphs)) == 3, -1, graphs.target))
    assert "y" not in module().to_data(unknown)


def test_data_of_one_graph_are_those_of_a_collection_of_one() -> None:
    for predictor, graphs in (
        (trained(), unseen_sizes()),
        (untrained(tiny.oxygens(), tiny.MODEL), tiny.oxygens()),
    ):
        one, several = (as_module(predictor).to_data(part) for part in (graphs[1], graphs[[1]]))
        one, several = one.to_dict(), several.to_dict()
        assert one.keys() == several.keys()
        assert all(torch.equal(one[key], several[key]) for key in one)
        assert one["y"].shape == (1,)


def test_the_module_never_changes_the_model_and_masks_never_stay() -> None:
    model, before = as_module(trained()), tiny.state(trained().networks[0])
    trained().networks[0].zero_grad()
    parameters = {name for name, _ in model.named_parameters()}
    whole = run(model, alcohol())
    explainer(pyg.GNNExplainer(epochs=3), model)(alcohol().x, alcohol().edge_index)
    assert close(run(model, alcohol()), whole)
    assert {name for name, _ in model.named_parameters()} == parameters
    assert tiny.same(before, tiny.state(trained().networks[0]))
    assert all(p.grad is None for p in (*model.parameters(), *trained().networks[0].parameters()))
    assert not model.training
    assert close(run(copy.deepcopy(model), alcohol()), whole)


def test_tensors_that_do_not_fit_are_refused_in_one_line() -> None:
    data, model = alcohol(), module()
    two_labels = as_module(untrained(random_trees(2, nodes=5, seed=0), tiny.MODEL))
    n, m = len(data.x), data.edge_index.shape[1]
    for changes, words in (
        ({"x": data.x[:, :2]}, "x must have 3 labels and 0 attributes per node"),
        ({"edge_index": data.edge_index.float()}, "edge_index must be whole numbers"),
        ({"edge_index": data.edge_index + n}, str(n)),
        ({"batch": torch.arange(n).flip(0)}, "in ascending order"),
        ({"batch": data.edge_attr}, f"the graph of each of {n} nodes"),
        ({"node_attr": data.x}, rf"node_attr must have the shape \({n}, 0\)"),
        ({"edge_attr": data.edge_attr[:-1]}, rf"must have the shape \({m}, 1\)"),
        ({"x": data.x.index_fill(0, torch.tensor([2]), float("nan"))}, "x must hold finite numbers, got nan"),
        ({"edge_attr": data.edge_attr * float("inf")}, "edge_attr must hold finite numbers, got inf"),
        ({"edge_weight": torch.full((m,), float("nan"))}, "edge_weight must hold finite numbers, got nan"),
    ):
        with pytest.raises(DataError, match=words):
            run(model, data, **changes)
    with pytest.raises(DataError, match="graph 0: what the network computes from it is not a finite number"):
        run_masked(model, data, torch.full((m,), float("nan")))
    with pytest.raises(DataError, match=r"knows 2 edge labels; .* got none"):
        two_labels(data.x, data.edge_index)
    with pytest.raises(ConfigError, match="a fitted estimator or a predictor is needed, not str"):
        as_module("run")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for importing in (ours, modules):
        monkeypatch.setattr(importing, "inheriting", inheriting.__wrapped__)  # without its cache
    for name in ("torch_geometric.explain", "torch_geometric.nn", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (lambda: ours.EgoExplainer, lambda: as_module(trained()), lambda: module().to_data(unseen_sizes())):
        with pytest.raises(MissingExtraError, match=r"egocnn\[pyg\]"):
            use()


def test_what_is_no_tensor_is_refused_in_one_line() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2)], node_label=["C", "C", "O"])
    module = as_module(Model.build(ModelConfig(width=4, depth=1), Encoder.fit(graphs, ModelConfig())))
    data = module.to_data(graphs)
    for arguments, name in (
        ((None, data.edge_index), "x"),
        ((data.x, None), "edge_index"),
        ((data.x.numpy(), [0]), "x"),
    ):
        with pytest.raises(DataError, match=f"^{name} must be a tensor, got "):
            module(*arguments)
    with pytest.raises(DataError, match=r"^batch must be a tensor, got "):
        module(data.x, data.edge_index, [0, 0, 0])
