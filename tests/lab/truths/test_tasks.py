from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from egocnn.errors import DataError
from lab.truths import label_importances, random_scores, score_structures
from lab.truths.tasks import TASKS


def test_alcohols_are_explained_by_the_oxygen_and_its_hydrogen() -> None:
    problem = TASKS["alcohols"].load(0)
    assert len(problem.explained) == len(problem.truths)
    for graph, truth in zip(problem.explained, problem.truths, strict=True):
        (critical,) = truth.alternatives
        assert graph.node_label is not None
        assert sorted(graph.node_label[node] for node in critical) == ["H", "O"]


def test_chance_and_a_trivial_rule_score_on_the_47_positives_of_logic7_what_was_measured_before(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.setenv("EGOCNN_DATA", str(data_folder))
    task = TASKS["logic7"]
    positive, truths = (loaded := task.load(0)).explained, loaded.truths
    assert all(truth.alternatives for truth in truths)
    assert random_scores(positive, truths, draws=20).mean.node_auc == pytest.approx(0.574, abs=0.02)
    rule = score_structures(label_importances(positive, task.trivial), truths)
    assert rule.node_graphs == len(positive) == 47
    assert rule.node_auc == pytest.approx(0.835, abs=0.0005)


def test_mutagenicity_explains_the_1015_marked_mutagens_and_the_second_task_trains_on_no_unmarked_ones(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EGOCNN_DATA", str(data_folder))
    whole, marked = (TASKS[name].load(0) for name in ("mutagenicity", "mutagenicity-marked"))
    assert len(whole.explained) == len(marked.explained) == 1015
    assert all(truth.edges is not None and truth.edges.any() for truth in whole.truths)
    chosen, nitrogen = whole.explained, "4"
    assert chosen.edge_truth is not None
    assert chosen.node_label is not None
    ends = chosen.node_label[np.stack([chosen.entry_node, chosen.indices])[:, chosen.edge_truth]]
    assert (ends == chosen.node_label_names.index(nitrogen)).any(axis=0).all()
    for graphs in (marked.training, marked.test):
        assert graphs.target is not None
        mutagens = graphs[np.flatnonzero(graphs.target == graphs.class_names.index("0"))]
        assert all(graph.edge_truth is not None and graph.edge_truth.any() for graph in mutagens)


def test_without_the_data_one_line_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EGOCNN_DATA", raising=False)
    with pytest.raises(DataError, match="EGOCNN_DATA"):
        TASKS["benzene"].load(0)
