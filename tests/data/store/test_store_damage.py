"""A store that is not what it was when it was written, or that somebody has made up: refused, in one line."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.read import read
from egocnn.data.store import Store, write_store
from egocnn.data.store.manifest import CHUNK, NAME, Manifest
from egocnn.errors import DataError
from tests.data.store.damage import Change, flip, rewrite
from tests.support.commands import Run, check_refused
from tests.support.samples import molecules, one_graph, sure


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store to be copied: writing one waits for the disk."""
    folder = tmp_path_factory.mktemp("model") / "store"
    write_store([molecules()], folder)
    return folder


@pytest.fixture
def store(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "store"))


def check(store: Path) -> None:
    for portion in Store.open(store).portions(1):
        portion.validate()


@given(data=st.data(), damage=st.sampled_from(["flip", "cut", "add"]))
def test_any_flipped_bit_and_any_file_cut_short_or_longer_is_detected(
    model: Path, data: st.DataObject, damage: str
) -> None:
    with TemporaryDirectory() as folder:
        store = Path(folder, "store")
        shutil.copytree(model, store)
        file = store / data.draw(st.sampled_from(sorted(os.listdir(store))))  # noqa: PTH208
        content, before = file.read_bytes(), Manifest.from_text((store / NAME).read_bytes())
        if damage == "flip":
            flip(file, data.draw(st.integers(0, 8 * len(content) - 1)))
        else:
            length = data.draw(st.integers(0, len(content) - 2))
            file.write_bytes(content[:length] if damage == "cut" else content + b"x")
        try:
            check(store) if damage == "flip" or file.name == NAME else Store.open(store)
        except DataError:
            return
        # nothing but the layout of the JSON can have changed: one white space for another
        assert (damage, file.name) == ("flip", NAME)
        assert Manifest.from_text(file.read_bytes()) == before


def test_a_flipped_bit_beyond_the_first_chunk_is_named(tmp_path: Path) -> None:
    n_nodes = CHUNK // 8 + 100
    write_store([one_graph(n_nodes, [(0, 1)], node_attr=np.zeros((n_nodes, 2)))], tmp_path / "store")
    flip(tmp_path / "store" / "node_attr.bin", 8 * CHUNK + 5)
    with pytest.raises(DataError, match=rf"store: node_attr.bin is damaged.*from {CHUNK} on"):
        read(tmp_path / "store")


