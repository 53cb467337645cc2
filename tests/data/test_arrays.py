"""Lists of edges -> adjacency rows, next to the plainest way to build them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import DTypeLike

from egocnn.data import arrays as module
from egocnn.data.arrays import (
    Ints,
    bits,
    build_adjacency,
    check_duplicates_agree,
    equal_rows,
    mix,
    pointers,
    row_portions,
)
from egocnn.errors import DataError, DuplicateEdgeError

FEW = 12
MANY = 70_000
"""More nodes than 16 bits can number."""
ENDS = st.integers(0, FEW - 1)
EDGES = st.lists(st.tuples(ENDS, ENDS), max_size=40)


def rows_of(edges: Ints, n_nodes: int) -> dict[int, dict[int, int]]:
    """For every node that has one its neighbours, each with the first edge that gives it."""
    rows: dict[int, dict[int, int]] = {}
    for number, (u, v) in enumerate(edges.tolist()):
        rows.setdefault(u, {}).setdefault(v, number)
        rows.setdefault(v, {}).setdefault(u, number)
    assert all(0 <= node < n_nodes for node in rows)
    return rows


def assert_equals_the_plain_way(edges: Ints, n_nodes: int) -> None:
    indptr, indices, origin = build_adjacency(edges, n_nodes)
    assert len(indptr) == n_nodes + 1
    assert indptr[0] == 0
    assert indptr[-1] == len(indices) == len(origin)
    rows = rows_of(edges, n_nodes)
    np.testing.assert_array_equal(np.flatnonzero(np.diff(indptr)), sorted(rows))
    for node, row in rows.items():
        here = slice(int(indptr[node]), int(indptr[node + 1]))
        assert indices[here].tolist() == sorted(row)
        assert origin[here].tolist() == [row[neighbour] for neighbour in sorted(row)]


@given(EDGES, st.sampled_from([np.int64, np.int32, np.uint8, np.uint64]))
@example([], np.int64)
@example([(3, 3), (3, 3)], np.int64)
def test_rows_are_those_of_the_plain_way(edges: list[tuple[int, int]], dtype: DTypeLike) -> None:
    assert_equals_the_plain_way(np.array(edges, dtype).reshape(-1, 2), FEW)


@pytest.mark.parametrize("n_nodes", [300, 1 << 16, MANY])
@pytest.mark.parametrize("ordered", [True, False])
def test_large_lists_give_the_rows_of_the_plain_way(n_nodes: int, ordered: bool) -> None:
    edges = np.random.default_rng(0).integers(0, n_nodes, (3000, 2))
    edges[:5] = n_nodes - 1
    if ordered:
        edges = np.sort(edges, axis=1)
        edges = np.repeat(edges[np.lexsort((edges[:, 1], edges[:, 0]))], 2, axis=0)
        edges[1::2] = edges[1::2, ::-1]
    assert_equals_the_plain_way(edges, n_nodes)


def test_edges_to_nowhere_and_duplicates_that_differ_are_refused_and_mixing_scatters_numbers() -> None:
    assert [part.tolist() for part in build_adjacency(np.zeros((0, 2), np.int64), 0)] == [[0], [], []]
    for edge in ((-1, 0), (0, FEW), (2**40, 0)):
        with pytest.raises(DataError, match="an edge names node"):
            build_adjacency(np.array([edge]), FEW)
    edges = np.array([[0, 1], [1, 2], [3, 0], [2, 1], [1, 0]])
    check_duplicates_agree(edges, np.array([5, 6, 7, 6, 5]), "labels")
    with pytest.raises(DuplicateEdgeError, match="edge 2, 1 is given twice with different labels: 6 and 8") as caught:
        check_duplicates_agree(edges, np.array([5, 6, 7, 8, 5]), "labels")
    assert caught.value.rows == (1, 3)
    mixed = mix(np.arange(100_000, dtype=np.uint64))
    assert len(np.unique(mixed)) == 100_000
    assert len(np.unique(mixed[:-1] + mixed[1:])) == 99_999
    ones = np.unpackbits(mixed.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.001


@pytest.mark.parametrize("at_once", [1, 4, 1000])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 3, 1, 0, 3, 9, 1, 1, 0], [2] * 20, [70_000, 1]])
def test_portions_and_rows_of_equal_length_cover_every_entry_once(
    lengths: list[int], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", at_once)
    pointer = pointers(np.array(lengths, np.int64))
    portions = list(row_portions(pointer))
    assert [row for rows, _ in portions for row in range(rows.start, rows.stop)] == list(range(len(lengths)))
    for rows, entries in portions:
        assert (entries.start, entries.stop) == (pointer[rows.start], pointer[rows.stop])
        assert entries.stop - entries.start <= at_once + max(lengths)
    seen: dict[int, list[int]] = {}
    for numbers, matrix in equal_rows(pointer):
        assert matrix.size <= max(at_once, matrix.shape[1])
        seen |= dict(zip(numbers.tolist(), matrix.tolist(), strict=True))
    assert seen == {
        row: list(range(int(pointer[row]), int(pointer[row + 1]))) for row, length in enumerate(lengths) if length
    }


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=2, max_size=2))
def test_equal_numbers_have_equal_bits_and_others_have_not(pair: list[float]) -> None:
    one, other = bits(np.array(pair, np.float32))
    assert (one == other) == (pair[0] == pair[1])
    whole = bits(np.array([-1, 0, 1, 2**31 - 1], np.int32))
    assert len(np.unique(whole)) == 4
