"""Small data, small networks and short trainings, for tests that train for real."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.config import PLAIN, ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.nn.batch import Batchable
from egocnn.train import loop
from egocnn.train.engines.common import Member
from egocnn.train.history import History, Report
from egocnn.train.loop import EngineName, Reports
from egocnn.train.validation import part_numbers
from tests.support.samples import sure
from tests.support.strategies import random_trees


def plain_model(**changes: Any) -> ModelConfig:
    """The paper's plain network, read out by the maximum, with these changes."""
    return ModelConfig(**PLAIN | {"readout": "max", "dropout": 0.05} | changes)


def plain_train(**changes: Any) -> TrainConfig:
    """One network, shown whole graphs, of its best single epoch, with these changes: quick, and the same every time."""
    return TrainConfig(**{"networks": 1, "parts": 0.0, "judgements": 1} | changes)


ALCOHOLS = "compounds:alcohols:sizes=3-10,per_size=4"
SIZES: dict[str, Any] = {"width": 8, "depth": 2, "hidden": 8, "slots": 4, "k": 4}
MODEL = plain_model(**SIZES)
TRAIN = plain_train(epochs=4, learning_rate=1e-2)
FLAGS = ["--networks", "1", *(word for name, value in SIZES.items() for word in (f"--{name}", str(value)))]
"""small ones for the command line, else as they are by default"""

COMPLETE = ["config.json", "history.csv", "metrics.json", "model.safetensors", "settings.toml", "split.csv"]
COMPLETE += ["test_predictions.csv"]
"""the files of a complete run"""
PATIENCE = 600.0  # seconds to wait for a process that should long have done what it is to do

SMILES_TABLE = '''\
name,smiles,label,split
methane,C,alkane,train
ethane,CC,alkane,train
propane,CCC,alkane,train
butane,CCCC,alkane,validation
pentane,CCCCC,alkane,test
"iso, ""tert""",CC(C)C,alkane,test
methanol,CO,alcohol,train
ethanol,CCO,alcohol,train
propanol,CCCO,alcohol,train
butanol,CCCCO,alcohol,validation
=1+1,CCCCCO,alcohol,test
isopropanol,CC(C)O,alcohol,test
'''


def molecule_lines(n: int = 40) -> list[str]:
    """Rows of a table: the SMILES of a chain, and alkane or alcohol in turn."""
    return [f"{'C' * (size % 7 + 1)}{'O' * (size % 2)},{'alcohol' if size % 2 else 'alkane'}" for size in range(n)]


@cache
def alcohols() -> Graphs:
    """10 graphs to train on, 2 for validation, 20 of other sizes for the test."""
    return read(ALCOHOLS)


@cache
def alcohols_of_all_sizes() -> Graphs:
    """About a hundred graphs, of every size some in every part."""
    graphs = read("compounds:alcohols:sizes=3-25,per_size=8")
    of_ten = np.repeat([0, 0, 2, 0, 1, 0, 0, 2, 0, 0], 2)  # an alkane, then the alcohol of its skeleton
    return graphs.with_parts(np.resize(of_ten, len(graphs)))


@cache
def oxygens(n_graphs: int = 40) -> Graphs:
    """Random trees with the number of their O nodes to predict, far from 0 and in large units."""
    trees = random_trees(n_graphs, nodes=10, seed=0)
    count = np.bincount(trees.graph_of, weights=sure(trees.node_label) == trees.node_label_names.index("O"))
    return trees.replace(target=5000.0 + 100 * count)


@cache
def several_targets() -> Graphs:
    """Random trees with a class, a value and three classes to predict, every fifth of each not known."""
    trees = oxygens(40)
    count = (sure(trees.target) - 5000) / 100
    target = np.stack([count > count.mean(), 10 * count, np.minimum(count, 2)], axis=1).astype(np.float64)
    for t in range(3):
        target[t::5, t] = np.nan
    names = (("many", ("no", "yes")), ("count", ()), ("kind", ("none", "one", "more")))
    return trees.replace(target=target, targets=names)


def with_opposite_classes(graphs: Graphs) -> Graphs:
    return graphs.replace(target=1 - sure(graphs.target))


def parts(graphs: Graphs, model: ModelConfig = MODEL, *, seed: int = 0) -> tuple[EgoCNN, EncodedGraphs, EncodedGraphs]:
    """What :func:`egocnn.train.loop.fit` takes: a fresh network, graphs to learn from and graphs for validation."""
    learned, validation = (graphs[numbers] for numbers in part_numbers(graphs.outline, TrainConfig(seed=seed)))
    encoder = Encoder.fit(learned, model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        predictor = Model.build(model, encoder)
    return predictor.networks[0], predictor.encode(learned), predictor.encode(validation)


def fit(
    network: EgoCNN,
    train: Batchable,
    validation: Batchable,
    config: TrainConfig,
    *,
    engine: EngineName = "plain",
    report: Report | None = None,
    **settings: Any,
) -> History:
    """:func:`egocnn.train.loop.fit` of a single network."""
    tell: Reports | None = None if report is None else lambda histories, config: report(histories[0], config)
    member = Member(network, train, validation, config.seed)
    (history,) = loop.fit([member], config, engine=engine, report=tell, **settings)
    return history


def fit_recorded(*args: Any, **settings: Any) -> History:
    """The same by the recorded engine."""
    return fit(*args, engine="recorded", **settings)


def state(network: EgoCNN) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether all weights are the same, bit by bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def write_table(folder: Path, text: str = SMILES_TABLE, name: str = "molecules.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def names_in(folder: Path, *, hidden: bool = True) -> Sequence[str]:
    return sorted(file.name for file in folder.iterdir() if hidden or not file.name.startswith("."))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under the folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def check_same_run(one: Path, other: Path) -> None:
    """Both runs are complete: the same model to the last byte, and the same metrics but for the time they took."""
    assert names_in(one) == names_in(other) == COMPLETE
    for name in ("model.safetensors", "config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    found, expected = (json.loads((run / "metrics.json").read_text()) for run in (one, other))
    assert found | {"seconds": 0} == expected | {"seconds": 0}


def stop_after(epochs: int, error: BaseException | None = None) -> Report:
    """A report that ends the training, by default with Ctrl-C."""

    def stop(history: History, _: TrainConfig) -> None:
        if len(history.epochs) == epochs:
            raise error or KeyboardInterrupt

    return stop


def both_targets() -> Graphs:
    """Alcohols or alkanes, and how many atoms; of every graph one of them is known at least."""
    graphs = read("compounds:alcohols:sizes=3-9,per_size=4")
    target = np.stack([sure(graphs.target).astype(np.float64), graphs.node_counts.astype(np.float64)], axis=1)
    target[2::7, 0], target[4::5, 1] = np.nan, np.nan
    target[np.isnan(target).all(axis=1), 0] = 0
    return graphs.replace(target=target, class_names=(), targets=(("kind", graphs.class_names), ("atoms", ())))
