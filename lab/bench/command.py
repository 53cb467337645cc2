"""``egocnn bench``: the name of a benchmark -> its measurements, or a chart of all that are saved."""

from pathlib import Path

from egocnn.cli.arguments import add_offline, add_out
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import check_file, print_result, remarks


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        "A full run is kept in results/bench/; a quick one is only shown, unless -o names a file. "
        "'chart' draws all that is kept and writes the tables of docs/benchmarks.md."
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one, or chart; --list shows them")
    parser.add_switch("benchmark", "--list", "name the benchmarks")
    parser.add_switch("benchmark", "--quick", "small sizes: a minute or two on two cores")
    add_offline(parser)
    add_out(parser, "FILE", "the JSON to write; chart: the SVG or PNG", required=False)
    folder, records = Path("results/bench"), "chart: folder of the records [%(default)s]"
    parser.add_option("output", "--results", type=Path, default=folder, metavar="FOLDER", help=records)


def bench(options: Options) -> None:
    """Run a benchmark, or draw the chart of all, and print what was measured."""
    from lab.bench import named

    if options.list or options.name is None:
        print_result(options, {"names": [line.split()[0] for line in named.names()]}, named.names())
        return
    if options.name == "chart":
        from lab.figures.chart import chart

        written = [str(file) for file in chart(options.results, options.out or Path("docs/benchmarks.svg"))]
        print_result(options, {"files": written}, written)
        return
    out = options.out or (None if options.quick else named.default_file(options.name, device=options.device))
    if out is not None:
        check_file(out, options.name)
    where = {"out": out, "device": options.device, "say": remarks(options)}
    record = named.bench(options.name, quick=options.quick, seed=options.seed, **where)
    print_result(options, record, [named.markdown(record)])
