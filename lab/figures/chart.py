"""Records of benchmarks -> one picture: how many times longer the peers take, and how time and memory grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.errors import DataError, MissingExtraError
from egocnn.files import replacing
from lab.bench.document import Record, fill_document, read_records
from lab.bench.speed.growth import LETTERS, curve
from lab.bench.speed.layer import REFERENCE
from lab.bench.tools.systems import OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import SubFigure

SAME, OTHER, FASTER, GREY = "#0b6e69", "#8cc2bd", "#d08a4f", "#555555"
COLOURS = {
    SAME: "slower than egocnn, the same function",
    OTHER: "slower than egocnn, a layer or method of another kind",
    FASTER: "faster than egocnn",
}
WIDTH, LINE, TOP, BOTTOM, CURVES, LEGEND = 9.0, 0.17, 0.3, 0.3, 2.2, 0.4
"""Inches: the picture, a bar, above and below the bars, a row of curves, the key."""
LEFT, RIGHT = 0.27, 0.97  # Shares of the width between which bars are drawn.
ORDER = ("layer", "step", "explain", "crossval")
MEANING: dict[str, str] = {"nodes": "nodes N", "k": "neighbours K", "width": "width D", "layers": "layers L"}


def chart(results: Path, path: Path) -> list[Path]:
    """The picture of all records in a folder, and the tables in the document of the same name beside it."""
    records = read_records(results)
    draw_chart(records, path)
    document = path.with_suffix(".md")
    if not document.exists():
        return [path]
    fill_document(document, records, picture=path.name)
    return [path, document]


def draw_chart(records: Sequence[Record], path: Path) -> None:
    """Bars for every record with ratios, curves for every record of growth; SVG or PNG by the file's ending."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "networks") from None
    if path.suffix not in (".svg", ".png"):
        raise DataError(f"{path}: the chart is written as .svg or .png")
    bars = sorted((record for record in records if any(_ratios(record))), key=lambda r: ORDER.index(r["name"]))
    curves = [record for record in records if record["name"] == "growth" and record["cases"]]
    if not bars and not curves:
        raise DataError("these records hold no ratios and no curves to draw")
    heights = [LEGEND, *(LINE * _lines(record) + TOP + BOTTOM for record in bars)]
    heights += [CURVES * len(_columns(record)) + TOP for record in curves]
    settings: Any = {"svg.hashsalt": "egocnn", "font.size": 7, "font.family": "DejaVu Sans"}
    with mpl.rc_context(settings):  # a fixed salt: the same records give the same file
        figure = Figure(figsize=(WIDTH, sum(heights)))
        FigureCanvasAgg(figure)
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False, hspace=0)[:, 0]
        _draw_key(parts[0])
        for part, height, record in zip(parts[1:], heights[1:], [*bars, *curves], strict=True):
            title = f"{record['title']} ({record['machine']}{', small sizes' if record['quick'] else ''})"
            part.text(0.012, 1 - 0.16 / height, title, va="center", fontsize=9, fontweight="bold")
            draw = _draw_curves if record["name"] == "growth" else _draw_bars
            draw(part, height, record)
        with replacing(path) as temporary:
            kind = path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(temporary, format=kind, dpi=120, metadata=metadata)


def _draw_key(part: SubFigure) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=text) for colour, text in COLOURS.items()]
    part.text(0.012, 0.5, "Time of a peer / time of egocnn", va="center", fontsize=9)
    part.legend(handles=patches, loc="center right", ncols=len(patches), frameon=False, handlelength=1.2)


# ── bars ──────────────────────────────────────────────────────────────────────────────────────────


