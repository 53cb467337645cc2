from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError, RunError
from egocnn.model import Model
from egocnn.nn.batch import Batch
from egocnn.train.recipe import learn
from tests.support.strategies import random_trees
from tests.support.tiny import MODEL, SIZES, TRAIN, alcohols, names_in, oxygens, plain_model


class OwnLabels(nn.Module):
    """A user's own embedding: one vector per node label, the first for labels never seen."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.vectors = nn.Embedding(5, width)

    def forward(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.vectors(batch.node_label.long() + 1)
        return vectors


@pytest.fixture(scope="module")
def trained() -> Model:
    return learn(alcohols(), MODEL, TRAIN)[0]


@pytest.fixture
def folder(trained: Model, tmp_path: Path) -> Path:
    trained.save(tmp_path / "run")
    return tmp_path / "run"


# ── predicting ────────────────────────────────────────────────────────────────────────────────────


def test_probabilities_are_the_softmax_of_the_logits_over_the_temperature(trained: Model) -> None:
    warm = replace(trained, temperature=2.0)
    logits = warm.outputs(alcohols())
    assert logits.shape == (len(alcohols()), 2)
    odds = np.exp(logits.astype(np.float64) / 2)
    np.testing.assert_allclose(warm.probabilities(alcohols()), odds / odds.sum(axis=1, keepdims=True), rtol=1e-6)


def test_no_graphs_give_no_rows(trained: Model) -> None:
    assert trained.probabilities(alcohols()[:0]).shape == (0, 2)


def test_a_graph_without_nodes_gets_a_prediction_too(trained: Model) -> None:
    empty = alcohols()[:3]
    nothing = Graphs.from_edges(
        node_counts=[0, 3, 0],
        edges=np.array([[0, 1]]),
        node_label=np.zeros(3, np.int32),
        node_label_names=empty.node_label_names,
        edge_label=np.zeros(1, np.int32),
        edge_label_names=empty.edge_label_names,
    )
    probability = trained.probabilities(nothing)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_allclose(probability[0], probability[2], rtol=1e-6)


def test_classes_are_not_values_nor_values_classes(trained: Model) -> None:
    with pytest.raises(DataError, match="predicts a class, not a value"):
        trained.values(alcohols())
    regressor = learn(oxygens(), MODEL, replace(TRAIN, epochs=1))[0]
    with pytest.raises(DataError, match="predicts a value, not a class; it has no probabilities"):
        regressor.probabilities(oxygens())


# ── saving and loading ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("changes", [{}, {"tie": True}, {"readout": "sort"}, {"k": 4, "width": 8}])
def test_a_loaded_model_says_the_same_to_the_last_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    predictor, _ = learn(alcohols(), plain_model(**(SIZES | changes)), replace(TRAIN, epochs=2))
    predictor = replace(predictor, temperature=1.5)
    predictor.save(tmp_path / "run")
    assert names_in(tmp_path / "run") == ["config.json", "model.safetensors"]
    loaded = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.probabilities(alcohols()), predictor.probabilities(alcohols()))
    assert loaded.config == predictor.config
    assert loaded.n_parameters == predictor.n_parameters
    assert not loaded.networks[0].training


def test_a_loaded_regressor_answers_in_the_same_unit(tmp_path: Path) -> None:
    predictor, _ = learn(oxygens(), MODEL, replace(TRAIN, epochs=2))
    predictor.save(tmp_path)
    np.testing.assert_array_equal(Model.load(tmp_path).values(oxygens()), predictor.values(oxygens()))


def test_a_model_with_attributes_and_weights_loads_with_its_scales(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    trees = random_trees(20, nodes=6, seed=1, target=np.arange(20) % 2, class_names=("no", "yes"))
    value = random.uniform(1, 2, trees.n_nodes).astype(np.float32)
    trees = trees.replace(
        node_attr=random.normal(50, 9, (trees.n_nodes, 2)).astype(np.float32),
        edge_weight=value[trees.entry_node] * value[trees.indices],
    )
    predictor, _ = learn(trees, MODEL, replace(TRAIN, epochs=1))
    predictor.save(tmp_path)
    np.testing.assert_array_equal(Model.load(tmp_path).outputs(trees), predictor.outputs(trees))


def test_a_moved_folder_predicts_the_same(trained: Model, folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "model of mine"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    np.testing.assert_array_equal(Model.load(moved).probabilities(alcohols()), trained.probabilities(alcohols()))


def test_saving_the_loaded_model_again_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    Model.load(folder).save(tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_what_is_said_about_a_model_is_saved_with_it(trained: Model, tmp_path: Path) -> None:
    replace(trained, about={"data": "some alcohols", "read": {"smiles": "mol"}}).save(tmp_path)
    assert Model.load(tmp_path).about == {"data": "some alcohols", "read": {"smiles": "mol"}}


def test_names_in_any_script_survive(tmp_path: Path) -> None:
    graphs = alcohols().with_names(classes=alcohols().class_names)
    graphs = graphs.replace(class_names=('"giftig", ja', "ungiftig\n☠"))
    learn(graphs, MODEL, replace(TRAIN, epochs=1))[0].save(tmp_path)
    assert Model.load(tmp_path).class_names == ('"giftig", ja', "ungiftig\n☠")


# ── a module of the user's own ────────────────────────────────────────────────────────────────────


def test_a_module_of_ones_own_is_trained_but_left_as_it_was(tmp_path: Path) -> None:
    own = OwnLabels()
    before = copy.deepcopy(own.state_dict())
    predictor, _ = learn(alcohols(), MODEL, TRAIN, embed=own, embed_width=6)
    after = predictor.networks[0].embed.state_dict()
    assert not torch.equal(before["vectors.weight"], after["vectors.weight"])
    assert torch.equal(before["vectors.weight"], own.state_dict()["vectors.weight"])

    predictor.save(tmp_path)
    loaded = Model.load(tmp_path, embed=own, embed_width=6)
    np.testing.assert_array_equal(loaded.outputs(alcohols()), predictor.outputs(alcohols()))
    assert torch.equal(before["vectors.weight"], own.state_dict()["vectors.weight"])


def test_a_model_with_a_module_of_ones_own_loads_only_with_that_module(folder: Path, tmp_path: Path) -> None:
    learn(alcohols(), MODEL, replace(TRAIN, epochs=1), embed=OwnLabels(), embed_width=6)[0].save(tmp_path / "own")
    with pytest.raises(RunError, match="reads nodes through a module of its author; pass it as embed="):
        Model.load(tmp_path / "own")
    with pytest.raises(RunError, match="needs embed_width"):
        Model.load(tmp_path / "own", embed=OwnLabels())
    for wrong in (OwnLabels(7), nn.Identity()):
        with pytest.raises(RunError):
            Model.load(tmp_path / "own", embed=wrong, embed_width=6)
    with pytest.raises(RunError, match="has a node embedding of its own"):
        Model.load(folder, embed=OwnLabels(), embed_width=6)
