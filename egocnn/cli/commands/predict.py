"""``egocnn predict``: a run folder and a data set -> a file of predictions."""

from collections.abc import Mapping
from typing import Any

from egocnn.cli.arguments import add_out, add_run_and_data, add_settings_files, add_shard_options
from egocnn.cli.data import answer_shards, open_rows
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import check_table, print_result


def add_arguments(parser: Parser) -> None:
    add_run_and_data(parser)
    add_settings_files(parser, "read")
    add_shard_options(parser)
    place = "where to write: .csv, .jsonl, .parquet, or a folder for shards [%(default)s]"
    add_out(parser, "FILE", place, default="predictions.csv")


def predict(options: Options) -> None:
    """Predict, and write the table."""
    from egocnn.encode.familiar import Familiarity
    from egocnn.model import Model
    from egocnn.scale.shards import find_shards
    from egocnn.show.streaming import predict_to_file
    from egocnn.train.metrics import in_words
    from egocnn.train.predictions import prediction_kinds

    if (shards := find_shards(options.data)) is not None:
        model = Model.load(options.run_folder)
        answer_shards(options, model, shards, {}, kinds=prediction_kinds(model))
        return
    check_table(options.out, options.data)
    model = Model.load(options.run_folder)
    columns, portions = open_rows(options, model)
    seen = Familiarity(model.encoder)
    result = predict_to_file(model, portions, options.out, columns, see=seen.add, device=options.device)
    seen.warn()
    of_each = tuple(f"{target}." for target in model.targets)  # of several targets the mean is shown
    means = {name: value for name, value in result.items() if isinstance(value, float) and not name.startswith(of_each)}
    scores = ", ".join(f"{in_words(name)} {value:.4f}" for name, value in means.items())
    several = "" if result["graphs"] == 1 else "s"
    text = f"{result['graphs']} prediction{several} in {options.out}" + (f" ({scores})" if scores else "")
    if failed := result["failed"]:
        text += f"; {failed} row{'' if failed == 1 else 's'} without, the column error says why"
    only = [in_one_line(result["prediction"], name) for name in model.targets or ("",) if "prediction" in result]
    print_result(options, result, [*only, text])


def in_one_line(row: Mapping[str, Any], target: str) -> str:
    """What is predicted of a single graph; ``target``: one of several, or ''"""
    from egocnn.explain.structure.wording import called

    value, sure, doubt = (row.get(f"{target} {name}".strip()) for name in ("predicted", "probability", "spread"))
    of_value, of_class = ("", "") if doubt is None else (f" ± {doubt:.2g}", f" ± {doubt:.1%}")
    said = f"{value:.4g}{of_value}" if sure is None else f"{called(value)} ({sure:.1%}{of_class})"
    return f"{target}: {said}" if target else said
