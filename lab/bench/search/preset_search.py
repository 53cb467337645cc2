"""Which settings do better, on data that no test fold holds: one change to the settings after the other.

    python -m lab measure preset_search MUTAG NCI1 --variants base,no-jump -o results/preset_search.json

Of every fold of the protocol only what is not tested takes part: its validation part gives the score, and a tenth of
its training part, split off once more, chooses the epoch. So a score here is honest for the one who chooses settings by
it, and the test folds stay unseen. Each variant is scored four ways: weights of the best validation epoch or of the
last one, every restart by itself (their mean) or the mean of all restarts' probabilities.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.degrees import describe_by_degree
from egocnn.files import write_json
from egocnn.nn.device import choose_device
from egocnn.nn.predict import predict_each
from egocnn.study.crossval import choose_protocol
from egocnn.study.crossval.folds import FoldTask, derived
from egocnn.study.sweep import search as sweep
from egocnn.train.engines.common import Progress, copy_of
from egocnn.train.engines.recorded.engine import RecordedEngine
from egocnn.train.history import History
from egocnn.train.loop import fit
from egocnn.train.recipe import Replica, prepare_replicas
from lab.bench.search.augmentation import with_copies
from lab.bench.search.candidates import COPIES, VARIANTS
from lab.bench.search.triangles import with_triangles
from lab.record import arguments, circumstances, command_of

WITHOUT_SPLITS = ("MUTAG", "PTC_MR")  # Sets that have no published splits: folds of the paper's protocol.

CHOICES = ("best", "last")


def main(words: Sequence[str]) -> None:
    options = _options(words)
    earlier = []
    if options.out.exists():  # this run is added to it
        earlier = json.loads(options.out.read_text(encoding="utf-8"))["runs"]
    rows = []
    for data in options.data:
        graphs = read(data).replace(part=None)
        if options.graphs is not None:
            graphs = graphs[np.sort(np.random.default_rng(0).permutation(len(graphs))[: options.graphs])]
        for name in options.variants.split(","):
            rows.append(_row(graphs, data, name, options))
            print(_line(rows[-1]), flush=True)
            where = {"device": _device(options), **circumstances()}
            here = {"command": command_of("preset_search", words), **where, "rows": rows}
            write_json(options.out, {"runs": [*earlier, here]})


def _row(graphs: Graphs, data: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    model, train = VARIANTS[name]
    train = replace(train, networks=1, epochs=options.epochs or train.epochs, seed=options.seed, device=options.device)
    started = time.perf_counter()
    published = data not in WITHOUT_SPLITS and options.graphs is None
    tasks = inner_tasks(graphs, data, train, folds=options.folds, published=published)
    seeds = [[derived(train.seed, task.fold, n) for n in range(options.restarts)] for task in tasks]
    change = name.removeprefix("small-")
    graphs = described(graphs, change) if graphs.node_label is None else graphs
    replicas = prepare_replicas([task.without_tested(graphs) for task in tasks], model, train, seeds)
    if change in COPIES:
        replicas = [
            [*share_parts(own, with_copies(own[0], graphs[task.learned], COPIES[change]))]
            for own, task in zip(replicas, tasks, strict=True)
        ]
    prepared = time.perf_counter() - started
    logits = _logits(replicas, [graphs[task.tested] for task in tasks], train)
    assert graphs.target is not None
    truth = [graphs.target[task.tested] for task in tasks]
    return {
        "data": data,
        "variant": name,
        **{choice: scores([per_fold[choice] for per_fold in logits], truth) for choice in CHOICES},
        "seconds": round(time.perf_counter() - started, 1),
        "preparing_seconds": round(prepared, 1),
        "restarts": options.restarts,
        "model": asdict(model),
        "train": asdict(train),
    }


def described(graphs: Graphs, change: str) -> Graphs:
    """Nodes without labels, where the change is to how they are described; others as the model describes them"""
    if change == "no-profile":
        return describe_by_degree(graphs).replace(node_attr=None)
    if change.startswith("triangles-"):
        return with_triangles(graphs)
    return graphs


def share_parts(several: Sequence[Replica], model: Replica) -> list[Replica]:
    """All with the parts of one: what several share is stored once"""
    return [replace(each, parts=model.parts) for each in several]


def inner_tasks(graphs: Graphs, data: str, train: TrainConfig, *, folds: int, published: bool) -> list[FoldTask]:
    """The first so many folds without their tested graphs: the validation part is tested instead.

    ``published``: folds are those of the fair protocol, else of the paper's
    """
    protocol = choose_protocol("fair" if published else "paper", data=data)
    return sweep.inner_tasks(graphs, protocol, train)[:folds]


def _logits(
    replicas: Sequence[Sequence[Replica]], tested: Sequence[Graphs], train: TrainConfig
) -> list[dict[str, Tensor]]:
    """Of every fold: (restarts, G, C) by the weights of the best epoch, and of the last"""
    device = choose_device(train.device)
    every = [each for own in replicas for each in own]
    kept = _train_stacked(every, train) if device.type == "cuda" else _train_in_turn(every, train)
    held = [own[0].predictor.encode(graphs).to(device) for own, graphs in zip(replicas, tested, strict=True)]
    found: list[dict[str, Tensor]] = [{} for _ in replicas]
    for choice in CHOICES:
        kept[choice]()
        for per_fold, own, data in zip(found, replicas, held, strict=True):
            per_fold[choice] = predict_each([r.predictor.networks[0].to(device) for r in own], data).cpu()
    return found


def _train_stacked(every: Sequence[Replica], train: TrainConfig) -> dict[str, Callable[[], None]]:
    """Train to the last epoch; by choice, what gives the networks these weights"""
    progress = [Progress.begin(r.predictor.networks[0], train) for r in every]
    stack = RecordedEngine([r.members[0] for r in every], progress, train)
    histories = [History() for _ in every]
    alive = np.ones(len(every), bool)
    for epoch in range(1, train.epochs + 1):
        ended = stack.train_epoch(epoch, alive)
        stack.keep_best(
            np.array(
                [histories[r].add(ended[r], window=train.window(len(every[r].parts[1]))) for r in range(len(every))]
            )
        )
    last = [tensor.clone() for tensor in stack.network.state]
    return {"best": stack.finish, "last": lambda: stack.network.write_back(last)}


def _train_in_turn(every: Sequence[Replica], train: TrainConfig) -> dict[str, Callable[[], None]]:
    """The same, one network after the other"""
    best: list[dict[str, Tensor]] = []
    last: list[dict[str, Tensor]] = []
    for replica in every:
        network = replica.predictor.networks[0]

        def keep(progress: Sequence[Progress]) -> None:
            last[len(best) :] = [copy_of(progress[0].network)]

        fit(replica.members, replace(train, patience=train.epochs), keep=keep)
        best.append({name: value.clone() for name, value in network.state_dict().items()})

    def give(states: Sequence[dict[str, Tensor]]) -> None:
        for replica, state in zip(every, states, strict=True):
            replica.predictor.networks[0].load_state_dict(state)

    return {"best": lambda: give(best), "last": lambda: give(last)}


def scores(logits: Sequence[Tensor], truth: Sequence[Any]) -> dict[str, float]:
    """Accuracies in per cent over all folds, and their standard error"""
    alone, together = [], []
    for of_fold, target in zip(logits, truth, strict=True):
        right = torch.from_numpy(target)
        alone.append(float((of_fold.argmax(2) == right).double().mean()))
        together.append(float((torch.softmax(of_fold, 2).mean(0).argmax(1) == right).double().mean()))
    return {
        "alone": round(100 * float(np.mean(alone)), 2),
        "together": round(100 * float(np.mean(together)), 2),
        "error": round(100 * float(np.std(together, ddof=1)) / len(together) ** 0.5, 2),
    }


def _line(row: dict[str, Any]) -> str:
    shown = "  ".join(
        f"{choice} {row[choice]['alone']:.1f} / {row[choice]['together']:.1f} ± {row[choice]['error']:.1f}"
        for choice in CHOICES
    )
    return f"{row['data']:14} {row['variant']:18} {shown}   {row['preparing_seconds']} + {row['seconds']} s"


def _device(options: argparse.Namespace) -> str:
    device = choose_device(options.device)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = arguments("preset_search", __doc__)
    parser.add_argument("data", nargs="+", help="data sets by name")
    parser.add_argument("--variants", default="base", help="names in candidates.py, with commas between")
    parser.add_argument("--folds", type=int, default=10, help="use the first so many folds")
    parser.add_argument("--graphs", type=int, help="only so many, drawn at random, in folds of the paper's protocol")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=None, help="instead of the variant's own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    return parser.parse_args(words)
