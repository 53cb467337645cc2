"""Small labelled graphs: lying in one another, and being equal."""

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.explain.patterns.labelled import Labelled, Shapes, embed, plan


@st.composite
def small_graphs(draw: st.DrawFn, most: int = 7) -> Labelled:
    """Connected, with two labels of nodes and two of edges."""
    size = draw(st.integers(1, most))
    labels = draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    edges = {(draw(st.integers(0, v - 1)), v): draw(st.sampled_from("12")) for v in range(1, size)}
    for u in range(size):
        for v in range(u + 1, size):
            if draw(st.integers(0, 3)) == 0:
                edges.setdefault((u, v), draw(st.sampled_from("12")))
    return Labelled.from_edges(labels, [(u, v, bond) for (u, v), bond in edges.items()])


def as_networkx(graph: Labelled) -> networkx.Graph:
    made = networkx.Graph()
    made.add_nodes_from((n, {"label": label}) for n, label in enumerate(graph.labels))
    made.add_edges_from((u, v, {"label": label}) for u, v, label in graph.edges)
    return made


def matcher(large: Labelled, small: Labelled) -> networkx.isomorphism.GraphMatcher:
    def same(one: dict[str, str], other: dict[str, str]) -> bool:
        return one["label"] == other["label"]

    return networkx.isomorphism.GraphMatcher(as_networkx(large), as_networkx(small), node_match=same, edge_match=same)


@given(small_graphs(4), small_graphs(7))
def test_a_pattern_lies_in_a_graph_exactly_where_networkx_finds_it(small: Labelled, large: Labelled) -> None:
    image = embed(plan(small), large)
    assert (image is not None) == matcher(large, small).subgraph_is_monomorphic()
    if image is not None:
        assert len(set(image)) == len(small.labels)
        assert [large.labels[node] for node in image] == list(small.labels)
        assert all(large.neighbours[image[u]].get(image[v]) == bond for u, v, bond in small.edges)


@given(small_graphs(), st.data())
def test_relabelled_graphs_share_a_number_and_the_order_brings_them_to_match(
    graph: Labelled, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(graph.labels))))
    shapes = Shapes()
    number, _ = shapes.identify(graph)
    other = graph.cut(order)
    again, places = shapes.identify(other)
    assert again == number
    assert set(other.cut(places).edges) == set(graph.edges)
    assert other.cut(places).labels == graph.labels


@given(small_graphs(), small_graphs())
def test_only_equal_graphs_share_a_number(one: Labelled, other: Labelled) -> None:
    shapes = Shapes()
    same = shapes.identify(one)[0] == shapes.identify(other)[0]
    assert same == matcher(one, other).is_isomorphic()


def test_regular_graphs_that_colours_confuse_are_told_apart() -> None:
    ring = Labelled.from_edges([""] * 6, [(i, (i + 1) % 6, "") for i in range(6)])
    prism = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3), (1, 4), (2, 5)]
    cubic = Labelled.from_edges([""] * 6, [(i, (i + 1) % 6, "") for i in range(6)] + [(i, i + 3, "") for i in range(3)])
    shapes = Shapes()
    numbers = [shapes.identify(g)[0] for g in (ring, cubic, Labelled.from_edges([""] * 6, [(*e, "") for e in prism]))]
    assert numbers == [0, 1, 2]


def test_components_are_the_connected_parts_of_the_chosen_nodes() -> None:
    path = Labelled.from_edges("abcde", [(i, i + 1, "") for i in range(4)])
    assert path.components([4, 0, 1, 3]) == [[0, 1], [3, 4]]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_self_loops_do_not_count(size: int) -> None:
    looped = Labelled.from_edges(["a"] * size, [(0, 0, "x")])
    assert looped.edges == ()
