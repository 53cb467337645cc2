"""One task with one seed: train, explain the test part, score it beside the controls -> one row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from lab.truths import ours
from lab.truths.suite.files import load
from lab.truths.suite.scoring.controls import control_scores
from lab.truths.suite.scoring.measures import prediction_scores, ranking_scores, structure_scores
from lab.truths.suite.scoring.part import ExplainedPart


def measure_ours(folder: Path, name: str, seed: int, networks: int) -> dict[str, Any]:
    """Scores on test graphs of the usual size, on larger ones where the task has them, and of the controls."""
    torch.set_num_threads(1)
    graphs, truths = load(folder, name)
    started = time.perf_counter()
    trained = ours.train(graphs, seed=seed, networks=networks)
    seconds = time.perf_counter() - started
    test = ExplainedPart.of(graphs, truths, "test")
    row: dict[str, Any] = {"seconds": seconds, "test": _scores(trained, test)}
    larger = ExplainedPart.of(graphs, truths, "test", larger=True)
    if len(larger):
        row["larger"] = _scores(trained, larger)
    row["controls"] = control_scores(ExplainedPart.of(graphs, truths, "train"), test, trained, seed)
    return row


def _scores(trained: ours.Networks, part: ExplainedPart) -> dict[str, Any]:
    started = time.perf_counter()
    found = trained.explain(part.graphs, part.classes)
    milliseconds = (time.perf_counter() - started) / len(part) * 1000
    return {
        "graphs": len(part),
        **prediction_scores(trained.predictions(part.graphs), part),
        **ranking_scores(found, part),
        **structure_scores(found, part),
        "milliseconds": milliseconds,
    }
