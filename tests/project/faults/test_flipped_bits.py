"""One bit flipped in any file of a model or a store: refused in one line, or without any effect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from egocnn.cli import main
from egocnn.data.store import Store
from egocnn.errors import DataError, RunError
from egocnn.explain import fit_attention, load_attention, save_attention
from egocnn.model import MODEL, Model
from tests.project.faults.processes import SHORT
from tests.support.commands import check_refused, runner
from tests.support.samples import assert_equal
from tests.support.sealing import reseal, without_checksums
from tests.support.tiny import ALCOHOLS, alcohols

PARTS = ("config.json", "model.safetensors", "attention.safetensors", "metrics.json", "history.csv")


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, with the paper's attention."""
    folder = tmp_path_factory.mktemp("model") / "run"
    shutil.copytree(run, folder)
    predictor = Model.load(folder)
    save_attention(fit_attention(predictor, alcohols(), epochs=1), folder)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "store"
    assert main(["prepare", ALCOHOLS, "-o", str(folder)]) == 0
    return folder


def flip(path: Path, place: float, bit: int, *, in_head: bool = False) -> bytes:
    """Flip a bit at this share of the file, or of its first bytes; what the file held before."""
    before = path.read_bytes()
    damaged = bytearray(before)
    damaged[int(place * (min(len(before), 1000) if in_head else len(before)))] ^= 1 << bit
    path.write_bytes(damaged)
    return before


def read_damaged(read: Callable[[], Any], path: Path, place: float, bit: int, *, in_head: bool = False) -> Any:
    """What is read while a bit of the file is flipped; None where it is refused in one line."""
    before = flip(path, place, bit, in_head=in_head)
    try:
        return read()
    except (DataError, RunError) as error:
        return error if "\n" in str(error) else None
    finally:
        path.write_bytes(before)


def answers(folder: Path) -> tuple[Any, Any]:
    predictor = Model.load(folder)
    attention = load_attention(folder, predictor)
    return predictor.probabilities(alcohols()), None if attention is None else torch.nn.ModuleList(
        attention
    ).state_dict()


PLACES: dict[str, Any] = {"place": st.floats(0, 1, exclude_max=True), "bit": st.integers(0, 7)}


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(PARTS), in_head=st.booleans(), **PLACES)
@example(name="model.safetensors", in_head=False, place=0.9999, bit=0)  # the least bit of a weight
@example(name="config.json", in_head=True, place=0.002, bit=5)
def test_a_flipped_bit_in_a_model_is_refused_or_has_no_effect(
    name: str, in_head: bool, place: float, bit: int, folder: Path
) -> None:
    probabilities, attention = answers(folder)
    found = read_damaged(lambda: answers(folder), folder / name, place, bit, in_head=in_head)
    if found is None:
        assert name not in ("metrics.json", "history.csv")
    else:
        assert name != MODEL  # every bit of the weights counts
        np.testing.assert_array_equal(found[0], probabilities)
        torch.testing.assert_close(found[1], attention, rtol=0, atol=0)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), **PLACES)
def test_a_flipped_bit_in_a_store_is_refused_or_has_no_effect(
    data: st.DataObject, place: float, bit: int, store: Path
) -> None:
    expected = Store.open(store).graphs()
    name = data.draw(st.sampled_from(sorted(file.name for file in store.iterdir() if file.stat().st_size)))
    found = read_damaged(lambda: Store.open(store).graphs(), store / name, place, bit)
    if found is not None:
        assert name == "manifest.json"  # the columns are all numbers
        assert_equal(found, expected)


# ── as a user meets it ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_no_command_goes_on_with_a_damaged_model(
    name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    flip(copy / name, 0.7, 0)
    egocnn = runner(capsys)
    for words in (
        ["predict", copy, ALCOHOLS, "-o", tmp_path / "p.csv"],
        ["explain", copy, ALCOHOLS, "-o", tmp_path / "report"],
        ["export", copy, "-o", tmp_path / "model.onnx"],
        ["train", ALCOHOLS, "-o", copy, *SHORT, "--resume"],
    ):
        check_refused(egocnn, f"{copy}", *words)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["indices.bin", "node_label.bin", "names.bin", "target.bin"])
def test_no_command_goes_on_with_a_damaged_store(
    name: str, run: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    flip(copy / name, 0.5, 3)
    egocnn = runner(capsys)
    for words in (
        ["train", copy, "-o", tmp_path / "run", *SHORT],
        ["predict", run, copy, "-o", tmp_path / "p.csv"],
        ["explain", run, copy, "-o", tmp_path / "report", "--quiet"],
        ["info", copy],
        ["prepare", copy, "-o", tmp_path / "other"],
        ["crossval", copy, *SHORT],
    ):
        check_refused(egocnn, f"{name} is damaged", *words)
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


# ── what has no checksums, or others ──────────────────────────────────────────────────────────────


def test_a_model_from_before_there_were_checksums_loads_and_has_them_once_it_is_saved_again(
    run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "old")
    without_checksums(tmp_path / "old")
    old = Model.load(tmp_path / "old")
    np.testing.assert_array_equal(old.probabilities(alcohols()), Model.load(run).probabilities(alcohols()))
    old.save(tmp_path / "new")
    one, other = (json.loads((place / "config.json").read_text()) for place in (run, tmp_path / "new"))
    assert one == other


def test_settings_beside_the_weights_of_another_model_are_refused(run: Path, tmp_path: Path) -> None:
    assert main(["train", ALCOHOLS, "-o", str(tmp_path / "run"), *SHORT, "--seed", "1"]) == 0
    shutil.copy(run / MODEL, tmp_path / "run" / MODEL)
    with pytest.raises(RunError, match=r"not that of config\.json"):
        Model.load(tmp_path / "run")
    reseal(tmp_path / "run")
    Model.load(tmp_path / "run")


def test_the_attention_of_a_model_that_was_replaced_is_not_used(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    assert main(["train", ALCOHOLS, "-o", str(tmp_path / "run"), *SHORT, "--seed", "1", "--overwrite"]) == 0
    assert (tmp_path / "run" / "attention.safetensors").exists()
    assert load_attention(tmp_path / "run", Model.load(tmp_path / "run")) is None
