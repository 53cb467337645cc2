"""Degrees -> the log-log plot of their distribution, as in figure 4 of the paper; SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.data.scalefree import Counts, PowerLaw
from egocnn.errors import DataError, MissingExtraError
from egocnn.files import replacing

NODES, BINNED, LAW, GREY = "#8cc2bd", "#0b6e69", "#d08a4f", "#777777"
SIZE = (5.6, 4.2)  # inches
BINS_PER_DECADE = 8
FEW = 12  # degrees up to which each is named on the axis, and nothing is gained by bins


def check_plot(path: Path) -> None:
    """Refuse, before anything is computed, a file that would not become a picture."""
    if path.suffix not in (".svg", ".png"):
        raise DataError(f"{path}: the plot is written as .svg or .png")


def draw_degrees(counts: Counts, law: PowerLaw | None, path: Path, *, title: str = "") -> None:
    """Nodes by degree, their means over bins that grow with the degree, and the fitted law."""
    check_plot(path)
    if len(counts.degree) == 0:
        raise DataError("no node has a neighbour: there are no degrees to plot")
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullLocator
    except ImportError:
        raise MissingExtraError("matplotlib", "networks") from None
    settings: Any = {"svg.hashsalt": "egocnn", "font.size": 9, "font.family": "DejaVu Sans"}
    with mpl.rc_context(settings):  # a fixed salt: the same degrees give the same file
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(subplot_kw={"xscale": "log", "yscale": "log"})
        axes.scatter(counts.degree, counts.nodes, s=12, color=NODES, linewidths=0, label="nodes of each degree")
        middle, mean = binned(counts)
        if len(middle):
            axes.scatter(middle, mean, s=26, marker="s", color=BINNED, linewidths=0, label="mean over a bin of degrees")
        if law is not None:
            degree = np.geomspace(law.start, max(counts.degree[-1], law.start + 1), 200)
            expected = law.tail_nodes * np.exp(law.log_share(degree))
            axes.plot(degree, expected, color=LAW, linewidth=1.8, label=f"power law, exponent {law.exponent:.2f}")
            axes.axvline(law.start, color=GREY, linewidth=0.8, linestyle=":")
        largest = int(counts.degree[-1])
        limits: Any = {"xlim": (0.85, largest * 1.25)}
        limits["ylim"] = min(0.5, float(mean.min(initial=1)) / 2), counts.nodes.max() * 2
        axes.set(xlabel="degree", ylabel="nodes", **limits)
        if largest <= FEW:
            axes.set_xticks(range(1, largest + 1))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axes.grid(color="#e2e2e2", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="best")
        metadata = {"Date" if path.suffix == ".svg" else "Software": None}
        with replacing(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=metadata)


def binned(counts: Counts) -> tuple[Floats, Floats]:
    """Centres of bins of about equal width in the logarithm, and the mean nodes of a degree in each, empty degrees
    counted: only so a long tail shows how it falls. Bins of a single degree, or without a node, are left out."""
    if counts.degree[-1] <= FEW:
        return np.zeros(0), np.zeros(0)
    decades = np.log10(counts.degree[-1] + 1)
    edges = np.unique(np.geomspace(1, counts.degree[-1] + 1, int(np.ceil(decades * BINS_PER_DECADE)) + 1).astype(int))
    edges = np.append(edges[:-1], counts.degree[-1] + 1)
    nodes = np.add.reduceat(np.bincount(counts.degree, counts.nodes), edges[:-1])
    centre, mean = np.sqrt(edges[:-1] * (edges[1:] - 1.0)), nodes / np.diff(edges)
    shown = (nodes > 0) & (np.diff(edges) > 1)
    return centre[shown], mean[shown]
