"""The paper's figures 5 and 6 by name: train, explain, draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import MissingExtraError
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure, write_structures
from egocnn.files import write_json
from egocnn.show.report.folder import file_name
from egocnn.train.metrics import test_scores
from egocnn.train.recipe import learn
from lab.families import read
from lab.record import circumstances


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One data set, and which of its test graphs to draw."""

    data: str
    choose: Callable[[Graphs], Sequence[int]]
    network: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    size: tuple[int, int] = (640, 420)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    title: str
    panels: Sequence[Panel]


def _alcohols(graphs: Graphs) -> list[int]:
    """The alcohols with 14 and with 82 carbons, or the nearest held-out sizes."""
    alcohols = np.flatnonzero(graphs.target == graphs.class_names.index("alcohol"))
    carbons = np.array([(graphs[int(g)].node_label or ()).count("C") for g in alcohols])
    return [int(alcohols[np.abs(carbons - wanted).argmin()]) for wanted in (14, 82)]


def _isomers(graphs: Graphs) -> list[int]:
    """A symmetric and an asymmetric one on a chain of 11 carbons."""
    chosen = []
    for name in ("symmetric", "asymmetric"):
        of_class = np.flatnonzero(graphs.target == graphs.class_names.index(name))
        chosen.append(next(int(g) for g in of_class if graphs.names[g].startswith("isomer a5 ")))
    return chosen


def _threads(graphs: Graphs) -> list[int]:
    """Of each kind of thread the largest below 500 nodes, and the largest of all."""
    chosen = [int(graphs.node_counts.argmax())]
    for number in range(len(graphs.class_names)):
        sizes = np.where((graphs.target == number) & (graphs.node_counts < 500), graphs.node_counts, 0)
        chosen.append(int(sizes.argmax()))
    return chosen


FIGURES: dict[str, Figure] = {
    "figure5": Figure(
        title="Critical structures of alcohols (C14, C82) and of symmetric and asymmetric isomers",
        panels=(
            Panel(data="compounds:alcohols", choose=_alcohols),
            Panel(
                data="compounds:isomers",
                choose=_isomers,
                network=ModelConfig(depth=8, width=64),
                train=TrainConfig(epochs=50, patience=50),
            ),
        ),
    ),
    "figure6": Figure(
        title="Critical structures of discussion and question-answer threads of REDDIT-BINARY",
        panels=(
            Panel(data="REDDIT-BINARY", choose=_threads, train=TrainConfig(epochs=12, patience=12), size=(900, 700)),
        ),
    ),
}


def write_figure(name: str, *, folder: Path, seed: int = 0, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Draw into ``folder/NAME/`` as SVG and PNG, and write ``NAME.json`` with what is drawn."""
    drawn: list[dict[str, Any]] = []
    structures: list[CriticalStructure] = []
    files: list[str] = []
    for panel in FIGURES[name].panels:
        graphs = read(panel.data)
        training, test = (graphs, graphs.select("test")) if graphs.part is not None else graphs.split(seed=seed)
        say(f"{panel.data}: training on {len(training)} graphs")
        predictor, _ = learn(training, panel.network, replace(panel.train, seed=seed))
        accuracy = test_scores(predictor, test, device=panel.train.device)["accuracy"]
        say(f"{panel.data}: test accuracy {accuracy:.4f}")
        for structure in explain(predictor, test[panel.choose(test)]):
            place = Path(name) / file_name(f"{structure.predicted} {structure.name}")
            _draw(structure, folder / place, panel.size, say)
            structures.append(structure)
            files.append(f"{place}.svg")
            drawn.append(_facts(structure, panel, accuracy) | {"file": f"{place}.svg"})
    write_structures(structures, folder / name / "structures.jsonl")
    result = {
        "title": FIGURES[name].title,
        "rows": drawn,
        "files": files,
        "command": f"egocnn reproduce {name} --seed {seed}",
        **circumstances(),
    }
    write_json(folder / f"{name}.json", result)
    return result


def _draw(structure: CriticalStructure, path: Path, size: tuple[int, int], say: Callable[[str], None]) -> None:
    for suffix in (".svg", ".png"):
        try:
            structure.draw(path.with_name(path.name + suffix), size=size)
        except MissingExtraError as error:  # a picture less is no reason to lose the rest
            say(f"{path.name}{suffix}: {error}")


def _facts(structure: CriticalStructure, panel: Panel, accuracy: float) -> dict[str, Any]:
    assert structure.fidelity is not None
    return {
        "data": panel.data,
        "name": structure.name,
        "test_accuracy": round(accuracy, 4),
        "predicted": structure.predicted,
        "true": structure.graph.target,
        "probability": structure.probability,
        "nodes": structure.graph.n_nodes,
        "critical_nodes": len(structure.critical_nodes),
        "kept": structure.fidelity.kept,
        "removed": structure.fidelity.removed,
    }
