"""The tasks whose critical structure is known: a name -> graphs to train on, graphs to explain, and their truths."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.families import read
from lab.truths import Truth, has_marked_edge, read_alternatives, read_edge_marks

SPLIT = ReadConfig(smiles="smiles", target="label", split="split")
MUTAGEN = "0"


@dataclass(frozen=True, slots=True, eq=False)
class TaskData:
    """One task with one seed."""

    training: Graphs
    test: Graphs  # where accuracy is measured
    explained: Graphs
    truths: list[Truth]


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTask:
    name: str
    what: str
    load: Callable[[int], TaskData]
    target: str | None  # the class whose evidence is asked for; None: the predicted one
    trivial: frozenset[str]  # labels of the rule that needs no model
    rule: str  # the same in words
    network: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    peer_epochs: int = 25


def _alcohols(_: int) -> TaskData:
    graphs = read("compounds:alcohols")
    test = graphs.select("test")
    explained = _of_class(test, "alcohol")
    return TaskData(graphs, test, explained, [Truth.of(graph) for graph in explained])


def _isomers(_: int) -> TaskData:
    graphs = read("compounds:isomers")
    test = graphs.select("test")
    # the scores of isomers are read off the molecules themselves, not off marks
    return TaskData(graphs, test, test, [Truth() for _ in range(len(test))])


def _molecules(name: str) -> Callable[[int], TaskData]:
    def load(_: int) -> TaskData:
        table = data_folder() / "explain" / f"{name}.csv"
        stored = table.with_suffix(".safetensors")  # what Graphs.save wrote, for machines without RDKit
        graphs = Graphs.load(stored) if stored.exists() else read(table, SPLIT)
        test = graphs.select("test")
        explained = _of_class(test, "1")
        return TaskData(graphs, test, explained, read_alternatives(table, explained))

    return load


def _mutagenicity(*, unmarked: bool) -> Callable[[int], TaskData]:
    def load(seed: int) -> TaskData:
        source = data_folder() / "tu" / "Mutagenicity.zip"
        marks = data_folder() / "explain" / "Mutagenicity_edge_gt.txt"
        graphs = read_edge_marks(marks, read(source), source)
        is_mutagen = np.array([name == MUTAGEN for name in np.array(graphs.class_names)[graphs.target]])
        marked = has_marked_edge(graphs)
        if not unmarked:
            graphs, marked = graphs[~is_mutagen | marked], marked[~is_mutagen | marked]
            is_mutagen = np.array([name == MUTAGEN for name in np.array(graphs.class_names)[graphs.target]])
        training, test = graphs.split(test=0.2, seed=seed)
        explained = graphs[is_mutagen & marked]
        truths = [Truth(edges=graph.edge_truth) for graph in explained]
        return TaskData(training, test, explained, truths)

    return load


def _of_class(graphs: Graphs, name: str) -> Graphs:
    assert graphs.target is not None
    return graphs[np.flatnonzero(graphs.target == graphs.class_names.index(name))]


def data_folder() -> Path:
    folder = os.environ.get("EGOCNN_DATA")
    if folder is None:
        raise DataError("the data sets are looked for under the folder that EGOCNN_DATA names; it is not set")
    return Path(folder)


TASKS: dict[str, TruthTask] = {
    task.name: task
    for task in (
        TruthTask(
            name="alcohols",
            what="the OH group of alcohols of sizes never trained on, to 82 carbons",
            load=_alcohols,
            target="alcohol",
            trivial=frozenset({"O"}),
            rule="atom is O",
        ),
        TruthTask(
            name="isomers",
            what="symmetric isomers: importances mirrored; asymmetric: unmatched methyls above matched ones",
            load=_isomers,
            target=None,
            trivial=frozenset({"C"}),
            rule="atom is C",
            network=ModelConfig(depth=8, width=64),
            train=TrainConfig(epochs=50, patience=50),
            peer_epochs=15,
        ),
        TruthTask(
            name="benzene",
            what="the benzene rings of 999 test molecules",
            load=_molecules("benzene"),
            target="1",
            trivial=frozenset({"c"}),
            rule="atom is aromatic C",
            peer_epochs=10,
        ),
        TruthTask(
            name="logic7",
            what="fluoride AND carbonyl in 47 test molecules",
            load=_molecules("logic7"),
            target="1",
            trivial=frozenset({"F", "O", "O-"}),
            rule="atom is F or O",
        ),
        TruthTask(
            name="mutagenicity",
            what="the N-O and N-H bonds of NO2 and NH2 in the 1,015 marked mutagens, trained on all 4,337 molecules",
            load=_mutagenicity(unmarked=True),
            target=MUTAGEN,
            trivial=frozenset({"4"}),
            rule="an end is N",
        ),
        TruthTask(
            name="mutagenicity-marked",
            what="the same, trained after deleting the unmarked mutagens, as the published figures were",
            load=_mutagenicity(unmarked=False),
            target=MUTAGEN,
            trivial=frozenset({"4"}),
            rule="an end is N",
        ),
    )
}
