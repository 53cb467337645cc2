"""Named experiments -> rows of scores over several seeds, written as JSON, CSV and Markdown.

Each experiment is a list of settings; every setting is trained once per seed and scored on the data's test part,
which nothing else ever looks at.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lab.markdown
from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError
from egocnn.files import write_json, write_text
from egocnn.train.metrics import test_scores
from egocnn.train.recipe import learn
from lab.families import read
from lab.record import circumstances


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSetting:
    """One row of a table: a data source and how to train on it."""

    data: str  # anything that ``read`` takes; a name such as explain/benzene.csv is looked for under EGOCNN_DATA
    model: str  # what the row is called
    goal: float  # test accuracy that was aimed at
    read: ReadConfig = field(default_factory=ReadConfig)
    network: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    title: str
    seeds: int
    settings: Sequence[TrainedSetting]
    note: str = ""


SPLIT = ReadConfig(smiles="smiles", target="label", split="split")
DEEP = ModelConfig(depth=8, width=64)
LONG = TrainConfig(epochs=50, patience=50)
COUNTING = TrainConfig(epochs=400, patience=400, batch_size=8)


def _counting(sizes: str) -> Iterator[TrainedSetting]:
    """Tied and untied, as deep as the longest training arm and deeper, on fewer and more lengths of chains."""
    longest = int(sizes.split("-")[1])
    for depth in (longest // 4, longest // 2 + 2):
        for tie in (True, False):
            network = ModelConfig(depth=depth, width=64, tie=tie, dropout=0.0)
            name = f"depth {depth}, {'tied' if tie else 'untied'}"
            data = f"compounds:methylalkanes:sizes={sizes}"
            yield TrainedSetting(data=data, model=name, goal=0.9, network=network, train=COUNTING)


EXPERIMENTS: dict[str, Experiment] = {
    "alcohols": Experiment(
        title="Alkanes against alcohols, tested on sizes never seen in training, up to 82 carbons",
        seeds=10,
        settings=[TrainedSetting(data="compounds:alcohols", model="default", goal=1.0)],
    ),
    "isomers": Experiment(
        title="Symmetric against asymmetric isomers, tested on molecules never seen in training",
        seeds=10,
        settings=[
            TrainedSetting(data="compounds:isomers", model="depth 8, width 64", goal=0.99, network=DEEP, train=LONG)
        ],
        note="The depth is the length of the longest arm: with fewer layers no node sees both ends of the chain.",
    ),
    "methylalkanes": Experiment(
        title="A chain with one methyl, at its centre or not, tested on lengths never seen in training",
        seeds=5,
        settings=[*_counting("5-31"), *_counting("5-61")],
        note="A few dozen molecules have to teach counting; 0.9 is a stretch goal.",
    ),
    "molecules": Experiment(
        title="Benzene rings, and fluoride AND carbonyl, in molecules from ZINC, on the published split",
        seeds=5,
        settings=[
            TrainedSetting(data="explain/benzene.csv", model="default", goal=0.999, read=SPLIT),
            TrainedSetting(data="explain/logic7.csv", model="default", goal=0.995, read=SPLIT),
        ],
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedScores:
    """One trained model."""

    test_accuracy: float
    validation_accuracy: float
    best_epoch: int
    epochs: int
    parameters: int
    seconds: float


@dataclass(slots=True)
class ExperimentRow:
    setting: TrainedSetting
    results: list[TrainedScores] = field(default_factory=list)

    def to_plain(self) -> dict[str, Any]:
        scores = [r.test_accuracy for r in self.results]
        return {
            "model": self.setting.model,
            "data": self.setting.data,
            "mean": round(statistics.fmean(scores), 5),
            "std": round(statistics.stdev(scores), 5) if len(scores) > 1 else 0.0,
            "min": min(scores),
            "goal": self.setting.goal,
            "seeds": scores,
            "best_epochs": [r.best_epoch for r in self.results],
            "parameters": self.results[0].parameters,
            "seconds": round(statistics.fmean(r.seconds for r in self.results), 1),
        }


def run_experiment(
    name: str, *, folder: Path, seeds: int | None = None, jobs: int = 1, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Run one experiment and write ``NAME.json``, ``NAME.csv`` and ``NAME.md`` into the folder."""
    from joblib import Parallel, delayed

    if name not in EXPERIMENTS:
        raise ConfigError(f"no experiment is called {name!r}; there are {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    seeds = seeds or experiment.seeds
    work = [(s, seed) for s in range(len(experiment.settings)) for seed in range(seeds)]
    rows = [ExperimentRow(setting) for setting in experiment.settings]
    calls = (delayed(_run)(experiment.settings[s], seed) for s, seed in work)
    # one thread per process: two processes with two threads each crawl on two cores
    for (s, seed), result in zip(work, Parallel(n_jobs=jobs, return_as="generator")(calls), strict=True):
        rows[s].results.append(result)
        say(f"{rows[s].setting.data}, {rows[s].setting.model}, seed {seed}: {result.test_accuracy:.4f}")
    table: dict[str, Any] = {
        "title": experiment.title,
        "note": experiment.note,
        "rows": [row.to_plain() for row in rows],
        "command": f"egocnn reproduce {name} --seeds {seeds}",
        **circumstances(),
    }
    write_json(folder / f"{name}.json", table)
    columns = [column for column, value in table["rows"][0].items() if not isinstance(value, list)]
    write_text(folder / f"{name}.csv", lab.markdown.csv_text(columns, table["rows"]))
    write_text(folder / f"{name}.md", markdown(table))
    return table


def _run(setting: TrainedSetting, seed: int) -> TrainedScores:
    import torch

    torch.set_num_threads(1)
    started = time.perf_counter()
    graphs = _load(setting)
    predictor, history = learn(graphs, setting.network, replace(setting.train, seed=seed, device="cpu"))
    assert history.best is not None
    return TrainedScores(
        test_accuracy=test_scores(predictor, graphs.select("test"), device="cpu")["accuracy"],
        validation_accuracy=history.best.validation_score,
        best_epoch=history.best.epoch,
        epochs=len(history.epochs),
        parameters=predictor.n_parameters,
        seconds=time.perf_counter() - started,
    )


def _load(setting: TrainedSetting) -> Graphs:
    if not setting.data.endswith(".csv"):
        return read(setting.data, setting.read)
    folder = os.environ.get("EGOCNN_DATA")
    if folder is None:
        raise DataError(f"{setting.data} is looked for under the folder that EGOCNN_DATA names; it is not set")
    return read(Path(folder) / setting.data, setting.read)


def markdown(table: dict[str, Any]) -> str:
    head = ("data", "model", "test accuracy", "worst seed", "seeds", "goal", "parameters", "seconds a run")
    lines = lab.markdown.table(head, map(_cells, table["rows"]))
    return "\n".join([f"# {table['title']}", "", *lines, "", table["note"], "", lab.markdown.made_by(table), ""])


def _cells(row: dict[str, Any]) -> list[str]:
    scores = (f"{row['mean']:.4f} ± {row['std']:.4f}", f"{row['min']:.4f}", f"{len(row['seeds'])}")
    return [row["data"], row["model"], *scores, f"{row['goal']}", f"{row['parameters']:,}", f"{row['seconds']}"]
