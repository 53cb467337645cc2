"""Links of a page to files beside docs/, as they work where the repository is read -> links that work in the site.

Tables of results become pages, the README the first page; of all other files the site holds a copy to download.
"""

from __future__ import annotations

import posixpath
import re

from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()((?:\.\./)+)([\w./-]+)(?=\))")


def _relink(app: Sphinx, document: str, source: list[str]) -> None:
    here = posixpath.dirname(document)

    def replaced(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", here, match[0]))
        if path == "README.md":
            return posixpath.relpath("index.md", here or ".")
        if path.startswith("docs/") or f"{path.removesuffix('.md')}" not in app.env.found_docs:
            return match[0]
        return posixpath.relpath(path, here or ".")

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
