"""``egocnn pairs``: a run folder and molecules -> the pairs that differ by one group, and what the change did."""

from pathlib import Path

from egocnn.cli.arguments import add_explanation_options, add_out, add_run_and_data, whole_number
from egocnn.cli.commands.explain import find_structures
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result, remarks


def add_arguments(parser: Parser) -> None:
    add_run_and_data(parser)
    others = ("select", "evidence", "largest", "threshold", "top", "attention_threshold")
    which = "the class whose probability counts (default: the last, of two the positive one)"
    add_explanation_options(parser, which, skip=others)
    parser.set_defaults(select="threshold")  # no structure is shown; this is the quickest
    add_out(parser, "FOLDER", "the folder for the tables and the page")
    parser.add_option("output", "--show", type=whole_number, default=50, metavar="N", help="pairs on the page [50]")
    formats = "of the tables [csv]"
    parser.add_option("output", "--format", choices=("csv", "jsonl", "parquet"), default="csv", help=formats)


def pairs(options: Options) -> None:
    """Find the pairs, explain their molecules, write tables and page and print what all say together."""
    import numpy as np

    from egocnn.errors import rule
    from egocnn.explain.patterns.compare import compare, find_pairs, summary_of
    from egocnn.model import Model
    from egocnn.show.pairs.page import MARK, sentences, write_pairs
    from egocnn.show.report.folder import check_folder
    from egocnn.show.tables import check_format
    from egocnn.train.progress import counting_report
    from egocnn.train.run import read_parts

    check_folder(options.out, MARK)
    check_format(Path(f"pairs.{options.format}"))
    model = Model.load(options.run_folder)
    graphs = open_graphs(options, model).whole()
    with counting_report("looking for pairs", len(graphs), visible=not options.quiet) as report:
        matched = find_pairs(graphs, say=remarks(options), report=report)
    rule(matched, f"{options.data}: no two of {len(graphs)} molecules differ by one group alone")
    names = model.of_target(options.explain_target).class_names
    options.explained = options.explained or (names[-1] if names else None)
    used = np.unique([(pair.first, pair.second) for pair in matched])
    found = find_structures(options, model, graphs[used], run_folder=options.run_folder, fidelity=False)
    structures = dict(zip(used.tolist(), found, strict=True))
    compared = [compare(structures[pair.first], structures[pair.second], pair) for pair in matched]
    parts = read_parts(options.run_folder, model.about, options.data)
    trained = sum(parts.get(one.name, "test") != "test" for one in structures.values())
    summary = {**summary_of(compared), "class": options.explained, "molecules": len(used), "trained": trained}
    title = f"Matched pairs in {Path(options.data).name}"
    page = write_pairs(compared, options.out, summary, title=title, shown=options.show, suffix=f".{options.format}")
    print_result(options, {**summary, "page": str(page)}, [*sentences(summary), f"open {page}"])
