"""``egocnn patterns``: a run folder and a data set -> the critical structures that recur, and a page of them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from egocnn.cli.arguments import GRAPHS, add_explanation_options, add_out, add_run_and_data
from egocnn.cli.commands.explain import find_structures
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser
from egocnn.cli.output import print_result

if TYPE_CHECKING:
    from egocnn.explain.patterns import Pattern
    from egocnn.explain.structure import CriticalStructure


def add_arguments(parser: Parser) -> None:
    add_run_and_data(parser)
    add_explanation_options(parser)
    parser.add_option("patterns", "--min-support", **GRAPHS, default=5, help="graphs that must share a pattern [5]")
    parser.add_option("patterns", "--most", **GRAPHS, default=20, help="patterns per class [20]")
    add_out(parser, "REPORT", "the folder for the report")


def patterns(options: Options) -> None:
    """Find the patterns, write their page and print a sentence for each."""
    from egocnn.explain.patterns import find_patterns
    from egocnn.model import Model
    from egocnn.show.patterns.page import MARK, write_patterns
    from egocnn.show.report.folder import check_folder

    check_folder(options.out, MARK)
    model = Model.load(options.run_folder)
    graphs = open_graphs(options, model).whole()
    count, run = len(graphs), options.run_folder
    structures = list(find_structures(options, model, graphs, run_folder=run, fidelity=False))
    found = find_patterns(structures, min_support=options.min_support, most=options.most)
    target = model.target_name(options.explain_target) if model.targets else None
    title = f"Patterns in {Path(options.data).name}{f', {target}' if target else ''}"
    page = write_patterns(found, options.out, title=title)
    plain = {"graphs": count, "target": target, "page": str(page), "patterns": [one.to_plain() for one in found]}
    lines = [*console_lines(found, structures, graphs.unit), f"{count} {graphs.unit}: open {page}"]
    print_result(options, plain, lines)


def console_lines(found: "Sequence[Pattern]", structures: "Sequence[CriticalStructure]", unit: str) -> list[str]:
    """What is commoner in its class than elsewhere, surely or perhaps; the rest is only counted."""
    lines = [f"{one.class_name}: {one}" for one in found if one.is_significant]
    perhaps = [f"{one.class_name}: {one}" for one in found if one.lift > 1 and not one.is_significant]
    if perhaps:
        lines += ["perhaps by chance:", *(f"  {line}" for line in perhaps)]
    if no_commoner := sum(one.lift <= 1 for one in found):
        lines.append(f"no commoner in their class though they recur: {no_commoner}, listed on the page")
    graphs = Counter(s.explained for s in structures)
    empty = Counter(s.explained for s in structures if not len(s.critical_nodes))
    for name, count in sorted(empty.items(), key=str):
        whose = "" if name is None else f" of class {name}"
        lines.append(f"nothing stands out in {count} of {graphs[name]} {unit}{whose}")
    return lines
