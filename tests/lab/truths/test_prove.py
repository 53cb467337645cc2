from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from egocnn.config import Technique
from egocnn.errors import ConfigError
from lab.truths import Truth, measure, table
from lab.truths import prove as run
from lab.truths.prove import prove
from lab.truths.tasks import TASKS, TaskData
from tests.support.tiny import SIZES, alcohols, plain_model, plain_train


def load(_: int) -> TaskData:
    graphs = alcohols()
    test = graphs.select("test")
    assert test.target is not None
    explained = test[np.flatnonzero(test.target == test.class_names.index("alcohol"))]
    return TaskData(graphs, test, explained, [Truth.of(graph) for graph in explained])


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task of the alcohols, with few molecules and a small network; everything else is the real thing."""
    task = replace(
        TASKS["alcohols"],
        load=load,
        network=plain_model(**SIZES),
        train=plain_train(epochs=20, learning_rate=1e-2),
        peer_epochs=2,
    )
    monkeypatch.setitem(TASKS, "alcohols", task)
    monkeypatch.setattr(measure, "SLOW", 2)
    monkeypatch.setattr(measure, "UNTRAINED", 2)


def silent(_: str) -> None:
    pass


@pytest.fixture
def result(tiny: None, tmp_path: Path) -> dict[str, Any]:  # noqa: ARG001  the fixture makes the task small
    pytest.importorskip("torch_geometric")
    return prove(folder=tmp_path, seeds=2, tasks=["alcohols"], work=tmp_path / "work", say=silent)


def test_every_technique_and_control_has_a_row_and_what_is_written_is_what_is_returned(
    result: dict[str, Any], tmp_path: Path
) -> None:
    rows = {(row["model"], row["kind"], row["technique"]): row for row in result["rows"]}
    ours = {technique for model, kind, technique in rows if (model, kind) == ("egocnn", "technique")}
    assert ours == set(get_args(Technique))
    theirs = {technique for model, kind, technique in rows if (model, kind) == ("GINE", "technique")}
    assert theirs == {"GNNExplainer", "PGExplainer", "integrated-gradients", "occlusion", "CAM"}
    controls = {technique for _, kind, technique in rows if kind == "control"}
    assert controls == {"random", "degree", "few neighbours", "atom is O", "untrained"}
    assert rows["egocnn", "control", "untrained"]["runs"] == 2
    for row in result["rows"]:
        assert len(row["scores"]["node_auc"]["seeds"]) == 2
        assert 0 <= row["scores"]["node_auc"]["mean"] <= 1
    assert json.loads((tmp_path / "explain.json").read_text()) == result
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "explain.csv").read_text())))) > 50
    assert "| control | untrained, 2 networks |" in (tmp_path / "explain.md").read_text()


def test_controls_that_do_not_look_at_a_network_are_the_same_for_every_seed(result: dict[str, Any]) -> None:
    for row in result["rows"]:
        if row["technique"] in ("degree", "few neighbours", "atom is O"):
            assert row["scores"]["node_auc"]["std"] == 0


def test_what_was_measured_is_not_measured_again(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise AssertionError("measured again")

    monkeypatch.setattr(run, "SIDES", {"egocnn": fail, "GINE": fail})
    again = prove(folder=tmp_path, seeds=2, tasks=["alcohols"], work=tmp_path / "work", say=silent)
    assert again["rows"] == result["rows"]


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no task is called 'ketones'"):
        prove(folder=tmp_path, tasks=["ketones"])


def test_every_task_has_scores_to_show() -> None:
    assert set(table.SHOWN) == set(TASKS)
    assert {key for keys in table.SHOWN.values() for key in keys} <= set(table.SCORES)
