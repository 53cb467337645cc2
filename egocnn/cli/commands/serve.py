"""``egocnn serve``: a run folder -> a page in the browser, until it is stopped."""

from egocnn.cli.arguments import add_run_folder
from egocnn.cli.options import Options, Parser, add_options, from_options
from egocnn.cli.output import print_result
from egocnn.show.serve.settings import ServeConfig


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        "Open the address in a browser: type SMILES or drop a file of graphs. Only this machine can reach it unless "
        "--host says otherwise (--host 0.0.0.0: all in the network who know the token, unencrypted). "
        "Example: egocnn serve runs/toxic"
    )
    add_run_folder(parser)
    add_options(parser, ServeConfig, group="server", everyday=("port", "workers", "host", "token"))


def serve(options: Options) -> None:
    """Serve the page, and print its address once it can be opened."""
    from egocnn.show.serve.server import serve

    config = from_options(options, ServeConfig)

    def print_address(address: str, model: str) -> None:
        plain = {"address": address, "model": model, "workers": config.workers}
        print_result(options, plain, [f"{model} at {address} (Ctrl-C stops it)"])

    serve(options.run_folder, config, device=options.device, ready=print_address)
