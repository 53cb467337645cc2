"""Table 1 of the paper -> its claims beside how time grows with layers and nodes, measured; JSON, CSV, Markdown.

A system that cannot run, or not at every size, says why in its row instead of vanishing from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

from egocnn.errors import ConfigError
from egocnn.files import write_json, write_text
from egocnn.nn.device import choose_device
from egocnn.study.cluster import library_versions, name_machine, one_thread
from lab.markdown import csv_text, made_by, table
from lab.rivals.gine import seeded
from lab.tables.cells import Say, TableOptions
from lab.tables.growth.claims import Claim
from lab.tables.growth.curve import FULL, QUICK, Curve, CurveSizes, clock_of, grow
from lab.tables.growth.subjects import SUBJECTS, GrowthProblem, GrowthSubject

NAME = "table1"
TITLE = "What each system can do, and how its time grows with layers and nodes"

CLAIMED = "claimed complexity"
CLAIMS = ("task_specific", "precise", "scale_efficient", "large_graphs", "complexity", "layers_power", "nodes_power")
UNKNOWN = dict.fromkeys(field.name for field in fields(Claim))  # What the paper says of a system that it does not have.


def write_growth(
    how: TableOptions,
    *,
    folder: Path,
    say: Say,
    sizes: CurveSizes | None = None,
    subjects: Sequence[GrowthSubject] = SUBJECTS,
) -> dict[str, Any]:
    """Time every system at every size, then write table1.json, table1.csv and table1.md into the folder."""
    if how.data is not None:
        raise ConfigError(f"{NAME} is measured on random graphs; it has no data sets to choose from")
    sizes = sizes or (QUICK if how.quick else FULL)
    rows = []
    with one_thread():  # with more of them, small sizes would use fewer of them than large ones
        for subject in _chosen(subjects, how.models):
            rows.append(_row(subject, sizes, how))
            say(f"{subject.name}: time grows {_powers(rows[-1])}")
    record = {
        "title": TITLE,
        "rows": rows,
        "sizes": asdict(sizes),
        "command": f"egocnn reproduce {NAME}{_words(how)}",
        "date": date.today().isoformat(),
        "machine": name_machine(choose_device(how.device)),
        "versions": library_versions(),
    }
    write_json(folder / f"{NAME}.json", record)
    write_text(folder / f"{NAME}.csv", _csv(rows))
    write_text(folder / f"{NAME}.md", markdown(record))
    return record


def _words(how: TableOptions) -> str:
    """As on the command line."""
    models = "" if how.models is None else f' --models "{";".join(how.models)}"'
    return f"{' --quick' if how.quick else ''} --seed {how.seed}{models}"


def _chosen(subjects: Sequence[GrowthSubject], wanted: Sequence[str] | None) -> list[GrowthSubject]:
    there = [subject.name for subject in subjects]
    for name in wanted or ():
        if name not in there:
            raise ConfigError(f"the table has no row {name!r}; it has {'; '.join(there)}")
    return [subject for subject in subjects if wanted is None or subject.name in wanted]


def _row(subject: GrowthSubject, sizes: CurveSizes, how: TableOptions) -> dict[str, Any]:
    device = choose_device(how.device)
    fixed_nodes = min(sizes.fixed_nodes, subject.most_nodes or sizes.fixed_nodes)

    def measure(letter: str, values: Sequence[int], build: Callable[[int], Any]) -> Curve:
        with seeded(how.seed, device):
            return grow(values, build, sizes, letter=letter, clock=clock_of(device))

    def problem(nodes: int, layers: int) -> GrowthProblem:
        return GrowthProblem(nodes=nodes, layers=layers, seed=how.seed, device=device)

    deepen = subject.deepen or subject.build
    layers = measure("L", sizes.layers, lambda value: deepen(problem(fixed_nodes, value)))
    nodes = measure("N", sizes.nodes, lambda value: subject.build(problem(value, sizes.fixed_layers)))
    claim = dict(UNKNOWN) if subject.claim is None else asdict(subject.claim)
    return {
        "model": subject.name,
        **claim,
        "remark": subject.remark,
        "layers": {"are": subject.layers_are, "fixed_nodes": fixed_nodes, **_plain(layers)},
        "nodes": {"fixed_layers": sizes.fixed_layers, **_plain(nodes)},
    }


def _plain(curve: Curve) -> dict[str, Any]:
    exponent = curve.exponent
    return {
        "exponent": None if exponent is None else round(exponent, 2),
        "points": [asdict(point) | {"seconds": float(f"{point.seconds:.4g}")} for point in curve.points],
        "reason": curve.reason,
    }


def _powers(row: dict[str, Any]) -> str:
    return f"as {_power('L', row['layers'])} and {_power('N', row['nodes'])}"


def _power(letter: str, curve: dict[str, Any]) -> str:
    return f"{letter} (not measured)" if curve["exponent"] is None else f"{letter}^{curve['exponent']:.2f}"


def markdown(record: dict[str, Any]) -> str:
    """One line a system: what the paper says, and the measured powers of layers and nodes."""
    head = ("", "task-specific", "precise", "scale: paper", "measured", "large graphs: paper", "measured", CLAIMED)
    lines = table(head, (_cells(row, record["sizes"]) for row in record["rows"]))
    sizes = record["sizes"]
    ends = [
        f"- {row['model']}: {curve['reason']}"
        for row in record["rows"]
        for curve in (row["layers"], row["nodes"])
        if curve["reason"]
    ]
    return "\n".join(
        [
            f"# {record['title']}",
            "",
            *lines,
            "",
            "The first two columns, the ticks and the complexity are the paper's (Table 1). Measured is the power of L "
            "or N that the time of one call grows with: the slope on log-log axes over the larger half of the sizes. A "
            "power near 1 means that twice the size takes twice the time. It comes out below 1 where parts that do not "
            "grow still count, and somewhat above where the data outgrow the caches. "
            "A call is one training step of a network (forward, backward, update) or one computation of a kernel's "
            "features, on one thread (a CPU by its processor time), on two random graphs of N nodes with four "
            "neighbours each. L goes from "
            f"{sizes['layers'][0]} to {sizes['layers'][-1]} at N = {sizes['fixed_nodes']:,}, N from "
            f"{sizes['nodes'][0]:,} to {sizes['nodes'][-1]:,} at L = {sizes['fixed_layers']}; brackets say where a "
            "curve ended before. In these graphs the nodes within L edges grow as 3 to the power of L. All times are "
            f"in {NAME}.json.",
            "",
            "What was run:",
            *[f"- {row['model']}: {_what(row, sizes)}" for row in record["rows"]],
            *([] if not ends else ["", "Where a curve ended early:", *ends]),
            "",
            made_by(record),
            "",
        ]
    )


def _cells(row: dict[str, Any], sizes: dict[str, Any]) -> list[str]:
    return [
        row["model"],
        _tick(row["task_specific"]),
        _tick(row["precise"]),
        _tick(row["scale_efficient"]),
        _cell("L", row["layers"], sizes["layers"][-1]),
        _tick(row["large_graphs"]),
        _cell("N", row["nodes"], sizes["nodes"][-1]),
        row["complexity"] or "not in the paper",
    ]


def _tick(value: bool | None) -> str:
    return "" if value is None else "✓" if value else "–"


def _cell(letter: str, curve: dict[str, Any], last: int) -> str:
    points = curve["points"]
    reached = "" if not points or points[-1]["size"] == last else f" (to {letter} = {points[-1]['size']:,})"
    return ("not measured" if curve["exponent"] is None else f"{letter}^{curve['exponent']:.2f}") + reached


def _what(row: dict[str, Any], sizes: dict[str, Any]) -> str:
    layers = row["layers"]
    counted = "" if layers["are"] == "layers" else f"; L counts {layers['are']}"
    fewer = "" if layers["fixed_nodes"] == sizes["fixed_nodes"] else f", measured at N = {layers['fixed_nodes']:,}"
    return f"{row['remark']}{counted}{fewer}"


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    flat = (
        row
        | {f"{size}_measured": row[size]["exponent"] for size in ("layers", "nodes")}
        | {f"{size}_reason": row[size]["reason"] for size in ("layers", "nodes")}
        for row in rows
    )
    measured = ("layers_measured", "nodes_measured", "layers_reason", "nodes_reason")
    return csv_text(("model", *CLAIMS, *measured), flat)
