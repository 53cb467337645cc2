"""``egocnn bench``: the name of a benchmark -> its measurements, or a chart of all that were kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from egocnn.cli.lab import find_lab
from egocnn.cli.options import Parser
from egocnn.cli.output import check_file, print_json, remarks

EPILOG = (
    "A full run is kept in results/bench/; a quick one is only shown, unless -o names a file. "
    "'chart' draws all that is kept and writes the tables of docs/benchmarks.md."
)


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one, or chart; --list shows them")
    parser.add_option("benchmark", "--list", action="store_true", help="name the benchmarks")
    parser.add_option("benchmark", "--quick", action="store_true", help="small sizes: a minute or two on two cores")
    parser.add_option(
        "output", "-o", "--out", type=Path, metavar="FILE", help="the JSON to write; chart: the SVG or PNG"
    )
    parser.add_option(
        "output",
        "--results",
        type=Path,
        default=Path("results/bench"),
        metavar="FOLDER",
        help="chart: folder of the records [%(default)s]",
    )


def bench(options: argparse.Namespace) -> None:
    lab = find_lab("bench.named")
    if options.list or options.name is None:
        print("\n".join(lab.names()))
        return
    if options.name == "chart":
        written = list(
            map(str, find_lab("figures.chart").chart(options.results, options.out or Path("docs/benchmarks.svg")))
        )
        if options.json:
            print_json({"files": written})
        else:
            print("\n".join(written))
        return
    out = options.out or (None if options.quick else lab.default_file(options.name, device=options.device))
    if out is not None:
        check_file(out, options.name)
    record = lab.bench(
        options.name,
        out=out,
        device=options.device,
        quick=options.quick,
        seed=options.seed,
        say=remarks(options),
    )
    if options.json:
        print_json(record)
    else:
        print(lab.markdown(record))
