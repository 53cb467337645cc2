from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from egocnn.data.collection import keep_nodes
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError, RunError
from egocnn.explain.techniques.attention import FILE, AttentionHead, fit_attention, load_attention, save_attention
from egocnn.model import Model
from egocnn.train.checkpoint import sealed
from egocnn.train.metrics import loss_of
from egocnn.train.recipe import learn
from tests.explain.random_models import assert_close, forward_pass, head_for, predictor_for
from tests.support.networks import array
from tests.support.samples import one_graph, sure
from tests.support.strategies import random_graphs
from tests.support.tiny import MODEL, TRAIN, alcohols, names_in, oxygens, same, state


@pytest.fixture(scope="module")
def trained() -> Model:
    return learn(alcohols(), MODEL, replace(TRAIN, epochs=15))[0]


@pytest.fixture
def folder(trained: Model, tmp_path: Path) -> Path:
    trained.save(tmp_path / "run")
    save_attention(fit_attention(trained, alcohols(), epochs=2), tmp_path / "run")
    return tmp_path / "run"


def weights(heads: Sequence[AttentionHead]) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in torch.nn.ModuleList(heads).state_dict().items()}


def loss(predictor: Model, head: AttentionHead, graphs: Graphs) -> float:
    batch = predictor.encode(graphs).batch(torch.arange(len(graphs)))
    h = predictor.networks[0].eval()(batch).layers[-1].detach()
    return float(loss_of(head(h, batch), sure(batch.target)).detach())


# ── the formula ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(graphs=random_graphs(max_graphs=3, max_nodes=6), seed=st.integers(0, 99))
def test_attention_is_the_softmax_over_the_nodes_of_a_graph_and_the_head_is_linear(graphs: Graphs, seed: int) -> None:
    explained = forward_pass(predictor_for(graphs, outputs=3, seed=seed), graphs)
    h, head = explained.h[-1], head_for(8, 3, seed=seed)
    scores, logits = head.scores(h, explained.batch), head(h, explained.batch)
    for g, (first, last) in enumerate(zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True)):
        rows = array(h)[first:last]
        weight = np.exp(rows @ array(head.attend))
        assert_close(scores[first:last], weight / weight.sum(), tolerance=1e-12)
        pooled = sum(a * row for a, row in zip(weight / weight.sum(), rows, strict=True))
        assert_close(logits[g], array(head.out.weight) @ pooled + array(head.out.bias), tolerance=1e-12)


def test_large_scores_do_not_overflow() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2)], node_label=[*"CNO"])
    explained = forward_pass(predictor_for(graphs, outputs=2, width=10), graphs)
    head = head_for(10)
    head.attend.mul_(1e5)
    scores = head.scores(explained.h[-1], explained.batch)
    assert bool(torch.isfinite(scores).all())
    assert float(scores.sum()) == pytest.approx(1)


# ── training ──────────────────────────────────────────────────────────────────────────────────────


def test_training_the_attention_learns_and_leaves_the_model_as_it_was(trained: Model) -> None:
    before = state(trained.networks[0])
    (head,) = fit_attention(trained, alcohols())
    assert same(state(trained.networks[0]), before)
    assert loss(trained, head, alcohols()) < 0.7 * loss(trained, AttentionHead(8, 2), alcohols())
    assert float(head.attend.abs().max()) > 0


def test_the_same_seed_trains_the_same_attention_and_random_numbers_elsewhere_are_left_alone(
    trained: Model,
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = fit_attention(trained, alcohols(), epochs=2, seed=1)
    assert torch.equal(torch.rand(3), expected)
    again, other = (fit_attention(trained, alcohols(), epochs=2, seed=seed) for seed in (1, 2))
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(one).items())
    assert not torch.equal(one[0].out.weight, other[0].out.weight)


def test_graphs_of_unknown_class_are_learned_as_the_model_sees_them(trained: Model) -> None:
    graphs = alcohols()
    predicted = trained.probabilities(graphs).argmax(axis=1)
    labelled = graphs.replace(target=np.array([graphs.class_names.index(trained.class_names[c]) for c in predicted]))
    wanted = weights(fit_attention(trained, labelled, epochs=2))
    unknown = graphs.replace(target=np.full(len(graphs), -1))
    for unlabelled in (unknown, graphs.replace(target=None, class_names=())):
        found = weights(fit_attention(trained, unlabelled, epochs=2))
        assert all(torch.equal(value, wanted[name]) for name, value in found.items())
    opposite = weights(fit_attention(trained, labelled.replace(target=1 - np.asarray(labelled.target)), epochs=2))
    assert not torch.equal(opposite["0.out.weight"], wanted["0.out.weight"])


