"""The smallest connected part of a graph that its prediction rests on: contributions -> critical nodes.

A part grows from the node that contributes most, each time by the neighbour that contributes most, until the graph
with nothing but this part keeps most of the evidence, and the graph without it has lost most; it must also hold more
of the contributions than its size alone would give it. Evidence is the output less the base; where a value is below
the base, what lowers it is the evidence. Nodes that contribute alike, symmetric ones say, join together: two symmetric
groups make two parts.

Where no part in one piece is found, up to three pieces are grown: two groups that are both needed may stand far apart.
Pieces that turn out to be near each other are joined where that is still enough
(:mod:`egocnn.explain.selection.pieces`, which also takes off again what contributes little).
Where no part of moderate size holds the evidence, the part is what has grown up to a third of the nodes, if most of the
contributions stand there; several pieces must also keep half of the evidence together. Else the part is empty, as it is
where the evidence is too weak to speak of: the class stands for the lack of something, or for the graph as a whole, and
no part of it is more critical than the rest.

A part that was found for a class is put to the question once more. Without it the class must not be predicted any
more; or else it must hold half of all that speaks for it, and as many nodes from where the contributions are least must
hold little of the evidence. Where a class stands for the lack of something, any part of the graph lacks it."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, takewhile

import numpy as np

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.explain.selection.pieces import ALIKE, joined

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
APART = 0.5
"""Share of the evidence that several pieces must keep which are not enough: they are hard to read, and a third of a
graph may well hold most contributions and yet be taken for the opposite. On the choosing half of the truths
(``results/truths_choices.json``) and on one scaffold split of BACE, more structures are connected for it and keep more,
while few truths in several pieces are lost."""
AS_GOOD, HALF = 0.2, 0.5
"""Share of the evidence for a class that the least contributing part of the same size may hold, and of all that speaks
for it that a structure must hold which the class can do without; chosen on the choosing half and on the validation part
of BBBP, as what empties most of the structures that should be empty for few others."""
FAR, MOST_PARTS = 3.0, 3
"""Of several pieces, up to three, a node begins another one if it contributes more than three times as much as any that
is next to those before."""
TRIED = [*range(4)]  # The steps after which a part is tried: the first of all, then sizes that grow by three tenths.
while TRIED[-1] < 1 << 40:
    TRIED.append(int((TRIED[-1] + 1) * 1.3))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the model says of whole graphs and empty ones, and how to ask it about parts."""

    output: Floats  # (B)
    base: Floats  # (B)
    unit: float | None  # of a regressor: the standard deviation of its targets; None for a classifier
    ask: Callable[[Ints, Sequence[Ints]], Floats]
    """numbers of graphs, nodes of each -> the outputs of these graphs with nothing but these nodes"""

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
    found, is_open = dict[int, Ints](), evidence.is_there
    for pieces in (1, MOST_PARTS):
        found |= _grow(graphs, score, evidence, config, is_open, pieces)
        is_open[list(found)] = False
    chosen = np.zeros(graphs.n_nodes, bool)
    for part in _joined(graphs, evidence, config, list(_critical(graphs, score, evidence, found))):
        chosen[part] = True
    return chosen


def _joined(graphs: Graphs, evidence: Evidence, config: ExplainConfig, parts: list[Ints]) -> list[Ints]:
    """The parts, near pieces joined where that is neither too large nor any less than enough"""
    whole = [joined(graphs, part) for part in parts]
    numbers = np.array([graphs.graph_of[part[0]] for part in parts], np.int64)
    grew = np.array([len(one) > len(part) for one, part in zip(whole, parts, strict=True)], bool)
    wider = np.flatnonzero(grew & ([len(one) for one in whole] <= _most(graphs, config)[numbers]))
    kept = evidence.kept(numbers[wider], evidence.ask(numbers[wider], [whole[n] for n in wider]))
    for n in wider[kept >= config.evidence].tolist():
        parts[n] = whole[n]
    return parts


def _most(graphs: Graphs, config: ExplainConfig) -> Ints:
    """(B) the nodes that a part may have"""
    most: Ints = np.ceil(config.largest * graphs.node_counts).astype(np.int64)
    return most


def parts_of(graphs: Graphs, numbers: Ints, present: Bools) -> list[Ints]:
    """The nodes of each of these graphs that are present (N)"""
    bounds = zip(graphs.node_ptr[numbers].tolist(), graphs.node_ptr[numbers + 1].tolist(), strict=True)
    return [first + np.flatnonzero(present[first:last]) for first, last in bounds]


def _rests(graphs: Graphs, numbers: Ints, parts: Sequence[Ints]) -> list[Ints]:
    """The nodes of each of these graphs that are in no part"""
    present = np.ones(graphs.n_nodes, bool)
    present[np.concatenate(parts)] = False
    return parts_of(graphs, numbers, present)


