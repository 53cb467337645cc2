"""``egocnn demo``: generated alcohols -> a trained model, predictions and a report."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from egocnn.cli.arguments import add_out
from egocnn.cli.commands.explain import find_structures
from egocnn.cli.commands.train import train_and_print
from egocnn.cli.options import Options, Parser, TrainingGraphs
from egocnn.config import ExplainConfig, ModelConfig, ReadConfig, TrainConfig

if TYPE_CHECKING:
    from egocnn.explain.structure import CriticalStructure

SOURCE = "compounds:alcohols"
OPENS_WITH = "alcohol"  # The class of the first molecule on the page: it has something to point at, an alkane lacks it.


def add_arguments(parser: Parser) -> None:
    add_out(parser, "FOLDER", "folder for the results [runs/demo]", default="runs/demo")
    # what training and explaining take, at its usual value; --seed and --device are the command's own
    for config in (ModelConfig, TrainConfig, TrainingGraphs, ExplainConfig, ReadConfig):
        parser.set_defaults(**asdict(config()))
    parser.set_defaults(explained=None, explain_target=None, resume=False, overwrite=True, tensorboard=False)


def opening_first(structures: "Sequence[CriticalStructure]") -> "list[CriticalStructure]":
    """The first alcohol that is predicted right and has a structure, then the others in their order."""
    for number, one in enumerate(structures):
        if len(one.critical_nodes) and one.predicted == one.graph.target == OPENS_WITH:
            return [one, *structures[:number], *structures[number + 1 :]]
    return list(structures)


def demo(options: Options) -> None:
    """Train on generated molecules, then predict and explain those of sizes never seen."""
    from egocnn.data.read import read
    from egocnn.data.rows import RowPortion
    from egocnn.model import Model
    from egocnn.show.report.folder import write_explanations
    from egocnn.show.streaming import predict_to_file
    from egocnn.train.run import read_parts

    graphs = read(SOURCE)
    held_out = graphs.select("test")
    is_told = not (options.json or options.quiet)
    if is_told:
        made = f"{len(graphs)} generated alkanes and alcohols"
        print(f"{made}; the {len(held_out)} for the test are of sizes never trained on")
    options.out.mkdir(parents=True, exist_ok=True)
    run, table, report = options.out / "run", options.out / "predictions.csv", options.out / "report"
    train_and_print(options, graphs, asdict(ReadConfig()), SOURCE, run)
    model = Model.load(run)
    predict_to_file(model, [RowPortion.of(held_out)], table, {"smiles": "string"}, device=options.device)
    structures = list(find_structures(options, model, held_out, run_folder=run))
    about: dict[str, Any] = {"model": str(run), "data": SOURCE, "class_names": model.class_names, "title": "Alcohols"}
    parts = read_parts(run, model.about, SOURCE)
    write_explanations(opening_first(structures), report, figures=24, parts=parts, **about)
    if is_told:
        print(f"predictions for the test molecules: {table}")
        print(f"what made the model say so:         {report / 'index.html'}  (open it in a browser)")
        print(f"the model again on your own data:   egocnn explain {run} DATA -o REPORT")
