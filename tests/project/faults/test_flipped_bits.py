"""One bit flipped in any file of a model or a store: refused in one short line, or without any effect."""

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
from egocnn.errors import DataError, RunError
from egocnn.explain import fit_attention, load_attention, save_attention
from egocnn.model import MODEL, Model
from tests.project.faults.processes import SHORT
from tests.show.serve.models import classifier
from tests.support.commands import Run, check_refused
from tests.support.sealing import reseal, without_checksums
from tests.support.tiny import ALCOHOLS, alcohols

PARTS = ("config.json", "model.safetensors", "attention.safetensors", "metrics.json", "history.csv")


@pytest.fixture(scope="module")
def folder(alcohol_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, with the paper's attention."""
    folder = tmp_path_factory.mktemp("model") / "run"
    shutil.copytree(alcohol_run, folder)
    predictor = Model.load(folder)
    save_attention(fit_attention(predictor, alcohols(), epochs=1), folder)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "store"
    assert main(["prepare", ALCOHOLS, "-o", str(folder)]) == 0
    return folder


def flip(path: Path, place: float, bit: int, *, in_head: bool = False) -> None:
    """Flip a bit at this share of the file, or of its first bytes."""
    damaged = bytearray(path.read_bytes())
    damaged[int(place * (min(len(damaged), 1000) if in_head else len(damaged)))] ^= 1 << bit
    path.write_bytes(damaged)


def read_damaged(read: Callable[[], Any], path: Path, place: float, bit: int, *, in_head: bool = False) -> Any:
    """What is read while a bit of the file is flipped; None where it is refused in one line."""
    before = path.read_bytes()
    flip(path, place, bit, in_head=in_head)
    try:
        return read()
    except (DataError, RunError) as error:
        return error if "\n" in str(error) else None
    finally:
        path.write_bytes(before)


def answers(folder: Path) -> tuple[Any, Any]:
    predictor = Model.load(folder)
    attention = load_attention(folder, predictor)
    weights = None if attention is None else torch.nn.ModuleList(attention).state_dict()
    return predictor.probabilities(alcohols()), weights


PLACES: dict[str, Any] = {"place": st.floats(0, 1, exclude_max=True), "bit": st.integers(0, 7)}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "indices.bin", "names.bin"])
def test_no_command_goes_on_with_a_damaged_model_or_store(
    name: str, alcohol_run: Path, store: Path, tmp_path: Path, run: Run
) -> None:
    is_store, copy, out = name.endswith(".bin"), tmp_path / "copy", ["-o", tmp_path / "out"]
    shutil.copytree(store if is_store else alcohol_run, copy)
    flip(copy / name, 0.6, 3)
    model, data = (alcohol_run, copy) if is_store else (copy, ALCOHOLS)
    asked = [["predict", model, data, "-o", tmp_path / "out.csv"], ["explain", model, data, *out]]
    if is_store:
        asked += [["train", copy, *out, *SHORT], ["info", copy], ["prepare", copy, *out], ["crossval", copy, *SHORT]]
    else:
        asked += [["export", copy, *out], ["train", ALCOHOLS, "-o", copy, *SHORT, "--resume"]]
    for words in asked:
        check_refused(run, f"{name} is damaged" if is_store else f"{copy}", *words)
    assert [file.name for file in tmp_path.iterdir()] == ["copy"]


def test_a_model_from_before_there_were_checksums_loads_and_has_them_once_it_is_saved_again(
    alcohol_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(alcohol_run, tmp_path / "old")
    without_checksums(tmp_path / "old")
    old = Model.load(tmp_path / "old")
    np.testing.assert_array_equal(old.probabilities(alcohols()), Model.load(alcohol_run).probabilities(alcohols()))
    old.save(tmp_path / "new")
    one, other = (json.loads((place / "config.json").read_text()) for place in (alcohol_run, tmp_path / "new"))
    assert one == other


def test_the_weights_and_the_attention_of_another_model_are_not_used(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    assert main(["train", ALCOHOLS, "-o", str(copy), *SHORT, "--seed", "1", "--overwrite"]) == 0
    assert (copy / "attention.safetensors").exists()
    assert load_attention(copy, Model.load(copy)) is None
    shutil.copy(folder / MODEL, copy / MODEL)
    with pytest.raises(RunError, match=r"not that of config\.json"):
        Model.load(copy)
    reseal(copy)
    Model.load(copy)


@pytest.mark.parametrize("odd", ["\x1b[31m" + "9" * 5000, 10**400, ["a\nb"] * 900, b"I" + b"9" * 5000])
def test_a_refusal_of_a_config_or_a_header_is_one_short_line_that_can_be_printed(odd: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    classifier().predictor.save(folder)
    if isinstance(odd, bytes):
        header = json.dumps({"weights": {"dtype": odd.decode(), "shape": [1], "data_offsets": [0, 1]}}).encode()
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
        reseal(folder)
    else:
        plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps(plain | {"format": odd}), encoding="utf-8")
    with pytest.raises(RunError) as refused:
        Model.load(folder)
    told = str(refused.value).removeprefix(str(folder))
    assert told.isprintable()
    assert len(told) < 400
