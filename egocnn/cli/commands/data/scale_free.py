"""``egocnn scale-free``: a data set -> whether its degrees follow a power law, and a picture of them."""

from pathlib import Path

from egocnn.cli.arguments import add_data_options, add_out
from egocnn.cli.commands import find_lab
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import check_file, print_result


def add_arguments(parser: Parser) -> None:
    parser.epilog = "The rule behind the answer: docs/scale-free.md. Example: egocnn scale-free REDDIT-BINARY -o it.svg"
    add_data_options(parser)
    add_out(parser, "FILE", "draw the degrees on log-log axes, in a clone: .svg or .png", required=False)


def scale_free(options: Options) -> None:
    """Judge the degrees, draw them, and print the judgement."""
    from egocnn.data.scalefree import Counts, judge

    if options.out is not None:
        figure = find_lab("figures.degrees")
        check_file(options.out, options.data)
        figure.check_plot(options.out)
    graphs = open_graphs(options).whole()
    judgement = judge(graphs)
    if options.out is not None:
        figure.draw_degrees(Counts.of(graphs.degree), judgement.law, options.out, title=Path(options.data).stem)
    print_result(options, judgement.to_plain(), judgement.lines())
