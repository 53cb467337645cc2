"""``egocnn completion``: the name of a shell -> a script that completes commands and options in it."""

from __future__ import annotations

from egocnn.cli.completion import SCRIPTS, completion_script
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        'bash and zsh: put eval "$(egocnn completion bash)" (or zsh) into ~/.bashrc (or ~/.zshrc, after compinit). '
        "fish: egocnn completion fish > ~/.config/fish/completions/egocnn.fish"
    )
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=" or ".join(SCRIPTS))


def completion(options: Options) -> None:
    """Print the script."""
    from egocnn.cli.arguments import command_parsers

    script = completion_script(options.shell, command_parsers())
    print_result(options, {"shell": options.shell, "script": script}, script.splitlines())
