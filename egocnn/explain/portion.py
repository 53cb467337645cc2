"""Some graphs on their way from importances to critical structures, all of them together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.data.molecules import shown_labels
from egocnn.encode.colours import initial_colours, stable_colours
from egocnn.encode.ranking import MOST_ROUNDS
from egocnn.errors import DataError
from egocnn.explain.additive import Views, contributions, handed_to_edges, integrated_gradients
from egocnn.explain.question import Question
from egocnn.explain.selection.grow import CONCENTRATED, Evidence, grow, parts_of
from egocnn.explain.selection.pieces import pared
from egocnn.explain.selection.select import importance_at_least, select_nodes
from egocnn.explain.structure import CriticalStructure, Fidelity, Trace
from egocnn.model import Model

NEAR = 0.1  # A value counts as unchanged while it moves by no more than this share of the targets' standard deviation.
MOST_OF_HUGE = 300  # Nodes of a huge graph that are critical: more are no part to look at.
SAME = 1e-9  # Output and base that differ by less leave no evidence to have a share of.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Portion:
    """Some graphs with what the model predicts for them and why."""

    model: Model
    graphs: Graphs
    outputs_of_each: Floats  # (R, B, C) of every network
    classes: Ints  # (B) the explained ones
    output: Floats  # (B) the output that is explained
    base: Floats  # (B) the same with no node present
    whole: Question  # about all of them
    question: Callable[[Ints, Bools | None], Question]
    """the same about those with these numbers, which may repeat, and of their nodes about these alone"""
    known: dict[bytes, Floats]  # (C) the outputs of parts that the model was asked about, by their nodes
    nodes: Floats  # (N) importances
    edges: Floats  # (E) importances
    trace: Trace | None = None
    group: Ints | None = None  # (N) the same number for nodes that nothing tells apart; found by `symmetric`
    is_huge: bool = False  # whether it is one graph about whose parts nothing can be asked

    def symmetric(self) -> "Portion":
        """Nodes of the same colour share their importance alike, and so do like edges between such nodes.

        Symmetric neighbours have to be ranked one before the other, by node id, and so meet different filters on the
        way back. Which is which means nothing, and renumbering the nodes must not change the explanation."""
        group, pair = symmetric_groups(self.model.encoder.told_apart(self.graphs))
        trace = self.trace and Trace(mean_in_groups(self.trace.nodes, group), mean_in_groups(self.trace.edges, pair))
        nodes, edges = mean_in_groups(self.nodes, group), mean_in_groups(self.edges, pair)
        return replace(self, nodes=nodes, edges=edges, trace=trace, group=group)

    def adding_up(self, read_out: Floats, steps: int) -> "Portion":
        """Relevance, and evidence where it is read out (N) -> contributions that add up to the output less the base."""
        assert self.group is not None, "called on symmetric importances"
        of_class = bool(self.model.class_names)
        slopes = integrated_gradients(self.whole, steps, divided=of_class)
        gradients = mean_in_groups(_numpy(slopes), self.group)
        views = Views(gradients, mean_in_groups(read_out, self.group), self.nodes)
        place = views.together(self.graphs, of_class=of_class)
        nodes = contributions(self.graphs, gradients, place, self.output - self.base)
        edges = handed_to_edges(self.graphs, nodes)
        before = self.trace
        trace = before and Trace(np.vstack([before.nodes[:-1], nodes]), np.vstack([before.edges[:-1], edges]))
        return replace(self, nodes=nodes, edges=edges, trace=trace)

    def check_finite(self) -> None:
        """Refuse importances that are not numbers any more, though what was predicted is one."""
        wrong = np.flatnonzero(~np.isfinite(self.nodes))
        if len(wrong):
            graph = f"graph {self.graphs.names[int(self.graphs.graph_of[wrong[0]])]!r}"
            raise DataError(f"{graph}: the importance of a node is not a finite number; its numbers are too large")

    @property
    def outputs(self) -> Floats:
        """(B, C) the mean over the networks"""
        mean: Floats = self.outputs_of_each.mean(axis=0)
        return mean

    @torch.no_grad()
    def ask(self, numbers: Ints, parts: Sequence[Ints]) -> Floats:
        """Graphs with nothing present but these nodes of each, ascending -> their outputs (n, C)"""
        keys = [part.tobytes() for part in parts]
        new = {key: n for n, key in enumerate(keys) if key not in self.known}
        if new:
            asked = numbers[list(new.values())]
            counts = self.graphs.node_counts[asked]
            first = np.cumsum(counts) - counts - self.graphs.node_ptr[asked]  # in copies of these graphs
            there = np.zeros(counts.sum(), bool)
            there[np.concatenate([parts[n] + start for n, start in zip(new.values(), first, strict=True)])] = True
            self.known.update(zip(new, _numpy(self.question(asked, there).outputs()), strict=True))
        return np.array([self.known[key] for key in keys]).reshape(len(keys), len(self.known[b""]))

    def answers(self, numbers: Ints, parts: Sequence[Ints]) -> Floats:
        """The same as outputs that are explained (n)"""
        question = replace(self.whole, classes=torch.from_numpy(self.classes[numbers]))
        return _numpy(question.of_outputs(torch.from_numpy(self.ask(numbers, parts))))

    def select(self, config: ExplainConfig) -> Bools:
        """(N) the critical nodes"""
        if config.select != "connected" and not self.is_huge:
            return select_nodes(self.graphs, self.nodes, config, self._keeps_prediction)
        unit = None if self.model.class_names else float(self.model.encoder.target_scale)
        evidence = Evidence(self.output, self.base, unit, self.answers)
        score = self.nodes * evidence.direction[self.graphs.graph_of]
        if not self.is_huge:
            return pared(self.graphs, score, grow(self.graphs, self.nodes, evidence, config))
        chosen = importance_at_least(self.graphs, score, config.threshold) & bool(evidence.is_there)
        is_most = score[chosen].sum() >= CONCENTRATED * np.maximum(score, 0).sum()
        return chosen & bool(is_most and chosen.sum() <= MOST_OF_HUGE)

    def _keeps_prediction(self, numbers: Ints, chosen: Bools) -> Bools:
        """Whether each of these graphs is still predicted as it was with nothing but the chosen nodes (N)."""
        outputs, before = self.ask(numbers, parts_of(self.graphs, numbers, chosen)), self.outputs[numbers]
        if self.model.class_names:
            same: Bools = outputs.argmax(axis=1) == before.argmax(axis=1)
            return same
        return np.less_equal(np.abs(outputs - before)[:, 0], NEAR)

    def fidelity(self, chosen: Bools) -> list[Fidelity]:
        """What is predicted for every graph without the chosen nodes (N), and with nothing else."""
        numbers = np.unique(self.graphs.graph_of[chosen])
        removed, kept = self.output.copy(), self.base.copy()  # where nothing is chosen
        if len(numbers):
            both = (parts_of(self.graphs, numbers, present) for present in (~chosen, chosen))
            removed[numbers], kept[numbers] = (self.answers(numbers, parts) for parts in both)
        found = []
        for y, b, r, k in zip(self.output.tolist(), self.base.tolist(), removed.tolist(), kept.tolist(), strict=True):
            shares = (None, None) if abs(y - b) < SAME else ((y - r) / (y - b), (k - b) / (y - b))
            found.append(Fidelity(self._as_shown(r), self._as_shown(k), *shares))
        return found

    def _as_shown(self, answer: float) -> float:
        """Log-odds as probability; a value as it is"""
        return float(torch.sigmoid(torch.tensor(answer, dtype=torch.float64))) if self.model.class_names else answer

    def structures(self, chosen: Bools, fidelity: list[Fidelity] | None, technique: str) -> Iterator[CriticalStructure]:
        """One record per graph; ``chosen`` (N): the critical nodes."""
        graphs, trace, names = self.graphs, self.trace, self.model.class_names
        predictions = self.model.interpret(torch.from_numpy(self.outputs)).reshape(len(graphs), -1)
        spread = self.model.spread_of(self.outputs_of_each)
        first_edge = np.searchsorted(graphs.graph_of[graphs.edges[:, 0]], np.arange(len(graphs) + 1))
        for g, graph in enumerate(graphs):
            nodes = slice(int(graphs.node_ptr[g]), int(graphs.node_ptr[g + 1]))
            edges = slice(int(first_edge[g]), int(first_edge[g + 1]))
            best = int(predictions[g].argmax())
            critical = chosen[nodes]
            yield CriticalStructure(
                graph=shown_labels(graph), predicted=names[best] if names else float(predictions[g, 0]),
                probability=float(predictions[g, best]) if names else None,
                explained=names[int(self.classes[g])] if names else None, technique=technique,
                base=float(self.base[g]), output=float(self.output[g]),
                node_importance=self.nodes[nodes], edge_importance=self.edges[edges],
                critical_nodes=np.flatnonzero(critical),
                critical_edges=np.flatnonzero(critical[graph.edges].all(axis=1)),
                spread=None if spread is None else float(spread[g]), fidelity=None if fidelity is None else fidelity[g],
                trace=None if trace is None else Trace(trace.nodes[:, nodes], trace.edges[:, edges]),
            )  # fmt: skip


def mean_over_networks(of_each: Sequence[torch.Tensor]) -> Floats:
    """Numbers of every network -> their mean, in double precision"""
    return _numpy(torch.stack([numbers.double() for numbers in of_each]).mean(dim=0))


def _numpy(values: torch.Tensor) -> Floats:
    found: Floats = values.detach().double().cpu().numpy()
    return found


def symmetric_groups(graphs: Graphs) -> tuple[Ints, Ints]:
    """(N), (E) the same number for nodes and for edges that nothing tells apart"""
    group = _group_numbers(graphs.graph_of, stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS))
    low, high = np.sort(group[graphs.edges], axis=1).T
    once = graphs.entry_node <= graphs.indices
    described = [column[once] for column in (graphs.edge_label, graphs.edge_weight) if column is not None]
    return group, _group_numbers(low, high, graphs.edges[:, 0] == graphs.edges[:, 1], *described)


def _group_numbers(*columns: NDArray[Any]) -> Ints:
    """(n) the same number where all columns (n) agree"""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, value = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (len(value) + 1) + value, return_inverse=True)
    return number


def mean_in_groups(values: Floats, group: Ints) -> Floats:
    """(..., n) -> (..., n), every value the mean of its group"""
    size = np.bincount(group)
    rows = [np.bincount(group, weights=row)[group] / size[group] for row in np.atleast_2d(values)]
    mean: Floats = np.stack(rows).reshape(values.shape)
    return mean
