from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from tests.support.samples import assert_equal, molecules
from tests.support.strategies import random_graphs


@settings(max_examples=40)
@given(graphs=random_graphs(min_graphs=0, min_nodes=0, unseen=True))
def test_what_is_saved_is_loaded_again(graphs: Graphs, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("saved") / "graphs.safetensors"
    graphs.save(path)
    assert_equal(Graphs.load(path), graphs)


def test_every_kind_of_column_survives_on_disk(tmp_path: Path) -> None:
    graphs = molecules().replace(names=("größer", "a\nb", '"'))
    graphs.save(tmp_path / "graphs.safetensors")
    assert_equal(Graphs.load(tmp_path / "graphs.safetensors"), graphs)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.safetensors: no such file"):
        Graphs.load(tmp_path / "absent.safetensors")


def test_a_folder_is_no_collection(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a collection of graphs"):
        Graphs.load(tmp_path)


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_file_is_a_data_error_or_still_a_valid_collection(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    molecules().save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    message = None
    try:
        Graphs.load(path).validate()
    except DataError as error:
        message = str(error)
    assert message is None or message.startswith(str(path))


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": None},
        {"texts": np.frombuffer(b"{]", np.uint8)},
        {"texts": np.frombuffer(b"[1, 2]", np.uint8)},
        {"texts": np.frombuffer(b"\xff\xfe", np.uint8)},
        {"texts": np.frombuffer(json.dumps({"names": ["a"]}).encode(), np.uint8)},
        {"texts": np.frombuffer(json.dumps({"names": None}).encode(), np.uint8)},
        {"colour": np.zeros(3)},
        {"node_ptr": None},
        {"node_ptr": np.zeros((), np.int64)},
        {"node_ptr": np.array([0.0, 3, 4, 8])},
        {"indices": np.zeros(3, np.int32)},
        {"node_attr": np.zeros(8, np.float32)},
    ],
    ids=lambda changes: f"{next(iter(changes))}-{next(iter(changes.values()))!r:.30}",
)
def test_a_file_whose_arrays_make_no_collection_is_a_data_error(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "graphs.safetensors"
    molecules().save(path)
    arrays = load_file(path) | changes
    save_file({name: values for name, values in arrays.items() if values is not None}, path)
    with pytest.raises(DataError, match="not a collection of graphs") as caught:
        Graphs.load(path)
    assert "\n" not in str(caught.value)
