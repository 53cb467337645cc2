"""The command line: words come in, one command of the library runs, and an exit code goes out."""

from egocnn.cli.main import main

__all__ = ["main"]
