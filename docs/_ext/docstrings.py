"""Docstrings as they are written here -> text that Sphinx reads as it is meant."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any

from pygments.lexers import BashLexer
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.util.inspect import TypeAliasForwardRef

SHAPE = re.compile(r"^(\s*)\((\w)\) ")
"""A shape of one letter at the start of a line, which would be taken for the first point of a list."""


SECTIONED = ("function", "method", "class", "exception")
"""What has arguments and returns something; the line of a field is a sentence, in which a colon is a colon."""


def read_sections(*event: Any) -> None:
    """``Arguments:``, ``Returns:``, ``Raises:`` and ``Example:`` -> Sphinx's own fields; shapes stay as they are."""
    app, what, name, found, options, lines = event
    if what in SECTIONED:
        settings: Any = Config(napoleon_use_rtype=False)
        lines[:] = GoogleDocstring(list(lines), settings, app, what, name, found, options).lines()
    lines[:] = [SHAPE.sub(r"\1\\(\2) ", line) for line in lines]


def shorten(*event: Any) -> tuple[str, None] | None:
    """A record is its fields, which are listed beneath it."""
    _, what, _, found, *_ = event
    return ("", None) if what == "class" and is_dataclass(found) else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", read_sections)
    app.connect("autodoc-process-signature", shorten)
    setattr(TypeAliasForwardRef, "__repr__", lambda alias: alias.name)  # noqa: B010  an array type's name says enough
    app.add_lexer("console", BashLexer)  # commands stand without a prompt, to be copied as they are
    return {"parallel_read_safe": True, "parallel_write_safe": True}
