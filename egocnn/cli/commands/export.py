"""``egocnn export``: a run folder -> an ONNX file that has been checked."""

from dataclasses import asdict

from egocnn.cli.arguments import add_out, add_run_folder
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import check_file, print_result


def add_arguments(parser: Parser) -> None:
    parser.epilog = "What the file reads and answers: docs/interchange.md. Example: egocnn export RUN -o model.onnx"
    add_run_folder(parser)
    add_out(parser, "FILE.onnx", "the file to write")


def export(options: Options) -> None:
    """Write and check the ONNX file."""
    from egocnn.interop.onnx import export_onnx
    from egocnn.model import Model

    check_file(options.out, str(options.run_folder))
    exported = export_onnx(Model.load(options.run_folder), options.out, seed=options.seed)
    print_result(options, asdict(exported), [str(exported)])
