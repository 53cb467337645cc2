"""What the help shows, and that the command line is the only place that knows argparse."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import egocnn
from egocnn.cli.arguments import command_parsers
from egocnn.cli.commands import COMMANDS
from egocnn.cli.main import parse
from tests.support.commands import Run, printed
from tests.support.tiny import ALCOHOLS

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


def test_options_that_the_help_leaves_out_still_work() -> None:
    options = parse(["train", ALCOHOLS, "-o", "run", "--judgements", "7", "--no-tie", "--pool-dropout", "0.5"])
    assert (options.judgements, options.tie, options.pool_dropout) == (7, False, 0.5)


def test_every_command_has_a_file_of_its_own_and_no_file_is_left_over() -> None:
    files = {file.stem for file in (PACKAGE / "cli" / "commands").rglob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in COMMANDS}


def test_only_the_command_line_knows_argparse() -> None:
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "argparse" not in modules or file.is_relative_to(PACKAGE / "cli"), file
