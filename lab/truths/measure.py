"""Train on one task with one seed, explain by every technique, score beside the controls and the peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from egocnn.config import ExplainConfig, Technique
from egocnn.data.arrays import Floats
from egocnn.data.collection import keep_nodes
from egocnn.data.graphs import Graphs
from egocnn.explain import explain, fit_attention
from egocnn.model import Model
from egocnn.train.metrics import test_scores
from egocnn.train.recipe import learn
from lab.truths import (
    HasImportance,
    Importance,
    Outcomes,
    TruthScores,
    average,
    degree_importances,
    label_importances,
    most_important,
    random_importances,
    random_scores,
    score_structures,
)
from lab.truths.tasks import TaskData, TruthTask

TECHNIQUES: tuple[tuple[Technique, int], ...] = (
    ("contributions", 10_000),
    ("relevance", 10_000),
    ("paper", 10_000),
    ("grad-cam", 10_000),
    ("gradient", 10_000),
    ("integrated-gradients", 200),
    ("occlusion", 100),
)
"""with how many graphs each is measured: the slow ones on the first few"""

SPARSITY = 0.75  # share of the nodes left out when a structure is kept alone
RELEVANCE = ExplainConfig(technique="relevance", select="threshold")
"""what is timed beside the peers, which choose no nodes"""
UNTRAINED = 10
SLOW = 20  # graphs for GNNExplainer, which takes about a second for each, and for our speed beside it


def measure_ours(task: TruthTask, seed: int) -> dict[str, Any]:
    """Our network: accuracy, scores of every technique, controls."""
    torch.set_num_threads(1)
    problem = task.load(seed)
    started = time.perf_counter()
    predictor, _ = learn(problem.training, task.network, replace(task.train, seed=seed, device="cpu"))
    seconds = time.perf_counter() - started
    rows = {}
    for technique, limit in TECHNIQUES:
        some = problem.explained[:limit]
        attention = None
        if technique == "paper":
            attention = fit_attention(predictor, _learned_on(problem.training), seed=seed, device="cpu")
        started = time.perf_counter()
        found = explain(
            predictor,
            some,
            ExplainConfig(technique=technique),
            classes=task.target,
            attention=attention,
            fidelity=False,
            device="cpu",
        )
        milliseconds = (time.perf_counter() - started) / len(some) * 1000
        scores = _score(problem, some, found, lambda graphs: predictor.probabilities(graphs, device="cpu"), task)
        rows[technique] = {**scores, "milliseconds": milliseconds}
    return {
        "accuracy": test_scores(predictor, problem.test, device="cpu")["accuracy"],
        "seconds": seconds,
        "techniques": rows,
        "controls": _controls(task, problem, predictor),
        "fast_milliseconds": _speed(task, problem, predictor),
    }


def measure_peer(task: TruthTask, seed: int) -> dict[str, Any]:
    """A GINE of PyG on the same graphs with the explainers its users have."""
    from lab.rivals import cam, fit, gnn_explainer, integrated_gradients, occlusion, pg_explainer
    from lab.rivals.gine import GINEConfig

    torch.set_num_threads(1)
    problem = task.load(seed)
    started = time.perf_counter()
    config = GINEConfig(layers=task.network.depth)  # as deep as ours: some tasks need more than three layers
    model = fit(problem.training, config=config, seed=seed, epochs=task.peer_epochs, patience=8)
    seconds = time.perf_counter() - started
    explained, target = problem.explained, task.target
    few, some = explained[:SLOW], explained[:100]
    found = {
        "GNNExplainer": (few, gnn_explainer(model, few, target=target, seed=seed)),
        "PGExplainer": (
            explained[:1000],
            pg_explainer(
                model,
                explained[:1000],
                training=_learned_on(problem.training)[:500],
                target=target,
                seed=seed,
                epochs=10,
            ),
        ),
        "integrated-gradients": (some, integrated_gradients(model, some, target=target)),
        "occlusion": (some, occlusion(model, some, target=target)),
        "CAM": (explained[:1000], cam(model, explained[:1000], target=target)),
    }
    return {
        "accuracy": model.accuracy(problem.test),
        "seconds": seconds,
        "techniques": {
            name: {
                **_score(problem, graphs, result.importances, model.probabilities, task),
                "milliseconds": result.milliseconds,
            }
            for name, (graphs, result) in found.items()
        },
    }


def _learned_on(graphs: Graphs) -> Graphs:
    return graphs if graphs.part is None else graphs.select("train")


def _score(
    problem: TaskData,
    graphs: Graphs,
    found: Sequence[HasImportance],
    ask: Callable[[Graphs], Floats],
    task: TruthTask,
) -> dict[str, Any]:
    truths = problem.truths[: len(graphs)]
    outcomes = _outcomes(graphs[:200], found[:200], ask, task.target)
    scores = score_structures(found, truths, graphs=list(graphs) if task.name == "isomers" else None)
    cut = score_structures(found[:200], truths[:200], outcomes=outcomes)
    return {
        **scores.to_plain(),
        "fidelity_plus": cut.fidelity_plus,
        "fidelity_minus": cut.fidelity_minus,
        "characterisation": cut.characterisation,
    }


def _outcomes(
    graphs: Graphs, found: Sequence[HasImportance], ask: Callable[[Graphs], Floats], target: str | None
) -> Outcomes:
    """The explained class's probabilities: whole graphs, without the most important nodes, with these alone."""
    chosen = np.zeros(graphs.n_nodes, bool)
    for first, one in zip(graphs.node_ptr[:-1].tolist(), found, strict=True):
        chosen[first + most_important(one.node_importance, SPARSITY)] = True
    whole = ask(graphs)
    column = whole.argmax(axis=1) if target is None else np.full(len(graphs), graphs.class_names.index(target))
    row = np.arange(len(graphs))
    return Outcomes(
        whole[row, column], ask(keep_nodes(graphs, ~chosen))[row, column], ask(keep_nodes(graphs, chosen))[row, column]
    )


