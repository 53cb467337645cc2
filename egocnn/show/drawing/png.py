"""A scene -> PNG, by matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from egocnn.errors import MissingExtraError
from egocnn.show.drawing.palette import WHITE
from egocnn.show.drawing.scene import Discs, Lines, Scene

DPI = 100


def write_png(scene: Scene, path: Path) -> None:
    """Figure and canvas as objects of their own: what the caller does with pyplot stays untouched."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import EllipseCollection, LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "networks") from None
    width, height = scene.size
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=WHITE)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    points = 72 / DPI
    for order, shape in enumerate(scene.shapes):
        if isinstance(shape, Lines):
            lines = LineCollection(
                list(shape.ends), colors=shape.colour, linewidths=shape.width * points, capstyle="round", zorder=order
            )
            axes.add_collection(lines, autolim=False)
        elif isinstance(shape, Discs):
            discs = EllipseCollection(
                2 * shape.radii,
                2 * shape.radii,
                0,
                units="xy",
                offsets=shape.centres,
                offset_transform=axes.transData,
                facecolors=shape.fill or "none",
                edgecolors=shape.outline or "none",
                linewidths=shape.outline_width * points,
                zorder=order,
            )
            axes.add_collection(discs, autolim=False)
        else:
            side = "left" if shape.anchor == "start" else "center"
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                fontsize=shape.size * points,
                color=shape.colour,
                ha=side,
                va="center_baseline",
                parse_math=False,
                zorder=order,
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sign that the font lacks becomes a box, which says enough
        canvas.print_png(path, metadata={"Software": None})
