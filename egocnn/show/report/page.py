"""Critical structures + a summary -> index.html: one file with its data, its style and its scripts inside."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from egocnn.explain.structure import CriticalStructure
from egocnn.files import finite_json, write_text
from egocnn.show.assets import asset, fill
from egocnn.show.drawing.layout import positions as layout
from egocnn.show.report.encoding import Positions, encode
from egocnn.show.report.summary import Summary

SCRIPTS = (
    *("cytoscape.min.js", "data.js", "scene.js", "picture.js", "chart.js", "gallery.js"),
    *("canvas.js", "viewer.js", "page.js"),
)
"""in the order in which they run"""

ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(
    structures: Sequence[CriticalStructure], folder: Path, *, summary: Summary, positions: Positions = layout
) -> Path:
    """Write ``index.html`` into the folder; returns its path.

    ``positions`` places the nodes of a graph, (N, 2), y upwards, edges about as long as 1.
    """
    path = Path(folder) / "index.html"
    write_text(path, page(encode(structures, summary, positions), summary.title))
    return path


def page(data: dict[str, Any], title: str) -> str:
    """The whole page as one text; it fetches nothing."""
    parts = {
        "POLICY": policy(),
        "TITLE": html.escape(title),
        "DATA": embedded(data),
        "SCRIPTS": "\n".join(f"<script>{asset('report', name)}</script>" for name in SCRIPTS),
    }
    return fill("report", parts)


def embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element around it, whatever the names in it are."""
    text = finite_json(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def policy() -> str:
    """The page's content security policy: only its own scripts run, and nothing is fetched."""
    hashes = (b64encode(sha256(asset("report", name).encode()).digest()).decode() for name in SCRIPTS)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "  # cytoscape sets styles of its own
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
