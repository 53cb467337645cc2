"""The search for a preset: no test fold's graphs are seen; triangles are counted as networkx counts them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.study.crossval import choose_protocol
from egocnn.study.crossval.folds import make_tasks
from egocnn.train.recipe import prepare_replicas
from lab.bench.search import preset_search, triangles
from lab.bench.search.augmentation import with_copies
from lab.bench.search.candidates import CHANGES, VARIANTS
from lab.bench.search.preset_search import CHOICES, inner_tasks, scores
from lab.bench.search.triangles import count_triangles, with_triangles
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs
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


def test_scores_are_of_every_restart_alone_and_of_all_together() -> None:
    sure, unsure = [4.0, 0.0], [0.0, 0.5]
    first = torch.tensor([[sure, unsure], [unsure, unsure], [unsure, unsure]])  # (restarts, graphs, classes)
    second = torch.tensor([[sure, sure]] * 3)
    found = scores([first, second], [np.array([0, 1]), np.array([0, 1])])
    # alone: (1 + 1/2 + 1/2) / 3 and 1/2; together: both right, as one that is sure outweighs two that are not, and 1/2
    assert found["alone"] == pytest.approx(100 * (4 / 6 + 1 / 2) / 2, abs=0.01)
    assert found["together"] == pytest.approx(75)
    assert found["error"] == pytest.approx(25, abs=0.01)  # 50 / √2 of deviation, over √2


def test_every_variant_is_one_change_to_the_base() -> None:
    def settings_of(name: str) -> dict[str, Any]:
        model, train = VARIANTS[name]
        return asdict(model) | asdict(train)

    base = settings_of("base")
    for name, (model, train) in CHANGES.items():
        changed = {key for key, value in settings_of(name).items() if value != base[key]}
        assert changed == {*model, *train}, name


def test_copies_hold_every_graph_again_with_like_neighbours_in_another_order() -> None:
    graphs = read(DATA).replace(part=None)
    (task, *_) = inner_tasks(graphs, DATA, TRAIN, folds=1, published=False)
    ((replica,),) = prepare_replicas([task.without_tested(graphs)], SMALL, TRAIN, [[0]])
    once, validation = replica.parts[0].in_memory(), replica.parts[1]
    several, kept = with_copies(replica, graphs[task.learned], 3).parts
    assert kept is validation
    copied, nodes = several.in_memory(), len(once.steps)
    assert once.target is not None
    torch.testing.assert_close(copied.target, once.target.repeat(3))
    assert torch.equal(copied.node_ptr.diff(), once.node_ptr.diff().repeat(3))
    assert torch.equal((copied.steps != 0).sum(1), (once.steps != 0).sum(1).repeat(3))
    assert not torch.equal(copied.steps[:nodes], copied.steps[nodes : 2 * nodes])
    assert sorted(copied.place.tolist()) == list(range(3 * nodes))


def by_networkx(graphs: Graphs) -> list[int]:
    network = networkx.Graph()
    network.add_nodes_from(range(graphs.n_nodes))
    network.add_edges_from(edge for edge in graphs.edges.tolist() if edge[0] != edge[1])
    found = networkx.triangles(network)
    return [found[node] for node in range(graphs.n_nodes)]


@settings(max_examples=80)
@given(random_graphs(max_nodes=9), st.sampled_from([3, triangles.PATHS_AT_ONCE]))
def test_every_triangle_counts_at_its_three_corners_also_in_small_portions(graphs: Graphs, portion: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(triangles, "PATHS_AT_ONCE", portion)
        assert count_triangles(graphs).tolist() == by_networkx(graphs)


def test_a_node_is_told_its_triangles_and_how_close_its_neighbours_stand() -> None:
    bow_tie = one_graph(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)], node_attr=[[float(n)] for n in range(5)])
    found = with_triangles(bow_tie).node_attr
    assert found is not None
    np.testing.assert_allclose(found[2], [2, np.log(3), 2 / 6], rtol=1e-6)
    np.testing.assert_allclose(found[[0, 1, 3, 4], 1:], [[np.log(2), 1]] * 4, rtol=1e-6)
