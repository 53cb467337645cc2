"""Several targets in one model: a head for each, and values that are not known teach nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.config import ExplainConfig, ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError
from egocnn.explain import explain
from egocnn.model import Model
from egocnn.train.metrics import SeveralTargets, loss_of, scores_by_target
from egocnn.train.recipe import learn
from egocnn.train.run import train_run
from tests.support.samples import sure
from tests.support.tiny import both_targets

SMALL = ModelConfig(width=8, depth=1, hidden=8)
QUICK = TrainConfig(epochs=2, networks=2, device="cpu")


@pytest.fixture(scope="module")
def trained() -> Model:
    return learn(both_targets(), SMALL, QUICK)[0]


def test_the_loss_is_the_mean_over_targets_of_the_mean_where_each_is_known_classes_weighed_and_in_parts() -> None:
    outputs, nan = torch.randn(5, 3, dtype=torch.float64), torch.nan
    target = torch.tensor([[0, nan], [1, 2.0], [nan, 1.0], [1, nan], [nan, nan]], dtype=torch.float64)
    classes = loss_of(outputs[[0, 1, 3], :2], torch.tensor([0, 1, 1]))
    values = loss_of(outputs[[1, 2], 2:], target[[1, 2], 1])
    found = loss_of(outputs, target, SeveralTargets.of((2, 1), target, balanced=False))
    assert torch.isclose(found, (classes + values) / 2)
    outputs, target = torch.randn(4, 3), torch.tensor([[0, 0.5], [0, 1.0], [0, 2.0], [1, torch.nan]])
    weights = torch.tensor([1 / 3, 1.0])
    classes = loss_of(outputs[:, :2], target[:, 0].long(), weights)
    values = loss_of(outputs[:3, 2:], target[:3, 1])
    found = loss_of(outputs, target, SeveralTargets.of((2, 1), target, balanced=True))
    assert torch.isclose(found, (classes + values) / 2)
    outputs, target = torch.randn(6, 3), torch.tensor([[0, torch.nan]] * 2 + [[1, 1.0]] * 3 + [[torch.nan, 2.0]])
    several = SeveralTargets.of((2, 1), target, balanced=False)
    parts = sum(several.loss(outputs[some], target[some]) * len(outputs[some]) for some in (slice(0, 2), slice(2, 6)))
    assert torch.isclose(several.loss(outputs, target), torch.as_tensor(parts) / 6)


def test_a_value_that_is_not_known_has_no_gradient_and_leaves_the_loss_to_the_others() -> None:
    outputs = torch.randn(3, 3, requires_grad=True)
    target = torch.tensor([[1, torch.nan], [torch.nan, 2.0], [torch.nan, torch.nan]])
    several = SeveralTargets.of((2, 1), target, balanced=False)
    (slope,) = torch.autograd.grad(several.loss(outputs, target), outputs)
    expected = torch.tensor([[True, True, False], [False, False, True], [False, False, False]])
    assert torch.equal(slope != 0, expected)
    outputs, target = torch.randn(2, 3), torch.tensor([[1, torch.nan], [0, torch.nan]])
    several = SeveralTargets.of((2, 1), torch.tensor([[1, 1.0], [0, 2.0]]), balanced=False).on(target)
    assert torch.isclose(several.loss(outputs, target), loss_of(outputs[:, :2], target[:, 0].long()) / 2)


def test_the_model_of_one_target_gives_the_columns_of_all_also_once_it_was_saved(
    trained: Model, tmp_path: Path
) -> None:
    graphs = both_targets()
    outputs = trained.outputs_of_each(graphs, device="cpu")
    assert outputs.shape == (2, len(graphs), 3)
    for name, columns in (("kind", slice(0, 2)), ("atoms", slice(2, 3))):
        alone = trained.of_target(name).outputs_of_each(graphs, device="cpu")
        np.testing.assert_allclose(alone, outputs[:, :, columns], rtol=1e-5, atol=1e-6)
    assert trained.of_target("kind").class_names == ("alkane", "alcohol")
    trained.save(tmp_path)
    loaded, graphs = Model.load(tmp_path), both_targets()
    assert loaded.encoder.targets_of == trained.encoder.targets_of
    for one, other in zip(trained.by_target(graphs), loaded.by_target(graphs), strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[2], other[2])
        np.testing.assert_array_equal(np.asarray(one[3]), np.asarray(other[3]))


@pytest.mark.parametrize("target", ["kind", "atoms"])
def test_the_explanation_of_a_target_adds_up_to_its_output(trained: Model, target: str) -> None:
    graphs = both_targets()[:3]
    alone = explain(trained.of_target(target), graphs.of_target(target), device="cpu")
    for one, other in zip(explain(trained, graphs, target=target, device="cpu"), alone, strict=True):
        assert one.base + one.node_importance.sum() == pytest.approx(one.output)
        assert (one.output, one.graph.target) == (other.output, other.graph.target)
        np.testing.assert_array_equal(one.node_importance, other.node_importance)


def test_the_first_target_is_explained_unless_another_is_named_and_what_takes_one_is_refused(trained: Model) -> None:
    assert explain(trained, both_targets()[:1], fidelity=False)[0].explained in ("alkane", "alcohol")
    graphs = both_targets()
    with pytest.raises(ConfigError, match=r"several targets \(kind, atoms\)"):
        trained.predictions(graphs)
    with pytest.raises(ConfigError, match="knows no target 'size'; it knows kind, atoms"):
        explain(trained, graphs, ExplainConfig(), target="size")
    with pytest.raises(DataError, match=r"several targets \(kind, atoms\), and here one is needed"):
        _ = graphs.is_classification


def test_a_graph_of_which_nothing_is_known_is_left_out_and_changes_nothing(tmp_path: Path) -> None:
    graphs = both_targets()
    target = sure(graphs.target).copy()
    target[3] = np.nan
    graphs, runs = graphs.replace(target=target), dict[str, dict[str, Any]]()
    for name, some in (("with", graphs), ("without", graphs[np.arange(len(graphs)) != 3])):
        runs[name] = train_run(some, tmp_path / name, SMALL, QUICK) | {"seconds": 0}
    assert runs["with"] == runs["without"]
    assert {"kind.test_accuracy", "test_accuracy", "targets"} <= runs["with"].keys()
    assert any(name.startswith("atoms.test_") for name in runs["with"])


def test_a_target_that_never_varies_is_refused_by_its_name() -> None:
    graphs = both_targets()
    target = sure(graphs.target).copy()
    target[:, 1] = 7
    with pytest.raises(DataError, match="target atoms: every graph has the same target"):
        learn(graphs.replace(target=target), SMALL, QUICK)


def test_scores_are_those_of_each_target_and_their_means(trained: Model) -> None:
    graphs = both_targets()
    outputs = trained.outputs_of_each(graphs, device="cpu")
    scores = scores_by_target(trained, graphs, outputs)
    kind, known = graphs.of_target("kind"), ~np.isnan(np.asarray(graphs.target)[:, 0])
    predicted = outputs[:, :, :2].mean(axis=0).argmax(axis=1)
    assert scores["kind.accuracy"] == pytest.approx((predicted == kind.target)[known].mean())
    assert scores["accuracy"] == scores["kind.accuracy"]


def test_graphs_with_several_targets_are_saved_cut_and_joined(tmp_path: Path) -> None:
    graphs = both_targets()
    graphs.save(tmp_path / "graphs.safetensors")
    loaded = Graphs.load(tmp_path / "graphs.safetensors")
    assert loaded.digest == graphs.digest
    assert loaded.targets == graphs.targets
    joined = Graphs.concat([loaded[:5], loaded[5:]])
    np.testing.assert_array_equal(joined.target, graphs.target)
    assert repr(joined[:2]).endswith("targets kind, atoms)")
