"""Rivals by name: where each comes from, what it needs, and that tested graphs teach it nothing."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pytest

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, MissingExtraError
from egocnn.study.crossval import Protocol, cross_validate
from egocnn.study.crossval.folds import FoldTask, make_tasks
from lab.rivals import fit
from lab.rivals.kernels.embedded import embed
from lab.rivals.names import find_rival, rivals
from lab.rivals.networks.canonical import canonical_order
from lab.rivals.rival import RivalModel
from tests.study.crossval.test_crossval_protocols import TRAIN, trees
from tests.support.samples import cycle, one_graph, sure
from tests.support.strategies import random_trees


def test_every_rival_says_where_it_comes_from() -> None:
    assert len(rivals()) == 19
    for word, rival in rivals().items():
        assert find_rival(word) == find_rival(rival.name) == rival
        assert word.replace("-", "").isalnum()
        assert all((rival.name, rival.source, rival.library, rival.departures))
    with pytest.raises(ConfigError, match="no model is called 'nobody'; there are ego-cnn, label-counts"):
        find_rival("nobody")


def test_counting_labels_learns_what_counts_of_labels_say() -> None:
    result = cross_validate(trees(120), find_rival("label-counts"), TRAIN, folds=3)
    assert (result.model, result.parameters, result.stacked) == ("label counts", None, False)
    assert result.mean > 0.9
    assert result.settings == {"model": {}, "train": {"seed": 0, "validation": 0.1}}


def strangers(graphs: Graphs, task: FoldTask) -> tuple[Graphs, Ints]:
    """The graphs with the first half of those tested exchanged for others, of the same classes but of another kind."""
    altered = task.tested[: len(task.tested) // 2]
    strange = random_trees(len(altered), nodes=11, seed=9)
    strange = strange.replace(
        node_label_names=("N", "Xe", "Kr"), target=sure(graphs.target)[altered], class_names=graphs.class_names
    )
    numbers = np.arange(len(graphs))
    numbers[altered] = len(graphs) + np.arange(len(altered))
    return Graphs.concat([graphs, strange])[numbers], np.arange(len(altered), len(task.tested))


@pytest.mark.parametrize("name", ["label-counts", "gine"])
def test_other_test_graphs_change_no_prediction_of_a_rival(name: str) -> None:
    if name == "gine":
        pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    # classes without rhyme or reason: predictions then hang on every single graph that is fitted
    graphs = trees(60).replace(target=np.random.default_rng(0).integers(2, size=60))
    task = make_tasks(graphs, Protocol(folds=4), TRAIN)[0]
    others, same = strangers(graphs, task)
    found: list[Ints] = []
    rival = find_rival(name)

    @dataclass(slots=True)
    class Heard:
        system: RivalModel
        parameters: int | None = 1

        def fit(self, learned: Graphs, validation: Graphs) -> Self:
            given = (learned.names, validation.names)
            assert given == (graphs[task.learned].names, graphs[task.validation].names)
            self.system = self.system.fit(learned, validation)
            return self

        def predict(self, graphs: Graphs) -> Ints:
            found.append(self.system.predict(graphs))
            return found[-1]

    heard = replace(rival, build=lambda seed: Heard(rival.build(seed)))
    one, other = (heard.run_fold(each, task, TRAIN) for each in (graphs, others))
    validated, tested, validated_again, tested_again = found
    assert validated.tolist() == validated_again.tolist()
    assert tested[same].tolist() == tested_again[same].tolist()
    assert one.validation_score == other.validation_score


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("torch_geometric.nn", "pyg", lambda graphs: fit(graphs)),
        ("torch_geometric.nn", "pyg", lambda graphs: find_rival("gin").build(0).fit(graphs, graphs)),
        ("gensim.models", "baselines", lambda _: embed([["0", "1"]], 2, window=1, seed=0)),
        ("igraph", "baselines", lambda _: canonical_order(one_graph(5, cycle(0, 1, 2, 3, 4)))),
    ],
)
def test_a_missing_library_names_the_extra(
    library: str, extra: str, call: Callable[[Graphs], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"egocnn\[{extra}\]"):
        call(trees(60))
