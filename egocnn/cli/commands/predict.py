"""``egocnn predict``: a run folder and a data set -> a file of predictions."""

from __future__ import annotations

from egocnn.cli.arguments import add_out, add_run_and_data, add_settings_files
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import check_file, print_result


def add_arguments(parser: Parser) -> None:
    add_run_and_data(parser)
    add_settings_files(parser, "read")
    add_out(parser, "FILE.csv", "where to write [%(default)s]", default="predictions.csv")


def predict(options: Options) -> None:
    """Predict, and write the table."""
    from egocnn.encode.familiar import familiar
    from egocnn.model import Model
    from egocnn.show.streaming import predict_to_csv
    from egocnn.train.metrics import in_words

    check_file(options.out, options.data)
    model = Model.load(options.run_folder)
    portions = familiar(model.encoder, open_graphs(options, model))
    result = predict_to_csv(model, portions, options.out, device=options.device)
    scores = ", ".join(f"{in_words(name)} {value:.4f}" for name, value in result.items() if isinstance(value, float))
    text = f"{result['graphs']} predictions in {options.out}" + (f" ({scores})" if scores else "")
    print_result(options, result, [text])
