"""Comparisons -> a folder: tables of pairs and of transformations, their summary, and one page with drawings."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.compare import COLUMNS, Comparison, cliffs, transformations_of
from egocnn.explain.structure.wording import called
from egocnn.files import replacing_in, write_json, write_text
from egocnn.show.assets import fill
from egocnn.show.drawing.layout import depiction
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
    with replacing_in(folder, first=MARK, last="index.html", patterns=["pairs.*", "transformations.*"]) as temporary:
        write_json(temporary / MARK, dict(summary))
        with table_writer(temporary / f"pairs{suffix}", COLUMNS) as write:
            write([one.to_plain() for one in found])
        with table_writer(temporary / f"transformations{suffix}", of_rows) as write:
            write(transformations)
        parts = {"TITLE": escape(title), "SENTENCES": "".join(f"<p>{escape(line)}</p>" for line in sentences(summary))}
        of_class = "" if summary.get("class") is None else f"Predicted: the probability of {called(summary['class'])}."
        parts |= {"WHAT": escape(of_class)} | _page(found, transformations, shown)
        write_text(temporary / "index.html", fill("pairs", parts))
    return folder / "index.html"


def _page(found: Sequence[Comparison], transformations: Sequence[Mapping[str, Any]], shown: int) -> dict[str, str]:
    """What the page lists: the most frequent transformations, and the pairs with the largest change, true where that is
    known, drawn."""
    largest = sorted(found, key=lambda one: [-abs(x) for x in (one.true_change, one.predicted_change) if x is not None])
    steep, frequent, rows = set(map(id, cliffs(found))), transformations[:FREQUENT], ""
    for row in frequent:
        changes = "".join(f"<td>{_number(row[name], '+.2f' if 'mean' in name else '.2f')}</td>" for name in CHANGES)
        rows += f"<tr><td><code>{_arrow(row['transformation'])}</code></td><td>{row['pairs']:,}</td>{changes}</tr>\n"
    return {
        "ROWS": rows,
        "FREQUENT": f"{len(frequent):,} of {len(transformations):,}",
        "CARDS": "".join(_card(one, id(one) in steep) for one in largest[:shown]),
        "SHOWN": f"{len(largest[:shown]):,} of {len(found):,}",
    }


def sentences(summary: Mapping[str, Any]) -> list[str]:
    """The summary in words."""
    counts = summary["pairs"], summary["transformations"]
    lines = ["{:,} pairs of molecules that differ by one group, {:,} transformations.".format(*counts)]
    if summary["correlation"] is not None:
        with_truth = f"{summary['pairs_with_truth']:,} pairs with both values known"
        lines.append(f"Predicted and true change: correlation {summary['correlation']:.2f} ({with_truth}).")
        if summary.get("trained"):
            of_all = f"{summary['trained']:,} of these {summary['molecules']:,} molecules"
            lines.append(f"The model was trained on {of_all}: what it predicts of them flatters it.")
    if summary["pairs_with_truth"]:
        least = f"a change of {summary['cliff_from']:.3g} or more, twice" if "cliff_from" in summary else ""
        what = f"{least} the standard deviation of all" if least else "another class"
        lines.append(f"Activity cliffs, {what}: {summary['cliffs']:,}.")
    ranks = {"in cliffs": summary["rank_in_cliffs"], "in all pairs": summary["rank_in_all"]}
    said = [f"{rank:.2f} {where}" for where, rank in ranks.items() if rank is not None]
    if said:
        lines.append(f"Rank of the changed atoms by contribution (ROC AUC, 0.5 by chance): {', '.join(said)}.")
    return lines


def _card(one: Comparison, is_cliff: bool) -> str:
    row, rows = one.to_plain(), ""
    figures = "".join(
        f'<figure><div class="paper">{svg}</div><figcaption>{escape(each.name)} '
        f"<code>{escape(each.graph.smiles or '')}</code></figcaption></figure>"
        for each, svg in zip((one.first, one.second), draw_both(one), strict=True)
    )
    for name, form in (("predicted", ".2f"), ("true", ""), ("contribution", "+.2f"), ("rank", ".2f")):
        both = [_number(row[f"{name}_{side}"], form) for side in "ab"]
        what = f"{name} of what changed" if name in ("contribution", "rank") else name
        change = f"<td><b>{_number(row.get(f'{name}_change'), '+.2f')}</b></td>"
        rows += f"<tr><th>{what}</th><td>{both[0]}</td><td>{both[1]}</td>{change}</tr>" if any(both) else ""
    parts = {"CHANGE": _arrow(one.transformation), "CLIFF": ' <span class="cliff">cliff</span>' if is_cliff else ""}
    return fill("pairs", parts | {"FIGURES": figures, "ROWS": rows}, "card.html")


def _arrow(transformation: str) -> str:
    return escape(transformation.replace("[*:1]", "*").replace("[H]*", "H").replace(">>", " → "))


def _number(value: Any, form: str) -> str:
    text = "" if value is None else escape(value) if isinstance(value, str) else f"{value:{form}}"
    return text if text.strip("+-0.") else text.lstrip("+-")  # a change of nothing has no sign


def draw_both(one: Comparison) -> list[str]:
    """Both molecules as SVG, in one orientation and on one scale of colours, with what changed outlined."""
    both = list(one.outlined)
    placed = _placed([to_molecule(each.graph) for each in both], one.pair.common)
    kinds = [(each.node_importance, each.edge_importance) for each in both]
    most = np.array([[np.abs(importance).max(initial=0.0) for importance in each] for each in kinds])
    strength = most / np.where(most.any(axis=0), most.max(axis=0), 1)
    return [
        # of what is too large to be drawn whole only a part is, which lies where it will
        each.draw(size=SIZE, strength=tuple(strong), placed=None if each.drawn_part else at)
        for each, strong, at in zip(both, strength.tolist(), placed, strict=True)
    ]


def _placed(molecules: Sequence[Any], common: Ints) -> tuple[Floats, Floats]:
    """Where to draw the atoms of both, what they share in the same places as far as that can be."""
    from rdkit.Chem import rdDepictor

    first, second = molecules
    one, pairs = depiction(first), [(int(a), int(b)) for a, b in common.tolist()]
    # a long chain is folded only once it is laid out
    if len(pairs) > 1 and np.allclose(one * 1.5, first.GetConformer().GetPositions()[:, :2], atol=0.1):
        try:
            rdDepictor.GenerateDepictionMatching2DStructure(second, first, pairs)
            return one, np.array(second.GetConformer().GetPositions()[:, :2]) / 1.5
        except (RuntimeError, ValueError):  # RDKit finds no such drawing
            pass
    return one, depiction(second)
