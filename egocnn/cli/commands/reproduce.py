"""``egocnn reproduce``: the name of an experiment -> its table or figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from egocnn.cli.lab import find_lab
from egocnn.cli.options import Parser
from egocnn.cli.output import print_json, remarks


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which one; --list shows them")
    parser.add_option("experiment", "--list", action="store_true", help="name the experiments")
    parser.add_option(
        "experiment", "--seeds", type=int, metavar="N", help="seeds 0 to N-1 [the experiment's own number]"
    )
    parser.add_option("experiment", "--tasks", metavar="NAME[,NAME…]", help="explain: only these tasks (default: all)")
    parser.add_option(
        "tables",
        "--quick",
        action="store_true",
        help="tables: a rough answer, from 200 graphs a set, 3 folds and few epochs; table1: small sizes",
    )
    parser.add_option(
        "tables",
        "--protocol",
        choices=("paper", "fair"),
        default="fair",
        help="tables: folds; fair is the paper's for sets without published splits [%(default)s]",
    )
    parser.add_option("tables", "--data", metavar="NAME[,NAME…]", help="tables: only these data sets (default: all)")
    parser.add_option("tables", "--models", metavar="ROW[;ROW…]", help="tables: only these rows (default: all)")
    parser.add_option(
        "tables",
        "--minutes",
        rare=True,
        type=float,
        metavar="X",
        help="tables: say so where a cell is not done after as many [no limit]",
    )
    parser.add_option(
        "tables",
        "--kept-only",
        rare=True,
        action="store_true",
        help="tables: write what is in runs/tables, run no further cell",
    )
    parser.add_option(
        "tables", "--ray", rare=True, metavar="ADDRESS", help="tables: the folds on a Ray cluster, as in crossval"
    )
    parser.add_option("run", "--jobs", type=int, default=1, metavar="N", help="processes at a time [1]")
    parser.add_option(
        "output",
        "-o",
        "--out",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="folder for the tables [%(default)s]",
    )


def reproduce(options: argparse.Namespace) -> None:
    lab = find_lab("reproduce")
    if options.list or options.name is None:
        print("\n".join(lab.names()))
        return
    result, text = lab.reproduce(options, remarks(options))
    if options.json:
        print_json(result)
    else:
        print(text)
