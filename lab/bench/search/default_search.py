"""Which settings predict and point better than the default: single changes to it, on data that chooses.

    python -m lab measure default_search --molecules WORK --truths FOLDER --device cuda --jobs 8

WORK is the folder of ``reproduce moleculenet --prepare-only``. Of every split there the validation part gives the score
and a tenth of the training part chooses the epoch; the test part is never read. All splits and seeds of a set are
trained as one stack. FOLDER is that of ``truths make``: each task of the choosing half trains a model of the default
number of networks, whose explanations are scored as those of the halves are. The reporting half is never read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.files import write_json
from egocnn.model import Model
from egocnn.train.loop import fit
from egocnn.train.recipe import choose_engine, learn, prepare_replicas
from egocnn.train.validation import part_numbers
from lab.record import arguments, circumstances, command_of
from lab.tables.moleculenet.sets import SETS, SPLITS, score
from lab.tables.moleculenet.systems import Cell
from lab.truths.ours import Networks
from lab.truths.suite.files import load
from lab.truths.suite.index import read_index
from lab.truths.suite.scoring.measures import prediction_scores, ranking_scores, structure_scores
from lab.truths.suite.scoring.part import ExplainedPart

CHANGES: dict[str, dict[str, Any]] = {
    "default": {},
    "no parts": {"parts": 0.0},
    "parts 0.15": {"parts": 0.15},
    "judgements 400": {"judgements": 400},
    "judgements 1000": {"judgements": 1000},
    "pool_dropout 0.2": {"pool_dropout": 0.2},
    "pool_limit 6": {"pool_limit": 6.0},
    "dropout 0.1": {"dropout": 0.1},
    "learning_rate 5e-4": {"learning_rate": 5e-4},
    "weight_decay 0.1": {"weight_decay": 0.1},
    "batch_size 64": {"batch_size": 64},
    "epochs 100": {"epochs": 100, "patience": 40},
    "width 256": {"width": 256, "hidden": 256},
    "depth 4": {"depth": 4},
}


def main(words: Sequence[str]) -> None:
    parser = arguments("default_search", __doc__)
    parser.add_argument("--molecules", type=Path, metavar="WORK")
    parser.add_argument("--truths", type=Path, metavar="FOLDER")
    parser.add_argument("--tasks", help="of the choosing half, by name [all]")
    parser.add_argument("--sets", default="bbbp,bace,esol,lipo", help="of molecules, by name [%(default)s]")
    parser.add_argument("--changes", default=";".join(CHANGES), help="by name, with semicolons between them [all]")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of every split of molecules [3]")
    parser.add_argument("--jobs", type=int, default=1, help="processes that explain while others are trained [1]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    for change in options.changes.split(";"):
        asked: dict[str, Any] = {"device": options.device} | CHANGES[change]
        fields = {key: value for key, value in asked.items() if key in TrainConfig.__dataclass_fields__}
        model = ModelConfig(**{key: value for key, value in asked.items() if key not in fields})
        found = []
        if options.molecules is not None:
            found.append(of_molecules(options.molecules, options.sets.split(","), options.seeds, model, fields))
        if options.truths is not None:
            found.append(of_truths(options.truths, model, TrainConfig(**fields), options.jobs, options.tasks))
        for row in (row for some in found for row in some):
            rows.append({"change": change, **row})
            print({key: value for key, value in rows[-1].items() if key != "each"}, flush=True)
            record = {"changes": CHANGES, "rows": rows, "command": command_of("default_search", words)}
            write_json(options.out, {**record, **circumstances(device=options.device)})


def of_molecules(
    work: Path, sets: Sequence[str], seeds: int, model: ModelConfig, fields: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Of every set: the mean score of single networks and of those of all seeds together, over the splits."""
    train = TrainConfig(**fields, networks=1)
    for name in sets:
        started, whole = (
            time.perf_counter(),
            [Graphs.load(Cell(name=name, split=split, seed=0, work=work).arrays) for split in SPLITS],
        )
        numbers = [list(range(seeds)) for _ in SPLITS]
        replicas = prepare_replicas([inner_parts(graphs, train) for graphs in whole], model, train, numbers)
        members = [member for own in replicas for each in own for member in each.members]
        fit(members, train, engine=choose_engine(members, train, stack=None))
        alone, together = [], []
        for graphs, own in zip(whole, replicas, strict=True):
            tested, models = graphs.select("validation"), [each.predictor for each in own]
            networks = tuple(network for each in models for network in each.networks)
            alone.append(fmean(score_of(name, each, tested) for each in models))
            together.append(score_of(name, replace(models[0], networks=networks), tested))
        yield {
            "set": name, "alone": fmean(alone), "together": fmean(together), "splits": SPLITS,
            "each": {"alone": alone, "together": together}, "seconds": time.perf_counter() - started,
        }  # fmt: skip


