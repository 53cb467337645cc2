"""Our explanations as one of PyTorch Geometric's own, and its metrics and algorithms on our models."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.explain import metric

from egocnn.config import ExplainConfig
from egocnn.errors import ConfigError
from egocnn.explain import explain
from egocnn.interop.pyg import EgoExplainer, as_module
from tests.interop.pyg.adapters import (
    CLASSES,
    VALUES,
    alcohol,
    close,
    explainer,
    inputs,
    module,
    run,
    trained,
    unseen_sizes,
)
from tests.support import tiny
from tests.support.networks import untrained

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


def test_masks_lie_between_0_and_1_for_the_graphs_and_kinds_that_were_asked_for() -> None:
    data = module().to_data(unseen_sizes())
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    for mask, graph_of in ((found.node_mask[:, 0], data.batch), (found.edge_mask, data.batch[data.edge_index[0]])):
        assert mask.min() == 0
        largest = torch.zeros(len(unseen_sizes())).scatter_reduce(0, graph_of, mask, "amax")
        assert (largest == 1).all()
    assert ((found.node_mask[:, 0] > 0) == (found.node_importance > 0)).all()
    data = module().to_data(unseen_sizes()[:3])
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch, index=1)
    whole = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    assert close(found.node_mask[data.batch == 1], whole.node_mask[data.batch == 1])
    assert (found.node_mask[data.batch != 1] == 0).all()
    assert (found.edge_mask[data.batch[data.edge_index[0]] != 1] == 0).all()
    nodes = explainer(EgoExplainer(), edge_mask_type=None)(alcohol().x, alcohol().edge_index)
    edges = explainer(EgoExplainer(), node_mask_type=None)(alcohol().x, alcohol().edge_index)
    assert nodes.available_explanations == ["node_mask"]
    assert edges.available_explanations == ["edge_mask"]


def test_the_oxygen_of_every_alcohol_is_found() -> None:
    data = module().to_data(unseen_sizes())
    found = explainer(EgoExplainer())(data.x, data.edge_index, batch=data.batch)
    oxygen = trained().encoder.node_label_names.index("O")
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


def test_a_value_is_explained_by_the_size_of_what_raised_or_lowered_it() -> None:
    graphs = tiny.oxygens()[:5]
    model = as_module(untrained(graphs, tiny.MODEL))
    data = model.to_data(graphs)
    found = explainer(EgoExplainer("gradient"), model, model_config=VALUES)(**inputs(data))
    assert bool((found.node_importance < 0).any())
    assert ((found.node_mask[:, 0] > 0) == (found.node_importance != 0)).all()
    with pytest.raises(ConfigError, match="but the model predicts a value"):
        explainer(EgoExplainer(), model)(**inputs(data))
    with pytest.raises(ConfigError, match="but the model predicts one of 2 classes"):
        explainer(EgoExplainer(), model_config=VALUES)(alcohol().x, alcohol().edge_index)


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
    ours = explainer(EgoExplainer("relevance", gamma=0.25))  # what it favours less it finds in fewer nodes
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
    oxygen = int(data.x[:, trained().encoder.node_label_names.index("O")].argmax())
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
