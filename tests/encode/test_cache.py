"""EncodedGraphs graphs on disk: read back in any choice they are what they were in memory."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import CachedGraphs, EncodedCache, EncodedGraphs, Worker
from egocnn.encode.encoder import Encoder
from egocnn.errors import RunError
from egocnn.nn.batch import Batch
from tests.support.networks import tensors_of
from tests.support.strategies import random_graphs, random_trees
from tests.support.tiny import names_in, plain_model

CPU = torch.device("cpu")
CONFIGS = (
    plain_model(k=2, slots=3),
    plain_model(k=3, slots=4),
)


def assert_same(found: Batch, wanted: Batch) -> None:
    one, other = dict(tensors_of(found)), dict(tensors_of(wanted))
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype, name
        assert torch.equal(one[name], other[name]), name


def portions(graphs: Graphs, encoder: Encoder, config: ModelConfig, first: int, last: int) -> Iterator[EncodedGraphs]:
    """Two graphs at a time."""
    for start in range(first, last, 2):
        yield encoder.apply(graphs[start : min(start + 2, last)], config)


def cached(records: EncodedCache, graphs: Graphs, encoder: Encoder, numbers: list[int]) -> CachedGraphs:
    target = encoder.targets(graphs)
    own = None if target is None else target[torch.tensor(numbers)]
    return CachedGraphs.of(records, np.array(numbers), graphs.node_counts[numbers], own)


@settings(max_examples=40)
@given(random_graphs(unseen=True, min_graphs=2, min_nodes=0), st.sampled_from(CONFIGS), st.data())
def test_any_choice_of_graphs_makes_the_batch_that_it_makes_in_memory(
    graphs: Graphs, config: ModelConfig, data: st.DataObject
) -> None:
    assume(graphs.n_nodes)
    encoder = Encoder.fit(graphs, config)
    whole = encoder.apply(graphs, config)
    numbers = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, unique=True).map(sorted))
    with TemporaryDirectory() as folder, closing(EncodedCache(graphs.node_counts, Path(folder))) as records:
        records.fill(portions(graphs, encoder, config, 0, len(graphs)))
        assert names_in(Path(folder)) == []  # a file without a name leaves nothing behind
        found = cached(records, graphs, encoder, numbers).to(CPU)
        chosen = torch.tensor(data.draw(st.permutations(range(len(numbers)))))
        assert_same(found.batch(chosen), whole.batch(torch.tensor(numbers)[chosen]))
        assert torch.equal(found.node_ptr.diff(), torch.from_numpy(graphs.node_counts[numbers]))
        assert len(found) == len(numbers)
        loaded = found.in_memory()
        assert loaded.target is found.target
        assert_same(loaded.batch(chosen), found.batch(chosen))
        assert found.megabytes <= loaded.megabytes


def test_processes_that_share_a_machine_share_the_work_and_leave_no_files(tmp_path: Path) -> None:
    graphs, config = random_trees(23, nodes=9, seed=0), CONFIGS[1]
    encoder = Encoder.fit(graphs, config)
    whole = encoder.apply(graphs, config)
    size, there = 3, Barrier(3)
    written: list[int] = []

    def meet() -> None:
        there.wait(60)

    def process(number: int) -> None:
        with closing(EncodedCache(graphs.node_counts, tmp_path, Worker(number, size, "0", meet))) as records:
            first, last = records.stretch
            written.append(last - first)
            records.fill(portions(graphs, encoder, config, first, last))
            found = cached(records, graphs, encoder, list(range(number, 23))).to(CPU)
            assert_same(found.batch(torch.arange(len(found))), whole.batch(torch.arange(number, 23)))

    with ThreadPoolExecutor(size) as processes:
        for done in [processes.submit(process, number) for number in range(size)]:
            done.result(timeout=600)
    assert sum(written) == 23
    assert max(written) <= 12
    assert names_in(tmp_path) == []


def test_what_killed_processes_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    graphs, config = random_trees(3, nodes=4, seed=0), CONFIGS[0]
    (tmp_path / ".prepared.0.1.tmp").touch()
    (tmp_path / ".prepared.0.1.npz").touch()
    (tmp_path / "other").touch()
    with closing(EncodedCache(graphs.node_counts, tmp_path)) as records:
        records.fill(portions(graphs, Encoder.fit(graphs, config), config, 0, 3))
    assert names_in(tmp_path) == ["other"]


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    graphs, config = random_trees(3, nodes=4, seed=0), CONFIGS[0]
    (tmp_path / ".prepared.0.0.tmp").symlink_to("/dev/full")
    with closing(EncodedCache(graphs.node_counts, tmp_path, Worker(0, 2, "0"))) as records:
        some = portions(graphs, Encoder.fit(graphs, config), config, *records.stretch)
        with pytest.raises(OSError, match="prepared graphs cannot be kept: No space left on device"):
            records.fill(some)


def handles() -> list[Path]:
    """of the files that this process has open"""
    return list(Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="a file without a name is found by /proc alone")
def test_a_file_that_is_cut_off_is_told_in_one_line(tmp_path: Path) -> None:
    graphs, config = random_trees(3, nodes=4, seed=0), CONFIGS[0]
    encoder = Encoder.fit(graphs, config)
    with closing(EncodedCache(graphs.node_counts, tmp_path)) as records:
        records.fill(portions(graphs, encoder, config, 0, 3))
        (opened,) = (handle for handle in handles() if handle.resolve().is_relative_to(tmp_path))
        os.truncate(opened, 10)
        with pytest.raises(RunError, match="the file of prepared graphs has been cut off"):
            cached(records, graphs, encoder, [2]).to(CPU).batch(torch.tensor([0]))
