"""Are explanations of real data small, connected, enough, needed, stable, signed as expected? -> JSON and Markdown.

    python -m lab measure real_structures --sets bbbp esol MUTAG --seeds 2

Trains the default model with every seed, explains the test part, and says what can be said where no truth is known.
Trained models are kept under --runs as SET-0, SET-1, ... and used again where they are there; one that learned from
another split is refused. Sets of molecules are tested by scaffold (column scaffold0), others on a fifth that a seed
draws, the same in every training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure
from egocnn.files import write_json, write_text
from egocnn.model import Model
from egocnn.nn.device import choose_device
from lab.bench.real.groups import Expectation, GroupContribution, expectations, group_contributions
from lab.bench.real.measures import (
    Numbers,
    agreement,
    evidence_by_cutting,
    evidence_by_presence,
    explained_outputs,
    gap_scores,
    mean_of,
    prediction_scores,
    sign_shares,
    size_scores,
)
from lab.bench.real.page import page
from lab.bench.real.sets import SETS, Trainings, load_set, settings_of, some_of
from lab.record import arguments, circumstances, command_of, one_line


def main(words: Sequence[str]) -> None:
    options = _options(words)
    trainings = Trainings(runs=options.runs, networks=options.networks, epochs=options.epochs, device=options.device)
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        graphs = load_set(name)
        models = []
        for number in range(options.seeds):
            print(f"{name}, training {number}: {trainings.folder(name, number)}", flush=True)
            models.append(trainings.model(name, graphs, number))
        test = graphs.select("test")
        scores = [prediction_scores(model, test, device=options.device) for model in models]
        found = measure(models, some_of(test, options.limit), expectations(name), options.device)
        rows.append({"set": name, "tested": len(test), "scores": mean_of(scores), "scores_of_each": scores, **found})
        record = {
            "what": one_line(__doc__.splitlines()[0]),
            "sets": rows,
            "command": command_of("real_structures", words),
            **circumstances("rdkit", device=choose_device(options.device).type),
        }
        write_json(options.out, record)  # after every set: training takes hours
        write_text(options.out.with_suffix(".md"), page(record))
    print(options.out.with_suffix(".md").read_text(encoding="utf-8"))


def measure(
    models: Sequence[Model], graphs: Graphs, expected: Sequence[Expectation], device: str = "auto"
) -> dict[str, Any]:
    """Everything about one set: each training by itself, their mean, how far they agree, and functional groups."""
    explained, trainings = [], []
    for model in models:
        started = time.perf_counter()
        found = explain(model, graphs, device=device)
        milliseconds = (time.perf_counter() - started) / max(len(graphs), 1) * 1000
        numbers = numbers_of(model, graphs, found, device) | {"milliseconds": milliseconds}
        explained.append(found)
        trainings.append({**settings_of(model), **numbers})
    mean = mean_of([{name: each[name] for name in numbers} for each in trainings])
    for name in ("gap", "gap_of_range"):
        mean[name] = max((each[name] for each in trainings if each[name] is not None), default=None)
    return {
        "graphs": len(graphs),
        "trainings": trainings,
        "mean": mean,
        "agreement": _agreement(models, graphs, explained, device),
        "groups": _groups(models, graphs, explained, expected, device),
    }


def numbers_of(model: Model, graphs: Graphs, found: Sequence[CriticalStructure], device: str) -> Numbers:
    """What can be said of the explanations of one training."""
    return {
        **size_scores(found),
        **sign_shares(found),
        **evidence_by_presence(found),
        **evidence_by_cutting(graphs, found, lambda cut: explained_outputs(model, cut, found, device=device)),
        **gap_scores(found),
    }


def explained_for(
    model: Model, graphs: Graphs, found: Sequence[CriticalStructure], classes: Sequence[str | None], device: str
) -> list[CriticalStructure]:
    """The same structures, but of graphs that were explained for another class new ones, for these classes."""
    wanted = list(classes)
    other = [g for g, (one, name) in enumerate(zip(found, wanted, strict=True)) if one.explained != name]
    same = list(found)
    if other:
        names = [name for g in other if (name := wanted[g]) is not None]
        anew = explain(model, graphs[np.array(other)], classes=names, fidelity=False, device=device)
        for g, one in zip(other, anew, strict=True):
            same[g] = one
    return same


def _agreement(
    models: Sequence[Model], graphs: Graphs, explained: Sequence[list[CriticalStructure]], device: str
) -> float | None:
    """The mean over all pairs of trainings, both explaining the class that the first of them predicts."""
    found = []
    for one, other in combinations(range(len(models)), 2):
        classes = [None if each.explained is None else str(each.explained) for each in explained[one]]
        same = explained_for(models[other], graphs, explained[other], classes, device)
        if (rho := agreement(explained[one], same)) is not None:
            found.append(rho)
    return float(np.mean(found)) if found else None


def _groups(
    models: Sequence[Model],
    graphs: Graphs,
    explained: Sequence[list[CriticalStructure]],
    expected: Sequence[Expectation],
    device: str,
) -> list[dict[str, Any]]:
    """A row a group, with its mean over the trainings."""
    rows = []
    for towards in dict.fromkeys(each.towards for each in expected):
        own = [each for each in expected if each.towards == towards]
        of_each = [
            group_contributions(explained_for(model, graphs, found, [towards] * len(graphs), device), own)
            for model, found in zip(models, explained, strict=True)
        ]
        rows += [_group_row(towards, several) for several in zip(*of_each, strict=True)]
    return rows


def _group_row(towards: str | None, several: Sequence[GroupContribution]) -> dict[str, Any]:
    means = [each.mean for each in several if each.mean is not None]
    first = several[0]
    whole = GroupContribution(
        group=first.group,
        expected=first.expected,
        molecules=first.molecules,
        mean=float(np.mean(means)) if means else None,
    )
    return {"towards": towards, **asdict(whole), "of_each": means, "is_as_expected": whole.is_as_expected}


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = arguments("real_structures", __doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="NAME", help=f"[{' '.join(SETS)}]")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="trainings of every set [%(default)s]")
    parser.add_argument("--networks", type=int, metavar="R", help="networks of a model [as by default]")
    parser.add_argument("--epochs", type=int, metavar="N", help="fewer epochs, to try it out [as by default]")
    parser.add_argument("--limit", type=int, metavar="N", help="explain so many test graphs, drawn by a seed [all]")
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs/real_structures"),
        metavar="FOLDER",
        help="run folders SET-0, SET-1, ...: used where they are there, else trained [%(default)s]",
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="[%(default)s]")
    options = parser.parse_args(words)
    for name in ("seeds", "limit"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise ConfigError(f"--{name} must be at least 1, got {value}")
    return options
