"""The documentation site: it builds without a warning, its links lead somewhere, and it asks no one for anything."""

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import egocnn
from egocnn import nn
from egocnn.config import ModelConfig, TrainConfig, field_help
from egocnn.data.sources.jsonlines import JSON_SUFFIXES
from egocnn.data.sources.networkx import GRAPH_SUFFIXES
from egocnn.data.sources.text import TABLE_SUFFIXES
from egocnn.interop import onnx as export
from egocnn.interop import pyg

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
LARGEST_PICTURE = 150_000
WIDE_CODE = """[...document.querySelectorAll("article div.highlight pre")]
  .filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 80))"""
MISSING_PICTURES = "[...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src)"

for library in ("sphinx", "myst_parser", "furo", "latex2mathml", "torch_geometric"):
    pytest.importorskip(library, reason=f"{library} is not installed")


class Page(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.headings = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.update(given[name] for name in ("id", "name") if name in given)
        self.headings += tag == "h1"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "shortcut icon"):
            self.loaded.append(given.get("href", ""))
        elif tag in ("script", "img", "source", "iframe", "object") and (given.get("src") or given.get("data")):
            self.loaded.append(given.get("src") or given.get("data", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    words += ["-d", str(folder / "trees"), str(DOCS), str(folder / "html")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@cache
def parsed(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> Iterator[tuple[Path, Page]]:
    for path in sorted(site.rglob("*.html")):
        yield path, parsed(path)


def test_every_page_is_written_and_has_one_title_in_one_of_five_parts(site: Path) -> None:
    for source in DOCS.rglob("*.md"):
        path = site / source.relative_to(DOCS).with_suffix(".html")
        assert path.exists(), source
        assert parsed(path).headings == 1, source
    captions = re.findall(r'class="caption-text">([^<]+)<', (site / "index.html").read_text(encoding="utf-8"))
    assert {"Begin", "Understand", "Reference", "Results", "Engineering"} <= set(captions)


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    asked = [(path.name, one) for path, page in pages(site) for one in page.loaded]
    assert [each for each in asked if urlsplit(each[1]).scheme not in ("", "data")] == []
    style = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?https?:[^)\"']*", style) == []
    assert not list(site.rglob("*mathjax*"))


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    lost = []
    for path, page in pages(site):
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment) if target.suffix == ".html" else ""
            if not target.exists() or (place and place not in parsed(target).places):
                lost.append((path.name, link))
    assert lost == []


def test_links_to_lines_show_the_line_that_they_speak_of_and_equations_are_the_browsers_own(site: Path) -> None:
    text = (site / "model.html").read_text(encoding="utf-8")
    found = re.findall(r'href="(_modules/\S+?\.html)#line-(\d+)"><code[^>]*>.*?>(egocnn/\S+)</span>', text)
    assert len(found) > 15
    for page, number, name in found:
        assert f'id="line-{number}"' in (site / page).read_text(encoding="utf-8")
        assert (ROOT / name.rstrip(",")).exists()
    (line,) = {int(number) for page, number, _ in found if page.endswith("engines/reference.html")}
    code = (ROOT / "egocnn" / "nn" / "engines" / "reference.py").read_text(encoding="utf-8").splitlines()
    assert code[line - 1].strip().endswith("flatten(1) @ weight.flatten(0, 1) + bias")
    for name, least in (("model", 6), ("explanations", 4), ("reference/modules", 8)):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert text.count('display="block"') >= least, name
        assert "<script" not in re.findall(r'<div class="math">.*?</div>', text, re.DOTALL)[0]


def test_the_reference_has_every_public_name_every_setting_and_every_format_that_is_read(site: Path) -> None:
    python = site / "reference" / "python.html"
    places = parsed(python).places | parsed(site / "reference" / "modules.html").places
    for module in (egocnn, nn, pyg, export):
        assert [name for name in module.__all__ if f"{module.__name__}.{name}" not in places] == []
    source = python.read_text(encoding="utf-8")
    described = source[source.index('id="egocnn.read"') : source.index('id="egocnn.Graphs"')]
    endings = (*TABLE_SUFFIXES, *JSON_SUFFIXES, *GRAPH_SUFFIXES, ".zip", ".safetensors", ".store")
    for word in (*endings, "TU set", "networkx graphs", "PyTorch Geometric", "compounds:", "Graphs"):
        assert word in described, word
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", source)).replace("’", "'").split())
    for estimator in (egocnn.EgoCNNClassifier, egocnn.EgoCNNRegressor):
        described = text.split(f"class egocnn.{estimator.__name__}(")[1].split("class egocnn.")[0]
        for name, meaning in (field_help(ModelConfig) | field_help(TrainConfig)).items():
            assert f" {name} – {meaning}" in described, estimator


def test_every_command_and_every_option_of_it_is_in_the_reference(site: Path) -> None:
    from docs._ext.command_line import invocation
    from egocnn.cli.arguments import command_parsers

    page = site / "reference" / "command-line.html"
    shown = re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")).replace("&#x27;", "'").replace("&gt;", ">")
    for name, parser in command_parsers().items():
        assert f"egocnn-{name}" in parsed(page).places
        for action in parser.options():
            assert invocation(action) in shown, (name, invocation(action))


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_window_complains_or_asks_anyone(site: Path, browser: Any, width: int) -> None:
    said: list[str] = []
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else said.append(request.url))
    for source in sorted(DOCS.rglob("*.md")):
        view.goto((site / source.relative_to(DOCS).with_suffix(".html")).as_uri())
        if view.evaluate("document.documentElement.scrollWidth > innerWidth"):
            said.append(f"{source.name} is wider than {width}")
        if width == 1280:  # in an ordinary window no code has to be scrolled
            said += [f"{source.name}: {code}" for code in view.evaluate(WIDE_CODE)]
        said += [f"{source.name} lacks {name}" for name in view.evaluate(MISSING_PICTURES)]
    assert said == []
    view.goto((site / "search.html").as_uri() + "?q=nitroarene")
    view.wait_for_selector("#search-results li a", timeout=15_000)
    assert "tutorials/molecules.html" in view.inner_html("#search-results")
    view.close()


def test_code_is_copied_by_mouse_and_by_keyboard_without_prompts_and_output(site: Path, browser: Any) -> None:
    view = browser.new_page()
    view.evaluate("1")  # the page is there before its clipboard is replaced
    view.add_init_script(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: async text => { window.copied.push(text) }}})"
    )
    view.goto((site / "reference" / "python.html").as_uri())
    button = view.locator("div.highlight:has-text('compounds:alcohols') > button.copy").first
    button.click()
    button.focus()
    view.keyboard.press("Enter")
    first, second = view.evaluate("window.copied")
    assert first == second
    assert first.startswith("import egocnn\negocnn.read(")
    assert ">>>" not in first
    assert "Graphs(" not in first
    assert button.evaluate("each => getComputedStyle(each).opacity") == "1"
    view.goto((site / "training-loop.html").as_uri())
    view.locator("button.copy").first.click()
    (copied,) = view.evaluate("window.copied")
    page = (DOCS / "training-loop.md").read_text(encoding="utf-8")
    assert copied == re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    view.close()


