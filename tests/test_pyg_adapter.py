"""Our models under PyTorch Geometric's explainers and metrics, and our explanations as one of its own."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from egocnn.config import ExplainConfig, ModelConfig, TrainConfig
from egocnn.critical import explain
from egocnn.degrees import describe_by_degree
from egocnn.errors import ConfigError, DataError, MissingExtraError
from egocnn.graphs import Graphs
from egocnn.learning import learn
from egocnn.nn import EgoCNN
from egocnn.predictor import Predictor
from tests import tiny
from tests.networks import build
from tests.strategies import random_connected, random_graphs, random_trees

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what torch has deprecated, already when it is imported
    pyg = pytest.importorskip("torch_geometric.explain", reason="torch-geometric is not installed")
    metric = pytest.importorskip("torch_geometric.explain.metric")
    set_masks = pytest.importorskip("torch_geometric.explain.algorithm.utils").set_masks
    clear_masks = pytest.importorskip("torch_geometric.explain.algorithm.utils").clear_masks

from egocnn.pyg import EgoExplainer, EgoModule, as_module
from egocnn.pyg.masks import EdgeMask

CLASSES = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
VALUES = {"mode": "regression", "task_level": "graph", "return_type": "raw"}


@cache
def trained() -> Predictor:
    """Tells alcohols from alkanes of other sizes, every one of them."""
    settings = TrainConfig(epochs=30, learning_rate=1e-2, device="cpu")
    predictor, _ = learn(tiny.alcohols(), ModelConfig(width=16, depth=2, hidden=16, slots=4, k=4), settings)
    return predictor


@cache
def module() -> EgoModule:
    return as_module(trained())


@cache
def unseen_sizes() -> Graphs:
    return tiny.alcohols().select("test")


@cache
def alcohol() -> Any:
    graphs = unseen_sizes()
    assert graphs.target is not None
    return module().to_data(graphs[[int(np.flatnonzero(graphs.target == graphs.class_names.index("alcohol"))[0])]])


def random_predictor(graphs: Graphs, config: ModelConfig = tiny.MODEL, *, outputs: int = 2) -> Predictor:
    network, preparation = build(graphs, config, outputs=outputs)
    return Predictor(config=config, preparation=preparation, network=network)


def run(model: EgoModule, data: Any, **changes: Any) -> Tensor:
    out: Tensor = model(**(inputs(data) | changes))
    return out


def inputs(data: Any) -> dict[str, Any]:
    names = ("x", "edge_index", "batch", "edge_attr", "edge_weight", "node_attr")
    return {name: data[name] for name in names if name in data}


def run_masked(model: EgoModule, data: Any, mask: Tensor, *, apply_sigmoid: bool = False) -> Tensor:
    set_masks(model, mask, data.edge_index, apply_sigmoid=apply_sigmoid)
    try:
        return run(model, data)
    finally:
        clear_masks(model)


def explainer(algorithm: Any, model: nn.Module | None = None, **changes: Any) -> Any:
    usual = {"explanation_type": "model", "node_mask_type": "object", "edge_mask_type": "object"}
    masks = usual | {"model_config": CLASSES} | changes
    return pyg.Explainer(model=module() if model is None else model, algorithm=algorithm, **masks)


def close(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    def plain(values: Any) -> NDArray[Any]:
        return np.asarray(values.detach() if isinstance(values, Tensor) else values)

    return bool(np.allclose(plain(one), plain(other), rtol=tolerance, atol=tolerance))


# ── the module ────────────────────────────────────────────────────────────────────────────────────────


CONFIGS = [
    tiny.MODEL,
    ModelConfig(width=4, depth=1, hidden=4, slots=6, k=2, readout="mean+max"),  # Patchy-San reads beyond the layers
    ModelConfig(width=4, depth=2, hidden=4, slots=2, k=(4, 2), readout="sort", sort_nodes=3),
    ModelConfig(width=4, depth=1, hidden=4, slots=4, k=4, max_hops=2, readout="sum"),
    ModelConfig(width=4, depth=2, hidden=4, k=3, embedding="adjacency"),
    ModelConfig(width=4, depth=2, hidden=4, slots=3, k=1, rest="mean", jump=True, head_norm=True, pool_norm=True),
    ModelConfig(width=4, depth=2, hidden=4, k=(1, 2), rest="sum", jump=True, embedding="adjacency", readout="sort"),
    ModelConfig(width=4, depth=1, hidden=4, k=2, slots=3, readout="mean", count_inputs=True),
    ModelConfig(width=4, depth=1, hidden=4, slots=3, k=2, degrees=True, readout="log+max"),
]


@settings(deadline=None, max_examples=25)
@given(random_graphs(unseen=True), st.sampled_from(CONFIGS))
def test_the_module_says_what_the_predictor_says_with_or_without_open_masks(
    graphs: Graphs, config: ModelConfig
) -> None:
    predictor = random_predictor(graphs, config)
    model = as_module(predictor)
    data = model.to_data(graphs)
    outputs = predictor.outputs(graphs, device="cpu")
    assert close(run(model, data), outputs)
    assert close(run(model, data, node_attr=None), outputs)
    assert close(run_masked(model, data, torch.ones(data.edge_index.shape[1])), outputs)


@settings(deadline=None, max_examples=15)
@given(random_graphs(attributes=True), st.booleans())
def test_attributes_as_embedding_are_read_from_x(graphs: Graphs, labelled_edges: bool) -> None:
    config = ModelConfig(width=4, depth=1 + labelled_edges, hidden=4, k=3, embedding="attributes")
    predictor = random_predictor(graphs, config)
    model = as_module(predictor)
    assert close(run(model, model.to_data(graphs)), predictor.outputs(graphs, device="cpu"))


@settings(deadline=None, max_examples=20)
@given(random_graphs(), st.sampled_from([CONFIGS[0], CONFIGS[1], *CONFIGS[4:7]]))
def test_edges_that_are_all_masked_are_as_good_as_gone(graphs: Graphs, config: ModelConfig) -> None:
    predictor = random_predictor(graphs, config)
    model = as_module(predictor)
    data = model.to_data(graphs)
    none = np.zeros(0, np.int32)
    alone = graphs.replace(
        indptr=np.zeros_like(graphs.indptr),
        indices=none,
        edge_label=None if graphs.edge_label is None else none,
        edge_weight=None if graphs.edge_weight is None else np.zeros(0, np.float32),
    )
    masked = run_masked(model, data, torch.zeros(data.edge_index.shape[1]))
    assert close(masked, predictor.outputs(alone, device="cpu"))


def test_one_graph_needs_no_batch_and_masks_of_another_graph_do_not_touch_it() -> None:
    graphs = random_trees(2, nodes=8, seed=3)
    model = as_module(random_predictor(graphs))
    both, first = model.to_data(graphs), model.to_data(graphs[[0]])
    del first["batch"]
    in_second = both.batch[both.edge_index[0]] == 1
    masked = run_masked(model, both, (~in_second).float())
    assert close(masked[:1], run(model, first))
    assert not close(masked[1], run(model, both)[1])


def test_a_row_of_zeros_is_a_node_with_an_unknown_label() -> None:
    graphs = random_trees(3, nodes=8, seed=0)
    assert graphs.node_label is not None
    model = as_module(random_predictor(graphs))
    data = model.to_data(graphs)
    label = graphs.node_label.copy()
    label[[0, 4]] = -1
    data.x[[0, 4]] = 0
    assert close(run(model, data), model.predictor.outputs(graphs.replace(node_label=label), device="cpu"))


def test_a_soft_mask_weakens_a_node_without_changing_ranks() -> None:
    graphs = random_trees(2, nodes=9, seed=1)
    model = as_module(random_predictor(graphs))
    data = model.to_data(graphs)
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


@pytest.mark.parametrize("config", [*CONFIGS[:3], CONFIGS[5]])
def test_gradients_reach_every_entry_of_x_and_every_edge_mask(config: ModelConfig) -> None:
    graphs = random_connected(2, nodes=5, extra=3, seed=4)
    random = np.random.default_rng(0)
    graphs = graphs.replace(node_attr=random.normal(3, 2, (graphs.n_nodes, 2)).astype(np.float32))
    model = as_module(random_predictor(graphs, config)).double()
    data = model.to_data(graphs)
    x = (data.x.double() + 0.01).requires_grad_()  # off the zeros, where a kink may be
    mask = torch.full((data.edge_index.shape[1],), 0.7, dtype=torch.float64).requires_grad_()

    def outputs(x: Tensor, mask: Tensor) -> Tensor:
        set_masks(model, mask, data.edge_index, apply_sigmoid=True)
        return run(model, data, x=x)

    assert torch.autograd.gradcheck(outputs, (x, mask))
    for gradient in torch.autograd.grad(outputs(x, mask).square().sum(), (x, mask)):
        assert (gradient != 0).float().mean() > 0.5


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_a_neighbour_beyond_k_is_let_through_as_far_as_its_mask_says(kind: Any) -> None:
    """Masked alone they are as good as unread, and half masked as if read through half the filter."""
    graphs = random_trees(4, nodes=9, seed=6, most_neighbours=8)
    predictor = random_predictor(graphs, ModelConfig(width=4, depth=1, hidden=4, slots=1, k=1, rest=kind))
    model = as_module(predictor)
    data = model.to_data(graphs)
    rest = predictor.prepare(graphs).batch(torch.arange(len(graphs))).rest
    assert rest is not None
    assert len(rest.owner) > 4
    into = {(int(m), int(n)) for m, n in zip(rest.source, rest.owner, strict=True)}
    is_beyond = torch.tensor([(int(m), int(n)) in into for m, n in data.edge_index.t()])
    assert int(is_beyond.sum()) == len(into)
    blind = copy.deepcopy(predictor)
    with torch.no_grad():
        blind.network.convs[0].get_parameter("rest").zero_()
    assert close(run_masked(model, data, (~is_beyond).float()), blind.outputs(graphs, device="cpu"))
    half = run_masked(model, data, torch.where(is_beyond, 0.5, 1.0))
    with torch.no_grad():
        blind.network.convs[0].get_parameter("rest").copy_(predictor.network.convs[0].get_parameter("rest") / 2)
    assert close(half, blind.outputs(graphs, device="cpu"))
    assert not close(half, run(model, data))


@pytest.mark.parametrize("own", [None, [[float(node), -1.0] for node in range(7)]], ids=["bare", "with attributes"])
def test_what_degrees_say_stands_in_x_and_needs_nothing_in_the_graph(own: Any) -> None:
    edges = np.array([(0, 1), (0, 2), (0, 3), (4, 5), (5, 6)])
    attributes = None if own is None else np.array(own, np.float32)
    known = Graphs.from_edges(
        node_counts=[4, 3], edges=edges, target=np.array([0, 1]), class_names=("no", "yes"), node_attr=attributes
    )
    wide = np.array([(0, leaf) for leaf in range(1, 5)])  # a degree of 4 was never seen
    unknown = Graphs.from_edges(node_counts=[5], edges=wide, node_attr=None if attributes is None else attributes[:5])
    config = ModelConfig(width=4, depth=2, hidden=4, slots=3, k=2, jump=True, rest="mean", degrees=True)
    predictor = random_predictor(known, config)
    assert predictor.preparation.node_label_names == ("degree 1", "degree 2", "degree 3")
    model = as_module(predictor)
    assert model.to_data(known).x[:2, :3].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert model.to_data(unknown).x[:2, :3].tolist() == [[0, 0, 0], [1, 0, 0]]
    for graphs in (known, unknown):
        outputs = predictor.outputs(graphs, device="cpu")
        data = model.to_data(graphs)
        described = describe_by_degree(graphs).node_attr
        assert described is not None
        assert close(data.x[:, 3:], described)
        assert close(run(model, data), outputs)
        assert close(run_masked(model, data, torch.ones(data.edge_index.shape[1])), outputs)
        assert close(run(model, model.to_data(graphs[0])), outputs[:1])
        assert not close(run(model, data, x=torch.cat([data.x[:, :-5], 0 * data.x[:, -5:]], dim=1)), outputs)
        found = explainer(EgoExplainer(), model)(**inputs(data))
        wanted = np.concatenate([structure.node_importance for structure in explain(predictor, graphs)])
        assert close(found.node_importance, wanted)


def test_the_mask_of_an_edge_has_a_direction_and_defaults_to_the_other_one() -> None:
    edge_index = torch.tensor([[0, 1, 1, 1, 2], [1, 0, 2, 2, 2]])
    mask = EdgeMask.of(edge_index, torch.tensor([0.1, 0.5, 0.2, 0.4, 0.9]), 3)
    assert close(mask.along(torch.tensor([0, 1]), torch.tensor([1, 0])), [0.1, 0.5])
    assert close(mask.between(torch.tensor([0, 1]), torch.tensor([1, 0])), [0.3, 0.3])
    assert close(mask.along(torch.tensor([1, 2]), torch.tensor([2, 1])), [0.3, 0.3])  # given twice, one way
    assert close(mask.along(torch.tensor([2, 0, -1]), torch.tensor([2, 2, 1])), [0.9, 1, 1])  # a loop, no edge, no node


def test_edges_may_be_given_one_way() -> None:
    data = alcohol()
    once = data.edge_index[0] < data.edge_index[1]
    assert close(module()(data.x, data.edge_index[:, once]), run(module(), data))


def test_data_hold_labels_in_the_order_of_the_model_and_what_is_to_be_predicted() -> None:
    graphs = unseen_sizes()
    assert graphs.node_label is not None
    assert graphs.target is not None
    other_order = graphs.with_names(nodes=("O", "H", "C"), classes=("alcohol", "alkane"))
    data, ours = module().to_data(other_order), trained().preparation
    names = np.array(graphs.node_label_names)[graphs.node_label]
    assert np.array(ours.node_label_names)[data.x.argmax(1).numpy()].tolist() == names.tolist()
    classes = np.array(graphs.class_names)[graphs.target]
    assert np.array(ours.class_names)[data.y.numpy()].tolist() == classes.tolist()
    assert (run(module(), data).argmax(1) == data.y).all()
    assert data.node_truth.shape == (graphs.n_nodes,)
    assert data.edge_truth.shape == (data.edge_index.shape[1],)


def test_data_of_one_graph_are_those_of_a_collection_of_one() -> None:
    for predictor, graphs in (
        (trained(), unseen_sizes()),
        (random_predictor(tiny.oxygens(), outputs=1), tiny.oxygens()),
    ):
        one, several = (as_module(predictor).to_data(part) for part in (graphs[1], graphs[[1]]))
        one, several = one.to_dict(), several.to_dict()
        assert one.keys() == several.keys()
        assert all(torch.equal(one[key], several[key]) for key in one)
        assert one["y"].shape == (1,)


def test_an_unknown_class_is_left_out_of_the_data() -> None:
    graphs = unseen_sizes()
    assert graphs.target is not None
    assert "y" not in module().to_data(graphs.replace(target=np.where(np.arange(len(graphs)) == 3, -1, graphs.target)))


def test_the_module_never_changes_the_model_and_masks_never_stay() -> None:
    model, before = as_module(trained()), tiny.state(trained().network)
    trained().network.zero_grad()
    parameters = {name for name, _ in model.named_parameters()}
    whole = run(model, alcohol())
    explainer(pyg.GNNExplainer(epochs=3), model)(alcohol().x, alcohol().edge_index)
    assert close(run(model, alcohol()), whole)
    assert {name for name, _ in model.named_parameters()} == parameters
    assert tiny.same(before, tiny.state(trained().network))
    assert all(p.grad is None for p in (*model.parameters(), *trained().network.parameters()))
    assert not model.training
    assert close(run(copy.deepcopy(model), alcohol()), whole)


# ── our explainer among theirs ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("technique", ["relevance", "grad-cam", "gradient", "occlusion"])
def test_importances_are_those_of_explain_in_the_order_of_the_tensors(technique: Any) -> None:
    graphs = unseen_sizes()[:4]
    data = module().to_data(graphs)
    order = torch.randperm(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
    found = explainer(EgoExplainer(technique))(data.x, data.edge_index[:, order], batch=data.batch)
    structures = explain(trained(), graphs, ExplainConfig(technique=technique), device="cpu")
    assert close(found.node_importance, np.concatenate([s.node_importance for s in structures]))
    edges: dict[tuple[int, int], float] = {}
    for first, structure in zip(graphs.node_ptr.tolist(), structures, strict=False):
        pairs = (structure.graph.edges + first).tolist()
        edges |= {(u, v): x for (u, v), x in zip(pairs, structure.edge_importance.tolist(), strict=True)}
    wanted = [edges[min(u, v), max(u, v)] for u, v in found.edge_index.t().tolist()]
    assert close(found.edge_importance, wanted)
    assert found.validate()


def test_masks_lie_between_0_and_1_and_every_graph_reaches_1() -> None:
    data = module().to_data(unseen_sizes())
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    for mask, graph_of in ((found.node_mask[:, 0], data.batch), (found.edge_mask, data.batch[data.edge_index[0]])):
        assert mask.min() == 0
        largest = torch.zeros(len(unseen_sizes())).scatter_reduce(0, graph_of, mask, "amax")
        assert (largest == 1).all()
    assert ((found.node_mask[:, 0] > 0) == (found.node_importance > 0)).all()


def test_the_oxygen_of_every_alcohol_is_found() -> None:
    data = module().to_data(unseen_sizes())
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    oxygen = trained().preparation.node_label_names.index("O")
    is_first = found.threshold("hard", 0.999).node_mask[:, 0] > 0
    is_alcohol = data.y[data.batch] == trained().class_names.index("alcohol")
    assert (data.x[is_first & is_alcohol, oxygen] == 1).float().mean() >= 0.9
    assert data.node_truth[is_first & is_alcohol].float().mean() >= 0.9
    for graph in range(2):
        one = data.subgraph(data.batch == graph)
        small = explainer(EgoExplainer(), threshold_config=("topk", 2))(one.x, one.edge_index)
        assert small.get_explanation_subgraph().num_nodes <= 2


def test_a_target_names_the_class_to_explain() -> None:
    graphs = unseen_sizes()[:3]
    data = module().to_data(graphs)
    asked = explainer(EgoExplainer(), explanation_type="phenomenon")
    for number, name in enumerate(trained().class_names):
        found = asked(data.x, data.edge_index, batch=data.batch, target=torch.full((3,), number))
        structures = explain(trained(), graphs, classes=name, device="cpu")
        assert close(found.node_importance, np.concatenate([s.node_importance for s in structures]))
    with pytest.raises(ConfigError, match="class numbers from 0 to 1"):
        asked(data.x, data.edge_index, batch=data.batch, target=torch.tensor([0, 1, 2]))


def test_an_index_leaves_the_other_graphs_unexplained() -> None:
    data = module().to_data(unseen_sizes()[:3])
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch, index=1)
    whole = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    assert close(found.node_mask[data.batch == 1], whole.node_mask[data.batch == 1])
    assert (found.node_mask[data.batch != 1] == 0).all()
    assert (found.edge_mask[data.batch[data.edge_index[0]] != 1] == 0).all()


def test_a_value_is_explained_by_the_size_of_what_raised_or_lowered_it() -> None:
    graphs = tiny.oxygens()[:5]
    model = as_module(random_predictor(graphs, outputs=1))
    data = model.to_data(graphs)
    found = explainer(EgoExplainer("gradient"), model, model_config=VALUES)(**inputs(data))
    assert bool((found.node_importance < 0).any())
    assert ((found.node_mask[:, 0] > 0) == (found.node_importance != 0)).all()
    with pytest.raises(ConfigError, match="but the model predicts a value"):
        explainer(EgoExplainer(), model)(**inputs(data))
    with pytest.raises(ConfigError, match="but the model predicts one of 2 classes"):
        explainer(EgoExplainer(), model_config=VALUES)(alcohol().x, alcohol().edge_index)


def test_only_asked_for_masks_are_made() -> None:
    nodes = explainer(EgoExplainer(), edge_mask_type=None)(alcohol().x, alcohol().edge_index)
    edges = explainer(EgoExplainer(), node_mask_type=None)(alcohol().x, alcohol().edge_index)
    assert nodes.available_explanations == ["node_mask"]
    assert edges.available_explanations == ["edge_mask"]


@pytest.mark.parametrize(
    "changes",
    [
        {"node_mask_type": "attributes"},
        {"node_mask_type": "common_attributes"},
        {"model_config": CLASSES | {"task_level": "node"}},
        {"model_config": CLASSES | {"return_type": "log_probs"}},
        {"model_config": CLASSES | {"mode": "binary_classification"}},
    ],
)
def test_what_it_cannot_explain_is_refused_before_it_starts(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'EgoExplainer' does not support"):
        explainer(EgoExplainer(), **changes)


def test_it_is_an_explainer_algorithm_and_explains_nothing_but_our_modules() -> None:
    assert issubclass(EgoExplainer, pyg.ExplainerAlgorithm)
    assert repr(EgoExplainer()) == "EgoExplainer()"
    with pytest.raises(ConfigError, match="technique must be one of"):
        EgoExplainer("guessing")

    class Other(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x[:1] * edge_index.shape[1]

    with pytest.raises(ConfigError, match="explains what as_module makes, not Other"):
        explainer(EgoExplainer(), Other())(alcohol().x, alcohol().edge_index)


# ── their metrics and their algorithms ────────────────────────────────────────────────────────────────


def test_their_metrics_find_our_explanations_faithful() -> None:
    data = module().to_data(unseen_sizes())
    ours = explainer(EgoExplainer())
    found = ours(data.x, data.edge_index, batch=data.batch)
    removed, kept = metric.fidelity(ours, found)
    assert removed >= 0.9
    assert kept <= 0.1 + 1e-6  # one graph in ten, in float32
    score = metric.characterization_score(torch.tensor(removed), torch.tensor(kept))
    assert float(score) == pytest.approx(1 / (0.5 / removed + 0.5 / (1 - kept)))
    opposite = found.clone()
    opposite.node_mask, opposite.edge_mask = 1 - found.node_mask, 1 - found.edge_mask
    assert 0 <= metric.unfaithfulness(ours, found) < metric.unfaithfulness(ours, opposite)


def test_their_metrics_compare_masks_with_truths() -> None:
    pytest.importorskip("torchmetrics", reason="torchmetrics, which PyTorch Geometric asks for, is not installed")
    data = module().to_data(unseen_sizes())
    data = data.subgraph(data.y[data.batch] == trained().class_names.index("alcohol"))
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    assert metric.groundtruth_metrics(found.node_mask, data.node_truth.float(), "auroc") > 0.9


@pytest.mark.parametrize("edge_mask_type", [None, "object"])
def test_gnn_explainer_learns_masks_of_our_module(edge_mask_type: str | None) -> None:
    torch.manual_seed(0)
    data = alcohol()
    theirs = explainer(pyg.GNNExplainer(epochs=60, lr=0.05), edge_mask_type=edge_mask_type)
    found = theirs(data.x, data.edge_index, batch=data.batch)
    assert found.node_mask.shape == (len(data.x), 1)
    masks = [found.node_mask] + ([found.edge_mask] if edge_mask_type else [])
    assert all(bool(torch.isfinite(mask).all()) and mask.min() >= 0 and mask.max() <= 1 for mask in masks)
    if edge_mask_type:
        assert found.edge_mask.shape == (data.edge_index.shape[1],)
    oxygen = int(data.x[:, trained().preparation.node_label_names.index("O")].argmax())
    assert found.node_mask[oxygen] > found.node_mask.median() + 0.1
    removed, kept = metric.fidelity(theirs, found)
    assert (removed, kept) in {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_integrated_gradients_of_captum_add_up_to_what_the_labels_changed() -> None:
    pytest.importorskip("captum", reason="captum is not installed")
    data = alcohol()
    algorithm = pyg.CaptumExplainer("IntegratedGradients", n_steps=200)
    theirs = explainer(algorithm, node_mask_type="attributes", edge_mask_type=None)
    found = theirs(data.x, data.edge_index, batch=data.batch)
    chosen = found.target[0]
    whole, empty = (run(module(), data, x=data.x * share)[0, chosen] for share in (1, 1e-7))
    assert float(found.node_mask.sum()) == pytest.approx(float(whole - empty), rel=0.02)
    assert float(whole - empty) > 0.5


def test_captum_still_finds_edges_after_gnn_explainer_has_left_masks() -> None:
    pytest.importorskip("captum", reason="captum is not installed")
    model, data = as_module(trained()), alcohol()
    captum = explainer(pyg.CaptumExplainer("InputXGradient"), model, node_mask_type=None)
    before = captum(data.x, data.edge_index).edge_mask
    explainer(pyg.GNNExplainer(epochs=2), model)(data.x, data.edge_index)
    assert bool((before != 0).any())
    assert close(captum(data.x, data.edge_index).edge_mask, before)
    both = explainer(pyg.CaptumExplainer("InputXGradient"), model, node_mask_type="attributes")
    data = data.clone()
    data.x.requires_grad_()
    found = both(data.x, data.edge_index)
    assert close(found.edge_mask, before)
    assert found.node_mask.shape == data.x.shape


def test_pg_explainer_learns_from_our_embeddings() -> None:
    torch.manual_seed(0)
    data = module().to_data(unseen_sizes()[:6])
    algorithm = pyg.PGExplainer(epochs=4)
    theirs = explainer(algorithm, explanation_type="phenomenon", node_mask_type=None)
    target = run(module(), data).argmax(1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # its own, about its loss
        for epoch in range(4):
            algorithm.train(epoch, module(), data.x, data.edge_index, target=target, batch=data.batch)
    found = theirs(data.x, data.edge_index, target=target, batch=data.batch)
    assert found.edge_mask.shape == (data.edge_index.shape[1],)
    assert found.edge_mask.std() > 0
    assert bool(torch.isfinite(found.edge_mask).all())


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────


def test_tensors_that_do_not_fit_are_refused_in_one_line() -> None:
    data, model = alcohol(), module()
    two_labels = as_module(random_predictor(random_trees(2, nodes=5, seed=0)))
    n, m = len(data.x), data.edge_index.shape[1]
    for changes, words in (
        ({"x": data.x[:, :2]}, "x must have 3 labels and 0 attributes per node"),
        ({"edge_index": data.edge_index.float()}, "edge_index must be whole numbers"),
        ({"edge_index": data.edge_index + n}, str(n)),
        ({"batch": torch.arange(n).flip(0)}, "in ascending order"),
        ({"batch": data.edge_attr}, f"the graph of each of {n} nodes"),
        ({"node_attr": data.x}, rf"node_attr must have the shape \({n}, 0\)"),
        ({"edge_attr": data.edge_attr[:-1]}, rf"must have the shape \({m}, 1\)"),
    ):
        with pytest.raises(DataError, match=words):
            run(model, data, **changes)
    with pytest.raises(DataError, match=r"knows 2 edge labels; .* got none"):
        two_labels(data.x, data.edge_index)


def test_only_fitted_models_become_modules() -> None:
    assert isinstance(as_module(trained()).network, EgoCNN)
    with pytest.raises(ConfigError, match="a fitted estimator or a predictor is needed, not str"):
        as_module("run")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from egocnn.pyg import explainer, masks

    for made in (explainer.explainer_class, masks._layer_class):
        made.cache_clear()
    for name in ("torch_geometric.explain", "torch_geometric.nn", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (explainer.explainer_class, masks.empty_layer, lambda: module().to_data(unseen_sizes())):
        with pytest.raises(MissingExtraError, match=r"egocnn\[pyg\]"):
            use()


def test_pytorch_geometric_is_imported_when_it_is_needed() -> None:
    script = "import sys, egocnn.pyg; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
