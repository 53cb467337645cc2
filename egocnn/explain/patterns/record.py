"""A pattern: a fragment that recurs in what was critical for a class, with its counts, as one plain record."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from egocnn.data.graphs import Graph

RAISES, LOWERS = "raises the value", "lowers the value"  # The classes where values were predicted.
HIGH_OR_LOW = {RAISES: "the graphs above the median", LOWERS: "the graphs up to the median"}
NUMBERS = (  # of a pattern, as they stand in JSON
    *("critical", "of_predicted", "in_class", "of_class", "in_others", "of_others", "share_in_class"),
    *("share_in_others", "lift", "p_value", "tests", "undecided"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """One place where a pattern was critical."""

    graph: Graph
    nodes: tuple[int, ...]  # node ids in the graph, those of ``Pattern.graph`` in its order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternCounts:
    """How much more often graphs of a class contain a fragment than the others do."""

    class_name: str
    critical: int  # graphs predicted as the class where it is part of the critical structure
    of_predicted: int  # graphs predicted as the class
    in_class: int  # graphs of the class (the true one where known, else the predicted) that contain it, critical or not
    of_class: int
    in_others: int
    of_others: int
    p_value: float  # chance of so many in the class or more if the pattern had nothing to do with it, times ``tests``
    tests: int  # fragments tried, over all classes, by which the chance is multiplied (Bonferroni)
    undecided: int  # graphs in which the search took too long, counted against the pattern: p is at most too large

    @property
    def share_in_class(self) -> float:
        return self.in_class / max(self.of_class, 1)

    @property
    def share_in_others(self) -> float:
        return self.in_others / max(self.of_others, 1)

    @property
    def lift(self) -> float:
        """P(class | pattern) / P(class)"""
        graphs, holders = self.of_class + self.of_others, self.in_class + self.in_others
        return (self.in_class / holders) / (self.of_class / graphs) if holders and self.of_class else 0.0

    @property
    def is_significant(self) -> bool:
        """whether it is commoner in the class, and not by chance"""
        return self.p_value < 0.01 and self.lift > 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern(PatternCounts):
    """A connected fragment with its counts."""

    name: str  # in plain words
    graph: Graph  # the fragment alone; a molecule's with its hydrogens where those are nodes, except on carbon
    smiles: str | None
    smarts: str | None  # of a molecule's fragment; the hydrogens of atoms other than carbon count
    examples: tuple[Occurrence, ...]

    def __str__(self) -> str:
        """nitro group: in 41% of class mutagen, 7% of the others (lift 1.6, p < 1e-90)"""
        group = HIGH_OR_LOW.get(self.class_name, f"class {self.class_name}")
        given_up = f"; {self.undecided} undecided graphs counted against it" if self.undecided else ""
        shares = f"{percent(self.share_in_class)} of {group}, {percent(self.share_in_others)} of the others"
        return f"{self.name}: in {shares} (lift {times(self.lift)}, {chance(self.p_value)}){given_up}"

    def to_plain(self) -> Mapping[str, Any]:
        """Numbers, texts and lists alone, for JSON."""
        bonds = self.graph.edge_label or [None] * len(self.graph.edges)
        return {
            "class": self.class_name,
            "name": self.name,
            "sentence": str(self),
            "smiles": self.smiles,
            "smarts": self.smarts,
            "nodes": list(self.graph.node_label) if self.graph.node_label else self.graph.n_nodes,
            "edges": [[u, v, bond] for (u, v), bond in zip(self.graph.edges.tolist(), bonds, strict=True)],
            **{name: getattr(self, name) for name in NUMBERS},
            "significant": self.is_significant,
            "examples": [{"name": example.graph.name, "nodes": list(example.nodes)} for example in self.examples],
        }


def percent(share: float) -> str:
    """41%, 0.4%, under 0.1%, 0%"""
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{100 * share:.1f}%" if 0 < share < 0.01 or 0.99 < share < 1 else f"{100 * share:.0f}%"


def times(lift: float) -> str:
    """1.6, 0.95"""
    return f"{lift:.1f}" if lift >= 1.1 or lift == 0 else f"{lift:.2f}"


def chance(p_value: float) -> str:
    """p = 0.03, p < 1e-90; what is smaller than numbers go is p < 1e-300"""
    if p_value >= 0.001:
        return f"p = {p_value:.2g}"
    exponent = math.floor(math.log10(p_value)) + 1 if p_value > 1e-300 else -300
    return f"p < 1e{exponent}"
