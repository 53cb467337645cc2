"""Docstrings as they are written here -> text that Sphinx reads as it is meant."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any

from pygments.lexers import BashLexer
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

SHAPE = re.compile(r"^(\s*)\((\w)\) ")
"""A shape of one letter at the start of a line, which would be taken for the first point of a list."""


def keep_shapes(*event: Any) -> None:
    """What comes last are the lines of a docstring."""
    lines: list[str] = event[-1]
    lines[:] = [SHAPE.sub(r"\1\\(\2) ", line) for line in lines]


def shorten(*event: Any) -> tuple[str, None] | None:
    """A record is its fields, which are listed beneath it."""
    _, what, _, found, *_ = event
    return ("", None) if what == "class" and is_dataclass(found) else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", keep_shapes)
    app.connect("autodoc-process-signature", shorten)
    setattr(TypeAliasForwardRef, "__repr__", lambda alias: alias.name)  # noqa: B010  an array type's name says enough
    app.add_lexer("console", BashLexer)  # commands stand without a prompt, to be copied as they are
    return {"parallel_read_safe": True, "parallel_write_safe": True}
