"""``egocnn info``: a data set -> its facts, and what is wrong with it."""

from __future__ import annotations

from egocnn.cli.arguments import add_data_options
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result


def add_arguments(parser: Parser) -> None:
    add_data_options(parser)


def info(options: Options) -> None:
    """Print the facts about a data set."""
    from egocnn.data.sources.text import one_line
    from egocnn.study.describe import describe

    facts = describe(open_graphs(options).portions())
    lines = []
    for name, value in facts.items():
        if name != "problems" and value not in ({}, [], None):
            value = ", ".join(map(one_line, value)) if isinstance(value, list) else value
            shown = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value
            lines.append(f"{name.replace('_', ' '):16}{f'{shown:.2f}' if isinstance(shown, float) else shown}")
    print_result(options, facts, [*lines, *(f"note            {problem}" for problem in facts["problems"])])
