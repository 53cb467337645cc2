"""What some choices of the explanations cost and give: models of the choosing half -> scores of each way, as JSON.

    python -m lab truths choices --tasks FOLDER --device cuda --jobs 13

Every choosing task trains one model of three networks (one that is in the work folder already is taken from there).
Its test graphs are then explained with all networks asked at every point of the integrated gradients and with the
points divided among them, with other weights of relevance, with none to three nodes between pieces of a structure that
are joined, with several shares of the largest contribution below which a node is taken off a structure, and with
several shares of the evidence that pieces must keep which are not enough for the output. The weights of
:mod:`egocnn.explain.additive`, the constants of :mod:`egocnn.explain.selection` and the use of ``divided`` in
:mod:`egocnn.explain.portion` come from here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

import torch

from egocnn.config import PRESETS, Device, ExplainConfig, TrainConfig
from egocnn.explain.additive import RELEVANCE_OF_CLASS, RELEVANCE_OF_VALUE, integrated_gradients
from egocnn.explain.explain import explain
from egocnn.explain.selection.grow import APART
from egocnn.explain.selection.pieces import BETWEEN, LITTLE
from egocnn.files import write_json
from egocnn.model import Model
from egocnn.train.recipe import learn
from lab.record import circumstances
from lab.truths.ours import Networks
from lab.truths.suite.files import load
from lab.truths.suite.index import read_index
from lab.truths.suite.scoring.measures import Scores, prediction_scores, ranking_scores, structure_scores
from lab.truths.suite.scoring.part import ExplainedPart

WORK = Path("runs/truths_choices")
PRESENT: dict[str, Any] = {
    "divided": True,
    "relevance_of_class": RELEVANCE_OF_CLASS,
    "relevance_of_value": RELEVANCE_OF_VALUE,
    "between": BETWEEN,
    "little": LITTLE,
    "apart": APART,
}
OTHERS: dict[str, tuple[Any, ...]] = {
    "divided": (False,),
    "relevance_of_class": (0.5, 1.0, 2.0, 3.0),
    "relevance_of_value": (0.0, 0.25, 0.5),
    "between": (0, 1, 3),
    "little": (0.0, 0.15, 0.4),
    "apart": (-100.0, 0.25, 0.75),  # -100: whatever they keep
}
PLACES = {"relevance_of_class": "additive", "relevance_of_value": "additive"}
PLACES |= {"between": "selection.pieces", "little": "selection.pieces", "apart": "selection.grow"}
WAYS = [PRESENT, *(PRESENT | {name: other} for name, others in OTHERS.items() for other in others)]
WAYS = [way for n, way in enumerate(WAYS) if way not in WAYS[:n]]


def score_choices(
    tasks: Path, out: Path, *, work: Path, device: Device, jobs: int, command: str, say: Callable[[str], None]
) -> None:
    """Write the mean score of every way over the tasks of the choosing half, and those of every task."""
    from joblib import Parallel, delayed, parallel_config

    names = [name for name, info in read_index(tasks).items() if info.half == "choosing"]

    def trained() -> Iterator[Any]:
        for name in names:  # a GPU trains one after the other, while processes explain those before
            _train(tasks, name, work / name, device)
            say(name)
            yield delayed(_scores)(tasks, name, work / name)

    with parallel_config(backend="loky", inner_max_num_threads=1):
        rows = [row for found in Parallel(n_jobs=jobs, pre_dispatch=jobs)(trained()) for row in found]
    ways = [_mean([row for row in rows if row.items() >= way.items()], way) for way in WAYS]
    title = "Choices of how to explain, on the choosing half of the truths"
    record = {"title": title, "tasks": names, "networks": TrainConfig().networks, "ways": ways, "rows": rows}
    write_json(out, {**record, "command": command, **circumstances(device=device)})


def _train(tasks: Path, name: str, folder: Path, device: Device) -> None:
    if not (folder / "config.json").exists():
        preset = PRESETS["default"]
        model, _ = learn(load(tasks, name)[0], preset.model, replace(preset.train, device=device))
        for network in model.networks:
            network.cpu()
        folder.mkdir(parents=True, exist_ok=True)
        model.save(folder)


def _scores(tasks: Path, name: str, folder: Path) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    graphs, truths = load(tasks, name)
    part, model = ExplainedPart.of(graphs, truths, "test"), Networks(Model.load(folder))
    predicted, rows = prediction_scores(model.predictions(part.graphs), part), []
    for way in WAYS:
        with _way(**way):
            started = time.process_time()
            found = explain(model.model, part.graphs, ExplainConfig(), classes=part.classes, device="cpu")
            milliseconds = (time.process_time() - started) / len(part) * 1000
        scores: Scores = {**predicted, **ranking_scores(found, part), **structure_scores(found, part)}
        kept = [one.fidelity.evidence_kept for one in found if one.fidelity and len(one.critical_nodes)]
        scores["evidence_kept"] = median([share for share in kept if share is not None] or [0.0])
        rows.append({"task": name, **way, **scores, "processor_milliseconds": milliseconds})
    return rows


@contextmanager
def _way(*, divided: bool, **constants: float) -> Iterator[None]:
    def gradients(question: Any, steps: int, **_: bool) -> torch.Tensor:
        return integrated_gradients(question, steps, divided=divided)

    with ExitStack() as patched:
        patched.enter_context(patch("egocnn.explain.portion.integrated_gradients", gradients))
        for name, value in constants.items():
            patched.enter_context(patch(f"egocnn.explain.{PLACES[name]}.{name.upper()}", value))
        yield


def _mean(rows: list[dict[str, Any]], way: dict[str, Any]) -> dict[str, Any]:
    """Of classifications and regressions apart: their structures are scored by different measures."""
    found = dict(way)
    for kind, score in (("classes", "accuracy"), ("values", "r2")):
        own = [row for row in rows if row.get(score) is not None]
        scores = {name: [row[name] for row in own if row[name] is not None] for name in (own[0] if own else {})}
        numbers = {name: values for name, values in scores.items() if name not in ("task", *way)}
        found[kind] = {name: round(fmean(values), 4) for name, values in numbers.items() if values}
    return found
