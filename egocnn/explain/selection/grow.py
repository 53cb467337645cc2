"""The smallest connected part of a graph that its prediction rests on: contributions -> critical nodes.

A part grows from the node that contributes most, each time by the neighbour that contributes most, until the graph
with nothing but this part keeps most of the evidence, and the graph without it has lost most; it must also hold more
of the contributions than its size alone would give it. Evidence is the output less the base; where a value is below
the base, what lowers it is the evidence. Nodes that contribute alike, symmetric ones say, join together: two symmetric
groups make two parts.

Where no part in one piece is found, up to three pieces are grown: two groups that are both needed may stand far apart.
Where no part of moderate size holds the evidence, the part is what has grown up to a third of the nodes, if most of the
contributions stand there; else it is empty, as it is where the evidence is too weak to speak of: the class stands for
the lack of something, or for the graph as a whole, and no part of it is more critical than the rest.

A part that was found for a class is put to the question once more. Without it the class must not be predicted any
more, or it must hold half of all that speaks for it; and as many nodes from where the contributions are least must hold
little of the evidence. Where a class stands for the lack of something, any part of the graph lacks it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs

LEAST_ODDS = float(np.log(2))  # Evidence for a class that does not even double its odds points nowhere.
LEAST_CHANGE = 0.25  # The same for a value, in standard deviations of the targets: it is near that of the empty graph.
LOST = 0.75
"""A part that is enough goes on growing, up to a third of the nodes, until the graph without it has lost this much."""
THIRD = 1 / 3
OUTSTANDING = 1.5
"""A part must hold this many times its share of the nodes of what speaks for the output. Where a class stands for the
lack of something, half a graph is as good a witness as the whole, and so is the other half."""
CONCENTRATED = 0.6
"""Share of all that speaks for the output that a third of the nodes must hold to stand out where it is not enough; on
the choosing half of the truths it leaves one graph in twenty without a structure marked, and six in seven with one."""
AS_GOOD, HALF = 0.2, 0.5
"""Share of the evidence for a class that the least contributing part of the same size may hold, and of all that speaks
for it that a structure must hold which the class can do without; chosen on the choosing half and on the validation part
of BBBP, as what empties most of the structures that should be empty for few others."""
FAR, MOST_PARTS = 3.0, 3
"""Of several pieces, up to three, a node begins another one if it contributes more than three times as much as any that
is next to those before."""
NEVER = np.iinfo(np.int64).max
ALIKE = 1e-9  # Relative difference up to which two contributions are the same.
STEPS_ONE_BY_ONE = 4
GROWTH = 1.3  # The first sizes are all tried, then sizes that grow by three tenths.


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the model says of whole graphs and empty ones, and how to ask it about parts."""

    output: Floats  # (B)
    base: Floats  # (B)
    unit: float | None  # of a regressor: the standard deviation of its targets; None for a classifier
    ask: Callable[[Ints, Bools], Floats]
    """numbers of graphs, nodes present (N) -> the outputs of these graphs with nothing but these nodes"""

    @property
    def direction(self) -> Floats:
        """(B) 1, or -1 where what is to be explained is why a value is low"""
        return np.where((self.unit is None) | (self.output >= self.base), 1.0, -1.0)

    @property
    def is_there(self) -> Bools:
        """(B) whether there is enough of it to point somewhere"""
        least = LEAST_ODDS if self.unit is None else LEAST_CHANGE * self.unit
        return self.direction * (self.output - self.base) >= least

    def kept(self, numbers: Ints, outputs: Floats) -> Floats:
        """The share of the evidence that parts with these outputs hold"""
        return (outputs - self.base[numbers]) / (self.output - self.base)[numbers]

    def lost(self, numbers: Ints, outputs: Floats) -> Floats:
        """The share that is gone where the rest of a graph gives these outputs"""
        return (self.output[numbers] - outputs) / (self.output - self.base)[numbers]


def grow(graphs: Graphs, contribution: Floats, evidence: Evidence, config: ExplainConfig) -> Bools:
    """(N) the critical nodes"""
    score = contribution * evidence.direction[graphs.graph_of]
    chosen, is_open = np.zeros(graphs.n_nodes, bool), evidence.is_there
    for parts in (1, MOST_PARTS):
        chosen |= _grow(graphs, score, evidence, config, is_open, parts)
        is_open = is_open & (np.bincount(graphs.graph_of, weights=chosen, minlength=len(graphs)) == 0)
    return chosen & _is_critical(graphs, score, evidence, chosen)[graphs.graph_of]


def _is_critical(graphs: Graphs, score: Floats, evidence: Evidence, chosen: Bools) -> Bools:
    """(B) whether the evidence rests on the chosen part, and not on any part of its size; of values always"""
    size = np.bincount(graphs.graph_of, weights=chosen, minlength=len(graphs)).astype(np.int64)
    found, numbers = size > 0, np.flatnonzero(size)
    if evidence.unit is None and len(numbers):
        lacks, most = 2 * np.abs(score).max() - score, np.zeros(len(graphs))
        np.maximum.at(most, graphs.graph_of, lacks)
        is_first = lacks >= (1 - ALIKE) * most[graphs.graph_of]
        first = np.bincount(graphs.graph_of, weights=is_first, minlength=len(graphs))
        joins, _ = _growth(graphs, lacks, np.where(found, np.maximum(size, first), 0), 1)
        is_better = evidence.kept(numbers, evidence.ask(numbers, joins < NEVER)) <= AS_GOOD
        is_needed = evidence.ask(numbers, ~chosen) <= 0
        found[numbers] = is_better & (is_needed | (_held(graphs, score, chosen)[numbers] >= HALF))
    return found


