"""``egocnn serve``: a run folder -> a page in the browser, until it is stopped."""

from __future__ import annotations

import argparse
import json

from egocnn.cli.arguments import add_run_folder
from egocnn.cli.options import Parser, add_options, from_options
from egocnn.show.serve.settings import ServeConfig

EPILOG = (
    "Open the address in a browser: type SMILES or drop a file of graphs. Only this machine can reach it unless --host "
    "says otherwise (--host 0.0.0.0: everyone in the network, unencrypted and without a password). "
    "Example: egocnn serve runs/toxic"
)


def add_arguments(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.epilog = EPILOG
    add_run_folder(parser)
    host = "address to listen on [%(default)s]"
    parser.add_option("server", "--host", default=ServeConfig().host, metavar="ADDRESS", help=host)
    add_options(parser, ServeConfig, group="server", everyday=("port", "workers"), skip=("host",))


def serve(options: argparse.Namespace) -> None:
    """Serve the page, and print its address once it can be opened."""
    from egocnn.show.serve.server import serve

    config = from_options(options, ServeConfig)

    def print_address(address: str, model: str) -> None:
        if options.json:
            print(json.dumps({"address": address, "model": model, "workers": config.workers}), flush=True)
        else:
            print(f"{model} at {address} (Ctrl-C stops it)", flush=True)

    serve(options.run_folder, config, device=options.device, ready=print_address)
