"""Settings from files and runs: what goes before what, what is refused, and how a run is trained again."""

import argparse
import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from random import Random
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.cli import main, with_settings
from egocnn.cli.arguments import build_parser
from egocnn.cli.options import SECTIONS, Sections, from_options, read_settings, used_settings
from egocnn.config import PRESET_NAMES, PRESETS, ExplainConfig, ModelConfig, PresetName, ReadConfig, TrainConfig
from egocnn.files import to_toml, write_text
from lab.tables import presets as of_tables
from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.tiny import ALCOHOLS

TRAIN = ("train", ALCOHOLS, "-o", "run")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained with settings of every type, the data's limit and the share of the test among them."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    words = ["--width", "8", "--depth", "2", "--slots", "4", "--hidden", "8", "--jump", "--tie", "--no-tie"]
    words += ["--readout", "mean+max", "--dropout", "0.25", "--learning-rate", "3e-3", "--seed", "5", "--epochs", "2"]
    words += ["--networks", "1"]
    source = "compounds:alcohols:sizes=3-8,per_size=4"
    assert main(["train", source, "--limit", "40", "--test", "0", *words, "-o", str(folder), "--quiet"]) == 0
    return folder


def parse(words: Sequence[str]) -> argparse.Namespace:
    return with_settings(build_parser(words).parse_args(words), words)


def parsed(*words: object, command: Sequence[str] = TRAIN) -> tuple[ModelConfig, TrainConfig]:
    options = parse([*command, *map(str, words)])
    return from_options(options, ModelConfig), from_options(options, TrainConfig)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# ── there and back ────────────────────────────────────────────────────────────────────────────────


def without_none(sections: Sections) -> Sections:
    return {name: {k: v for k, v in section.items() if v is not None} for name, section in sections.items()}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--preset", "default"],
        ["--preset", "paper", "--device", "cpu", "--seed", "9223372036854775807"],
        ["--k", "9", "--width", "16", "--dropout", "0"],
        ["--tie", "auto", "--readout", "sum"],
        ["--tie", "--k", "3", "--learning-rate", "1e-30", "--weight-decay", "1e22", "--limit", "7", "--test", "0"],
        ["--target", 'a "b" \\ c', "--name", "naïve\t\x7f\n😀", "--split", "Teil=test", "--hydrogens"],
    ],
)
def test_what_is_saved_is_read_back_as_it_was(words: list[str], tmp_path: Path) -> None:
    used = used_settings(parse([*TRAIN, *words]))
    write_text(tmp_path / "settings.toml", to_toml(used))
    assert read_settings(tmp_path / "settings.toml") == without_none(used)
    again = parse([*TRAIN, "--config", str(tmp_path / "settings.toml")])
    assert used_settings(again) == used


@given(
    st.dictionaries(st.sampled_from(["smiles", "target", "name"]), st.text(st.characters(exclude_categories=["Cs"])))
)
def test_any_text_survives_toml(texts: dict[str, str]) -> None:
    assert tomllib.loads(to_toml({"read": texts})).get("read", {}) == texts


def test_what_can_be_nothing_is_nothing_by_default() -> None:
    """TOML has no word for it: what is not in the file must mean the same."""
    for config in (config for each in SECTIONS.values() for config in each):
        types = get_type_hints(config)
        for field in fields(config):
            if NoneType in get_args(types[field.name]):
                assert field.default is None, field.name


@pytest.mark.parametrize("how", ["config", "like"])
def test_a_run_is_trained_again_to_the_same_bits_from_its_settings(
    how: str, run: Run, trained: Path, tmp_path: Path
) -> None:
    source = json.loads((trained / "config.json").read_text())["data"]
    words = ["--config", trained / "settings.toml"] if how == "config" else ["--like", trained]
    printed(run, "train", source, *words, "-o", tmp_path / "again", "--quiet")
    for name in ("model.safetensors", "settings.toml"):
        assert (tmp_path / "again" / name).read_bytes() == (trained / name).read_bytes(), name
    one, other = (json.loads((folder / "config.json").read_text()) for folder in (trained, tmp_path / "again"))
    assert one["fingerprint"] == other["fingerprint"]
    assert one["model"]["width"] == 8


