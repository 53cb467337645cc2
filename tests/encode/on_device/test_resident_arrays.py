from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data import arrays
from egocnn.encode.on_device import arrays as resident
from tests.encode.on_device.devices import set_portions

LENGTHS = st.lists(st.integers(0, 40), max_size=30)
WORDS = st.lists(st.integers(0, 2**64 - 1), max_size=40)


def tensor_of(words: list[int]) -> torch.Tensor:
    return resident.from_words(np.array(words, np.uint64), torch.device("cpu"))


@given(WORDS)
def test_words_are_mixed_as_unsigned_numbers_are(words: list[int]) -> None:
    expected = arrays.mix(np.array(words, np.uint64))
    np.testing.assert_array_equal(resident.to_words(resident.mix(tensor_of(words))), expected)


@given(WORDS)
def test_ascending_words_are_in_the_order_of_unsigned_numbers(words: list[int]) -> None:
    ordered = resident.ascending(tensor_of(words)).sort().values
    assert resident.to_words(resident.ascending(ordered)).tolist() == sorted(words)


@given(st.lists(st.floats(width=32, allow_nan=False) | st.just(-0.0), max_size=20))
def test_numbers_become_the_same_words(values: list[float]) -> None:
    for array in (np.array(values, np.float32), np.array(values, np.float64)):
        words = resident.to_words(resident.bits(torch.from_numpy(array)))
        np.testing.assert_array_equal(words, arrays.bits(array))
    labels = np.array([-1, 0, 7], np.int32)
    np.testing.assert_array_equal(resident.to_words(resident.bits(torch.from_numpy(labels))), arrays.bits(labels))


@given(LENGTHS, st.integers(0, 2**64 - 1))
def test_rows_are_summed_modulo_two_to_the_64(lengths: list[int], seed: int) -> None:
    pointer = arrays.pointers(np.array(lengths, np.int64))
    words = np.random.default_rng(seed).integers(0, 2**64, int(pointer[-1]), dtype=np.uint64)
    sums = resident.sum_rows(tensor_of(words.tolist()), torch.from_numpy(pointer))
    np.testing.assert_array_equal(resident.to_words(sums), arrays.sum_rows(words, pointer))


@given(LENGTHS, st.integers(0, 100))
def test_ranges_count_from_each_first_number(lengths: list[int], shift: int) -> None:
    first = torch.arange(len(lengths)) * shift
    counted = resident.ranges(first, torch.tensor(lengths, dtype=torch.int64), sum(lengths))
    assert counted.tolist() == [n for f, c in zip(first.tolist(), lengths, strict=True) for n in range(f, f + c)]


@pytest.mark.parametrize("at_once", [1, 7, 64, 1 << 16])
@given(lengths=LENGTHS)
def test_portions_hold_every_row_and_entry_once_in_order(at_once: int, lengths: list[int]) -> None:
    pointer = resident.pointers(torch.tensor(lengths, dtype=torch.int64))
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_portions(monkeypatch, at_once)
        portions = list(resident.row_portions(pointer))
    longest = max(lengths, default=0)
    assert [row for rows, _ in portions for row in range(rows.start, rows.stop)] == list(range(len(lengths)))
    assert [e for _, entries in portions for e in range(entries.start, entries.stop)] == list(range(sum(lengths)))
    assert all(entries.stop - entries.start < at_once + longest for _, entries in portions if longest)


@pytest.mark.parametrize("at_once", [1, 50, 1 << 16])
@given(lengths=LENGTHS)
def test_padded_rows_hold_every_entry_once_and_are_at_least_half_full(at_once: int, lengths: list[int]) -> None:
    pointer = resident.pointers(torch.tensor(lengths, dtype=torch.int64))
    seen: dict[int, list[int]] = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_portions(monkeypatch, at_once)
        for rows, entries, is_there in resident.padded_rows(pointer):
            assert 2 * is_there.sum() > is_there.numel() or entries.shape[1] == resident.NARROWEST
            assert entries.numel() <= max(at_once, entries.shape[1])
            assert int(entries.max()) < int(pointer[-1])
            for row, its, there in zip(rows.tolist(), entries, is_there, strict=True):
                assert row not in seen
                seen[row] = its[there].tolist()
    expected = {
        row: list(range(int(pointer[row]), int(pointer[row + 1]))) for row, length in enumerate(lengths) if length
    }
    assert seen == expected


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2)), max_size=30))
def test_order_by_sorts_by_the_first_key_first_and_keeps_equals_in_place(rows: list[tuple[int, int, int]]) -> None:
    keys = [torch.tensor([row[at] for row in rows], dtype=torch.int64) for at in range(3)]
    assert resident.order_by(*keys).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@given(st.lists(st.integers(0, 2), max_size=20))
def test_runs_start_where_the_value_changes(values: list[int]) -> None:
    found = resident.starts(torch.tensor(values, dtype=torch.int64)).tolist()
    assert found == arrays.starts(np.array(values)).tolist()
