"""The directive ``command-line``: the program's own parser -> a section for every command, with all its options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import egocnn.cli
from egocnn.cli.arguments import command_parsers
from egocnn.cli.options import Parser

EVERYWHERE = "every-command"


class CommandLine(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for source in Path(egocnn.cli.__file__).parent.rglob("*.py"):
            self.env.note_dependency(str(source))
        commands = command_parsers()
        shared = set.intersection(*(set(map(invocation, each.options())) for each in commands.values()))
        first = next(iter(commands.values()))
        everywhere = _section("Options of every command", EVERYWHERE)
        everywhere += _listed([each for each in first.options() if invocation(each) in shared], first)
        return [everywhere, *(_describe(name, parser, shared) for name, parser in commands.items())]


def invocation(action: argparse.Action) -> str:
    """How it is typed: ``-o, --out RUN``"""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    return ", ".join(action.option_strings) + _value(action)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return ""
    if action.metavar is not None:
        value = str(action.metavar)
    elif action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper()
    return f" [{value}]" if action.nargs == "?" else f" {value}"


def _describe(name: str, parser: Parser, shared: set[str]) -> nodes.section:
    section = _section(f"egocnn {name}", f"egocnn-{name}")
    section += nodes.paragraph("", parser.description or "")
    shown = parser.short_usage() % {"prog": parser.prog}
    section += nodes.literal_block(shown, shown, language="text")
    for title, actions in _groups(parser, shared):
        if title:
            section += nodes.rubric("", title[:1].upper() + title[1:])
        section += _listed(actions, parser)
    if parser.epilog:
        section += nodes.paragraph("", parser.epilog)
    return section


def _groups(parser: Parser, shared: set[str]) -> Iterator[tuple[str, list[argparse.Action]]]:
    for group in parser._action_groups:
        actions = [each for each in group._group_actions if invocation(each) not in shared]
        title = group.title or ""
        if actions:
            yield "" if title in ("positional arguments", "options") else title, actions


def _listed(actions: Sequence[argparse.Action], parser: Parser) -> nodes.definition_list:
    listed = nodes.definition_list(classes=["options"])
    for action in actions:
        typed = invocation(action)
        item = nodes.definition_list_item("", nodes.term("", "", nodes.literal(typed, typed)))
        text = (action.help or "") % {**vars(action), "prog": parser.prog}
        item += nodes.definition("", nodes.paragraph("", text))
        listed += item
    return listed


def _section(title: str, identity: str) -> nodes.section:
    section = nodes.section(ids=[identity], names=[identity])
    section += nodes.title("", title)
    return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