def test_only_what_is_read_is_checked(tmp_path: Path) -> None:
    wide = [one_graph(1, [], node_attr=np.full((1, CHUNK // 4), number, np.float32)) for number in range(4)]
    write_store(wide, tmp_path / "store")
    flip(tmp_path / "store" / "node_attr.bin", 8 * (3 * CHUNK + 1))
    portions = Store.open(tmp_path / "store").portions(1)
    for number in range(3):
        attributes = sure(next(portions).node_attr)
        assert (attributes == number).all()
    with pytest.raises(DataError, match="damaged"):
        next(portions)


def set_column(name: str, **values: Any) -> Change:
    return lambda plain: plain["columns"][name].update(values)


HOSTILE: dict[str, tuple[Change, str]] = {
    "another version": (lambda plain: plain.update(version=2), "version 2; this egocnn reads version 1"),
    "no version": (lambda plain: plain.pop("version"), "a store of version None"),
    "true for a version": (lambda plain: plain.update(version=True), "version True"),
    "a path": (lambda plain: plain["columns"].update({"../../etc/passwd": {}}), "which no store has"),
    "an unknown column": (lambda plain: plain["columns"].update({"secret": {}}), "'secret', which no store has"),
    "a column less": (lambda plain: plain["columns"].pop("indices"), "the column indices is missing"),
    "no columns": (lambda plain: plain.update(columns=[]), "names no columns"),
    "a pickle": (set_column("node_attr", dtype="|O"), "must hold one of"),
    "a huge shape": (set_column("node_attr", shape=[8, 2**60]), "whole number in its range"),
    "a large shape": (set_column("node_attr", shape=[8, 2**30]), "a node may have"),
    "a negative shape": (set_column("node_attr", shape=[8, -2]), "whole number in its range"),
    "a shape of words": (set_column("node_attr", shape="big"), "a shape that does not fit"),
    "more nodes": (lambda plain: plain.update(nodes=2**30), "rows for 1073741824 nodes"),
    "far more nodes": (lambda plain: plain.update(nodes=2**40), "fewer than 2^31"),
    "graphs of words": (lambda plain: plain.update(graphs="3"), "graphs must be a whole number"),
    "no checksums": (set_column("indices", digests=[]), "0 checksums for the 44 bytes of indices"),
    "other checksums": (set_column("indices", digests=[7]), "the checksums of indices are not such"),
    "names that are no texts": (lambda plain: plain.update(class_names=[1, 2]), "must be a list of texts"),
    "targets that are none": (lambda plain: plain.update(targets=[["a", 1]]), "targets must be a list of names"),
    "targets without a table": (
        lambda plain: plain.update(targets=[["a", []]]),
        "target has a shape that does not fit",
    ),
    "no class names": (lambda plain: plain.update(class_names=[]), "target must be whole numbers with class_names"),
    "too few label names": (lambda plain: plain.update(node_label_names=["O"]), "node_label out of range"),
    "half a surrogate pair": (lambda plain: plain.update(source="\ud800"), "damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_made_up_manifest_is_refused(case: str, store: Path, run: Run) -> None:
    change, words = HOSTILE[case]
    if case == "half a surrogate pair":
        text = (store / NAME).read_text(encoding="utf-8").replace('"source": ""', '"source": "\\ud800"')
        (store / NAME).write_text(text, encoding="utf-8")
    else:
        rewrite(store, change)
    check_refused(run, words, "info", store)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"format": "egocnn store"}', "\xff"])
def test_a_manifest_that_is_no_json_object_is_refused(text: str, store: Path) -> None:
    (store / NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError):
        Store.open(store)


def test_numbers_that_pass_their_checksum_still_have_to_make_a_graph(store: Path) -> None:
    from egocnn.data.store.write import _Writer

    for name, values, words in (
        ("indices", np.full(11, 1 << 30, np.int32), "out of range"),
        ("node_ptr", np.array([0, 9, 1, 8]), "node_ptr must rise from 0 to 8"),
        ("entry_ptr", np.array([0, 4, 4, 12]), "entry_ptr must rise from 0 to 11"),
        ("indptr", np.arange(9)[::-1], "indptr must"),
        ("names_ptr", np.array([0, 5, 99, 13]), "names_ptr must rise within names"),
        ("names", np.full(13, 255, np.uint8), "not UTF-8"),
        ("node_attr", np.full((8, 2), np.nan, np.float32), "must be finite"),
    ):
        copy = store.parent / name
        shutil.copytree(store, copy)
        writer = _Writer(copy)
        writer._drop(name)
        writer._append(name, values)
        column = writer._described(name)
        rewrite(copy, set_column(name, digests=list(column.digests)))
        with pytest.raises(DataError, match=words):
            read(copy)


def test_links_pipes_and_folders_in_place_of_files_are_refused(store: Path) -> None:
    makers: tuple[Callable[[Path], None], ...] = (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero"))
    for number, make in enumerate(makers):
        copy = store.parent / str(number)
        shutil.copytree(store, copy)
        (copy / "indices.bin").unlink()
        make(copy / "indices.bin")
        with pytest.raises(DataError, match=r"indices.bin is no plain file"):
            Store.open(copy)
        (copy / NAME).unlink()
        make(copy / NAME)
        with pytest.raises(DataError, match=r"manifest.json"):
            Store.open(copy)
    (store / "indices.bin").rename(store.parent / "moved.bin")
    (store / "indices.bin").symlink_to(store.parent / "moved.bin")  # the very bytes
    with pytest.raises(DataError, match=r"indices.bin is no plain file"):
        Store.open(store)


def test_missing_and_foreign_files_are_named(store: Path, run: Run) -> None:
    (store / "note\n.txt").write_text("mine")
    check_refused(run, r"holds 'note\n.txt', which is no part of a store", "info", store)
    (store / "note\n.txt").unlink()
    (store / "part.bin").unlink()
    check_refused(run, "part.bin is missing", "info", store)


def test_a_file_that_vanishes_or_changes_after_opening_is_noticed(store: Path) -> None:
    opened = Store.open(store)
    flip(store / "indices.bin", 3)
    with pytest.raises(DataError, match=r"indices.bin is damaged"):
        list(opened.portions())
    (store / "indices.bin").unlink()
    with pytest.raises(DataError, match=r"indices.bin is missing"):
        list(opened.portions())


def test_a_folder_with_another_manifest_is_not_taken_for_a_store(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"name": "an app"}))
    with pytest.raises(DataError) as refused:
        read(tmp_path)
    assert "store" not in str(refused.value).removeprefix(str(tmp_path))
