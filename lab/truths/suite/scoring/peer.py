"""A GINE on a task, with the explainers that its users have: a folder of tasks -> scores of every technique."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from egocnn.config import PRESETS
from egocnn.data.graphs import Graphs
from lab.truths.importance import Importance
from lab.truths.ours import HasStructure, Structure
from lab.truths.suite.files import load
from lab.truths.suite.scoring.controls import NOBODY
from lab.truths.suite.scoring.measures import prediction_scores, ranking_scores
from lab.truths.suite.scoring.part import ExplainedPart

MOST = {"GNNExplainer": 30, "PGExplainer": 1000, "integrated-gradients": 200, "occlusion": 100, "CAM": 1000}
"""graphs that each technique is measured on: GNNExplainer takes about a second for one"""
EPOCHS, PATIENCE = 60, 15
LEARNED_FROM = 500  # graphs that PGExplainer learns from


def measure_peer(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """Accuracy or R² and, technique by technique, how well what is known is found."""
    from lab.rivals import cam, fit, gnn_explainer, integrated_gradients, occlusion, pg_explainer
    from lab.rivals.gine import GINEConfig

    torch.set_num_threads(1)
    graphs, truths = load(folder, name)
    started = time.perf_counter()
    depth = PRESETS["default"].model.depth  # as deep as ours
    # a value that is a sum over the nodes asks for a sum
    config = GINEConfig(layers=depth, readout="mean" if graphs.is_classification else "sum")
    model = fit(graphs, config=config, seed=seed, epochs=EPOCHS, patience=PATIENCE)
    seconds = time.perf_counter() - started
    usual = ExplainedPart.of(graphs, truths, "test")
    part = usual.only(usual.with_structure) if graphs.is_classification else usual
    techniques: dict[str, Callable[..., Any]] = {
        "integrated-gradients": partial(integrated_gradients, model),
        "occlusion": partial(occlusion, model),
        "CAM": partial(cam, model),
    }
    if graphs.is_classification:  # masks have no sign, and so no contributions to a value
        learned = graphs.select("train")[:LEARNED_FROM]
        techniques["GNNExplainer"] = partial(gnn_explainer, model, seed=seed)
        techniques["PGExplainer"] = partial(pg_explainer, model, training=learned, seed=seed, epochs=10)
    rows = {}
    for technique, explain in techniques.items():
        some = part.only(range(min(MOST[technique], len(part))))
        rows[technique] = ranking_scores(_by_class(some, explain), some) | {"graphs": len(some)}
    predicted = model.probabilities(usual.graphs) if graphs.is_classification else model.values(usual.graphs)
    if graphs.is_classification:
        predicted = predicted[:, [model.class_names.index(name) for name in graphs.class_names]]
    return {**prediction_scores(predicted, usual), "seconds": seconds, "techniques": rows}


def _by_class(part: ExplainedPart, explain: Callable[..., Any]) -> list[HasStructure]:
    """Every graph explained for its own class: the explainers take one class for all graphs that they are given."""
    classes: list[str] | list[None] = part.classes or [None] * len(part)
    found: dict[int, HasStructure] = {}
    for name in dict.fromkeys(classes):
        own = [g for g, each in enumerate(classes) if each == name]
        graphs: Graphs = part.graphs[own]
        importances: list[Importance] = explain(graphs, target=name).importances
        for g, one in zip(own, importances, strict=True):
            found[g] = Structure(one.node_importance, one.edge_importance, NOBODY)
    return [found[g] for g in range(len(part))]