def _grow(
    graphs: Graphs, score: Floats, evidence: Evidence, config: ExplainConfig, is_asked: Bools, parts: int
) -> Bools:
    """(N) the critical nodes of the graphs that are asked about, in so many parts at most"""
    most = np.ceil(config.largest * graphs.node_counts).astype(np.int64)
    joins, sizes = _growth(graphs, score, np.where(is_asked, most, 0), parts)
    chosen = np.zeros(graphs.n_nodes, bool)
    is_asked = is_asked & np.array([len(own) > 0 for own in sizes], bool)
    is_open, is_enough = is_asked.copy(), np.zeros(len(graphs), bool)
    step = 0
    while is_open.any():
        numbers = np.flatnonzero(is_open)
        here = is_open[graphs.graph_of]
        part = here & (joins <= step)
        enough = evidence.kept(numbers, evidence.ask(numbers, part)) >= config.evidence
        passed = numbers[enough & _stands_out(graphs, score, part)[numbers]]
        if len(passed):
            needed = evidence.lost(passed, evidence.ask(passed, ~part)) >= LOST
            first = ~is_enough[passed]
            taken = np.isin(graphs.graph_of, passed[first | needed])
            chosen[taken] = part[taken]
            is_enough[passed] = True
            size = np.array([sizes[g][min(step, len(sizes[g]) - 1)] for g in passed.tolist()])
            is_open[passed[needed | (size >= THIRD * graphs.node_counts[passed])]] = False
        step = step + 1 if step + 1 < STEPS_ONE_BY_ONE else int((step + 1) * GROWTH)
        is_open &= np.array([step < len(own) for own in sizes])
    for g in np.flatnonzero(is_asked & ~is_enough).tolist():
        nodes = slice(*graphs.node_ptr[[g, g + 1]].tolist())
        last = int(np.searchsorted(sizes[g], max(THIRD * graphs.node_counts[g], sizes[g][0]), side="right")) - 1
        part = joins[nodes] <= last
        if score[nodes][part].sum() >= CONCENTRATED * np.maximum(score[nodes], 0).sum():
            chosen[nodes] = part
    return chosen


def _stands_out(graphs: Graphs, score: Floats, part: Bools) -> Bools:
    """(B) whether the part holds clearly more of what speaks for the output than its share of the nodes"""
    nodes = np.bincount(graphs.graph_of, weights=part, minlength=len(graphs))
    return _held(graphs, score, part) * graphs.node_counts >= OUTSTANDING * nodes


def _held(graphs: Graphs, score: Floats, part: Bools) -> Floats:
    """(B) the share of all that speaks for the output which the part holds"""
    speaks = np.maximum(score, 0)
    held, all_of_it = (np.bincount(graphs.graph_of, weights=x, minlength=len(graphs)) for x in (speaks * part, speaks))
    return held / np.where(all_of_it > 0, all_of_it, 1)


def _growth(graphs: Graphs, score: Floats, most: Ints, parts: int) -> tuple[Ints, list[list[int]]]:
    """(N) at which step each node joins the part of its graph, and for every graph the size of its part after each"""
    joins, sizes = np.full(graphs.n_nodes, NEVER), []
    scores, indices, indptr = score.tolist(), graphs.indices.tolist(), graphs.indptr.tolist()
    for start, stop, largest in zip(
        graphs.node_ptr.tolist(), graphs.node_ptr[1:].tolist(), most.tolist(), strict=False
    ):
        size = 0
        own: list[int] = []
        around = _layers(range(start, stop), scores, lambda n: indices[indptr[n] : indptr[n + 1]], parts)
        for together in around if largest else ():
            if size + len(together) > largest:
                break
            joins[together] = len(own)
            size += len(together)
            own.append(size)
        sizes.append(own)
    return joins, sizes


def _layers(
    nodes: range, score: list[float], neighbours: Callable[[int], list[int]], most_parts: int
) -> Iterator[list[int]]:
    """The nodes that join together, from the highest score over what is next to them; far ones that count for much more
    begin parts of their own"""
    waiting, parts = set(nodes), 0
    by_score = sorted(nodes, key=lambda n: -score[n])
    frontier: list[tuple[float, int]] = []
    for best in by_score:
        while best in waiting:  # until the best that is left has joined
            while frontier and frontier[0][1] not in waiting:
                heapq.heappop(frontier)
            near = -frontier[0][0] if frontier else 0.0
            if not frontier or (parts < most_parts and score[best] > FAR * max(near, 0.0)):
                if score[best] <= 0:
                    return
                near, parts = score[best], parts + 1
                together = [n for n in waiting if _alike(score[n], near)]
            else:
                together = [n for _, n in frontier if n in waiting and _alike(score[n], near)]
            together = sorted(set(together))
            waiting.difference_update(together)
            yield together
            for node in together:
                for other in neighbours(node):
                    if other in waiting:
                        heapq.heappush(frontier, (-score[other], other))


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= ALIKE * abs(other)
