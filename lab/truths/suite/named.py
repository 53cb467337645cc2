"""Tasks with published figures: benzene, logic7, alcohols, Mutagenicity -> examples in their own parts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from egocnn.data.graphs import Graph, Graphs
from egocnn.data.read import read
from egocnn.data.schema import PARTS
from egocnn.data.sources.smiles import parse_smiles
from lab.truths.known import Truth, read_edge_marks
from lab.truths.suite.molecules.examples import molecule_example
from lab.truths.suite.molecules.pool import PooledMolecule
from lab.truths.suite.task import FULL, NAMED, Example, Sizes, SuiteTask, assign_parts

MUTAGEN = "0"
SPLIT_WORDS = {"train": "train", "valid": "validation", "val": "validation", "validation": "validation", "test": "test"}


def make_attribution(name: str, *, nothing: bool) -> Callable[[Sizes, np.random.Generator, Path], list[Example]]:
    """A set of the graph-attribution benchmark (Sanchez-Lengeling et al., NeurIPS 2020) with its own split.

    In full all of it; else its positives and as many negatives, up to the size of each part.
    """

    def make(sizes: Sizes, random: np.random.Generator, folder: Path) -> list[Example]:
        with (folder / "explain" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if sizes.train < FULL.train:
            rows = _fewer(rows, sizes, random)
        examples = []
        for row in rows:
            pooled = PooledMolecule(row["id"], row["smiles"], parse_smiles(row["smiles"]), {})
            positive = row["label"] == "1"
            examples.append(
                molecule_example(
                    pooled,
                    "yes" if positive else "no",
                    part=SPLIT_WORDS[row["split"]],
                    alternatives=tuple(map(tuple, json.loads(row["critical_atoms"]))) if positive else (),
                    nothing=nothing and not positive,
                )
            )
        return examples

    return make


def _fewer(rows: list[dict[str, str]], sizes: Sizes, random: np.random.Generator) -> list[dict[str, str]]:
    """Of every part at most so many rows, half of them positive where there are enough."""
    found = []
    for part in PARTS:
        own = [row for row in rows if SPLIT_WORDS[row["split"]] == part]
        most = getattr(sizes, part)
        chosen = [own[i] for i in random.permutation(len(own))]
        positives = [row for row in chosen if row["label"] == "1"][: most // 2]
        found += positives + [row for row in chosen if row["label"] != "1"][: most - len(positives)]
    return found


def _example(graph: Graph, part: str, **known: object) -> Example:
    """A graph that is read already."""
    assert graph.target is not None
    return replace(
        Example(
            name=graph.name,
            n_nodes=graph.n_nodes,
            edges=tuple((int(u), int(v)) for u, v in graph.edges),
            target=graph.target,
            node_label=graph.node_label,
            edge_label=graph.edge_label,
            smiles=graph.smiles,
            part=part,
        ),
        **known,  # type: ignore[arg-type]
    )


def make_alcohols(_: Sizes, __: np.random.Generator, ___: Path) -> list[Example]:
    """Alkanes and alcohols; the test part has sizes that are never trained on, to 82 carbons."""
    graphs = read("compounds:alcohols")
    assert graphs.part is not None
    found = []
    for graph, part in zip(graphs, graphs.part.tolist(), strict=True):
        truth = Truth.of(graph)
        is_alcohol = graph.target == "alcohol"
        found.append(
            _example(
                graph,
                PARTS[part],
                alternatives=tuple(tuple(nodes.tolist()) for nodes in truth.alternatives),
                critical_edges=_marked(graph) if is_alcohol else None,
                nothing=not is_alcohol,
            )
        )
    return found


def make_mutagenicity(sizes: Sizes, random: np.random.Generator, folder: Path) -> list[Example]:
    """All molecules or, in fewer, half mutagens; the truth is known where NO2 or NH2 of a mutagen is marked."""
    source = folder / "tu" / "Mutagenicity.zip"
    graphs: Graphs = read_edge_marks(folder / "explain" / "Mutagenicity_edge_gt.txt", read(source), source)
    chosen = random.permutation(len(graphs))
    if sizes.train < FULL.train:
        chosen = chosen[: sizes.same_size]
    examples = []
    for graph in graphs[np.sort(chosen)]:
        edges = _marked(graph) if graph.target == MUTAGEN else ()
        nodes = tuple(sorted({node for edge in edges for node in edge}))
        known = {"alternatives": (nodes,), "critical_edges": edges} if nodes else {}
        examples.append(_example(graph, "train", **known))
    return assign_parts(examples, sizes, random)


def _marked(graph: Graph) -> tuple[tuple[int, int], ...]:
    assert graph.edge_truth is not None
    return tuple((int(u), int(v)) for u, v in graph.edges[graph.edge_truth])


NAMED_TASKS = (
    SuiteTask(name="benzene", family=NAMED, what="a benzene ring", make=make_attribution("benzene", nothing=True)),
    SuiteTask(
        name="logic7", family=NAMED, what="fluoride and carbonyl", make=make_attribution("logic7", nothing=False)
    ),
    SuiteTask(name="alcohols", family=NAMED, what="the OH of alcohols to C82", make=make_alcohols, positive="alcohol"),
    SuiteTask(
        name="mutagenicity",
        family=NAMED,
        what="N-O and N-H bonds of NO2 and NH2 in mutagens",
        make=make_mutagenicity,
        positive=MUTAGEN,
    ),
)
