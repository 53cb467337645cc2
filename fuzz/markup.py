"""Pictures and pages of hostile texts -> nothing, or a ViolationError: text from the data must come out as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from egocnn.data.graphs import Graph, Graphs
from egocnn.explain.patterns.record import Occurrence, Pattern
from egocnn.explain.structure import CriticalStructure, Fidelity, Structures
from egocnn.show.drawing import draw
from egocnn.show.patterns.page import draw_pattern, patterns_page
from egocnn.show.report import summarise
from egocnn.show.report.folder import encode, page
from fuzz.guard import ViolationError

HARMLESS = ("name", "C", "O", "bond", "class", "caption", "title")
ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "srcset", "data", "background", "poster", "style")
"""Attributes through which a page can be made to fetch or to run something."""


def check_outputs(path: Path, number: int) -> None:
    """Texts, separated by |, in the places of names, labels, classes, captions and titles."""
    given = path.read_bytes()[:2000].decode("utf-8", "surrogateescape" if number & 16 else "replace").split("|")
    texts = tuple(given[place] if place < len(given) else usual for place, usual in enumerate(HARMLESS))
    for kind, text in outputs(texts, with_molecule=number & 32 == 0):
        if kind.endswith("html"):
            check_html(kind, text)
        else:
            _check_xml(kind, text)


def outputs(texts: tuple[str, ...], *, with_molecule: bool) -> Iterator[tuple[str, str]]:
    """Everything that egocnn draws or writes as a page, with its kind."""
    class_name, caption = texts[4:6]
    # neither readers nor Graphs let half a surrogate pair pass; captions and words need not come from there
    name, label, other, bond, known, heading, title = map(_whole, texts)
    graph = _graph((label, other), (bond,), name, known)
    importance = np.array([1.0, -0.5, 0.25]), np.array([0.5, -1.0])
    words = (class_name, other)
    yield "network svg", draw(graph, *importance, caption=caption, words=words)
    molecule = _molecule(name, known)
    if with_molecule:
        yield "molecule svg", draw(molecule, *importance, caption=caption, words=words)
    structures = [
        CriticalStructure(
            graph=shown,
            predicted=class_name,
            probability=0.75,
            explained=class_name,
            technique=other,
            base=0.0,
            output=1.0,
            node_importance=importance[0],
            edge_importance=importance[1],
            critical_nodes=np.array([0, 1]),
            critical_edges=np.array([0]),
            fidelity=Fidelity(removed=0.25, kept=0.75),
        )
        for shown in (graph, molecule)
    ]
    if with_molecule:
        yield "notebook html", Structures(structures)._repr_html_()
    summary = summarise(structures, model=name, data=other, class_names=(known, "x"), title=title)
    yield "report html", page(encode(structures, summary))
    pattern = _pattern(_graph((label, "C"), ("bond",), heading, known), known, heading)
    yield "patterns html", patterns_page([pattern], [draw_pattern(pattern)], title)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _graph(labels: tuple[str, str], bonds: tuple[str, ...], name: str, class_name: str) -> Graph:
    return Graphs.from_edges(
        node_counts=[3],
        edges=np.array([[0, 1], [1, 2]]),
        names=[name],
        node_label=np.array([0, 1, 0]),
        node_label_names=labels,
        edge_label=np.array([0, 0]),
        edge_label_names=bonds,
        target=np.array([0]),
        class_names=(class_name,),
    )[0]


def _molecule(name: str, class_name: str) -> Graph:
    return Graphs.from_edges(
        node_counts=[3],
        edges=np.array([[0, 1], [1, 2]]),
        names=[name],
        node_label=np.array([0, 0, 1]),
        node_label_names=("C", "O"),
        edge_label=np.array([0, 0]),
        edge_label_names=("single",),
        target=np.array([0]),
        class_names=(class_name,),
        smiles=("CCO",),
    )[0]


def _pattern(graph: Graph, class_name: str, name: str) -> Pattern:
    counts = {"critical": 9, "of_predicted": 10, "in_class": 9, "of_class": 10, "in_others": 1, "of_others": 10}
    return Pattern(
        class_name=class_name,
        name=name,
        graph=graph,
        smiles=None,
        smarts=name,
        p_value=1e-9,
        tests=10,
        undecided=0,
        examples=(Occurrence(graph, (0, 1, 2)),),
        **counts,
    )


# ── judging ───────────────────────────────────────────────────────────────────────────────────────


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.shapes: set[tuple[str, str]] = set()
        """elements with each of their attributes"""
        self.addresses: set[str] = set()
        self.scripts: list[str] = []
        self.data: list[str] = []
        """what stands in each element that holds data, which no browser runs"""
        self.comments: list[str] = []
        self._inside: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shapes |= {(tag, ""), *((tag, name) for name, _ in attrs)}
        self.addresses |= {f"{name}={value}" for name, value in attrs if name in ADDRESSES}
        self._inside = None
        if tag == "script":
            self._inside = "data" if dict(attrs).get("type") == "application/json" else "script"
            (self.data if self._inside == "data" else self.scripts).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data[-1] += data
        elif self._inside == "script":
            self.scripts[-1] += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def unknown_decl(self, data: str) -> None:
        self.comments.append(data)

    def handle_pi(self, data: str) -> None:
        self.comments.append(data)


@cache
def _usual(kind: str) -> tuple[Elements, set[tuple[str, str]]]:
    """The elements of the same output with harmless texts."""
    (text,) = [text for each, text in outputs(HARMLESS, with_molecule=True) if each == kind]
    if kind.endswith("html"):
        return Elements(text), set()
    return Elements(""), _shapes(ElementTree.fromstring(text.encode()))


def check_html(kind: str, text: str) -> None:
    usual, _ = _usual(kind)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ViolationError(f"{kind}: cannot be written as UTF-8") from None
    found = Elements(text)
    for what in ("shapes", "addresses"):
        if extra := getattr(found, what) - getattr(usual, what):
            raise ViolationError(f"{kind}: {what} that came from the data: {sorted(extra)[:5]}")
    for what in ("scripts", "comments"):
        if getattr(found, what) != getattr(usual, what):
            raise ViolationError(f"{kind}: other {what} than without the data")
    if len(usual.data) != len(found.data):
        raise ViolationError(f"{kind}: data is gone, or more than there was")
    for data in found.data:
        json.loads(data)


def _check_xml(kind: str, text: str) -> None:
    _, usual = _usual(kind)
    try:
        root = ElementTree.fromstring(text.encode("utf-8"))
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise ViolationError(f"{kind}: is not XML ({error})") from None
    if extra := _shapes(root) - usual:
        raise ViolationError(f"{kind}: elements that came from the data: {sorted(extra)[:5]}")


def _shapes(root: ElementTree.Element) -> set[tuple[str, str]]:
    found = set()
    for element in root.iter():
        found |= {(element.tag, ""), *((element.tag, name) for name in element.attrib)}
    return found
