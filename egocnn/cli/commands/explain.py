"""``egocnn explain``: a run folder and a data set -> the critical structures of its graphs, and a report."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.cli.arguments import add_chosen_rows, add_explanation_options, add_out, add_run_and_data, whole_number
from egocnn.cli.data import answer_shards, open_graphs
from egocnn.cli.options import Options, Parser, from_options
from egocnn.cli.output import print_remark, print_result
from egocnn.config import ExplainConfig
from egocnn.errors import ConfigError, rule

if TYPE_CHECKING:
    from egocnn.data.collection import Collection
    from egocnn.explain.structure import CriticalStructure
    from egocnn.model import Model
    from egocnn.scale.shards import Choice


def add_arguments(parser: Parser) -> None:
    add_run_and_data(parser)
    add_explanation_options(parser)
    add_chosen_rows(parser)
    add_out(parser, "REPORT", "the folder for the report")
    pictures = "pictures to write to figures/ [24]"
    parser.add_option("output", "--figures", type=whole_number, default=24, metavar="N", help=pictures)
    parser.add_option("output", "--show", type=whole_number, default=5, metavar="N", help="structures to print [5]")


def explain(options: Options) -> None:
    """Explain every prediction and write the report."""
    import numpy as np

    from egocnn.data.graphs import Graphs
    from egocnn.model import Model
    from egocnn.scale.shards import find_shards
    from egocnn.show.report import sentences
    from egocnn.show.report.folder import check_folder, write_explanations
    from egocnn.show.streaming import ON_PAGE
    from egocnn.train.predictions import prediction_rows
    from egocnn.train.run import read_parts

    if (shards := find_shards(options.data)) is not None:
        explain_shards(options, Model.load(options.run_folder), shards)
        return
    check_folder(options.out)
    model = Model.load(options.run_folder)
    class_names = model.of_target(options.explain_target).class_names
    graphs, choice = open_graphs(options, model), chosen_rows(options, model)
    if choice is not None:
        rows = (row for portion in graphs.portions() for row in prediction_rows(model, portion, device=options.device))
        graphs = graphs.choose(np.array(choice(rows), np.int64))
        rule(len(graphs), f"{options.data}: no graph is chosen by --where {options.where}")
    structures = find_structures(options, model, graphs, run_folder=options.run_folder)
    shown = list(islice(structures, options.show))
    summary = write_explanations(
        *(chain(shown, structures), options.out),
        model=str(options.run_folder),
        data=options.data,
        class_names=class_names,
        figures=options.figures,
        on_page=None if isinstance(graphs, Graphs) else ON_PAGE,
        target=model.target_name(options.explain_target),
        parts=read_parts(options.run_folder, model.about, options.data),
    )
    page = options.out / "index.html"
    what = "molecule" if summary.molecules else "graph"
    last = f"{summary.graphs} {what}{'' if summary.graphs == 1 else 's'} explained: open {page}"
    plain = {**asdict(summary), **summary.scores, "page": str(page)}
    print_result(options, plain, [*map(str, shown), *sentences(summary), last])


def explain_shards(options: Options, model: "Model", shards: list[Path]) -> None:
    """Contributions and critical atoms of every row, or of those chosen, as columns; no report and no fidelity."""
    from egocnn.show.streaming import explanation_kinds
    from egocnn.train.predictions import prediction_kinds

    config = from_options(options, ExplainConfig)
    why = "the paper's attention is fitted to all graphs at once"
    rule(config.technique != "paper", f"{why}; for shards choose another --technique", ConfigError)
    choice = chosen_rows(options, model)
    asked = {"target": options.explain_target} if model.targets else {}
    settings = {**asdict(config), "class": options.explained, **asked, **({"choice": asdict(choice)} if choice else {})}
    one = model.of_target(options.explain_target)
    kinds = {**(prediction_kinds(model) if choice else {}), **explanation_kinds(one)}
    how: dict[str, Any] = {"explains": config, "explained": options.explained, **asked, "choice": choice}
    answer_shards(options, model, shards, settings, kinds=kinds, **how)


def chosen_rows(options: Options, model: "Model") -> "Choice | None":
    """Which rows are to be explained, by what is predicted of them; None: all."""
    from egocnn.scale.shards import Choice
    from egocnn.train.predictions import prediction_kinds

    kinds = prediction_kinds(model)
    if options.where is not None:
        return Choice.parse(options.where, kinds)
    numbers = [name for name, kind in kinds.items() if kind == "double" and not name.endswith("true")]
    asked = f"{model.target_name(options.explain_target)} " if model.targets else ""
    own = prediction_kinds(model.of_target(options.explain_target))
    by = options.by or asked + [name for name in own if f"{asked}{name}" in numbers and name != "spread"][-1]
    rule(by in numbers, f"--by {by}: is none of {', '.join(numbers)}", ConfigError)
    return None if options.highest is None else Choice(highest=options.highest, by=by)


def find_structures(
    options: Options, model: "Model", graphs: "Collection", *, run_folder: Path, fidelity: bool = True
) -> "Iterator[CriticalStructure]":
    """Structures in the order of the graphs."""
    from egocnn.encode.familiar import familiar
    from egocnn.explain import fit_attention, load_attention, save_attention
    from egocnn.show.streaming import explain_portions
    from egocnn.train.progress import counting_report

    config = from_options(options, ExplainConfig)
    attention = load_attention(run_folder, model) if config.technique == "paper" else None
    if config.technique == "paper" and attention is None:
        attention = fit_attention(model, graphs.whole(), seed=options.seed, device=options.device)
        try:  # the attention layers are fitted at the first use and kept in the run folder
            save_attention(attention, run_folder)
        except OSError as error:  # a model that may only be read can be explained all the same
            print_remark(f"egocnn: {run_folder}: the attention layer is not kept ({error.strerror or error})")
    with counting_report("explaining", len(graphs), visible=not options.quiet) as report:
        how: dict[str, Any] = {"attention": attention, "fidelity": fidelity, "device": options.device}
        how["target"] = options.explain_target
        portions = familiar(model.encoder, graphs)
        yield from explain_portions(model, portions, config, report, classes=options.explained, **how)