def _critical(graphs: Graphs, score: Floats, evidence: Evidence, found: dict[int, Ints]) -> Iterable[Ints]:
    """The parts on which the evidence rests, and not on any part of their size; of values all"""
    if evidence.unit is not None or not found:
        return found.values()
    lacks, most, largest = 2 * np.abs(score).max() - score, np.zeros(len(graphs)), np.zeros(len(graphs), np.int64)
    np.maximum.at(most, graphs.graph_of, lacks)
    first = np.bincount(graphs.graph_of, weights=lacks >= (1 - ALIKE) * most[graphs.graph_of], minlength=len(graphs))
    numbers, parts = np.array(sorted(found)), [found[g] for g in sorted(found)]
    largest[numbers] = np.maximum([len(part) for part in parts], first[numbers])
    least = [np.sort(order) for order, _ in _growth(graphs, lacks, largest, 1) if len(order)]
    of_least, of_rest = evidence.ask(np.tile(numbers, 2), least + _rests(graphs, numbers, parts)).reshape(2, -1)
    is_better, is_needed = evidence.kept(numbers, of_least) <= AS_GOOD, of_rest <= 0
    return compress(parts, is_needed | (is_better & (_held(graphs, score, numbers, parts) >= HALF)))


def _grow(
    graphs: Graphs, score: Floats, evidence: Evidence, config: ExplainConfig, is_asked: Bools, pieces: int
) -> dict[int, Ints]:
    """The critical nodes of the graphs that are asked about, in so many pieces at most, by the number of the graph"""
    grown = _growth(graphs, score, np.where(is_asked, _most(graphs, config), 0), pieces)
    steps = ((g, *each, n) for g, each in enumerate(grown) for n in takewhile(len(each[1]).__gt__, TRIED))
    tried = [(g, np.sort(order[: sizes[n]])) for g, order, sizes, n in steps]
    numbers, parts = np.array([g for g, _ in tried], np.int64), [part for _, part in tried]
    # a part must hold clearly more of what speaks for the output than its share of the nodes
    held, size = _held(graphs, score, numbers, parts), np.array([len(part) for part in parts], np.int64)
    outstanding = np.flatnonzero(held * graphs.node_counts[numbers] >= OUTSTANDING * size)
    numbers, parts = numbers[outstanding], [parts[n] for n in outstanding.tolist()]
    kept = evidence.kept(numbers, evidence.ask(numbers, parts)) >= config.evidence
    enough, found = dict[int, list[Ints]](), dict[int, Ints]()
    for g, part in compress(zip(numbers.tolist(), parts, strict=True), kept.tolist()):
        enough.setdefault(g, []).append(part)
    while enough:
        numbers, parts = np.array(list(enough)), [waiting.pop(0) for waiting in enough.values()]
        needed = evidence.lost(numbers, evidence.ask(numbers, _rests(graphs, numbers, parts))) >= LOST
        for g, part, is_needed in zip(numbers.tolist(), parts, needed.tolist(), strict=True):
            if is_needed or g not in found:
                found[g] = part
            if is_needed or not enough[g] or len(part) >= THIRD * graphs.node_counts[g]:
                del enough[g]
    last = dict[int, Ints]()  # where no part is enough, what has grown up to a third of the nodes
    for g, (order, sizes) in enumerate(grown):
        if sizes and g not in found:
            size = sizes[np.searchsorted(sizes, max(THIRD * graphs.node_counts[g], sizes[0]), side="right") - 1]
            part = np.sort(order[:size])
            if score[part].sum() >= CONCENTRATED * np.maximum(score[slice(*graphs.node_ptr[[g, g + 1]])], 0).sum():
                last[g] = part
    if pieces > 1:
        numbers = np.array(list(last), np.int64)
        keeps = evidence.kept(numbers, evidence.ask(numbers, list(last.values()))) >= APART
        last = dict(compress(last.items(), keeps.tolist()))
    return found | last


def _held(graphs: Graphs, score: Floats, numbers: Ints, parts: Sequence[Ints]) -> Floats:
    """(n) the shares of all that speaks for the outputs of these graphs which the parts hold"""
    speaks, nodes = np.maximum(score, 0), np.concatenate([np.zeros(0, np.int64), *parts])
    part = np.repeat(np.arange(len(parts)), np.array([len(part) for part in parts], np.int64))
    all_of_it = np.bincount(graphs.graph_of, weights=speaks, minlength=len(graphs))[numbers]
    return np.bincount(part, weights=speaks[nodes], minlength=len(parts)) / np.where(all_of_it > 0, all_of_it, 1)


def _growth(graphs: Graphs, score: Floats, most: Ints, pieces: int) -> list[tuple[Ints, list[int]]]:
    """For every graph its nodes in the order in which they join its part, and the size of the part after each step"""
    found, bounds = list[tuple[Ints, list[int]]](), graphs.node_ptr.tolist()
    scores, indices, indptr = score.tolist(), graphs.indices.tolist(), graphs.indptr.tolist()
    for start, stop, largest in zip(bounds, bounds[1:], most.tolist(), strict=False):
        order, sizes = list[int](), list[int]()
        around = _layers(range(start, stop), scores, lambda n: indices[indptr[n] : indptr[n + 1]], pieces)
        for together in around if largest else ():
            if len(order) + len(together) > largest:
                break
            order += together
            sizes.append(len(order))
        found.append((np.array(order, np.int64), sizes))
    return found


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
                around: Iterable[int] = waiting
            else:
                around = (n for _, n in frontier if n in waiting)
            margin = ALIKE * abs(near)
            together = sorted({n for n in around if abs(score[n] - near) <= margin})
            waiting.difference_update(together)
            yield together
            for node in together:
                for other in neighbours(node):
                    if other in waiting:
                        heapq.heappush(frontier, (-score[other], other))
