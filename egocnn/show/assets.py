"""The files that pages are made of: a template and its parts -> one page; the style sheet that all pages share."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files

SCRIPTS = (
    *("cytoscape.min.js", "data.js", "smarts.js", "scene.js", "picture.js"),
    *("gallery.js", "canvas.js", "viewer.js", "page.js"),
)
"""of a report, in the order in which they run"""


@cache
def asset(room: str, name: str) -> str:
    """The text of a file in the assets of ``report``, ``patterns`` or ``serve``."""
    return files("egocnn.show").joinpath(room, "assets", name).read_text(encoding="utf-8")


@cache
def style(room: str) -> str:
    """The style sheet that all pages share, and after it what one of them adds."""
    return files("egocnn.show").joinpath("style.css").read_text(encoding="utf-8") + asset(room, "page.css")


@cache
def report_policy() -> str:
    """The content security policy of a report: only its own scripts run, and nothing is fetched."""
    hashes = (b64encode(sha256(asset("report", name).encode()).digest()).decode() for name in SCRIPTS)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "  # cytoscape sets styles of its own
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def fill(room: str, parts: Mapping[str, str], template: str = "page.html") -> str:
    """A template with every ``{{NAME}}`` replaced by the part of that name, and STYLE by the style."""
    head, *rest = asset(room, template).split("{{")
    known = {"STYLE": style(room), **parts}
    # one pass over the template: a name in the data that looks like a placeholder stays what it is
    return head + "".join(known[name] + after for name, after in (piece.split("}}", 1) for piece in rest))