def _controls(task: TruthTask, problem: TaskData, predictor: Model) -> dict[str, Any]:
    """What the scores are worth: chance, degree, the trivial rule, our technique on networks that learned nothing."""
    graphs, truths = problem.explained, problem.truths
    shown = list(graphs) if task.name == "isomers" else None

    def score(found: Sequence[HasImportance]) -> TruthScores:
        return score_structures(found, truths, graphs=shown)

    untrained = []
    for seed in range(UNTRAINED):
        torch.manual_seed(seed)
        blank = Model.build(predictor.config, predictor.encoder)
        untrained.append(score(explain(blank, graphs, classes=task.target, fidelity=False, device="cpu")))
    return {
        "random": (
            random_scores(graphs, truths).to_plain()["mean"]
            if shown is None
            else score(random_importances(graphs)).to_plain()
        ),
        "degree": score(degree_importances(graphs)).to_plain(),
        "few neighbours": score(_leaves(graphs)).to_plain(),
        task.rule: score(label_importances(graphs, task.trivial)).to_plain(),
        "untrained": average(untrained).to_plain(),
    }


def _leaves(graphs: Graphs) -> list[HasImportance]:
    """The fewer neighbours, the more important: hydrogens and oxygens at the rim win by this alone"""
    return [
        Importance(1 / (1 + one.node_importance), 1 / (1 + one.edge_importance)) for one in degree_importances(graphs)
    ]


def _speed(task: TruthTask, problem: TaskData, predictor: Model) -> float:
    """Milliseconds a graph for the graphs that GNNExplainer is timed on, each explained by itself, as it does them"""
    few = problem.explained[:SLOW]
    for _ in range(2):  # the first round pays for what torch sets up once
        started = time.perf_counter()
        for number in range(len(few)):
            explain(predictor, few[[number]], RELEVANCE, classes=task.target, fidelity=False, device="cpu")
        seconds = time.perf_counter() - started
    return seconds / len(few) * 1000
