"""Which rule points best: models of the choosing half -> the scores of weighted sums of views, as JSON.

    python -m lab truths rules --tasks FOLDER

Every choosing task trains one network with the default settings (a model that is in the work folder already is taken
from there). All views of the evidence are computed once; a rule adds some of them up, each divided by its size, hands
every node a share of what its neighbours hold, and then one of the mean of its short cycles. The constants of
:mod:`egocnn.explain.additive` come from here, and so do the defaults of ``gamma`` and ``steps``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from egocnn.config import PRESETS, ExplainConfig
from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.explain.additive import blurred, integrated_gradients, normed
from egocnn.explain.additive.cycles import Cycles
from egocnn.explain.backtrack import EdgeNumbers
from egocnn.explain.explain import asking_no_gradients
from egocnn.explain.portion import mean_in_groups, symmetric_groups
from egocnn.explain.question import Question
from egocnn.explain.techniques import ExplainedBatch, by_relevance
from egocnn.files import write_json
from egocnn.model import Model
from egocnn.nn.batch import Batch
from egocnn.train.recipe import learn
from lab.record import circumstances
from lab.truths.importance import edges_from_nodes
from lab.truths.ours import Structure
from lab.truths.suite.files import load
from lab.truths.suite.index import read_index
from lab.truths.suite.scoring.measures import Scores, ranking_scores
from lab.truths.suite.scoring.part import ExplainedPart

WORK = Path("runs/truths_rules")
POINTS = (2, 3, 16)  # of the integrated gradients
GAMMAS = (0.25, 1.0, 4.0)  # of relevance
BLURS = (0.0, 0.1, 0.25, 0.4)
ON_CYCLES = (0.0, 0.5, 0.75)
SHOWN = ("node_auc", "pearson", "kendall")


@dataclass(frozen=True, slots=True)
class Rule:
    """Weights of views by name, and the shares of what stands around a node and on its cycles."""

    weights: tuple[tuple[str, float], ...]
    blur: float
    on_cycles: float

    @property
    def name(self) -> str:
        """Weights and views, as one would write the sum."""
        return " + ".join(f"{weight:g} {view}" for view, weight in self.weights)


def all_rules() -> list[Rule]:
    """Every view alone, and sums of two and three with relevance counting from a quarter as much to twice as much."""
    sums: list[tuple[tuple[str, float], ...]] = [((f"gradients {points}", 1.0),) for points in POINTS]
    sums.append((("read out", 1.0),))
    for gamma in GAMMAS:
        relevance = f"relevance {gamma:g}"
        sums.append(((relevance, 1.0),))
        for weight in (0.25, 0.5, 1.0, 2.0):
            for points in POINTS[:2]:
                pair = ((f"gradients {points}", 1.0), (relevance, weight))
                sums += [pair, (*pair, ("read out", 0.5))]
    return [Rule(each, blur, share) for each in sums for blur in BLURS for share in ON_CYCLES]


def score_rules(tasks: Path, out: Path, *, work: Path, command: str, say: Callable[[str], None]) -> None:
    """Write the mean and the worst score of every rule over the tasks of the choosing half."""
    torch.set_num_threads(1)
    rules, found = all_rules(), dict[str, dict[str, list[Scores]]]()
    for name, info in read_index(tasks).items():
        if info.half != "choosing":
            continue
        graphs, truths = load(tasks, name)
        model = _trained(graphs, work / name)
        for larger in (False, True):
            part = ExplainedPart.of(graphs, truths, "test", larger=larger)
            if len(part):
                found.setdefault(name, {})["larger" if larger else "test"] = _scores(model, part, rules)
        say(name)
    rows = [_row(rule, number, found) for number, rule in enumerate(rules)]
    title = "Rules on the choosing half of the truths: where contributions stand"
    record = {"title": title, "tasks": sorted(found), "networks": 1, "rows": rows, "command": command}
    write_json(out, {**record, **circumstances()})


def _trained(graphs: Graphs, folder: Path) -> Model:
    if not (folder / "config.json").exists():
        preset = PRESETS["default"]
        model, _ = learn(graphs, preset.model, replace(preset.train, networks=1, device="cpu"))
        folder.mkdir(parents=True, exist_ok=True)
        model.save(folder)
    return Model.load(folder)


def _scores(model: Model, part: ExplainedPart, rules: list[Rule]) -> list[Scores]:
    seen, graphs, cycles = views(model, part), list(part.graphs), Cycles.of(part.graphs)
    bounds = part.graphs.node_ptr[1:-1]
    scores = []
    for rule in rules:
        total = np.zeros(part.graphs.n_nodes)
        for view, weight in rule.weights:
            total += weight * normed(part.graphs, seen[view])
        nodes = np.split(cycles.share(blurred(part.graphs, total, rule.blur), rule.on_cycles), bounds)
        nobody = np.zeros(0, np.int64)
        one_each = [
            Structure(own, edges_from_nodes(graph, own), nobody) for graph, own in zip(graphs, nodes, strict=True)
        ]
        scores.append(ranking_scores(one_each, part))
    return scores


@torch.no_grad()
def views(model: Model, part: ExplainedPart) -> dict[str, Floats]:
    """(N) by name: where the evidence for the true class, or for the value, stands"""
    graphs, (network,) = part.graphs, (each.eval() for each in model.networks)
    encoded, every = model.encode(graphs), torch.arange(len(graphs))
    batch, names = encoded.batch(every), part.classes
    classes = torch.tensor([0 if names is None else model.class_names.index(names[g]) for g in range(len(graphs))])
    found = {}
    with asking_no_gradients([network]):
        for points in POINTS:
            question = Question([network], batch, classes, model)
            found[f"gradients {points}"] = integrated_gradients(question, points, divided=False)
        for gamma in GAMMAS:
            traced = by_relevance(_explained(model, graphs, batch, classes, gamma), against=1.0)
            found[f"relevance {gamma:g}"] = traced.nodes
        assert traced.read_out is not None
        found["read out"] = traced.read_out
    group, _ = symmetric_groups(model.encoder.told_apart(graphs))
    return {name: mean_in_groups(each.double().numpy(), group) for name, each in found.items()}


def _explained(model: Model, graphs: Graphs, batch: Batch, classes: torch.Tensor, gamma: float) -> ExplainedBatch:
    (network,) = model.networks
    return ExplainedBatch(
        network=network,
        batch=batch,
        output=network(batch),
        classes=classes,
        places=batch.places(model.encoder.shape(model.config)),
        edges=EdgeNumbers.of(graphs, torch.device("cpu")),
        attention=None,
        settings=ExplainConfig(gamma=gamma),
    )


def _row(rule: Rule, number: int, found: Mapping[str, Mapping[str, list[Scores]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"rule": rule.name, "blur": rule.blur, "on_cycles": rule.on_cycles}
    for part, before in (("test", ""), ("larger", "larger_")):
        of_tasks = {task: parts[part][number] for task, parts in found.items() if part in parts}
        for name in SHOWN:
            known = [value for scores in of_tasks.values() if (value := scores.get(name)) is not None]
            if known:
                row |= {before + name: round(fmean(known), 4), f"{before}{name}_worst": round(min(known), 4)}
    return row
