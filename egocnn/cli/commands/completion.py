"""``egocnn completion``: the name of a shell -> a script that completes commands, options and their values in it. A
script holds all there is to complete, and does not call egocnn."""

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files

from egocnn.cli.arguments import command_parsers, path_of
from egocnn.cli.commands import COMMANDS
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result

SHELLS = ("bash", "zsh", "fish")  # each with its script in the folder shells, where names like @OPTIONS@ are filled in


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        'bash and zsh: put eval "$(egocnn completion bash)" (or zsh) into ~/.bashrc (or ~/.zshrc, after compinit). '
        "fish: egocnn completion fish > ~/.config/fish/completions/egocnn.fish"
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))


def completion(options: Options) -> None:
    """Print the script."""
    script = completion_script(options.shell, command_parsers())
    print_result(options, {"shell": options.shell, "script": script}, script.splitlines())


def completion_script(shell: str, parsers: Mapping[str, Parser]) -> str:
    """The script for one of the shells that have one."""
    script = files("egocnn.cli").joinpath("shells", f"egocnn.{shell}").read_text(encoding="utf-8")
    commands, values = list(parsers), ""
    of_command = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    if shell == "bash":
        values = "\n".join(
            _bash_value(name, each) for name, own in parsers.items() for each in own.options() if _takes(each)
        )
    else:
        commands = [f"        {shlex.quote(f'{name}:{COMMANDS[name]}')}\n" for name in parsers]
    options = "\n".join(of_command(name, parser._actions) for name, parser in parsers.items())
    script = script.replace("@COMMANDS@", (" " if shell == "bash" else "").join(commands).rstrip("\n"))
    return script.replace("@VALUES@", values).replace("@OPTIONS@", options)


def _value(action: argparse.Action) -> str:
    """What its value is called, '' where it takes none."""
    is_switch = action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)
    return "" if is_switch else str(action.metavar or action.dest.upper())


def _takes(action: argparse.Action) -> bool:
    """Whether it cannot stand without its value."""
    return bool(_value(action)) and action.nargs != "?"


def _choices(action: argparse.Action) -> str:
    return " ".join(each for each in action.choices or () if isinstance(each, str))


def _is_path(action: argparse.Action) -> bool:
    return action.type is path_of or action.metavar == "DATA"


def _meaning(action: argparse.Action) -> str:
    return " ".join(((action.help or "") % vars(action)).split())


def _bash_value(command: str, action: argparse.Action) -> str:
    pattern = "|".join(f'"{command} {flag}"' for flag in action.option_strings)
    choices = _choices(action)
    value = f'words="{choices}"' if choices else "files=yes" if _is_path(action) else ":"
    return f"            {pattern}) {value} ;;"


def _bash(command: str, actions: Sequence[argparse.Action]) -> str:
    """Options where one is begun, files where one is due."""
    offered = f'words="{" ".join(filter(None, (" ".join(each.option_strings) or _choices(each) for each in actions)))}"'
    if any(_is_path(each) and not each.option_strings for each in actions):
        offered = f"if [[ $word == -* ]]; then {offered}; else files=yes; fi"
    return f"                    {command}) {offered} ;;"


def _zsh(command: str, actions: Sequence[argparse.Action]) -> str:
    """The call of ``_arguments``, with a line for every flag, or for an argument without one."""
    lines = []
    for each in actions:
        flags, choices = each.option_strings, _choices(each)
        what = "_files" if _is_path(each) else f"({choices})" if choices else ""
        value = f":{_value(each).replace(':', '')}:{what}" if _value(each) else ""
        is_repeated = isinstance(each, argparse._AppendAction)
        before = "*" if is_repeated else f"({' '.join(flags)})" if len(flags) > 1 else ""
        meaning = re.sub(r"[\\\[\]:]", r"\\\g<0>", _meaning(each))
        optional = ":" if each.nargs == "?" else ""
        for flag in flags:
            sign = "=" if value and flag.startswith("--") else ""
            lines.append(f"{before}{flag}{sign}[{meaning}]{optional}{value}")
        lines += [] if flags else [value]
    specs = " \\\n".join(f"                {shlex.quote(line)}" for line in lines)
    return f"        {command})\n            _arguments \\\n{specs}\n            ;;"


def _fish(command: str, actions: Sequence[argparse.Action]) -> str:
    lines = [f"complete -c egocnn -n __fish_use_subcommand -a {command} -d {_fish_quoted(COMMANDS[command])}"]
    for each in actions:
        words = [f"complete -c egocnn -n '__fish_seen_subcommand_from {command}'"]
        words += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in each.option_strings]
        choices = f"-a {_fish_quoted(_choices(each))}" if _choices(each) else ""
        if not each.option_strings:
            if _is_path(each) or choices:
                lines.append(" ".join([*words, "-F" if _is_path(each) else choices]))
            continue
        if _takes(each):
            words.append("-r -F" if _is_path(each) else f"-x {choices}".rstrip())
        lines.append(" ".join([*words, f"-d {_fish_quoted(_meaning(each))}"]))
    return "\n".join(lines)


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
