"""Completion scripts: read by the shells that are installed, and complete what the parsers know."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from egocnn.cli.arguments import command_parsers
from egocnn.cli.commands import COMMANDS
from egocnn.cli.commands.completion import SHELLS, completion_script
from tests.support.commands import Run, check_refused

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "egocnn.bash"
    path.write_text(completion_script("bash", command_parsers()), encoding="utf-8")
    return path


def complete(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    driven = f"""
source {shlex.quote(str(script))}
COMP_WORDS=({shlex.join(words)})
COMP_CWORD={len(words) - 1}
_egocnn
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", driven], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_a_script_that_the_shell_can_read(shell: str, run: Run, tmp_path: Path) -> None:
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert json.loads(run("completion", shell, "--json")[1]) == {"shell": shell, "script": out}
    for name in COMMANDS:
        assert name in out
    for option in ("epochs", "help-all", "no-hydrogens", "min-support"):
        assert option in out
    if shutil.which(shell) is None:
        return
    path = tmp_path / "script"
    path.write_text(out, encoding="utf-8")
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_shell_that_is_not_known_is_refused(run: Run) -> None:
    check_refused(run, "invalid choice: 'tcsh'", "completion", "tcsh")


@needs_bash
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["tr"], ["train"]),
        (["p"], ["prepare", "predict", "patterns", "pairs"]),
        (["--v"], ["--version"]),
        (["train", "--ep"], ["--epochs"]),
        (["train", "--no-h"], ["--no-hydrogens", "--no-head-norm"]),
        (["train", "MUTAG", "--readout", "mean"], ["mean", "mean+max", "mean+log+max"]),
        (["train", "MUTAG", "--readout", "=", "so"], ["sort"]),
        (["train", "--preset", ""], ["default", "paper"]),
        (["train", "--epochs", ""], []),
        (["train", ""], []),
        (["info", "--ep"], []),
        (["crossval", "--protocol", "f"], ["fair"]),
        (["completion", "z"], ["zsh"]),
        (["fly", "--e"], []),
    ],
)
def test_bash_completes_commands_options_and_choices(bash_script: Path, words: list[str], wanted: list[str]) -> None:
    assert complete(bash_script, "egocnn", *words) == wanted


@needs_bash
@pytest.mark.parametrize("name", COMMANDS)
def test_bash_offers_every_option_of_every_command(bash_script: Path, name: str) -> None:
    flags = [flag for action in command_parsers()[name].options() for flag in action.option_strings]
    assert complete(bash_script, "egocnn", name, "-") == flags


def test_bash_is_left_to_complete_files_where_a_path_is_due(bash_script: Path) -> None:
    text = bash_script.read_text(encoding="utf-8")
    for place in ("train -o", "train --config", "crossval --against"):
        assert re.search(f'"{place}"[^)]*\\) files=yes ;;', text), place
    for place in ("train --seed", "train --epochs"):
        assert f'"{place}") : ;;' in text
    assert re.search(r"^ +serve\) .* else files=yes; fi ;;$", text, re.MULTILINE)
