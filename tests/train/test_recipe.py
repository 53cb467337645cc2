from dataclasses import fields, replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError, DataError
from egocnn.model import Model
from egocnn.nn.batch import Batch
from egocnn.train import recipe
from egocnn.train.engines.common import Member
from egocnn.train.engines.recorded.engine import RecordedEngine
from egocnn.train.metrics import loss_of
from egocnn.train.recipe import Replica, calibrate, choose_engine, learn, prepare_replicas
from egocnn.train.validation import check_targets, part_numbers, tell_look_alikes
from tests.support.samples import one_graph, sure
from tests.support.strategies import random_trees
from tests.support.tiny import MODEL, SIZES, TRAIN, alcohols, oxygens, parts, plain_model, plain_train, same, stop_after


def training_parts(graphs: Graphs, config: TrainConfig) -> list[Graphs]:
    return [graphs[numbers] for numbers in part_numbers(graphs.outline, config)]


def trees(n_graphs: int = 20, **columns: Any) -> Graphs:
    return random_trees(n_graphs, nodes=5, seed=0, target=np.arange(n_graphs) % 2, class_names=("no", "yes"), **columns)


def touch() -> None:
    raise AssertionError("this must not be reached")


# ── who learns, who chooses, who is left alone ────────────────────────────────────────────────────


def test_the_datas_own_validation_part_chooses_else_a_share_split_off_by_the_seed_groups_kept_whole() -> None:
    learned, validation = training_parts(alcohols(), TRAIN)
    assert learned.names == alcohols().select("train").names
    assert validation.names == alcohols().select("validation").names
    part = np.array([PARTS.index("train")] * 30 + [PARTS.index("test")] * 10)
    for graphs, n_graphs in ((trees(40, part=part), 30), (trees(40), 40)):
        learned, validation = training_parts(graphs, plain_train(validation=0.2))
        assert len(validation) == n_graphs // 5
        assert sorted((*learned.names, *validation.names), key=int) == list(graphs.names[:n_graphs])
        assert sure(validation.target).mean() == 0.5
        assert training_parts(graphs, plain_train(validation=0.2))[1].names == validation.names
        assert training_parts(graphs, plain_train(validation=0.2, seed=1))[1].names != validation.names
    graphs = trees(40, group=np.arange(40) // 4)
    learned, validation = training_parts(graphs, plain_train(validation=0.3))
    assert not set(sure(learned.group)) & set(sure(validation.group))


def test_the_test_part_is_never_looked_at() -> None:
    """Whatever stands there, other graphs, labels of its own, opposite classes, or nothing: the model is the same."""
    part = np.array([PARTS.index("train")] * 16 + [PARTS.index("validation")] * 4)
    own = trees(20, part=part)
    labels = np.full(6, 3, np.int32)
    strange = Graphs.from_edges(
        node_counts=[2, 2, 2],
        edges=np.array([[0, 1], [2, 3], [4, 5]]),
        node_label=labels,
        node_label_names=(*own.node_label_names, "Xe"),
        edge_label=np.full(3, 2, np.int32),
        edge_label_names=(*own.edge_label_names, "triple"),
        target=np.zeros(3, int),
        class_names=own.class_names,
        part=np.full(3, PARTS.index("test")),
    )
    one, other = (learn(graphs, MODEL, TRAIN)[0] for graphs in (own, Graphs.concat([strange, own])))
    assert same(one.networks[0].state_dict(), other.networks[0].state_dict())
    assert one.encoder.node_label_names == other.encoder.node_label_names == own.node_label_names
    np.testing.assert_array_equal(one.outputs(strange), other.outputs(strange))


def test_labels_and_classes_unseen_in_training_are_accepted_and_such_a_class_is_never_the_likeliest() -> None:
    predictor, _ = learn(alcohols(), MODEL, TRAIN)
    odd = one_graph(3, [(0, 1), (1, 2)], node_label=["C", "Xe", "O"], edge_label=["triple", "single"])
    np.testing.assert_allclose(predictor.probabilities(odd).sum(axis=1), 1)
    graphs = alcohols().replace(class_names=(*alcohols().class_names, "never"))
    predictor, _ = learn(graphs, MODEL, plain_train(epochs=20, patience=20, learning_rate=2e-2))
    probability = predictor.probabilities(graphs)
    assert probability.shape == (len(graphs), 3)
    assert set(probability.argmax(axis=1)) <= {0, 1}


# ── what cannot be learned ────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_learned_is_one_clear_error() -> None:
    graphs = trees()
    cases = {
        "training needs at least 2 graphs, got 1": graphs[:1],
        "no target to learn; name its column with --target": graphs.replace(target=None, class_names=()),
        "1 graphs have no target, '3' the first; training needs all": graphs.replace(
            target=np.where(np.arange(20) == 3, -1, sure(graphs.target))
        ),
        "every graph has the same target, yes; there is nothing to tell apart": graphs[1::2],
        "every graph has the same target, 2.5;": graphs.replace(target=np.full(20, 2.5), class_names=()),
        "every graph has the same target, 1000000.0 but for rounding;": graphs.replace(
            target=1e6 + 1e-7 * np.arange(20), class_names=()
        ),
        "2 graphs have no target, '0' the first": graphs.replace(
            target=np.where(np.arange(20) < 2, np.nan, 1.5 * np.arange(20)), class_names=()
        ),
    }
    for message, unfit in cases.items():
        with pytest.raises(DataError, match=message.replace("(", r"\(")):
            check_targets(unfit)
        with pytest.raises(DataError):
            learn(unfit, MODEL, TRAIN)
    check_targets(graphs)


def test_a_split_of_the_data_that_leaves_nothing_to_learn_from_is_refused() -> None:
    only_test = trees(part=np.full(20, PARTS.index("test")))
    with pytest.raises(DataError, match="no graph is marked 'train' in the data's own split"):
        learn(only_test, MODEL, TRAIN)
    part = np.where(np.arange(20) % 2, PARTS.index("train"), PARTS.index("test"))
    with pytest.raises(DataError, match="every graph has the same target, yes"):
        learn(trees(part=part), MODEL, TRAIN)


def test_settings_that_the_graphs_cannot_serve_are_refused_before_anything_is_touched() -> None:
    with pytest.raises(ConfigError, match="needs graphs whose nodes have attributes"):
        learn(trees(), replace(MODEL, embedding="attributes"), TRAIN, ready=touch)
    with_attributes = trees().replace(node_attr=np.ones((trees().n_nodes, 1), np.float32))
    with pytest.raises(ConfigError, match="tied layers read and return the same width"):
        learn(with_attributes, replace(MODEL, embedding="attributes", tie=True), TRAIN, ready=touch)
    with pytest.raises(DataError, match="no target"):
        learn(trees().replace(target=None, class_names=()), MODEL, TRAIN, ready=touch)


def test_ctrl_c_before_the_first_epoch_has_ended_leaves_no_model_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RecordedEngine, "train_epoch", stop)
    for how in ({"ready": stop}, {"stack": True}):
        with pytest.raises(KeyboardInterrupt):
            learn(trees(), MODEL, TRAIN, **how)

    class Interrupting(torch.nn.Module):
        def forward(self, _: object) -> torch.Tensor:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(trees(), MODEL, TRAIN, embed=Interrupting(), embed_width=4)


