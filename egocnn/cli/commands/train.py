"""``egocnn train``: a data set and settings -> a run folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.cli.arguments import add_data_options, add_out, add_training_options
from egocnn.cli.data import open_graphs, read_with
from egocnn.cli.options import Options, Parser, TrainingGraphs, add_options, from_options, used_settings
from egocnn.cli.output import print_result
from egocnn.config import ModelConfig, TrainConfig

if TYPE_CHECKING:
    from egocnn.data.collection import Collection


def add_arguments(parser: Parser) -> None:
    add_data_options(parser, everyday=("smiles", "target", "split"))
    add_training_options(parser)
    add_options(parser, TrainingGraphs, group="data", skip=("limit",))
    existing = parser.group("run").add_mutually_exclusive_group()
    resume = "continue a run that was killed or stopped, from its last epoch"
    existing.add_argument("--resume", action="store_true", help=resume)
    replace = "replace the run that is there once the new one is complete; after a kill the same command goes on"
    existing.add_argument("--overwrite", action="store_true", help=replace)
    add_out(parser, "RUN", "the run folder to write")
    parser.add_switch("output", "--tensorboard", "also log to RUN/tensorboard", rare=True)


def train(options: Options) -> None:
    """Train, write the run folder and print the scores; one of several processes under torchrun."""
    from egocnn.train.engines.distributed import World
    from egocnn.train.engines.distributed.engine import joined

    with joined(World.here(), device=options.device):
        graphs = open_graphs(options)
        train_and_print(options, graphs, read_with(options, graphs), options.data, options.out)


def train_and_print(options: Options, graphs: "Collection", reading: dict[str, Any], source: str, folder: Path) -> None:
    """Train, write the run folder and print the scores; ``source``: where the graphs come from, read as ``reading``"""
    from egocnn.train.engines.distributed import World
    from egocnn.train.progress import tensorboard_report, training_report
    from egocnn.train.run import train_run
    from egocnn.train.run_folder import growing_place

    model, config = from_options(options, ModelConfig), from_options(options, TrainConfig)
    typed = {name: getattr(options, name) for name in ("test", "resume", "overwrite")}
    typed |= {"settings": used_settings(options), "log": tensorboard_report if options.tensorboard else None}
    about = {"data": source, "read": reading}
    visible = not options.quiet and World.here().rank == 0
    with training_report(config, visible=visible) as report:
        metrics = train_run(graphs, folder, model, config, about=about, report=report, **typed)
    is_beside = metrics["interrupted"] and options.overwrite
    place = growing_place(folder) if is_beside else folder
    print_result(options, metrics, score_lines(metrics, place, graphs.outline.unit))
    if metrics["interrupted"]:
        how = f"{folder} is as it was, the same command goes on" if is_beside else "--resume goes on from there"
        raise KeyboardInterrupt(f"stopped; the best model so far is in {place}, and {how}")


def score_lines(metrics: dict[str, Any], folder: Path, unit: str) -> Iterator[str]:
    """For people; ``unit``: what is counted"""
    from egocnn.data.sources.text import one_line
    from egocnn.train.metrics import in_words

    recalls = {f"test recall {one_line(name)}": value for name, value in metrics.get("test_recall", {}).items()}
    for name, value in (metrics | (recalls if len(recalls) <= 10 else {})).items():
        part, _, score = name.replace(" ", "_", 1).partition("_")
        if part in ("validation", "test") and isinstance(value, float) and not score.endswith("loss"):
            graphs = f" ({metrics['test_graphs']} {unit})" if part == "test" else ""
            yield f"{part + ' ' + in_words(score):23} {value:.4f}{graphs}"
    for target in metrics.get("targets", ()):
        own = ((name, metrics.get(f"{target}.test_{name}")) for name in ("roc_auc", "average_precision", "rmse", "r2"))
        scores = ", ".join(f"{in_words(name)} {value:.4f}" for name, value in own if value is not None)
        yield f"  {one_line(target)}: {scores or 'nothing to score in the test part'}"
    best, networks = metrics["best_epoch"], metrics["networks"]
    several = f"{networks} networks, " if networks > 1 else ""
    shown = ", ".join(map(str, best)) if networks > 1 else best
    yield f"{several}{metrics['parameters']:,} parameters, best of {metrics['epochs']} epochs: {shown}"
    yield f"run folder: {folder}"
