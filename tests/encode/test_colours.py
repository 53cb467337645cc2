from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.graphs import Graphs
from egocnn.encode.colours import Colours, initial_colours, stable_colours, wl_rounds
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs, random_trees


class NaiveColours:
    """Weisfeiler-Lehman as in the book: a colour is a number given to each new (colour, sorted neighbours)."""

    def __init__(self, graphs: Graphs, *, details: bool = False) -> None:
        self.graphs = graphs
        self.details = details
        self.numbers: dict[Hashable, int] = {}
        self.colour = [self.number(("start", self.label(node))) for node in range(graphs.n_nodes)]

    def number(self, signature: Hashable) -> int:
        return self.numbers.setdefault(signature, len(self.numbers))

    def label(self, node: int) -> Hashable:
        return None if self.graphs.node_label is None else int(self.graphs.node_label[node])

    def neighbours(self, node: int) -> list[tuple[Any, ...]]:
        graphs, found = self.graphs, []
        for entry in range(int(graphs.indptr[node]), int(graphs.indptr[node + 1])):
            other = int(graphs.indices[entry])
            label = 0 if graphs.edge_label is None else int(graphs.edge_label[entry])
            weight = float(graphs.edge_weight[entry]) if self.details and graphs.edge_weight is not None else 0.0
            found.append((self.colour[other], label, weight, other == node))
        return sorted(found)

    def refine(self) -> list[int]:
        self.colour = [
            self.number((self.colour[node], tuple(self.neighbours(node)))) for node in range(self.graphs.n_nodes)
        ]
        return self.colour

    def add_attributes(self) -> None:
        if self.graphs.node_attr is not None:
            self.colour = [
                self.number(("attributes", colour, tuple(row)))
                for colour, row in zip(self.colour, self.graphs.node_attr.tolist(), strict=True)
            ]


def partition(colours: Sequence[int] | Colours) -> list[int]:
    """Colours by the order of their first appearance: equal for equal partitions."""
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(int(colour), len(seen)) for colour in colours]


def per_graph(graphs: Graphs, colours: Sequence[int] | Colours) -> Iterator[list[int]]:
    for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True):
        yield partition(colours[int(first) : int(last)])


@settings(max_examples=200)
@given(random_graphs(unseen=True))
def test_colours_part_the_nodes_as_exact_refinement_does(graphs: Graphs) -> None:
    naive = NaiveColours(graphs)
    assert partition(initial_colours(graphs)) == partition(naive.colour)
    for colour in wl_rounds(graphs, 4):
        assert partition(colour) == partition(naive.refine())


@settings(max_examples=200)
@given(random_graphs())
def test_stable_colours_are_those_at_which_exact_refinement_ends(graphs: Graphs) -> None:
    stable = stable_colours(graphs, initial_colours(graphs), most=100)
    naive = NaiveColours(graphs, details=True)
    naive.add_attributes()
    for _ in range(graphs.n_nodes):
        naive.refine()
    assert list(per_graph(graphs, stable)) == list(per_graph(graphs, naive.colour))


@settings(max_examples=60)
@given(random_graphs(max_graphs=5, min_nodes=0))
def test_colours_of_a_graph_do_not_depend_on_its_companions(graphs: Graphs) -> None:
    *_, third = wl_rounds(graphs, 3)
    stable = stable_colours(graphs, third, most=100)
    for number in range(len(graphs)):
        alone = graphs[[number]]
        nodes = slice(int(graphs.node_ptr[number]), int(graphs.node_ptr[number + 1]))
        *_, third_alone = wl_rounds(alone, 3)
        np.testing.assert_array_equal(third_alone, third[nodes])
        np.testing.assert_array_equal(stable_colours(alone, third_alone, most=100), stable[nodes])


@pytest.mark.parametrize("copies", range(1, 9))
def test_a_star_of_one_label_is_not_confused_with_the_star_that_swaps_labels(copies: int) -> None:
    stars = [
        one_graph(copies + 1, [(0, leaf) for leaf in range(1, copies + 1)], node_label=[centre, *leaf * copies])
        for centre, leaf in (("C", "O"), ("O", "C"))
    ]
    (colour,) = wl_rounds(Graphs.concat(stars), 1)
    assert colour[0] != colour[copies + 1]


def test_minus_zero_is_zero() -> None:
    graphs = one_graph(2, [(0, 1)], node_attr=[[0.0], [-0.0]])
    assert partition(stable_colours(graphs, initial_colours(graphs), most=10)) == [0, 0]


def test_refinement_stops_after_the_most_rounds_allowed() -> None:
    chain = one_graph(40, [(n, n + 1) for n in range(39)])
    after_two = stable_colours(chain, initial_colours(chain), most=2)
    *_, second = wl_rounds(chain, 2)
    assert partition(after_two) == partition(second)
    everything = stable_colours(chain, initial_colours(chain), most=256)
    assert len(set(everything.tolist())) == 20  # each node and its mirror image


def test_many_different_neighbourhoods_get_as_many_colours() -> None:
    graphs = random_trees(400, nodes=12, seed=0)
    naive = NaiveColours(graphs)
    for colour in wl_rounds(graphs, 3):
        assert partition(colour) == partition(naive.refine())