@pytest.mark.parametrize("stack", [False, True])
def test_ctrl_c_later_gives_a_model_that_is_calibrated_and_predicts(stack: bool) -> None:
    predictor, history = learn(trees(), MODEL, TRAIN, stack=stack, report=stop_after(2))
    assert history.interrupted
    assert predictor.probabilities(trees()).shape == (20, 2)


# ── as a stack of one ─────────────────────────────────────────────────────────────────────────────


def test_only_networks_with_an_embedding_of_our_own_that_fit_on_a_gpu_are_recorded_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = Member(*parts(alcohols()), 0)
    given = Model.build(MODEL, Encoder.fit(alcohols(), MODEL), embed=Constant(), embed_width=4).networks[0]
    found = []
    for free, network in ((1e3, ours.network), (None, ours.network), (1e-3, ours.network), (1e3, given)):
        monkeypatch.setattr(recipe, "free_megabytes", lambda _, free=free: free)
        found.append(choose_engine([ours, replace(ours, network=network)], TRAIN, stack=None))
    assert found == ["recorded", "plain", "plain", "plain"]


class Constant(torch.nn.Module):
    def forward(self, batch: Batch) -> torch.Tensor:
        return torch.ones(len(batch.place), 4, device=batch.place.device)


def test_an_embedding_of_the_users_own_is_trained_by_the_ordinary_loop_and_never_stacked() -> None:
    _, history = learn(trees(), MODEL, TRAIN, embed=Constant(), embed_width=4)
    assert len(history.epochs) == TRAIN.epochs
    with pytest.raises(ConfigError, match="an embedding module of its own cannot be trained stacked"):
        learn(trees(), MODEL, TRAIN, embed=Constant(), embed_width=4, stack=True, ready=touch)


# ── calibration ───────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 1000), st.floats(0.1, 20))
def test_the_temperature_makes_the_truth_likelier_and_never_sharpens(seed: int, certainty: float) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = certainty * torch.randn(40, 3, generator=random)
    target = torch.randint(3, (40,), generator=random)
    temperature = calibrate(logits, target)
    assert 1 <= temperature <= 10 + 1e-5
    assert float(loss_of(logits / temperature, target)) <= float(loss_of(logits, target))