def test_a_regressors_attention_learns_its_values() -> None:
    predictor = learn(oxygens(), MODEL, replace(TRAIN, epochs=10))[0]
    (head,) = fit_attention(predictor, oxygens())
    assert head.out.out_features == 1
    assert loss(predictor, head, oxygens()) < 0.7 * loss(predictor, AttentionHead(8, 1), oxygens())


def test_graphs_without_nodes_among_others_do_no_harm(trained: Model) -> None:
    graphs = alcohols()[:3]
    nodes = np.ones(graphs.n_nodes, bool)
    nodes[: graphs.node_counts[0]] = False
    heads = fit_attention(trained, keep_nodes(graphs, nodes), epochs=2)
    assert all(bool(torch.isfinite(value).all()) for value in weights(heads).values())


def test_what_cannot_be_trained_is_refused(trained: Model) -> None:
    with pytest.raises(DataError, match="have no nodes"):
        fit_attention(trained, alcohols()[:0])
    wrong: dict[str, Any]
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"learning_rate": float("nan")}):
        with pytest.raises(ConfigError, match="must be above 0"):
            fit_attention(trained, alcohols(), **wrong)


# ── beside the model ──────────────────────────────────────────────────────────────────────────────


def test_the_attention_is_saved_beside_the_model_and_loaded_back(trained: Model, tmp_path: Path) -> None:
    trained.save(tmp_path)
    assert load_attention(tmp_path, trained) is None
    heads = fit_attention(trained, alcohols(), epochs=3)
    save_attention(heads, tmp_path)
    assert names_in(tmp_path) == sorted([FILE, "config.json", "model.safetensors"])
    loaded = sure(load_attention(tmp_path, Model.load(tmp_path)))
    assert all(torch.equal(value, weights(heads)[name]) for name, value in weights(loaded).items())
    assert not any(parameter.requires_grad for head in loaded for parameter in head.parameters())


def test_every_network_has_an_attention_of_its_own_and_they_are_saved_together(tmp_path: Path) -> None:
    several, _ = learn(alcohols(), MODEL, replace(TRAIN, epochs=2, networks=2))
    heads = fit_attention(several, alcohols(), epochs=2)
    for network, head in zip(several.networks, heads, strict=True):
        (alone,) = fit_attention(replace(several, networks=(network,)), alcohols(), epochs=2)
        assert same(dict(head.state_dict()), dict(alone.state_dict()))
    several.save(tmp_path)
    save_attention(heads, tmp_path)
    loaded = sure(load_attention(tmp_path, Model.load(tmp_path)))
    assert same(weights(loaded), weights(heads))
    with pytest.raises(RunError, match="does not fit"):
        load_attention(tmp_path, replace(several, networks=several.networks[:1]))


@pytest.mark.parametrize(
    "changes",
    [
        {"0.attend": None},
        {"0.attend": torch.zeros(9)},
        {"0.out.bias": torch.full((2,), torch.nan)},
        {"more": torch.zeros(1)},
    ],
    ids=["missing", "too wide", "not finite", "unknown"],
)
def test_an_attention_that_does_not_fit_is_refused_in_one_line(
    changes: dict[str, Any], folder: Path, trained: Model
) -> None:
    arrays = {name: value for name, value in (load_file(folder / FILE) | changes).items() if value is not None}
    del arrays["digest"]
    save_file(sealed(arrays), folder / FILE)
    with pytest.raises(RunError) as refusal:
        load_attention(folder, trained)
    assert str(folder / FILE) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_folder_in_place_of_the_weights_is_refused(folder: Path, trained: Model) -> None:
    (folder / FILE).unlink()
    (folder / FILE).mkdir()
    with pytest.raises(RunError):
        load_attention(folder, trained)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), insert=st.binary(max_size=4), remove=st.integers(0, 4))
def test_any_bytes_anywhere_in_the_file_are_read_or_refused(
    place: float, insert: bytes, remove: int, folder: Path, trained: Model
) -> None:
    content = (folder / FILE).read_bytes()
    at = int(place * len(content))
    refusal = ""
    try:
        (folder / FILE).write_bytes(content[:at] + insert + content[at + remove :])
        heads = sure(load_attention(folder, trained))
        assert all(bool(torch.isfinite(value).all()) for value in weights(heads).values())
    except RunError as error:
        refusal = str(error)
    finally:
        (folder / FILE).write_bytes(content)
    assert "\n" not in refusal
