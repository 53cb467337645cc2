"""Plain shapes in pixels, y downwards -> SVG, or PNG by matplotlib; the strip with caption and key."""

import re
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.data.sources.text import optional
from egocnn.show.drawing.picture import AGAINST, FOR, INK, WHITE, Picture

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML, even when escaped
LETTER_WIDTH = 0.56  # Of a letter in a sans-serif face, over the size of the type, on average.
MOST_CAPTION_LINES = 2
DPI = 100


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Straight lines of one width and colour, with round ends."""

    ends: Floats  # (n, 2, 2)
    width: float
    colour: str


@dataclass(frozen=True, slots=True, eq=False)
class Discs:
    """Discs of one colour."""

    centres: Floats  # (n, 2)
    radii: Floats  # (n)
    fill: str | None
    outline: str | None = None
    outline_width: float = 0.0
    titles: Sequence[str] = ()  # what to show when the mouse rests on each, or nothing


@dataclass(frozen=True, slots=True)
class Text:
    """One line, set about the middle of its height."""

    x: float
    y: float
    text: str
    size: float
    colour: str = INK
    anchor: str = "middle"


Shape = Lines | Discs | Text  # Later ones lie on top.


def clean(text: str) -> str:
    """What XML cannot hold becomes the replacement sign, so that one strange label never spoils a file."""
    return FORBIDDEN.sub("\ufffd", text)


def strip(picture: Picture) -> tuple[list[Shape], float]:
    """The caption at the left, the key of colours at the right; and how many pixels they take at the foot."""
    unit, (width, height) = picture.unit, picture.size
    size = 12 * unit
    entries = zip(picture.words, (FOR, AGAINST), picture.signs, strict=True)
    key = [(word, colour) for word, colour, is_present in entries if is_present]
    taken = sum(len(word) * LETTER_WIDTH * size + 24 * unit for word, _ in key)
    letters = max(int((width - 20 * unit - taken) / (LETTER_WIDTH * size)), 8)
    lines = textwrap.wrap(clean(picture.caption), letters, max_lines=MOST_CAPTION_LINES, placeholder=" …")
    rows = max(len(lines), 1 if key else 0)
    strip_height = (rows * 16 + 8) * unit if rows else 0.0
    middle, right = height - strip_height + 11 * unit, width - 10 * unit
    shapes: list[Shape] = [
        Text(10 * unit, middle + 16 * i * unit, line, size, INK, "start") for i, line in enumerate(lines)
    ]
    for word, colour in reversed(key):
        left = right - len(word) * LETTER_WIDTH * size
        shapes.append(Text(left, middle, word, size, anchor="start"))
        shapes.append(Discs(np.array([[left - 8 * unit, middle]]), np.array([4.5 * unit]), colour))
        right = left - 24 * unit
    return shapes, strip_height


def to_svg(picture: Picture, shapes: Iterable[Shape], between: str = "", above: Iterable[Shape] = ()) -> str:
    """One self-contained SVG; ``between`` is SVG to put over the shapes, ``above`` are shapes to put over that."""
    width, height = picture.size
    title = escape(clean(picture.caption or picture.graph.name), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{width}" height="{height}" fill="{WHITE}"/>\n'
        f"{''.join(map(_element, shapes))}{between}{''.join(map(_element, above))}</svg>\n"
    )


def _element(shape: Shape) -> str:
    if isinstance(shape, Text):
        return (
            f'<text x="{_number(shape.x)}" y="{_number(shape.y + 0.35 * shape.size)}" fill="{shape.colour}" '
            f'font-family="sans-serif" font-size="{_number(shape.size)}" text-anchor="{shape.anchor}">'
            f"{escape(clean(shape.text))}</text>\n"
        )
    if isinstance(shape, Lines):
        # all in one path: a third of the bytes, and where faint lines cross they do not darken
        tenths = np.round(shape.ends * 10).astype(np.int64)
        rows = np.concatenate([tenths[:, 0], tenths[:, 1] - tenths[:, 0]], axis=1).tolist()
        path = (
            f'<path transform="scale(.1)" d="{"".join(f"M{x} {y}l{i} {j}" for x, y, i, j in rows)}" fill="none" '
            f'stroke="{shape.colour}" stroke-width="{_number(shape.width * 10)}" stroke-linecap="round"/>\n'
        )
        return path if rows else ""
    outline = f' stroke="{shape.outline}" stroke-width="{_number(shape.outline_width)}"' if shape.outline else ""
    look = f' fill="{shape.fill or "none"}"{outline}'
    places = zip(shape.centres.tolist(), shape.radii.tolist(), strict=True)
    circles = [f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"' for (x, y), radius in places]
    if len(circles) == 1 and not shape.titles:
        return f"{circles[0]}{look}/>\n"
    titles = [escape(clean(title)) for title in shape.titles] or [""] * len(circles)
    titled = (f"{c}><title>{t}</title></circle>" if t else f"{c}/>" for c, t in zip(circles, titles, strict=True))
    return f"<g{look}>{''.join(titled)}</g>\n" if circles else ""


def _number(value: float) -> str:
    text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


def write_png(picture: Picture, shapes: Iterable[Shape], path: Path) -> None:
    """Figure and canvas as objects of their own: what the caller does with pyplot stays untouched."""
    modules = ("figure", "backends.backend_agg", "collections")
    figures, canvases, kinds = (optional(f"matplotlib.{name}", "networks") for name in modules)
    width, height = picture.size
    figure = figures.Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=WHITE)
    canvas = canvases.FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    points = 72 / DPI
    for order, shape in enumerate(shapes):
        if isinstance(shape, Lines):
            look: dict[str, Any] = {"colors": shape.colour, "linewidths": shape.width * points, "capstyle": "round"}
            axes.add_collection(kinds.LineCollection(list(shape.ends), zorder=order, **look), autolim=False)
        elif isinstance(shape, Discs):
            sizes = (2 * shape.radii, 2 * shape.radii, 0)
            look = {"facecolors": shape.fill or "none", "edgecolors": shape.outline or "none"}
            look |= {"linewidths": shape.outline_width * points, "units": "xy", "zorder": order}
            discs = kinds.EllipseCollection(*sizes, offsets=shape.centres, offset_transform=axes.transData, **look)
            axes.add_collection(discs, autolim=False)
        else:
            look = {"fontsize": shape.size * points, "color": shape.colour, "va": "center_baseline", "zorder": order}
            side = "left" if shape.anchor == "start" else "center"
            axes.text(shape.x, shape.y, shape.text, ha=side, parse_math=False, **look)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sign that the font lacks becomes a box, which says enough
        canvas.print_png(path, metadata={"Software": None})
