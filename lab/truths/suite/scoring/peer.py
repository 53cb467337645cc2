"""GINEs on a task, with the explainers that their users have: a folder of tasks -> scores of every technique.

As many of them as ours has networks predict and explain by their mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from egocnn.config import PRESETS
from egocnn.data.graphs import Graphs
from lab.truths.importance import Importance
from lab.truths.ours import SEEDS_APART, HasStructure, Structure
from lab.truths.suite.files import load
from lab.truths.suite.scoring.controls import NOBODY
from lab.truths.suite.scoring.measures import prediction_scores, ranking_scores
from lab.truths.suite.scoring.part import ExplainedPart

MOST = {"GNNExplainer": 30, "PGExplainer": 1000, "integrated-gradients": 200, "occlusion": 100, "CAM": 1000}
"""graphs that each technique is measured on: GNNExplainer takes about a second for one"""
EPOCHS, PATIENCE = 60, 15
LEARNED_FROM = 500  # graphs that PGExplainer learns from


def measure_peer(folder: Path, name: str, seed: int, networks: int) -> dict[str, Any]:
    """Accuracy or R² and, technique by technique, how well what is known is found."""
    from lab.rivals import cam, fit, gnn_explainer, integrated_gradients, occlusion, pg_explainer
    from lab.rivals.gine import GINEConfig

    torch.set_num_threads(1)
    graphs, truths = load(folder, name)
    started = time.perf_counter()
    depth = PRESETS["default"].model.depth  # as deep as ours
    # a value that is a sum over the nodes asks for a sum
    config = GINEConfig(layers=depth, readout="mean" if graphs.is_classification else "sum")
    seeds = range(seed * SEEDS_APART, seed * SEEDS_APART + networks)
    models = [fit(graphs, config=config, seed=own, epochs=EPOCHS, patience=PATIENCE) for own in seeds]
    seconds = time.perf_counter() - started
    usual = ExplainedPart.of(graphs, truths, "test")
    part = usual.only(usual.with_structure) if graphs.is_classification else usual
    techniques: dict[str, Callable[..., Any]] = {
        "integrated-gradients": integrated_gradients, "occlusion": occlusion, "CAM": cam
    }  # fmt: skip
    if graphs.is_classification:  # masks have no sign, and so no contributions to a value
        learned = graphs.select("train")[:LEARNED_FROM]
        techniques["GNNExplainer"] = partial(gnn_explainer, seed=seed)
        techniques["PGExplainer"] = partial(pg_explainer, training=learned, seed=seed, epochs=10)
    rows = {}
    for technique, explain in techniques.items():
        some = part.only(range(min(MOST[technique], len(part))))
        found = _mean([_by_class(some, partial(explain, model)) for model in models])
        rows[technique] = ranking_scores(found, some) | {"graphs": len(some)}
    each = [model.probabilities(usual.graphs) if model.class_names else model.values(usual.graphs) for model in models]
    predicted = np.mean(each, axis=0)
    if graphs.is_classification:
        predicted = predicted[:, [models[0].class_names.index(name) for name in graphs.class_names]]
    return {**prediction_scores(predicted, usual), "seconds": seconds, "techniques": rows}


def _mean(several: Sequence[Sequence[HasStructure]]) -> list[HasStructure]:
    """What several networks say of the same graphs -> the means of their importances."""
    return [
        Structure(
            np.mean([each.node_importance for each in of_graph], axis=0),
            np.mean([each.edge_importance for each in of_graph], axis=0),
            NOBODY,
        )
        for of_graph in zip(*several, strict=True)
    ]


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
