"""Settings by name: what a preset stands for, and that what is typed goes before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.cli.main import parse
from egocnn.cli.options import from_options
from egocnn.config import PRESET_NAMES, PRESETS, ModelConfig, PresetName, TrainConfig
from lab.tables import presets as of_tables
from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.tiny import ALCOHOLS, SIZES

TYPED = {
    "depth": (["--depth", "2"], 2),
    "readout": (["--readout", "mean"], "mean"),
    "dropout": (["--dropout", "0.25"], 0.25),
    "jump": (["--no-jump"], False),
    "head_norm": (["--head-norm"], True),
    "pool_norm": (["--pool-norm"], True),
    "count_inputs": (["--count-inputs"], True),
    "epochs": (["--epochs", "7"], 7),
    "schedule": (["--schedule", "cosine"], "cosine"),
    "batch_size": (["--batch-size", "3"], 3),
}
"""field -> words that set it, and the value"""


def parsed(*words: str, command: Sequence[str] = ("crossval", ALCOHOLS)) -> tuple[ModelConfig, TrainConfig]:
    options = parse([*command, *words])
    return from_options(options, ModelConfig), from_options(options, TrainConfig)


@pytest.mark.parametrize(
    "command", [("crossval", ALCOHOLS), ("train", ALCOHOLS, "-o", "run")], ids=["crossval", "train"]
)
@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_preset_gives_all_its_settings_and_no_others(name: PresetName, command: Sequence[str]) -> None:
    preset = PRESETS[name]
    assert parsed("--preset", name, command=command) == (preset.model, preset.train)
    typed = replace(preset.train, seed=5, device="cpu")  # which are never the preset's
    assert parsed("--preset", name, "--seed", "5", "--device", "cpu", command=command)[1] == typed
    assert set(preset.options()) == {field.name for config in (ModelConfig, TrainConfig) for field in fields(config)}


@settings(max_examples=15)
@given(
    st.sampled_from(PRESET_NAMES),
    st.lists(st.sampled_from(sorted(TYPED)), unique=True),
    st.randoms(use_true_random=False),
)
def test_what_is_typed_goes_before_the_preset_in_any_order(name: PresetName, typed: list[str], random: Random) -> None:
    words = [["--preset", name], *(TYPED[each][0] for each in typed)]
    random.shuffle(words)
    values = {each: TYPED[each][1] for each in typed}
    model, train = parsed(*(word for group in words for word in group))
    assert {**asdict(model), **asdict(train)} == PRESETS[name].options() | values


def test_a_usual_value_that_is_typed_goes_before_the_preset_too() -> None:
    usual = ModelConfig()
    paper = PRESETS["paper"].model
    assert usual.readout != paper.readout
    assert parsed("--readout", usual.readout, "--preset", "paper")[0] == replace(paper, readout=usual.readout)


def test_the_paper_preset_has_the_papers_numbers() -> None:
    model, train = PRESETS["paper"].model, PRESETS["paper"].train
    assert (model.slots, model.k, model.width, model.depth, model.hidden, model.dropout) == (10, 16, 128, 5, 128, 0.5)
    assert model.pool_dropout == 0.0
    assert not any((model.jump, model.head_norm, model.pool_norm, model.degrees))
    assert train.learning_rate == 1e-4
    assert PRESETS["default"].options() == {**asdict(ModelConfig()), **asdict(TrainConfig())}
    assert parsed() == parsed("--preset", "default")


def test_the_tables_take_their_settings_from_the_presets() -> None:
    assert (PRESETS["paper"].model, PRESETS["paper"].train) == (of_tables.PAPER_MODEL, of_tables.PAPER_TRAIN)
    ours = PRESETS["default"]
    assert (ours.model, replace(ours.train, networks=1)) == (of_tables.OUR_MODEL, of_tables.OUR_TRAIN)


def test_a_model_trained_with_a_preset_says_so_in_its_config(tmp_path: Path, run: Run) -> None:
    words = ("--preset", "paper", "-o", tmp_path / "run", "--device", "cpu")
    printed(run, "train", ALCOHOLS, *SHORT, *words)
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    wanted = PRESETS["paper"]
    assert config["model"] == asdict(wanted.model) | SIZES
    assert config["train"] == asdict(wanted.train) | {"epochs": 2, "device": "cpu"}
    printed(run, "predict", tmp_path / "run", ALCOHOLS, "-o", tmp_path / "p.csv")


def test_presets_that_do_not_exist_or_go_with_another_model_are_refused(run: Run) -> None:
    check_refused(run, "--preset: invalid choice: 'best'", "crossval", ALCOHOLS, "--preset", "best")
    check_refused(run, "--preset: invalid choice: 'best'", "train", ALCOHOLS, "-o", "x", "--preset", "best")
    for name in PRESET_NAMES:
        wanted = "--preset names settings of the Ego-CNN; label counts has its own"
        check_refused(run, wanted, "crossval", ALCOHOLS, "--model", "label-counts", "--preset", name)
    check_refused(run, "unrecognized arguments: --preset", "info", ALCOHOLS, "--preset", "paper")
