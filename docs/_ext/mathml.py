"""Equations as MathML, which browsers draw by themselves: no script, nothing to fetch."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

OPERATOR = re.compile(r"\\mathrel\{([^{}]*)\}")
PRIME = re.compile(r"<msup>(<mi>\w</mi>)<mi>&#x02032;</mi></msup>")


def to_mathml(latex: str, *, display: bool) -> str:
    plain = OPERATOR.sub(r"\1", latex).replace("{aligned}", "{split}")  # the converter knows neither
    try:
        found = convert(plain, display="block" if display else "inline")
    except Exception as error:
        raise ExtensionError(f"this equation cannot be written as MathML: {latex}", error) from error
    found = PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', found)  # raised twice, none sees it
    return found.replace("<math ", f'<math alttext="{html.escape(latex, quote=True)}" ', 1)


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(to_mathml(node.astext(), display=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    text = node.astext().strip()
    if ("\\\\" in text or "&" in text) and not text.startswith("\\begin"):
        text = rf"\begin{{split}}{text}\end{{split}}"
    writer.body.append(f'<div class="math">{to_mathml(text, display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
