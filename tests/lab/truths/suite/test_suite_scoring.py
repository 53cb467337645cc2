"""The suite from end to end: files that are read back as they were, and a record of small networks on small tasks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.config import ExplainConfig, Preset
from egocnn.errors import ConfigError, DataError
from egocnn.explain import additive, explain
from lab.truths import ours
from lab.truths.suite import load, read_index, task_names
from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.make import make_tasks
from lab.truths.suite.scoring import choices, peer, rules, run
from lab.truths.suite.scoring.run import ScoreOptions, score
from lab.truths.suite.task import Sizes
from tests.support.tiny import SIZES, plain_model, plain_train

TASKS = ("triangle-on-grid", "bond-values")
SMALL = Sizes(train=24, validation=8, test=8, larger=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("truths")
    make_tasks(place, SMALL, Path("no data needed"), names=TASKS, command="made", say=lambda _: None)
    return place


@pytest.mark.parametrize("name", TASKS)
def test_what_is_written_is_what_is_read_back(folder: Path, name: str) -> None:
    examples = CATALOGUE[name].examples(SMALL, Path("no data needed"))
    graphs, truths = load(folder, name)
    assert len(graphs) == len(truths) == len(examples)
    for example, graph, truth in zip(examples, graphs, truths, strict=True):
        assert graph.n_nodes == example.n_nodes
        assert list(map(tuple, graph.edges.tolist())) == list(example.edges)
        assert graph.node_label == example.node_label
        assert graph.target == pytest.approx(example.target) if example.values else graph.target == example.target
        assert tuple(tuple(nodes.tolist()) for nodes in truth.alternatives) == example.alternatives
        assert (truth.values is None) == (example.values is None)
        assert (truth.nothing, truth.larger) == (example.nothing, example.larger)
        if truth.edges is not None and example.critical_edges is not None:
            assert [tuple(edge) for edge in graph.edges[truth.edges].tolist()] == list(example.critical_edges)


def test_the_index_says_what_every_task_is_and_a_second_run_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    index = read_index(folder)
    assert index["bond-values"].is_regression
    assert index["triangle-on-grid"].sizes == {"train": 24, "validation": 8, "test": 8, "larger": 4}
    assert task_names(folder) == list(TASKS)
    make_tasks(tmp_path, SMALL, Path("no data needed"), names=TASKS, say=lambda _: None)
    for path in folder.glob("*.gz"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_every_task_and_seed_has_a_row_with_controls_and_only_what_is_missing_is_measured(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seeds on both tasks with very small networks; then a third, all of whose jobs fail."""

    def fail(*_: object) -> dict[str, Any]:
        raise DataError("out of luck")

    tiny = Preset(plain_model(**SIZES), plain_train(epochs=3, learning_rate=1e-2))
    monkeypatch.setattr(ours, "PRESETS", {"default": tiny})
    options, said = ScoreOptions(tasks=folder, seeds=2, networks=2, work=tmp_path / "work"), list[str]()
    record = score(options, tmp_path / "scores.json", command="scored", say=said.append)
    assert [(row["task"], row["seed"]) for row in record["rows"]] == [(t, s) for t in TASKS for s in (0, 1)]
    motif, values = ({row["task"]: row for row in record["rows"]}[name] for name in TASKS)
    for part in ("test", "larger"):
        assert {"accuracy", "node_auc", "pooled_edge_auc", "nothing_chosen", "share_of_nodes"} <= set(motif[part])
        assert {"r2", "rmse", "pearson", "kendall"} <= set(values[part])
    assert set(motif["controls"]) == {"random", "degree", "label", "untrained"}
    spreads = [half["test"].get(name) for half in record["summary"].values() for name in ("node_auc", "pearson")]
    assert any(spreads)
    for spread in filter(None, spreads):
        assert spread["worst_training"] <= spread["worst"] <= spread["mean"]
        assert spread["worst_task"] in TASKS
    assert json.loads((tmp_path / "scores.json").read_text()) == record
    text = (tmp_path / "scores.md").read_text()
    assert "| triangle-on-grid | a triangle on a grid |" in text
    assert "2 networks a model." in text
    monkeypatch.setattr(run, "measure_ours", fail)
    monkeypatch.setattr(run, "versions", lambda: {"torch": "of the call that puts them together"})
    again = score(replace(options, seeds=3), tmp_path / "again.json", command="scored", say=said.append)
    assert again["rows"] == record["rows"]
    assert again["versions"]["torch"] == record["versions"]["torch"] == torch.__version__
    assert {(job["task"], job["seed"]) for job in again["missing"]} == {(task, 2) for task in TASKS}
    assert sum("failed, DataError: out of luck" in line for line in said) == 2
    assert "Not measured: ours triangle-on-grid 2, ours bond-values 2." in (tmp_path / "again.md").read_text()
    with pytest.raises(DataError, match="python -m lab truths make"):
        load(tmp_path, "phenol")
    with pytest.raises(ConfigError, match="no task is called 'ketone'"):
        score(replace(options, names=("ketone",)), tmp_path / "scores.json", command="")