def test_the_figures_about_techniques_and_controls_are_those_that_the_command_wrote() -> None:
    rows = json.loads((ROOT / "results" / "explain.json").read_text(encoding="utf-8"))["rows"]
    text = (DOCS / "explanations.md").read_text(encoding="utf-8")
    found = {(row["data"], row["technique"]): row for row in rows if row["model"] == "egocnn"}
    for technique in ("relevance", "paper", "grad-cam", "gradient", "integrated-gradients", "occlusion"):
        benzene, logic7, alcohols = (found[data, technique] for data in ("benzene", "logic7", "alcohols"))
        scores = f"{benzene['scores']['node_auc']['mean']:.4f} | {logic7['scores']['node_auc']['mean']:.3f}"
        precision = f"{alcohols['scores']['node_precision']['mean']:.3f} | {benzene['milliseconds']['mean']:.2f}"
        assert f"| `{technique}` | {scores} | {precision} |" in text
    for data, control, score in (
        ("benzene", "random", "node_auc"),
        ("logic7", "random", "node_auc"),
        ("mutagenicity", "few neighbours", "edge_auc"),
        ("benzene", "atom is aromatic C", "node_auc"),
    ):
        assert f"{found[data, control]['scores'][score]['mean']:.2f}" in text, (data, control)


def test_pictures_are_small_and_every_one_is_used_on_some_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    for path in (DOCS / "pictures").iterdir():
        assert path.stat().st_size <= LARGEST_PICTURE, path.name
        assert f"pictures/{path.name}" in text, path.name