def test_a_model_that_is_too_certain_is_cooled_one_that_is_right_or_a_regressor_is_left_alone() -> None:
    target = torch.tensor([0] * 7 + [1] * 3)
    logits = torch.tensor([[8.0, 0.0]]).repeat(10, 1)  # 70 % right, almost certain
    share = torch.softmax(logits[0] / calibrate(logits, target), 0)[0]
    assert float(share) == pytest.approx(0.7, abs=0.05)
    right = torch.tensor([[5.0, -5.0]] * 7 + [[-5.0, 5.0]] * 3)
    assert calibrate(right, target) == 1
    assert learn(oxygens(), plain_model(**SIZES), replace(TRAIN, epochs=1))[0].temperature == 1


@pytest.mark.parametrize(("classes", "told"), [((0, 0), 0), ((0, 1), 1)])
def test_graphs_that_look_like_one_of_another_class_are_counted_and_two_are_named(
    classes: tuple[int, int], told: int, caplog: pytest.LogCaptureFixture
) -> None:
    alike = Graphs.concat([one_graph(3, [(0, 1), (1, 2)]), one_graph(3, [(0, 2), (2, 1)]), one_graph(3, [(0, 1)])])
    graphs = alike.replace(target=np.array([*classes, 1]), class_names=("no", "yes"), names=("a", "b", "c"))
    caplog.set_level("WARNING", logger="egocnn")
    tell_look_alikes(graphs)
    line = "2 of 3 graphs look to the network like one of another class: 'a' (no) and 'b' (yes)"
    assert caplog.messages == [line] * told
    tell_look_alikes(graphs.replace(target=np.array([0.5, 1.5, 2]), class_names=()))
    assert len(caplog.messages) == told
    target = np.array([[*classes, 1], [0, np.nan, 1], [0.5, 1.5, 2]]).T
    kinds = (("toxic", ("no", "yes")), ("polar", ("no", "yes")), ("size", ()))
    tell_look_alikes(graphs.replace(target=target, class_names=(), targets=kinds))
    assert caplog.messages[told:] == [f"toxic: {line}"] * told


def test_of_a_huge_graph_a_connected_part_is_learned_from_and_the_whole_is_tested(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = one_graph(60, [(n, n + 1) for n in range(59)])
    small = [one_graph(5 + n, [(m, m + 1) for m in range(4 + n)]) for n in range(6)]
    graphs = Graphs.concat([path, *small]).replace(target=np.array([0, 1, 0, 1, 0, 1, 0]), class_names=("a", "b"))
    monkeypatch.setattr(recipe, "HUGE", 50)
    monkeypatch.setattr(recipe, "TRAINED", 20)
    part = recipe.bounded(graphs, seed=0).whole()
    assert part.node_counts.tolist() == [20, 5, 6, 7, 8, 9, 10]
    assert part[0].edges.tolist() == [[n, n + 1] for n in range(19)]
    assert "a connected part of each, 20 nodes" in caplog.text
    assert recipe.bounded(graphs[1:], seed=0) is not None
    tested: list[Any] = []
    config = replace(plain_train(), epochs=1, networks=1)
    marked = graphs.with_parts(np.array([2, 0, 0, 0, 0, 1, 1]))
    model, _ = learn(marked, plain_model(), config, trained=lambda *found: tested.append(found[2]()))
    assert np.allclose(tested[0][0], model.outputs(graphs[:1], device="cpu"), atol=1e-5)


# ── many trainings ────────────────────────────────────────────────────────────────────────────────


def prepared() -> list[list[Replica]]:
    model = plain_model(**SIZES, degrees=True, jump=True)
    return prepare_replicas([alcohols()[n:] for n in range(3)], model, TRAIN, [[1, 2], [3, 4], [5, 6]])


def tensors(replica: Replica) -> dict[str, torch.Tensor]:
    """First weights and encoded graphs."""
    found = dict(replica.predictor.networks[0].state_dict())
    for part, data in zip(("train", "validation"), replica.parts, strict=True):
        columns = ((field.name, getattr(data.in_memory(), field.name)) for field in fields(data.in_memory()))
        found |= {f"{part} {name}": value for name, value in columns if value is not None}
    return found


def test_large_collections_are_prepared_in_other_processes_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def spy(**settings: Any) -> Any:
        asked.append(settings["n_jobs"])
        return Parallel(**settings)

    monkeypatch.setattr(recipe, "Parallel", spy)
    monkeypatch.setattr(recipe, "cpu_count", lambda: 2)
    here = prepared()
    monkeypatch.setattr(recipe, "WORTH_WORKERS", 0)
    there = prepared()
    assert asked == [1, 2]
    assert [len(own) for own in here] == [2, 2, 2]
    for one, other in zip(chain(*here), chain(*there), strict=True):
        assert (one.seeds, one.predictor.config) == (other.seeds, other.predictor.config)
        assert one.predictor.encoder.texts() == other.predictor.encoder.texts()
        assert same(tensors(one), tensors(other))


def test_restarts_share_what_was_prepared_and_have_weights_of_their_own() -> None:
    for first, second in prepared():
        assert first.parts[0] is second.parts[0]
        assert first.predictor.encoder is second.predictor.encoder
        assert not same(*(each.predictor.networks[0].state_dict() for each in (first, second)))
