"""``egocnn reproduce``: the name of an experiment -> its table or figure."""

from pathlib import Path

from egocnn.cli.arguments import add_offline, add_out
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result, remarks


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one; --list shows them")
    parser.add_switch("experiment", "--list", "name the experiments")
    seeds = "seeds 0 to N-1 [the experiment's own number]"
    parser.add_option("experiment", "--seeds", type=int, metavar="N", help=seeds)
    parser.add_option("experiment", "--tasks", metavar="NAME[,NAME…]", help="explain: only these tasks (default: all)")
    rough = "tables: a rough answer, from 200 graphs a set, 3 folds and few epochs; table1: small sizes"
    parser.add_switch("tables", "--quick", rough)
    folds = "tables: folds; fair is the paper's for sets without published splits [%(default)s]"
    parser.add_option("tables", "--protocol", choices=("paper", "fair"), default="fair", help=folds)
    parser.add_option(
        "tables", "--data", metavar="NAME[,NAME…]", help="tables, moleculenet: only these sets (default: all)"
    )
    parser.add_option(
        "tables", "--models", metavar="ROW[;ROW…]", help="tables, moleculenet: only these rows (default: all)"
    )
    late = "tables: say so where a cell is not done after as many [no limit]"
    parser.add_option("tables", "--minutes", rare=True, type=float, metavar="X", help=late)
    parser.add_switch(
        "tables", "--kept-only", "tables, moleculenet: write what is kept, run no further cell", rare=True
    )
    cluster = "tables: the folds on a Ray cluster, as in crossval"
    parser.add_option("tables", "--ray", rare=True, metavar="ADDRESS", help=cluster)
    program = "moleculenet: chemprop's program, in an environment of its own"
    parser.add_option("moleculenet", "--chemprop", metavar="PROGRAM", help=program)
    kept = "moleculenet: where tables, arrays and finished cells are kept [runs/moleculenet]"
    parser.add_option("moleculenet", "--work", rare=True, type=Path, metavar="FOLDER", help=kept)
    stores = "moleculenet: write tables, and arrays for machines without RDKit; train nothing"
    parser.add_switch("moleculenet", "--prepare-only", stores, rare=True)
    parser.add_option("run", "--jobs", type=int, default=1, metavar="N", help="processes at a time [1]")
    add_offline(parser)
    add_out(parser, "FOLDER", "folder for the tables [%(default)s]", default="results")


def reproduce(options: Options) -> None:
    """Run the experiment, write its table or figure and print it."""
    from lab import reproduce as named

    if options.list or options.name is None:
        print_result(options, {"names": [line.split()[0] for line in named.names()]}, named.names())
        return
    result, text = named.reproduce(options, remarks(options))
    print_result(options, result, [text])