def inner_parts(graphs: Graphs, train: TrainConfig) -> Graphs:
    """The training part alone, a tenth of which validates."""
    learned = graphs.select("train").replace(part=None)
    part = np.full(len(learned), PARTS.index("train"), np.int8)
    part[part_numbers(learned.outline, train)[1]] = PARTS.index("validation")
    return learned.replace(part=part)


def score_of(name: str, model: Model, graphs: Graphs) -> float:
    found = model.predictions(graphs)
    said = found[:, model.class_names.index("1")] if model.class_names else found
    truth = graphs.target if not graphs.class_names else np.array(graphs.class_names, float)[graphs.target]
    return score(SETS[name], np.asarray(truth, float)[:, None], said[:, None])


def of_truths(
    tasks: Path, model: ModelConfig, train: TrainConfig, jobs: int, some: str | None
) -> Iterator[dict[str, Any]]:
    """The mean scores of classifications and of regressions of the choosing half."""
    from joblib import Parallel, delayed, parallel_config

    started = time.perf_counter()
    names = [name for name, info in read_index(tasks).items() if info.half == "choosing"]
    names = [name for name in names if some is None or name in some.split(",")]

    def trained() -> Iterator[Any]:
        for name in names:  # a GPU trains one after the other, while processes explain those before
            found, _ = learn(load(tasks, name)[0], model, train)
            for network in found.networks:
                network.cpu()
            yield delayed(truth_scores)(tasks, name, found)

    with parallel_config(backend="loky", inner_max_num_threads=1):
        each = [row for some in Parallel(n_jobs=jobs, pre_dispatch=jobs)(trained()) for row in some]
    for kind, what, larger in (
        ("classes", "accuracy", False), ("classes", "accuracy", True), ("values", "r2", False), ("values", "r2", True)
    ):  # fmt: skip
        own = [row for row in each if row.get(what) is not None and row["larger"] == larger]
        if not own:
            continue
        numbers = {key: [row[key] for row in own if row[key] is not None] for key in own[0]}
        mean = {key: fmean(found) for key, found in numbers.items() if found and key not in ("task", "larger")}
        worst = {f"{key}_worst": min(numbers[key]) for key in ("node_auc", "pearson") if numbers.get(key)}
        yield {"set": kind, "larger": larger, **mean, **worst, "each": own, "seconds": time.perf_counter() - started}


def truth_scores(tasks: Path, name: str, model: Model) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    graphs, truths = load(tasks, name)
    networks, rows = Networks(model), []
    for larger in (False, True):
        part = ExplainedPart.of(graphs, truths, "test", larger=larger)
        if len(part):
            found = networks.explain(part.graphs, part.classes)
            scores = {**ranking_scores(found, part), **structure_scores(found, part)}
            rows.append({"task": name, "larger": larger, **prediction_scores(networks.predictions(part.graphs), part)})
            rows[-1] |= scores
    return rows
