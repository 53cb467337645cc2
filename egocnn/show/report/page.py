"""Critical structures + a summary -> index.html: one file with its data, its style and its scripts inside."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from egocnn.explain.structure import CriticalStructure
from egocnn.files import finite_json, write_text
from egocnn.show.report.encoding import Positions, encode
from egocnn.show.report.summary import Summary

SCRIPTS = (
    "cytoscape.min.js",
    "data.js",
    "scene.js",
    "picture.js",
    "chart.js",
    "gallery.js",
    "canvas.js",
    "viewer.js",
    "page.js",
)
"""in the order in which they run"""

ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(
    structures: Sequence[CriticalStructure], folder: Path, *, summary: Summary, positions: Positions | None = None
) -> Path:
    """Write ``index.html`` into the folder and say where it is.

    ``positions`` places the nodes of a graph, (N, 2), y upwards, edges about as long as 1.
    """
    path = Path(folder) / "index.html"
    write_text(path, page(encode(structures, summary, positions or _layout()), summary.title))
    return path


def page(data: dict[str, Any], title: str) -> str:
    """The whole page as one text; it asks for nothing from anywhere."""
    scripts = [_asset(name) for name in SCRIPTS]
    parts = {
        "POLICY": policy(scripts),
        "TITLE": html.escape(title),
        "STYLE": _asset("page.css"),
        "DATA": embedded(data),
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    text = _asset("page.html")
    head, *rest = text.split("{{")
    # one pass over the template: a name in the data that looks like a placeholder stays what it is
    return head + "".join(parts[name] + after for name, after in (piece.split("}}", 1) for piece in rest))


def embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element around it, whatever the names in it are."""
    text = finite_json(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")


def policy(scripts: Sequence[str]) -> str:
    """Only these scripts run, and nothing is fetched; cytoscape sets styles of its own."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("egocnn.show.report").joinpath("assets", name).read_text(encoding="utf-8")


def _layout() -> Positions:
    from egocnn.show.drawing.layout import positions

    return positions
