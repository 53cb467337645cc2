"""Links to lines of code: the role ``source`` with a name -> the line of the source page that defines it.

``{source}`egocnn.encode.ranking.rank_neighbours``` leads to its ``def``; with a piece of code behind a bar,
``{source}`egocnn.nn.readout.pool | amax```, to the one line of it that holds that piece. Names are looked up in the
syntax tree when the site is built, so the build fails once a name, or the piece, is gone.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).resolve().parent.parent.parent
BAR = " | "
NUMBER = re.compile(r'<span class="linenos">( *)(\d+)</span>')
BACK = re.compile(r'(<div class="viewcode-block" id="([^"]+)">\n)<a class="viewcode-back" href="[^"#]+#([^"]+)">')
FOREIGN = re.compile(r'<li><a href="(?!egocnn)[^"]*">[^<]*</a></li>')
"""Modules that are not ours, which viewcode lists and has no page for."""
logger = logging.getLogger(__name__)

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def locate(text: str) -> tuple[str, Path, int]:
    """A dotted name, perhaps with a piece of code -> its module, the file and the line."""
    name, _, piece = (part.strip() for part in text.partition(BAR))
    module, path, inside = _module_of(name)
    source = path.read_text(encoding="utf-8")
    first, last = 1, source.count("\n") + 1
    body: list[ast.stmt] = ast.parse(source).body
    for word in inside:
        found = [each for each in body if isinstance(each, Definition) and word in _names(each)]
        if not found:
            raise LookupError(f"{module} has no {'.'.join(inside)}")
        first, last = found[0].lineno, found[0].end_lineno or found[0].lineno
        body = getattr(found[0], "body", [])
    if not piece:
        return module, path, first
    lines = [number for number, line in enumerate(source.split("\n")[first - 1 : last], first) if piece in line]
    if len(lines) != 1:
        raise LookupError(f"{piece!r} stands in {len(lines)} lines of {name}, not in one")
    return module, path, lines[0]


def _module_of(name: str) -> tuple[str, Path, list[str]]:
    words = name.split(".")
    for count in range(len(words), 0, -1):
        stem = ROOT.joinpath(*words[:count])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return ".".join(words[:count]), path, words[count:]
    raise LookupError(f"there is no module {name}")


def _names(statement: Definition) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


class SourceRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            module, path, line = locate(self.text)
        except LookupError as error:
            logger.warning("no line of code for %r: %s", self.text, error.args[0], location=self.get_location())
            return [nodes.literal(self.text, self.text)], []
        self.env.note_dependency(str(path))
        page = f"_modules/{module.replace('.', '/')}"
        self.env.metadata[self.env.docname].setdefault("source_pages", set()).add(page)
        place = self.env._app.builder.get_relative_uri(self.env.docname, page)
        shown = f"{path.relative_to(ROOT)}, line {line}"
        link = nodes.reference("", "", internal=True, refuri=f"{place}#line-{line}", classes=["source-line"])
        link += nodes.literal(shown, shown)
        return [link], []


def anchor_lines(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:  # noqa: ARG001
    """Give every line number of a source page an anchor, and lead back to where the reference has the name."""
    if page == "_modules/index":
        context["body"] = FOREIGN.sub("", context["body"])
    if not page.startswith("_modules/egocnn"):
        return
    module = page.removeprefix("_modules/").replace("/", ".")
    objects: Any = app.env.get_domain("py").data["objects"]

    def back(match: re.Match[str]) -> str:
        # viewcode knows one name for a module; some are documented under two, as egocnn.nn and egocnn.nn.readout
        named = (match[3], f"{module}.{match[2]}", f"egocnn.{match[2]}")
        entry = next(objects[name] for name in named if name in objects)
        place = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
        return f'{match[1]}<a class="viewcode-back" href="{place}">'

    body = NUMBER.sub(r'<span class="linenos" id="line-\2">\1\2</span>', context["body"])
    context["body"] = BACK.sub(back, body)


def check_pages(app: Sphinx, error: Exception | None) -> None:
    """Only modules that the reference documents have a source page."""
    if error is not None or app.builder.format != "html":
        return
    for document, metadata in app.env.metadata.items():
        for page in metadata.get("source_pages", ()):
            if not Path(app.outdir, page + ".html").exists():
                raise ExtensionError(f"{document} links to lines of {page}, which the reference does not document")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("source", SourceRole())
    app.connect("html-page-context", anchor_lines)
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
