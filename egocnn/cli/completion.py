"""The parsers of all commands -> a script with which bash, zsh or fish completes commands, options and their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from egocnn.cli.commands import COMMANDS
from egocnn.cli.options import Parser

SHELLS = ("bash", "zsh", "fish")
ROOT_FLAGS = ("-h", "--help", "--version")


@dataclass(frozen=True, slots=True)
class Completed:
    """An option, or an argument without a flag, as a shell sees it."""

    flags: tuple[str, ...]  # empty for an argument without a flag
    value: str  # what its value is called, '' where it takes none
    choices: tuple[str, ...]  # the values there are, empty where any will do
    is_path: bool
    is_optional: bool  # whether the flag may stand without its value
    repeats: bool
    sentence: str

    @classmethod
    def of(cls, action: argparse.Action) -> Completed:
        """From an argument of a parser."""
        is_switch = action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)
        return cls(
            flags=tuple(action.option_strings),
            value="" if is_switch else str(action.metavar or action.dest.upper()),
            choices=tuple(each for each in action.choices or () if isinstance(each, str)),
            is_path=action.type is Path or action.metavar == "DATA",
            is_optional=action.nargs == "?" and bool(action.option_strings),
            repeats=isinstance(action, argparse._AppendAction),
            sentence=" ".join(((action.help or "") % vars(action)).split()),
        )


Commands = Mapping[str, Sequence[Completed]]


def completion_script(shell: str, parsers: Mapping[str, Parser]) -> str:
    """The script for one of :data:`SHELLS`; it holds all there is to complete, and does not call egocnn."""
    commands = {name: [Completed.of(action) for action in parser._actions] for name, parser in parsers.items()}
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


# ── bash ──────────────────────────────────────────────────────────────────────────────────────────

BASH = """\
# Completion of egocnn for bash. In ~/.bashrc: eval "$(egocnn completion bash)"
_egocnn() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
    local words="" files=""
    COMPREPLY=()
    # bash splits --option=value at the sign
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if (( COMP_CWORD == 1 )); then
        words="{commands}"
    else
        case "$command $before" in
{values}
            *)
                case "$command" in
{options}
                esac
                ;;
        esac
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
    if [[ -n $files ]]; then
        compopt -o default 2> /dev/null
    fi
}}
complete -F _egocnn egocnn
"""


def _bash(commands: Commands) -> str:
    values, options = [], []
    for name, completed in commands.items():
        for each in completed:
            if each.flags and each.value and not each.is_optional:
                pattern = "|".join(f'"{name} {flag}"' for flag in each.flags)
                values.append(f"            {pattern}) {_bash_value(each)} ;;")
        options.append(f"                    {name}) {_bash_options(completed)} ;;")
    words = " ".join([*commands, *ROOT_FLAGS])
    return BASH.format(commands=words, values="\n".join(values), options="\n".join(options))


def _bash_value(completed: Completed) -> str:
    if completed.choices:
        return f'words="{" ".join(completed.choices)}"'
    return "files=yes" if completed.is_path else ":"


def _bash_options(completed: Sequence[Completed]) -> str:
    """Options where one is begun, files where one is due."""
    words = " ".join(word for each in completed for word in (each.flags or each.choices))
    if any(each.is_path and not each.flags for each in completed):
        return f'if [[ $word == -* ]]; then words="{words}"; else files=yes; fi'
    return f'words="{words}"'


# ── zsh ───────────────────────────────────────────────────────────────────────────────────────────

ZSH = """\
#compdef egocnn
# Completion of egocnn for zsh. In ~/.zshrc, after compinit: eval "$(egocnn completion zsh)"
_egocnn() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{cases}
    esac
}}
compdef _egocnn egocnn
"""


def _zsh(commands: Commands) -> str:
    cases = []
    for name, completed in commands.items():
        specs = [spec for each in completed for spec in _zsh_specs(each)]
        lines = " \\\n".join(f"                {spec}" for spec in specs)
        cases.append(f"        {name})\n            _arguments \\\n{lines}\n            ;;")
    described = (f"        {_quoted(f'{name}:{COMMANDS[name]}')}" for name in commands)
    return ZSH.format(commands="\n".join(described), cases="\n".join(cases))


def _zsh_specs(completed: Completed) -> Iterable[str]:
    """The lines for ``_arguments``: one for every flag, or for an argument without one."""
    what = "_files" if completed.is_path else f"({' '.join(completed.choices)})" if completed.choices else ""
    value = f":{completed.value.replace(':', '')}:{what}" if completed.value else ""
    if not completed.flags:
        yield _quoted(value)
        return
    before = "*" if completed.repeats else f"({' '.join(completed.flags)})" if len(completed.flags) > 1 else ""
    for flag in completed.flags:
        sign = "=" if completed.value and flag.startswith("--") else ""
        optional = ":" if completed.is_optional else ""
        meaning = re.sub(r"[\\\[\]:]", r"\\\g<0>", completed.sentence)
        yield _quoted(f"{before}{flag}{sign}[{meaning}]{optional}{value}")


# ── fish ──────────────────────────────────────────────────────────────────────────────────────────


def _fish(commands: Commands) -> str:
    lines = [
        "# Completion of egocnn for fish: egocnn completion fish > ~/.config/fish/completions/egocnn.fish",
        "complete -c egocnn -f",
        "complete -c egocnn -n __fish_use_subcommand -l version",
    ]
    for name, completed in commands.items():
        lines.append(f"complete -c egocnn -n __fish_use_subcommand -a {name} -d {_fish_quoted(COMMANDS[name])}")
        lines += [_fish_line(name, each) for each in completed if each.flags or each.choices or each.is_path]
    return "\n".join(lines) + "\n"


def _fish_line(command: str, completed: Completed) -> str:
    words = [f"complete -c egocnn -n '__fish_seen_subcommand_from {command}'"]
    words += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in completed.flags]
    choices = f"-a {_fish_quoted(' '.join(completed.choices))}" if completed.choices else ""
    if not completed.flags:
        return " ".join([*words, "-F" if completed.is_path else choices])
    if completed.value and not completed.is_optional:
        words.append("-r -F" if completed.is_path else f"-x {choices}".rstrip())
    return " ".join([*words, f"-d {_fish_quoted(completed.sentence)}"])


def _quoted(text: str) -> str:
    """In single quotes, as bash and zsh read them."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
