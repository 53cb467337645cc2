"""Patterns -> a folder: one page to read, JSON and CSV for machines, a drawing of every fragment."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.record import HIGH_OR_LOW, LOWERS, RAISES, Occurrence, Pattern, chance, percent, times
from egocnn.explain.structure import part_of
from egocnn.files import csv_text, replacing_in, write_json, write_text
from egocnn.show.assets import fill
from egocnn.show.drawing import draw
from egocnn.show.drawing.molecules import set_options

PATTERN_SIZE, EXAMPLE_SIZE = (240, 180), (320, 240)
EXAMPLES_SHOWN = 3
MARK = "patterns.json"  # A folder that holds this file is such a report, and may be written again.
COLUMNS = (
    *("class", "name", "smiles", "smarts", "critical", "of_predicted", "in_class", "of_class", "in_others"),
    *("of_others", "lift", "p_value", "undecided", "significant"),
)


def write_patterns(patterns: Sequence[Pattern], folder: Path, *, title: str) -> Path:
    """Write patterns.json, patterns.csv, figures/pattern-N.svg and index.html; returns the page's path."""
    drawings = [draw_pattern(pattern) for pattern in patterns]
    page = patterns_page(patterns, drawings, title)
    plain = [pattern.to_plain() for pattern in patterns]
    with replacing_in(folder, first=MARK, last="index.html", patterns=["figures/pattern-*.svg"]) as temporary:
        for number, drawing in enumerate(drawings, start=1):
            write_text(temporary / "figures" / f"pattern-{number}.svg", drawing)
        write_json(temporary / MARK, {"title": title, "patterns": plain})
        write_text(temporary / "patterns.csv", csv_text([COLUMNS, *([one[name] for name in COLUMNS] for one in plain)]))
        write_text(temporary / "index.html", page)
    return folder / "index.html"


def patterns_page(patterns: Sequence[Pattern], drawings: Sequence[str], title: str) -> str:
    """The whole page as one text: a section for each class, a card with a drawing for each significant pattern."""
    numbered = list(zip(range(1, len(patterns) + 1), patterns, drawings, strict=True))
    links, body = "", ""
    for i, (name, group) in enumerate(groupby(numbered, key=lambda item: item[1].class_name), start=1):
        some, heading = list(group), escape(_capital(name) if name in HIGH_OR_LOW else f"Class {name}")
        links += f'<a href="#class-{i}">{heading} <span>{sum(p.is_significant for _, p, _ in some)}</span></a>'
        body += _section(i, name, heading, some)
    parts = {
        "TITLE": escape(title),
        "LINKS": links,
        "BODY": body or "<p>No fragment recurs in as many critical structures as was asked for.</p>",
        "TESTS": f"{patterns[0].tests:,} fragments tried" if patterns else "number of fragments tried",
    }
    return fill("patterns", parts)


def _section(number: int, name: str, heading: str, items: Sequence[tuple[int, Pattern, str]]) -> str:
    first = items[0][1]
    cards = "".join(_card(*item) for item in items if item[1].is_significant)
    if not cards:
        cards = '<p class="none">Nothing that recurs here is reliably commoner here than elsewhere.</p>'
    others = [f'<li id="pattern-{n}">{escape(str(p))}</li>' for n, p, _ in items if not p.is_significant]
    title = f"<summary>Not reliably commoner here, though it recurs: {len(others)}</summary>"
    listed = f"<details>{title}<ul>{''.join(others)}</ul></details>"
    what = "molecules" if first.smiles else "graphs"
    meaning = {RAISES: "above the median", LOWERS: "up to the median"}.get(name, "of this class")
    return (
        f'<section id="class-{number}"><h2>{heading}</h2>'
        f'<p class="size">{first.of_class:,} {what} {meaning}, {first.of_others:,} others; '
        f"{first.of_predicted:,} explained so</p>{cards}{listed if others else ''}</section>\n"
    )


