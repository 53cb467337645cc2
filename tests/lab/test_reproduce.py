"""The experiments by name: what they write, and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from egocnn.errors import DataError
from lab.tables import experiments as module
from lab.tables.experiments import EXPERIMENTS, Experiment, TrainedSetting, run_experiment
from tests.support.tiny import plain_model, plain_train

SMALL = "compounds:alcohols:sizes=3-8,per_size=4"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment of two settings that takes a second."""
    train = plain_train(epochs=2)
    settings = [
        TrainedSetting(
            data=SMALL, model=f"depth {depth}", goal=0.5, network=plain_model(depth=depth, width=8), train=train
        )
        for depth in (1, 2)
    ]
    monkeypatch.setitem(EXPERIMENTS, "tiny", Experiment(title="Tiny", seeds=2, settings=settings, note="A note."))
    return "tiny"


def test_an_experiment_writes_the_same_rows_as_json_csv_and_markdown(tiny: str, tmp_path: Path) -> None:
    said: list[str] = []
    table = run_experiment(tiny, folder=tmp_path, say=said.append)
    assert json.loads((tmp_path / "tiny.json").read_text()) == table
    assert [row["model"] for row in table["rows"]] == ["depth 1", "depth 2"]
    for row in table["rows"]:
        assert len(row["seeds"]) == 2
        assert row["mean"] == pytest.approx(sum(row["seeds"]) / 2, abs=1e-5)
        assert row["min"] == min(row["seeds"])
    assert {"command", "date", "machine", "versions"} <= table.keys()
    with (tmp_path / "tiny.csv").open() as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["depth 1", "depth 2"]
    text = (tmp_path / "tiny.md").read_text()
    assert "A note." in text
    assert f"{table['rows'][1]['mean']:.4f}" in text
    assert len(said) == 4


def test_the_same_seeds_give_the_same_scores_in_one_process_or_two(tiny: str, tmp_path: Path) -> None:
    alone = run_experiment(tiny, folder=tmp_path, seeds=1, say=lambda _: None)
    together = run_experiment(tiny, folder=tmp_path, jobs=2, say=lambda _: None)
    assert [row["seeds"] for row in alone["rows"]] == [row["seeds"][:1] for row in together["rows"]]


def test_data_that_is_not_at_hand_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EGOCNN_DATA", raising=False)
    with pytest.raises(DataError, match=r"explain/benzene\.csv.*EGOCNN_DATA"):
        module._load(EXPERIMENTS["molecules"].settings[0])


def test_isomers_are_read_by_a_network_as_deep_as_their_longest_arm() -> None:
    (setting,) = EXPERIMENTS["isomers"].settings
    longest = max(int(name.split()[1][1:]) for name in module._load(setting).names)
    assert setting.network.depth >= longest