def _ratios(record: Record) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The cases that are drawn, those in the precision that comes first, and their peers that have a ratio."""
    if record["name"] not in ORDER:
        return
    first = record["cases"][0]["shape"].get("precision") if record["cases"] else None
    for case in record["cases"]:
        if case["shape"].get("precision") == first:
            peers = [row for row in case["systems"] if row["system"] != OURS and row.get("time_ratio")]
            if peers:
                yield case, peers


def _lines(record: Record) -> int:
    return sum(len(peers) + 1 for _, peers in _ratios(record))


def _draw_bars(part: SubFigure, height: float, record: Record) -> None:
    axes = part.subplots()
    part.subplots_adjust(left=LEFT, right=RIGHT, top=1 - TOP / height, bottom=BOTTOM / height)
    ratios = [row["time_ratio"] for _, peers in _ratios(record) for row in peers]
    names: dict[int, str] = {}
    line = 0
    for case, peers in _ratios(record):
        ours = _duration(case["systems"][0]["milliseconds"])
        place = (0.012 - LEFT) / (RIGHT - LEFT)
        words = f"{case['case']}: egocnn {ours}"
        axes.text(place, line, words, transform=axes.get_yaxis_transform(), va="center", fontweight="bold")
        for row in peers:
            line += 1
            names[line] = row["system"]
            _draw_bar(axes, line, row)
        line += 1
    axes.set_xscale("log")
    axes.set_xlim(min(0.9, min(ratios) * 0.8), max(2.0, max(ratios) * 1.5))
    axes.set_ylim(line - 0.4, -0.6)
    axes.axvline(1, color=GREY, linewidth=0.8)
    axes.set_yticks(list(names), list(names.values()))
    axes.tick_params(axis="y", length=0)
    _plain_ticks(axes.xaxis)
    axes.grid(axis="x", which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _draw_bar(axes: Axes, line: int, row: Mapping[str, Any]) -> None:
    ratio = row["time_ratio"]
    colour = FASTER if ratio < 1 else SAME if row["same_function"] else OTHER
    axes.barh(line, ratio - 1, left=1, height=0.7, color=colour)
    text = f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"
    axes.annotate(text, (max(ratio, 1), line), xytext=(3, 0), textcoords="offset points", va="center")


def _duration(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3g} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


# ── curves ────────────────────────────────────────────────────────────────────────────────────────


def _columns(record: Record) -> list[tuple[str, str]]:
    """What was measured: time everywhere, memory where the device counts it."""
    rows = [row for case in record["cases"] for row in case["systems"]]
    has_memory = any(row.get("peak_megabytes") is not None for row in rows)
    return [
        ("milliseconds", "time of forward + backward, ms"),
        *([("peak_megabytes", "peak memory, MB")] if has_memory else []),
    ]


def _draw_curves(part: SubFigure, height: float, record: Record) -> None:
    columns = _columns(record)
    grid = part.subplots(len(columns), len(LETTERS), squeeze=False)
    part.subplots_adjust(left=0.07, right=RIGHT, top=1 - 0.45 / height, bottom=0.45 / height, wspace=0.25, hspace=0.4)
    for axes_of_row, (column, unit) in zip(grid, columns, strict=True):
        for axes, size in zip(axes_of_row, LETTERS, strict=True):
            for system, colour, marker in ((OURS, SAME, "o"), (REFERENCE, FASTER, "s")):
                points = curve(record["cases"], size, system, column)
                if points:
                    axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=3, label=system)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel(MEANING[size])
            _plain_ticks(axes.xaxis)
            _plain_ticks(axes.yaxis)
            axes.grid(color="#dddddd", linewidth=0.5)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        axes_of_row[0].set_ylabel(unit)
    lines, names = grid[0][0].get_legend_handles_labels()
    place = (RIGHT, 1 - 0.16 / height)
    part.legend(lines, names, loc="center right", bbox_to_anchor=place, ncols=2, frameon=False)


def _plain_ticks(axis: Axis) -> None:
    """Sizes and ratios as people write them, not as powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high / low < 30 and not axis.get_label_text():  # hardly a power of ten in it
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_formatter(NullFormatter())


def _short(value: float) -> str:
    for unit, name in ((1 << 20, "M"), (1 << 10, "k")):
        if value >= unit and value % unit == 0:
            return f"{value / unit:.0f}{name}"
    return f"{value:g}"
