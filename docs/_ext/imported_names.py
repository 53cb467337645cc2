"""References of docstrings to names as their modules import them -> what the reference documents under its full name.

``DataError`` in a docstring of ``egocnn.data.graphs`` means what that module means by it. A name that exists and has no
entry in the reference stays plain text; one that does not exist fails the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    if node.get("refdomain") != "py":
        return None
    python: Any = env.get_domain("py")
    for name in _meanings(node):
        found = _look_up(name)
        if found is None:
            continue
        full = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
        if full in python.objects:
            return python.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], full, node, content)
        if name.startswith("egocnn"):
            return content
    return None


def _meanings(node: addnodes.pending_xref) -> Iterator[str]:
    """Full names that it may stand for: by itself, in its class, where that class is written, in its module."""
    target, module, owner = node["reftarget"], node.get("py:module"), node.get("py:class")
    yield target
    if module and owner:
        yield f"{module}.{owner}.{target}"
        yield f"{getattr(_look_up(f'{module}.{owner}'), '__module__', module)}.{target}"
    if module:
        yield f"{module}.{target}"


def _look_up(name: str) -> Any:
    """What a full name of ours stands for; None where there is nothing of that name"""
    words = name.split(".")
    if words[0] != "egocnn":
        return None
    for count in range(len(words), 0, -1):
        try:
            found: Any = import_module(".".join(words[:count]))
        except ImportError:
            continue
        for word in words[count:]:
            found = getattr(found, word, None)
        return found
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
