"""``egocnn patterns``: a run folder and a data set -> the critical structures that recur, and a page of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from egocnn.cli.arguments import add_explanation_options, add_out, add_run_and_data, graph_count
from egocnn.cli.commands.explain import find_structures
from egocnn.cli.data import read_graphs
from egocnn.cli.options import Parser
from egocnn.cli.output import print_json


def add_arguments(parser: Parser) -> None:
    """Declare the options of the command."""
    add_run_and_data(parser)
    add_explanation_options(parser)
    support = "graphs that must share a pattern [5]"
    parser.add_option("patterns", "--min-support", type=graph_count, default=5, metavar="N", help=support)
    parser.add_option("patterns", "--most", type=graph_count, default=20, metavar="N", help="patterns per class [20]")
    add_out(parser, "REPORT", "the folder for the report")


def patterns(options: argparse.Namespace) -> None:
    """Find the patterns, write their page and print a sentence for each."""
    from egocnn.explain.patterns import find_patterns
    from egocnn.model import Model
    from egocnn.show.patterns.page import write_patterns
    from egocnn.show.report.folder import check_folder

    check_folder(options.out)
    model = Model.load(options.run_folder)
    graphs = read_graphs(options, model)
    count, run = len(graphs), options.run_folder
    structures = list(find_structures(options, model, [graphs], count, run_folder=run, fidelity=False))
    found = find_patterns(structures, min_support=options.min_support, most=options.most, data=Path(options.data).stem)
    page = write_patterns(found, options.out, title=f"Patterns in {Path(options.data).name}")
    if options.json:
        print_json({"graphs": len(structures), "page": str(page), "patterns": [p.to_plain() for p in found]})
        return
    for pattern in found:
        print(f"{pattern.class_name}: {pattern.sentence}")
    print(f"{len(found)} pattern{'' if len(found) == 1 else 's'} in {len(structures)} graphs: open {page}")