def _card(number: int, pattern: Pattern, drawing: str) -> str:
    examples = "".join(
        f'<figure><div class="paper">{_draw_marked(*_as_drawn(example), EXAMPLE_SIZE)}</div>'
        f"<figcaption>{escape(example.graph.name)}</figcaption></figure>"
        for example in pattern.examples[:EXAMPLES_SHOWN]
    )
    bars = ""
    places = ("here", "elsewhere") if pattern.class_name in HIGH_OR_LOW else ("in this class", "in the others")
    for what, kind, count, of in (
        (places[0], "for", pattern.in_class, pattern.of_class),
        (places[1], "against", pattern.in_others, pattern.of_others),
        ("critical", "critical", pattern.critical, pattern.of_predicted),
    ):
        share = count / max(of, 1)
        bar = f'<td class="bar"><i class="{kind}" style="width:{100 * share:.1f}%"></i></td>'
        numbers = f'<td class="share">{escape(percent(share))}</td><td class="count">{count:,} of {of:,}</td>'
        bars += f"<tr><th>{what}</th>{bar}{numbers}</tr>\n"
    given_up = f" · {pattern.undecided:,} undecided graphs counted against it" if pattern.undecided else ""
    parts = {"NUMBER": str(number), "DRAWING": drawing, "EXAMPLES": examples, "BARS": bars, "GIVEN_UP": given_up}
    parts |= {"NAME": escape(_capital(pattern.name)), "LIFT": times(pattern.lift)}
    parts |= {"CHANCE": escape(chance(pattern.p_value))}
    parts["SMILES"] = f"<code>{escape(pattern.smiles)}</code>" if pattern.smiles else ""
    return fill("patterns", parts, "card.html")


def _capital(text: str) -> str:
    """First letter in upper case, unless the word is a formula already."""
    return text[:1].upper() + text[1:] if text[:1].isalpha() and text[1:2].islower() else text


def _draw_marked(graph: Graph, nodes: Any, size: tuple[int, int]) -> str:
    marked = np.zeros(graph.n_nodes)
    marked[list(nodes)] = 1.0
    edges = marked[graph.edges].min(axis=1)
    critical: dict[str, Any] = {"critical_nodes": np.flatnonzero(marked), "critical_edges": np.flatnonzero(edges)}
    return draw(graph, marked, edges, size=size, words=("the pattern", ""), **critical)


def draw_pattern(pattern: Pattern) -> str:
    """The fragment alone; bonds of an aromatic ring are dashed, whether all of the ring is there or not."""
    if pattern.smiles is None:
        return _draw_marked(pattern.graph, range(pattern.graph.n_nodes), PATTERN_SIZE)
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDepictor
    from rdkit.Chem.Draw import rdMolDraw2D

    with rdBase.BlockLogs():
        molecule: Any = Chem.MolFromSmiles(pattern.smiles, sanitize=False)
        molecule.UpdatePropertyCache(strict=False)
        for atom in molecule.GetAtoms():
            # what to write: hydrogens except on carbon, Ar for an aromatic atom whose ring is not part of the fragment
            is_carbon, is_aromatic = atom.GetSymbol() == "C", atom.GetIsAromatic()
            written = atom.GetNumExplicitHs() if is_aromatic else atom.GetTotalNumHs()
            atom.SetNumExplicitHs(0 if is_carbon else written)
            atom.SetNoImplicit(True)
            is_end = is_carbon and atom.GetDegree() <= 1
            if is_end and not any(bond.GetIsAromatic() for bond in atom.GetBonds()):
                atom.SetProp("_displayLabel", "Ar" if is_aromatic else "C")
        molecule.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(molecule)
        rdDepictor.Compute2DCoords(molecule)
        drawer: Any = rdMolDraw2D.MolDraw2DSVG(*PATTERN_SIZE)
        set_options(drawer, fixedBondLength=42, minFontSize=18, maxFontSize=18)
        drawer.DrawMolecule(rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False, addChiralHs=False))
        drawer.FinishDrawing()
    text = re.sub(r"<\?xml.*?\?>\s*|<!--.*?-->\s*", "", drawer.GetDrawingText(), flags=re.DOTALL)
    return str(text)


def _as_drawn(occurrence: Occurrence) -> tuple[Graph, list[int]]:
    """The graph as it is, or a molecule's heavy atoms, with where the fragment lies."""
    graph, labels = occurrence.graph, occurrence.graph.node_label or ()
    heavy = [node for node, label in enumerate(labels) if label != "H"]
    if not heavy or to_molecule(graph) is None:
        return graph, list(occurrence.nodes)
    return part_of(graph, np.array(heavy))[0], [heavy.index(node) for node in occurrence.nodes if node in heavy]
