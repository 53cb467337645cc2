"""Settings as options, what the help shows of them, and that nothing else knows argparse."""

import argparse
import ast
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import egocnn
from egocnn.cli.arguments import command_parsers
from egocnn.cli.commands import COMMANDS, IN_THE_LAB, find_command
from egocnn.cli.options import Parser, add_options, from_options
from egocnn.config import ModelConfig, ReadConfig, TrainConfig, field_help
from tests.support.commands import Run, printed

CONFIGS = [ReadConfig, ModelConfig, TrainConfig]


def parse(config: type[Any], *words: str, skip: Sequence[str] = ()) -> Any:
    parser = Parser(prog="egocnn train")
    add_options(parser, config, skip=skip)
    return from_options(parser.parse_args(words), config)


def other_value(config: type[Any], name: str) -> tuple[list[str], Any]:
    """Words for a value that is not the default, and the value."""
    flag, default = "--" + name.replace("_", "-"), getattr(config(), name)
    if isinstance(default, bool):
        return [f"--no-{flag[2:]}" if default else flag], not default
    choices = [choice for choice in get_args(get_type_hints(config)[name]) if isinstance(choice, str)]
    if choices:
        return [flag, choices[-1]], choices[-1]
    value = {int: 5, float: 0.25}.get(type(default), "column")
    return [flag, str(value)], value


@pytest.mark.parametrize(("config", "name"), [(config, f.name) for config in CONFIGS for f in fields(config)])
def test_every_field_has_a_flag_that_sets_it_alone(config: type[Any], name: str) -> None:
    words, value = other_value(config, name)
    assert getattr(config(), name) != value
    assert asdict(parse(config, *words)) == asdict(config()) | {name: value}
    assert parse(config, *words, skip=[f.name for f in fields(config) if f.name != name]) == parse(config, *words)
    if isinstance(value, bool):
        back = f"--no-{words[0][2:]}" if value else words[0].replace("--no-", "--")
        assert getattr(parse(config, *words, back), name) is not value


@pytest.mark.parametrize("config", CONFIGS)
def test_the_whole_help_shows_every_flag_with_its_line_of_meaning_and_its_default(config: type[Any]) -> None:
    parser = Parser(prog="egocnn train")
    add_options(parser, config)
    text = " ".join(parser.format_help_all().split())
    for field in fields(config):
        assert "--" + field.name.replace("_", "-") in text
        assert field_help(config)[field.name] in text
        if isinstance(field.default, (int, float)) and not isinstance(field.default, bool):
            assert f"[{field.default}]" in text


def test_what_is_none_has_not_been_said() -> None:
    nothing = argparse.Namespace(**dict.fromkeys(asdict(ReadConfig())))
    assert from_options(nothing, ReadConfig) == ReadConfig()
    assert from_options(argparse.Namespace(hydrogens=True, task=None), ReadConfig) == ReadConfig(hydrogens=True)


@pytest.mark.parametrize(
    ("config", "words", "wanted"),
    [
        (TrainConfig, ["--epochs", "many"], "argument --epochs: invalid int value: 'many'"),
        (TrainConfig, ["--learning-rate", "fast"], "argument --learning-rate: invalid float value: 'fast'"),
        (ModelConfig, ["--k", "1,x"], "argument --k: invalid int value: '1,x'"),
        (ModelConfig, ["--k", ""], "argument --k: invalid int value: ''"),
        (ModelConfig, ["--readout", "median"], "argument --readout: invalid choice: 'median'"),
        (ModelConfig, ["--width"], "argument --width: expected one argument"),
        (ModelConfig, ["--no-such-thing"], "unrecognized arguments: --no-such-thing"),
        (ModelConfig, ["two\nlines"], "unrecognized arguments: two lines"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_one_line_and_code_2(
    config: type[Any], words: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refusal:
        parse(config, *words)
    assert refusal.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("egocnn train: ")
    assert wanted in err
    assert err.endswith("; see egocnn train --help\n")


PACKAGE = Path(egocnn.__file__).parent
MOST = 18
"""Options in a help that can be read in one go, ``--help`` and ``--help-all`` not counted."""
ASKING = {"-h", "--help-all"}


def shown(text: str) -> set[str]:
    """The first spelling of every option that a help lists."""
    lines = (line.split() for line in text.splitlines() if line.startswith("  -"))
    return {words[0].rstrip(",") for words in lines} - ASKING


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_few_options_and_help_all_shows_every_one(run: Run, name: str) -> None:
    everyday, everything = printed(run, name, "--help"), printed(run, name, "--help-all")
    every = {action.option_strings[0] for action in command_parsers()[name].options()} - ASKING
    assert shown(everything) == every
    assert shown(everyday) < every
    assert len(shown(everyday)) <= MOST
    assert f": egocnn {name} --help-all\n" in everyday
    assert {"--seed", "--device", "--json", "--quiet"} <= shown(everyday)


def test_the_help_of_train_is_about_what_people_change(run: Run) -> None:
    text = run("train", "--help")[1]
    assert text.startswith("usage: egocnn train DATA -o RUN [options]\n")
    for flag in ("--target", "--epochs", "--width", "--preset", "--config", "--like", "-o", "--resume"):
        assert flag in shown(text)
    for flag in ("--judgements", "--wl-rounds", "--debug", "--pool-dropout"):
        assert flag not in text


def test_help_of_all_options_has_them_in_groups_with_run_and_output_last(run: Run) -> None:
    text = run("train", "--help-all")[1]
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[2:] == ["data", "settings", "network", "training", "run", "output"]
    for name, parser in command_parsers().items():
        grouped = [action for group in parser._action_groups for action in group._group_actions if group.title]
        assert set(parser.options()) <= set(grouped), name


def test_every_command_has_a_file_of_its_own_and_no_file_is_left_over() -> None:
    files = {file.stem for file in (PACKAGE / "cli" / "commands").rglob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in COMMANDS.keys() - IN_THE_LAB}
    for name in IN_THE_LAB:
        assert find_command(name)[1].__module__ == f"lab.{IN_THE_LAB[name]}"


def test_only_the_command_line_knows_argparse() -> None:
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "argparse" not in modules or file.is_relative_to(PACKAGE / "cli"), file
