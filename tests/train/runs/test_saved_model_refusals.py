"""Folders that hold no model, or a damaged one: refused in one line, without taking the memory that they ask for."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from egocnn.encode.encoder import Encoder
from egocnn.errors import RunError
from egocnn.model import Model
from egocnn.train.recipe import learn
from tests.support.samples import one_graph
from tests.support.sealing import change, change_arrays, without_checksums, write_config
from tests.support.tiny import MODEL, TRAIN, alcohols


@pytest.fixture(scope="module")
def trained() -> Model:
    return learn(alcohols(), MODEL, TRAIN)[0]


@pytest.fixture
def folder(trained: Model, tmp_path: Path) -> Path:
    trained.save(tmp_path / "run")
    return tmp_path / "run"


def test_what_is_not_a_run_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere: not a run folder; it has no config"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(RunError, match="Not a directory"):
        Model.load(folder / "config.json")
    (folder / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"no model\.safetensors; the run has not finished"):
        Model.load(folder)
    (folder / "model.safetensors").mkdir()
    with pytest.raises(RunError):
        Model.load(folder)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 99}', "{" * 100_000, "\ufeff{}", "[" * 100_000])
def test_a_config_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"config\.json: "):
        Model.load(folder)


WRONG: list[tuple[str, str, Any]] = [
    ("model", "width", "8"),
    ("model", "width", 8.5),
    ("model", "width", 9),
    ("model", "width", [8]),
    ("model", "width", [[8], [8]]),
    ("model", "width", None),
    ("model", "depth", -1),
    ("model", "depth", "2"),
    ("model", "depth", 1),
    ("model", "dropout", 1.5),
    ("model", "dropout", "nan"),
    ("model", "readout", "median"),
    ("model", "readout", ["max"]),
    ("model", "wl_rounds", 2),
    ("model", "colour", "red"),
    ("encoder", "class_names", "ab"),
    ("encoder", "class_names", [1, 2]),
    ("encoder", "class_names", ["a", "b", "c"]),
    ("encoder", "class_names", {"a": 0, "b": 1}),
    ("encoder", "node_label_names", None),
    ("encoder", "node_label_names", ["C", "H", None]),
    ("encoder", "edge_label_names", ["single", "double"]),
    ("encoder", "target_mean", "0"),
    ("encoder", "target_mean", float("nan")),
    ("encoder", "target_mean", 10**400),
    ("encoder", "target_scale", 0),
    ("encoder", "target_scale", [1]),
    ("encoder", "more", 1),
    ("encoder", "by_degree", 1),
    ("encoder", "by_degree", "false"),
    ("encoder", "by_degree", None),
    ("encoder", "by_degree", True),
    ("read", "hydrogens", "yes"),
    ("read", "colour", "red"),
    ("train", "seed", -1),
    ("train", "colour", "red"),
]


@pytest.mark.parametrize(("section", "name", "value"), WRONG)
def test_settings_of_a_wrong_kind_or_name_are_refused(section: str, name: str, value: Any, folder: Path) -> None:
    change(folder, lambda plain: plain.setdefault(section, {}).update({name: value}))
    with pytest.raises(RunError) as refusal:
        Model.load(folder)
    assert str(folder) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("section", ["model", "encoder", "read", "train", "temperature"])
@pytest.mark.parametrize("value", [None, 3, "text", ["list"], [], {"a": 1}, float("nan"), -1.0])
def test_sections_of_a_wrong_kind_are_refused(section: str, value: Any, folder: Path) -> None:
    change(folder, lambda plain: plain.update({section: value}))
    if section == "temperature" and value == 3:
        assert Model.load(folder).temperature == 3
        return
    with pytest.raises(RunError):
        Model.load(folder)


@pytest.mark.parametrize("name", ["width", "depth", "k", "slots", "hidden", "wl_rounds"])
@pytest.mark.parametrize("value", [20_000, 10**9, 10**18, 10**30])
def test_huge_settings_are_refused_without_taking_the_memory(name: str, value: int, folder: Path) -> None:
    import resource

    change(folder, lambda plain: plain["model"].update({name: value}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(RunError):
            Model.load(folder)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_weights_that_are_missing_misshapen_or_not_finite_are_refused(folder: Path, tmp_path: Path) -> None:
    def poison(arrays: dict[str, Any]) -> None:
        arrays["networks.0.out.weight"][0, 0] = np.nan

    edits: list[Callable[[dict[str, Any]], object]] = [
        poison,
        lambda arrays: arrays.pop("networks.0.out.weight"),
        lambda arrays: arrays.update({"networks.0.more": np.zeros(3)}),
        lambda arrays: arrays.update({"networks.0.out.bias": np.zeros((2, 1), np.float32)}),
        lambda arrays: arrays.pop("encoder.attr_mean"),
        lambda arrays: arrays.update({"encoder.attr_scale": np.zeros(1)}),
        lambda arrays: arrays.update({"encoder.ranking.counts.1": np.zeros(1, np.int64)}),
        lambda arrays: arrays.pop("encoder.ranking.colours.2"),
    ]
    for number, edit in enumerate(edits):
        damaged = tmp_path / str(number)
        shutil.copytree(folder, damaged)
        change_arrays(damaged, edit)
        with pytest.raises(RunError):
            Model.load(damaged)


# ── anything at all in the files ──────────────────────────────────────────────────────────────────


def load_or_refuse(folder: Path) -> None:
    """A predictor that predicts, or one clear line: never anything else."""
    refusal = ""
    try:
        assert Model.load(folder).probabilities(alcohols()[:2]).shape[0] == 2
    except RunError as error:
        refusal = str(error)
    assert "\n" not in refusal


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_in_the_config_is_read_or_refused(data: st.DataObject, folder: Path) -> None:
    text = (folder / "config.json").read_text()
    plain = json.loads(text)
    del plain["digests"]
    place, key = plain, data.draw(st.sampled_from(sorted(plain)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(PLAIN)
    try:
        write_config(folder, plain)
        load_or_refuse(folder)
    finally:
        (folder / "config.json").write_text(text)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["config.json", "model.safetensors"]),
    place=st.floats(0, 1, exclude_max=True),
    in_head=st.booleans(),
    insert=st.binary(max_size=4),
    remove=st.integers(0, 4),
)
def test_any_bytes_anywhere_in_the_files_are_read_or_refused(
    name: str, place: float, in_head: bool, insert: bytes, remove: int, folder: Path
) -> None:
    change_back = {each: (folder / each).read_bytes() for each in ("config.json", "model.safetensors")}
    without_checksums(folder)
    content = (folder / name).read_bytes()
    at = int(place * (min(2000, len(content)) if in_head else len(content)))
    try:
        (folder / name).write_bytes(content[:at] + insert + content[at + remove :])
        load_or_refuse(folder)
    finally:
        for each, before in change_back.items():
            (folder / each).write_bytes(before)


def test_nothing_in_a_folder_is_ever_executed(folder: Path, tmp_path: Path) -> None:
    """A pickle that would leave a file behind takes the place of the weights, and then of the settings."""

    class Trap:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[Path]]:
            return Path.touch, (tmp_path / "sprung",)

    for name in ("model.safetensors", "config.json"):
        torch.save({"weights": Trap()}, folder / name)
        with pytest.raises(RunError):
            Model.load(folder)
    assert not (tmp_path / "sprung").exists()


def test_a_model_of_other_classes_of_degrees_is_refused(tmp_path: Path) -> None:
    star = one_graph(71, [(0, leaf) for leaf in range(1, 71)])
    config = replace(MODEL, degrees=True)
    encoder = replace(Encoder.fit(star, config), class_names=("no", "yes"))
    Model.build(config, encoder).save(tmp_path / "run")
    assert Model.load(tmp_path / "run").encoder.node_label_names == ("degree 1", "degree 64 to 90")
    change(tmp_path / "run", lambda plain: plain["encoder"].update(node_label_names=["degree 1", "degree 64 to 80"]))
    with pytest.raises(RunError, match="other classes of degrees than this version of egocnn has: train it again"):
        Model.load(tmp_path / "run")
