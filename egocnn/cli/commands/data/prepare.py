"""``egocnn prepare``: a data set -> a store on disk."""

from dataclasses import replace

from egocnn.cli.arguments import add_data_options, add_out
from egocnn.cli.data import split_and_part
from egocnn.cli.options import Options, Parser, from_options
from egocnn.cli.output import print_result
from egocnn.config import ReadConfig


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        "A store is a DATA like any other. JSON lines, tables of SMILES, SDF and stores are read in portions, all "
        "else whole. The layout: docs/store.md. Example: egocnn prepare molecules.csv -o molecules.store"
    )
    add_data_options(parser)
    add_out(parser, "STORE", "the folder to write")
    parser.add_switch("output", "--overwrite", "replace the store that is there, in one step")


def prepare(options: Options) -> None:
    """Write the store and print its size."""
    from egocnn.show.streaming import prepare

    column, part = split_and_part(options)
    config = replace(from_options(options, ReadConfig), split=column)
    store = prepare(options.data, options.out, config, part=part, limit=options.limit, overwrite=options.overwrite)
    counts = {"graphs": store.graphs, "nodes": store.nodes, "adjacency_entries": store.entries}
    text = f"{store.graphs:,} graphs, {store.nodes:,} nodes, {store.size / 1e6:,.1f} MB: {options.out}"
    print_result(options, {**counts, "bytes": store.size, "store": str(options.out)}, [text])