def test_several_networks_are_one_model_that_explains_as_a_users_would(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "PRESETS", {"default": Preset(plain_model(**SIZES), plain_train(epochs=1))})
    graphs, _ = load(folder, "triangle-on-grid")
    both, test = ours.train(graphs, seed=0, networks=2), graphs.select("test")
    classes = ["yes"] * len(test)
    assert len(both.model.networks) == len(both.untrained(0).model.networks) == 2
    expected = explain(both.model, test, classes=classes, device="cpu")
    for found, wanted in zip(both.explain(test, classes), expected, strict=True):
        np.testing.assert_array_equal(found.node_importance, wanted.node_importance)
        np.testing.assert_array_equal(found.critical_nodes, wanted.critical_nodes)


def test_a_peer_is_scored_on_classes_and_on_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch_geometric")
    monkeypatch.setattr(peer, "EPOCHS", 1)
    monkeypatch.setattr(peer, "MOST", dict.fromkeys(peer.MOST, 2))
    motif, values = (peer.measure_peer(folder, name, 0, 2) for name in TASKS)
    assert set(motif["techniques"]) == {"GNNExplainer", "PGExplainer", "integrated-gradients", "occlusion", "CAM"}
    assert set(values["techniques"]) == {"integrated-gradients", "occlusion", "CAM"}
    assert all(0 <= scores["node_auc"] <= 1 for scores in motif["techniques"].values())
    assert all(-1 <= scores["pearson"] <= 1 for scores in values["techniques"].values())
    assert {"accuracy", "seconds"} <= set(motif)
    assert {"r2", "rmse"} <= set(values)


def test_rules_are_scored_on_the_choosing_half_alone_and_a_trained_model_is_not_trained_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Preset(plain_model(**SIZES), plain_train(epochs=2))
    monkeypatch.setattr(rules, "PRESETS", {"default": tiny})
    written, work = tmp_path / "rules.json", tmp_path / "models"
    rules.score_rules(folder, written, work=work, command="ruled", say=lambda _: None)
    first = json.loads(written.read_text())
    assert first["tasks"] == ["triangle-on-grid"] == [place.name for place in work.iterdir()]
    assert len(first["rows"]) == len(rules.all_rules())
    for row in first["rows"]:
        assert 0 <= row["node_auc_worst"] <= row["node_auc"] <= 1
    settings = ExplainConfig()
    of_class = additive.RELEVANCE_OF_CLASS, additive.BLUR, additive.ON_CYCLES
    for weight, *shares in (of_class, (additive.RELEVANCE_OF_VALUE, 0.0, 0.0)):
        views = (f"gradients {settings.steps}", 1.0), (f"relevance {settings.gamma:g}", weight)
        assert rules.Rule((*views, ("read out", additive.READ_OUT)), *shares) in rules.all_rules()
    monkeypatch.delattr(rules, "learn")
    rules.score_rules(folder, written, work=work, command="ruled", say=lambda _: None)
    assert json.loads(written.read_text())["rows"] == first["rows"]


def test_choices_are_scored_on_the_choosing_half_every_way_of_a_task_with_one_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "PRESETS", {"default": Preset(plain_model(**SIZES), plain_train(epochs=2))})
    written, work = tmp_path / "choices.json", tmp_path / "models"
    choices.score_choices(folder, written, work=work, device="cpu", jobs=1, command="chosen", say=lambda _: None)
    record = json.loads(written.read_text())
    assert record["tasks"] == ["triangle-on-grid"] == [place.name for place in work.iterdir()]
    assert [{choice: row[choice] for choice in choices.PRESENT} for row in record["rows"]] == choices.WAYS
    assert len({row["accuracy"] for row in record["rows"]}) == 1
    for way, row in zip(record["ways"], record["rows"], strict=True):
        assert way["classes"]["node_auc"] == pytest.approx(row["node_auc"], abs=1e-4)
        assert way["values"] == {}