def test_the_settings_are_there_while_the_training_runs_and_are_those_of_the_run_that_replaced(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert run("train", ALCOHOLS, "-o", folder, *SHORT, "--seed", 1)[0] == 0
    assert read_settings(folder / "settings.toml")["train"]["seed"] == 1
    check_refused(run, "was started with other", "train", ALCOHOLS, "-o", folder, *SHORT, "--seed", 2, "--resume")
    assert read_settings(folder / "settings.toml")["train"]["seed"] == 1
    assert run("train", ALCOHOLS, "-o", folder, *SHORT, "--seed", 2, "--overwrite")[0] == 0
    assert read_settings(folder / "settings.toml")["train"]["seed"] == 2


# ── what goes before what ─────────────────────────────────────────────────────────────────────────


def test_typed_goes_before_config_before_like_before_preset_before_the_default(trained: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "it.toml", "[model]\nwidth = 16\nslots = 10\n")
    model, train = parsed("--preset", "paper")
    assert (model, train) == (PRESETS["paper"].model, PRESETS["paper"].train)
    model, train = parsed("--preset", "paper", "--like", trained)
    assert (model.width, model.readout, train.seed, train.judgements) == (8, "mean+max", 5, 80)
    model, train = parsed("--preset", "paper", "--like", trained, "--config", file)
    assert (model.width, model.readout, model.depth) == (16, "mean+max", 2)
    model, train = parsed("--config", file, "--width", "3", "--like", trained, "--seed", "0")
    assert (model.width, model.depth, train.seed) == (3, 2, 0)
    model, train = parsed("--config", file, "--preset", "paper")
    assert (model.width, model.depth, train) == (16, 5, PRESETS["paper"].train)


def test_a_file_for_all_commands_brings_each_what_it_has(tmp_path: Path) -> None:
    text = '[read]\ntarget = "y"\n[train]\nepochs = 3\ntest = 0.5\nlimit = 4\n[explain]\nagainst = 0.75\ntop = 2\n'
    file = str(write(tmp_path / "it.toml", text))
    options = parse(["crossval", ALCOHOLS, "--config", file])
    assert (options.epochs, options.limit, options.target, options.against) == (3, 4, "y", None)
    options = parse(["explain", "run", ALCOHOLS, "-o", "out", "--config", file])
    assert (options.against, options.top, options.limit, options.target) == (0.75, 2, None, "y")
    assert from_options(options, ExplainConfig) == ExplainConfig(against=0.75, top=2)
    assert not hasattr(options, "epochs")
    options = parse(["train", ALCOHOLS, "-o", "out", "--config", file, "--limit", "9"])
    assert (options.test, options.limit) == (0.5, 9)
    options = parse(["sweep", ALCOHOLS, "-o", "out", "--config", file, "--over", "width=2,4"])
    assert (options.epochs, options.limit) == (3, 4)


def test_whole_numbers_stand_for_numbers_and_lists_for_several_names(tmp_path: Path) -> None:
    file = write(tmp_path / "it.toml", "[model]\ndropout = 0\n[read]\ntarget = ['a', 'b']\n")
    options = parse([*TRAIN, "--config", str(file)])
    assert (repr(options.dropout), options.target) == ("0.0", "a,b")


def test_a_rival_refuses_settings_of_ours_from_a_file_too(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "it.toml", "[model]\nwidth = 16\n")
    wanted = "--width is a setting of the Ego-CNN"
    check_refused(run, wanted, "crossval", ALCOHOLS, "--model", "label-counts", "--config", file)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────

BAD: dict[str, str] = {
    "[train]\nepoch = 3": "it.toml, [train]: no setting is called 'epoch'; did you mean epochs?",
    "[model]\nlearning_rate = 1": "it.toml, [model]: learning_rate belongs to [train]",
    "[model]\nxyzzy = 1": "it.toml, [model]: no setting is called 'xyzzy'; there are embedding, slots",
    "epochs = 3": "it.toml: epochs stands outside of a section; it belongs to [train]",
    "[training]\nepochs = 3": "it.toml: no section is called 'training'; there are [read], [model], [train], [explain]",
    "train = 3": "it.toml: train must be a section, [train], got 3",
    "[train]\nepochs = 'many'": "it.toml, [train]: epochs must be a whole number, got 'many'",
    "[train]\nepochs = 3.0": "it.toml, [train]: epochs must be a whole number, got 3.0",
    "[train]\nepochs = true": "it.toml, [train]: epochs must be a whole number, got True",
    "[train]\nepochs = 0": "it.toml, [train]: epochs must be at least 1, got 0",
    "[train]\nlearning_rate = nan": "it.toml, [train]: learning_rate must be above 0",
    "[train]\nlearning_rate = '1'": "it.toml, [train]: learning_rate must be a number, got '1'",
    "[train]\ntest = 1.5": "it.toml, [train]: test must be at least 0 and below 1, got 1.5",
    "[train]\nlimit = 0": "it.toml, [train]: limit must be at least 1, got 0",
    "[train]\nclass_weights = 1": "it.toml, [train]: class_weights must be true or false, got 1",
    "[model]\nreadout = 'median'": "it.toml, [model]: readout must be one of max, mean",
    "[model]\nreadout = ['max']": "it.toml, [model]: readout must be one of max, mean",
    "[model]\ntie = 'maybe'": "it.toml, [model]: tie must be true, false or auto, got 'maybe'",
    "[model]\nwidth = 0": "it.toml, [model]: width must be at least 1, got 0",
    "[model]\nwidth = [8, 8]": "it.toml, [model]: width must be a whole number, got [8, 8]",
    "[read]\ntarget = 3": "it.toml, [read]: target must be a name, got 3",
    "[train\nepochs = 3": "it.toml: is not TOML (",
    "[train]\nepochs = 3\nepochs = 4": "it.toml: is not TOML (",
    f"x = {'[' * 5000}": "it.toml: is not TOML (",
    f"[train]\nlearning_rate = {'9' * 5000}": "it.toml: is not TOML (",
    f"[train]\nlearning_rate = {'9' * 400}": "it.toml, [train]: learning_rate: int too large",
    "[read]\nsplit = ['a']": "it.toml, [read]: split must be a name, got ['a']",
    "[train]\nlimit = true": "it.toml, [train]: limit must be a whole number, got True",
    "[train]\nlimit = 'few'": "it.toml, [train]: limit must be a whole number, got 'few'",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_a_file_that_says_something_else_is_refused_with_its_name_and_the_settings(
    text: str, run: Run, tmp_path: Path
) -> None:
    file = write(tmp_path / "it.toml", text)
    check_refused(run, BAD[text], "train", ALCOHOLS, "-o", tmp_path / "run", "--config", file)
    assert not (tmp_path / "run").exists()


def test_files_that_are_not_there_or_no_text_are_refused(run: Run, tmp_path: Path) -> None:
    words = ("train", ALCOHOLS, "-o", tmp_path / "run")
    check_refused(run, "nowhere.toml: No such file or directory", *words, "--config", tmp_path / "nowhere.toml")
    check_refused(run, "Is a directory", *words, "--config", tmp_path)
    (tmp_path / "it.toml").write_bytes(b"\xff\xfe")
    check_refused(run, "it.toml: is not TOML (", *words, "--config", tmp_path / "it.toml")
    check_refused(run, "holds no settings.toml; --like takes a run folder", *words, "--like", tmp_path)
    check_refused(run, "unrecognized arguments: --config", "info", ALCOHOLS, "--config", "x.toml")
    assert not (tmp_path / "run").exists()


def test_every_setting_can_stand_in_a_file(tmp_path: Path) -> None:
    values: dict[str, dict[str, Any]] = {
        name: {k: v for config in configs for k, v in asdict(config()).items()} for name, configs in SECTIONS.items()
    }
    values["read"] |= {name: "column" for name, value in asdict(ReadConfig()).items() if value is None}
    values["train"]["limit"] = 3
    write_text(tmp_path / "it.toml", to_toml(values))
    assert read_settings(tmp_path / "it.toml") == values


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


def test_presets_that_do_not_exist_or_go_with_another_model_are_refused(run: Run) -> None:
    check_refused(run, "--preset: invalid choice: 'best'", "crossval", ALCOHOLS, "--preset", "best")
    check_refused(run, "--preset: invalid choice: 'best'", "train", ALCOHOLS, "-o", "x", "--preset", "best")
    for name in PRESET_NAMES:
        wanted = "--preset names settings of the Ego-CNN; label counts has its own"
        check_refused(run, wanted, "crossval", ALCOHOLS, "--model", "label-counts", "--preset", name)
    check_refused(run, "unrecognized arguments: --preset", "info", ALCOHOLS, "--preset", "paper")
