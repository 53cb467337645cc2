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
from tests.support.commands import rows
from tests.support.tiny import SIZES, alcohols, plain_model, plain_train


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no task is called 'ketones'"):
        prove(folder=tmp_path, tasks=["ketones"])


def test_every_task_has_scores_to_show() -> None:
    assert set(table.SHOWN) == set(TASKS)
    assert {key for keys in table.SHOWN.values() for key in keys} <= set(table.SCORES)


def load(_: int) -> TaskData:
    graphs = alcohols()
    test = graphs.select("test")
    explained = test[np.flatnonzero(test.target == test.class_names.index("alcohol"))]
    return TaskData(graphs, test, explained, [Truth.of(graph) for graph in explained])


def test_every_technique_and_control_has_a_row_and_what_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the alcohols with few molecules and a small network; everything else is the real thing."""
    pytest.importorskip("torch_geometric")
    train = plain_train(epochs=8, learning_rate=1e-2)
    task = replace(TASKS["alcohols"], load=load, network=plain_model(**SIZES), train=train, peer_epochs=2)
    monkeypatch.setitem(TASKS, "alcohols", task)
    monkeypatch.setattr(measure, "SLOW", 2)
    monkeypatch.setattr(measure, "UNTRAINED", 2)
    words: dict[str, Any] = {"seeds": 2, "tasks": ["alcohols"], "work": tmp_path / "work", "say": lambda _: None}
    result = prove(folder=tmp_path, **words)
    found: dict[tuple[str, str], set[str]] = {}
    for row in result["rows"]:
        found.setdefault((row["model"], row["kind"]), set()).add(row["technique"])
        assert len(row["scores"]["node_auc"]["seeds"]) == 2
        assert 0 <= row["scores"]["node_auc"]["mean"] <= 1
        assert row["technique"] != "untrained" or row["runs"] == 2
        if row["technique"] in ("degree", "few neighbours", "atom is O"):  # controls that look at no network
            assert row["scores"]["node_auc"]["std"] == 0
    theirs = {"GNNExplainer", "PGExplainer", "integrated-gradients", "occlusion", "CAM"}
    assert found["egocnn", "technique"] == set(get_args(Technique))
    assert found["GINE", "technique"] == theirs
    controls = set().union(*(names for (_, kind), names in found.items() if kind == "control"))
    assert controls == {"random", "degree", "few neighbours", "atom is O", "untrained"}
    assert json.loads((tmp_path / "explain.json").read_text()) == result
    assert len(rows(tmp_path / "explain.csv")) > 50
    assert "| control | untrained, 2 networks |" in (tmp_path / "explain.md").read_text()

    def fail(*_: object) -> dict[str, Any]:
        raise AssertionError("measured again")

    monkeypatch.setattr(run, "SIDES", {"egocnn": fail, "GINE": fail})
    assert prove(folder=tmp_path, **words)["rows"] == result["rows"]
