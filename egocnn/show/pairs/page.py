"""Comparisons -> a folder: tables of pairs and of transformations, their summary, and one page with drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.compare import COLUMNS, Comparison, cliffs, edges_among, transformations_of
from egocnn.explain.structure import CriticalStructure
from egocnn.files import replacing_in, write_json, write_text
from egocnn.show.assets import fill
from egocnn.show.drawing.layout import depiction
from egocnn.show.drawing.molecules import molecule_svg
from egocnn.show.drawing.picture import Picture, PictureItems, compose
from egocnn.show.tables import table_writer

SIZE = (440, 300)
MARK = "pairs.json"
FREQUENT = 20  # Transformations that the page lists; the table beside it has all.
CHANGES = ("mean_predicted_change", "deviation_predicted_change", "mean_true_change", "deviation_true_change")


def write_pairs(
    found: Sequence[Comparison], folder: Path, summary: Mapping[str, Any], *, title: str, shown: int, suffix: str
) -> Path:
    """Write pairs and transformations as tables with this ending, pairs.json and index.html; returns the page."""
    transformations = transformations_of(found)
    of_rows = {"transformation": "string", **dict.fromkeys(("pairs", "pairs_with_truth", *CHANGES), "double")}
    with replacing_in(folder, first=MARK, last="index.html") as temporary:
        write_json(temporary / MARK, dict(summary))
        with table_writer(temporary / f"pairs{suffix}", COLUMNS) as write:
            write([one.to_plain() for one in found])
        with table_writer(temporary / f"transformations{suffix}", of_rows) as write:
            write(transformations)
        write_text(temporary / "index.html", pairs_page(found, transformations, summary, title=title, shown=shown))
    return folder / "index.html"


def pairs_page(
    found: Sequence[Comparison], transformations: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], *,
    title: str, shown: int,
) -> str:  # fmt: skip
    """The whole page as one text; the pairs with the largest change, true where that is known, are drawn."""
    largest = sorted(found, key=lambda one: -abs(_change(one)))[:shown]
    steep = set(map(id, cliffs(found)))
    rows = "".join(
        f"<tr><td><code>{_arrow(row['transformation'])}</code></td><td>{row['pairs']:,}</td>"
        + "".join(f"<td>{_number(row[name], '+.2f' if 'mean' in name else '.2f')}</td>" for name in CHANGES)
        + "</tr>\n"
        for row in transformations[:FREQUENT]
    )
    parts = {"TITLE": escape(title), "SENTENCES": "".join(f"<p>{escape(line)}</p>" for line in sentences(summary))}
    parts |= {"ROWS": rows, "FREQUENT": f"{min(FREQUENT, len(transformations)):,} of {len(transformations):,}"}
    parts |= {"SHOWN": f"{len(largest):,} of {len(found):,}"}
    return fill("pairs", parts | {"CARDS": "".join(_card(one, id(one) in steep) for one in largest)})


def sentences(summary: Mapping[str, Any]) -> list[str]:
    """The summary in words."""
    counts = summary["pairs"], summary["transformations"]
    lines = ["{:,} pairs of molecules that differ by one group, {:,} transformations.".format(*counts)]
    if summary["correlation"] is not None:
        with_truth = f"{summary['pairs_with_truth']:,} pairs with both values known"
        lines.append(f"Predicted and true change: correlation {summary['correlation']:.2f} ({with_truth}).")
    if summary["pairs_with_truth"]:
        least = f"a change of {summary['cliff_from']:.3g} or more, twice" if "cliff_from" in summary else ""
        what = f"{least} the standard deviation of all" if least else "another class"
        lines.append(f"Activity cliffs, {what}: {summary['cliffs']:,}.")
    ranks = {"in cliffs": summary["rank_in_cliffs"], "in all pairs": summary["rank_in_all"]}
    said = [f"{rank:.2f} {where}" for where, rank in ranks.items() if rank is not None]
    if said:
        lines.append(f"Rank of the changed atoms by contribution (ROC AUC, 0.5 by chance): {', '.join(said)}.")
    return lines


def _change(one: Comparison) -> float:
    return one.predicted_change if one.true_change is None else one.true_change


def _card(one: Comparison, is_cliff: bool) -> str:
    row = one.to_plain()
    figures = "".join(
        f'<figure><div class="paper">{svg}</div><figcaption>{escape(each.name)} '
        f"<code>{escape(each.graph.smiles or '')}</code></figcaption></figure>"
        for each, svg in zip((one.first, one.second), draw_both(one), strict=True)
    )
    lines = ["<tr><th></th><th>first</th><th>second</th><th>change</th></tr>"]
    for name, form in (("predicted", ".2f"), ("true", ""), ("contribution", "+.2f"), ("rank", ".2f")):
        if row[f"{name}_a"] is None and row[f"{name}_b"] is None:
            continue
        both = "".join(f"<td>{_number(row[f'{name}_{side}'], form)}</td>" for side in "ab")
        what = f"{name} of what changed" if name in ("contribution", "rank") else name
        lines.append(f"<tr><th>{what}</th>{both}<td><b>{_number(row.get(f'{name}_change'), '+.2f')}</b></td></tr>")
    cliff = ' <span class="cliff">cliff</span>' if is_cliff else ""
    return (
        f"<article><h3><code>{_arrow(one.transformation)}</code>{cliff}</h3>"
        f'<div class="both">{figures}</div><table>{"".join(lines)}</table></article>\n'
    )


def _arrow(transformation: str) -> str:
    return escape(transformation.replace("[*:1]", "*").replace("[H]*", "H").replace(">>", " → "))


def _number(value: Any, form: str) -> str:
    return "" if value is None else escape(str(value)) if isinstance(value, str) else f"{value:{form}}"


def draw_both(one: Comparison) -> tuple[str, str]:
    """Both molecules as SVG, in one orientation and on one scale of colours, with what changed outlined."""
    molecules: list[Any] = [to_molecule(each.graph) for each in (one.first, one.second)]
    pictures = [_picture(each, nodes) for each, nodes in zip((one.first, one.second), one.changed, strict=True)]
    most = [
        max(np.abs(getattr(each, what).importance).max(initial=0.0) for each in pictures) for what in ("nodes", "edges")
    ]
    pictures = [
        replace(each, nodes=_scaled(each.nodes, most[0]), edges=_scaled(each.edges, most[1])) for each in pictures
    ]
    placed = _placed(molecules[0], molecules[1], one.pair.common)
    first, second = (molecule_svg(*each) for each in zip(pictures, molecules, placed, strict=True))
    return first, second


def _picture(structure: CriticalStructure, nodes: Ints) -> Picture:
    words = ("for", "against") if structure.explained is not None else ("raised", "lowered")
    parts = structure.node_importance, structure.edge_importance, nodes, edges_among(structure, nodes)
    return compose(structure.graph, *parts, caption="", size=SIZE, words=words)


def _scaled(items: PictureItems, largest: float) -> PictureItems:
    return replace(items, strength=np.abs(items.importance) / largest if largest > 0 else items.strength)


def _placed(first: Any, second: Any, common: Ints) -> tuple[Floats, Floats]:
    """Where to draw the atoms of both, what they share in the same places as far as that can be."""
    from rdkit.Chem import rdDepictor

    one, pairs = depiction(first), [(int(a), int(b)) for a, b in common.tolist()]
    # a long chain is folded only once it is laid out
    if len(pairs) > 1 and np.allclose(one * 1.5, first.GetConformer().GetPositions()[:, :2], atol=0.1):
        try:
            rdDepictor.GenerateDepictionMatching2DStructure(second, first, pairs)
            return one, np.array(second.GetConformer().GetPositions()[:, :2]) / 1.5
        except (RuntimeError, ValueError):  # RDKit finds no such drawing
            pass
    return one, depiction(second)
