"""The table of commands -> one parser for the command line, its subparsers and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from egocnn import __version__
from egocnn.cli.arguments import add_common_options
from egocnn.cli.commands import COMMANDS, find_command
from egocnn.cli.options import Parser


def build_parser(words: Sequence[str] | None = None, defaults: Mapping[str, Any] | None = None) -> Parser:
    """The parser for these words, in which only the command that they call has its options; for all without words.

    ``defaults``: values that take the place of the usual ones.
    """
    parser = Parser(prog="egocnn", description="Train Ego-CNNs on graphs and see which part of a graph decided.")
    parser.add_argument("--version", action="version", version=f"egocnn {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    called = None if words is None else next((word for word in words if not word.startswith("-")), "")
    for name, sentence in COMMANDS.items():
        command = subparsers.add_parser(name, help=sentence, description=sentence[0].upper() + sentence[1:] + ".")
        command.set_defaults(command=name)
        if called in (None, name):
            find_command(name).add_arguments(command)
            add_common_options(command)
            command.set_defaults(**(defaults or {}))
            command.put_last("run", "output")
            command.usage = command.short_usage()
    return parser


def command_parsers() -> dict[str, Parser]:
    """The parser of every command by its name."""
    return build_parser().commands()
