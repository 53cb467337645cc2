"""``egocnn info``: a data set -> its facts, and what is wrong with it."""

from pathlib import Path

from egocnn.cli.arguments import add_data_options
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result
from egocnn.errors import DataError, MissingColumnError
from egocnn.files import isfile


def add_arguments(parser: Parser) -> None:
    add_data_options(parser)


def info(options: Options) -> None:
    """Print the facts about a data set, and of a table without a target what its columns could be."""
    from egocnn.data.sources.columns import could_be_target, describe_columns
    from egocnn.data.sources.text import TABLE_SUFFIXES, listed, one_line, suffix_of, table_rows
    from egocnn.study.describe import describe

    path = Path(options.data)
    is_table = isfile(path) and suffix_of(path) in TABLE_SUFFIXES and options.target is None
    try:
        facts = describe(open_graphs(options).portions())
    except DataError as error:
        if not is_table or options.strict or isinstance(error, MissingColumnError):
            raise
        facts = {"problems": [str(error)]}
    columns = describe_columns(table_rows(path)) if is_table and facts.get("target") is None else {}
    lines = []
    for name, value in facts.items():
        if name not in ("problems", "targets") and value not in ({}, [], None):
            value = ", ".join(map(one_line, value)) if isinstance(value, list) else value
            shown = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value
            lines.append(f"{name.replace('_', ' '):16}{f'{shown:.2f}' if isinstance(shown, float) else shown}")
    several = [("target", facts.get("targets", {})), ("column", columns)]
    for what, name, column in ((what, name, column) for what, own in several for name, column in own.items()):
        counts = listed(f"{value}: {count}" for value, count in column.get("counts", {}).items())
        told = [f"{key} {value}" for key, value in column.items() if key not in ("kind", "counts")]
        shown = ", ".join([f"{column['kind']}{f' ({counts})' if counts else ''}", *told])
        lines.append(f"{what:16}{one_line(name)}: {shown.removesuffix(', missing 0')}")
    facts |= {"columns": columns} if columns else {}
    if found := [name for name, column in columns.items() if could_be_target(column)]:
        how = f"name one with --target ({listed(found, 3)}), or all of them with --target all"
        how = how if found[1:] else f"{listed(found)} is the target unless --target names another"
        facts["problems"] = [
            f"to train, {how}" if text.startswith("no target:") else text for text in facts["problems"]
        ]
    print_result(options, facts, [*lines, *(f"note            {problem}" for problem in facts["problems"])])
