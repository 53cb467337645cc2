"""The documentation site: docs/ -> docs/_build/html, by ``make docs``; nothing is fetched, now or when it is read."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

import egocnn  # noqa: E402  found by the line above, installed or not

project = "egocnn"
author = "egocnn developers"
project_copyright = "MIT licence"
version = release = egocnn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "command_line",
    "docstrings",
    "imported_names",
    "mathml",
    "neighbouring_files",
    "results",
    "source_lines",
]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    # aliases of array types, and libraries whose documentation would have to be fetched
    ("py:.*", r"(collections\.abc|contextlib|numpy|np|torch|torch_geometric|networkx|nx|sklearn|nn|npt)\..*"),
    ("py:.*", r".*\b(Ints|Floats|Bools|Words|Colours|NDArray|Tensor|Any|EllipsisType|Explanation|Path)"),
]

# ── pages ─────────────────────────────────────────────────────────────────────────────────────────

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"egocnn {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "tango"
highlight_language = "text"

# ── interface ─────────────────────────────────────────────────────────────────────────────────────

viewcode_line_numbers = True  # the anchors of source_lines
autodoc_inherit_docstrings = False  # what a library says of its own classes
maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Ints", "Floats", "Bools", "Words", "Colours", "NDArray")}
autodoc_default_options = {"members": True, "undoc-members": False}
python_use_unqualified_type_names = True
