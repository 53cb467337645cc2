"""The search for a preset: no test fold's graphs are seen; triangles are counted as networkx counts them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from egocnn.data.read import read
from egocnn.study.crossval import choose_protocol
from egocnn.study.crossval.folds import make_tasks
from egocnn.train.recipe import prepare_replicas
from lab.bench.search import preset_search
from lab.bench.search.candidates import VARIANTS
from lab.bench.search.preset_search import CHOICES
from tests.support.tiny import SIZES, plain_model, plain_train

DATA = "compounds:alcohols:sizes=2-9"
TRAIN = plain_train(epochs=2, batch_size=8, device="cpu")
SMALL = plain_model(**SIZES, degrees=True, jump=True, head_norm=True, readout="log+max")


def test_a_search_writes_its_record_and_hands_no_tested_graph_to_any_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = read(DATA).replace(part=None)
    assert len(set(graphs.names)) == len(graphs)
    outer = make_tasks(graphs, choose_protocol("paper"), TRAIN)[:2]
    fitted: list[set[str]] = []
    judged: list[set[str]] = []
    judge = preset_search._logits

    def prepare_and_tell(several: Any, *words: Any) -> Any:
        fitted.extend(set(each.names) for each in several)
        return prepare_replicas(several, *words)

    def judge_and_tell(replicas: Any, tested: Any, train: Any) -> Any:
        judged.extend(set(each.names) for each in tested)
        return judge(replicas, tested, train)

    out = tmp_path / "search.json"
    words = [DATA, "--variants", "tiny", "--folds", "2", "--restarts", "2", "--device", "cpu", "-o", str(out)]
    monkeypatch.setitem(VARIANTS, "tiny", (SMALL, TRAIN))
    monkeypatch.setattr(preset_search, "prepare_replicas", prepare_and_tell)
    monkeypatch.setattr(preset_search, "_logits", judge_and_tell)
    words += ["--graphs", str(len(graphs))]
    preset_search.main(words)
    for task, learned_from, scored in zip(outer, list(fitted), list(judged), strict=True):
        assert learned_from == set(graphs[task.learned].names)
        assert scored == set(graphs[task.validation].names)
        assert not (learned_from | scored) & set(graphs[task.tested].names)
    preset_search.main(words)  # a further run is added to what is there
    (run, again) = json.loads(out.read_text(encoding="utf-8"))["runs"]
    (row,) = run["rows"]
    assert again["rows"][0]["best"] == row["best"]
    assert (row["data"], row["variant"], row["restarts"]) == (DATA, "tiny", 2)
    assert row["model"] == json.loads(json.dumps(asdict(SMALL)))
    for choice in CHOICES:
        assert 0 <= row[choice]["alone"] <= 100
        assert 0 <= row[choice]["together"] <= 100
    assert "tiny" in capsys.readouterr().out
