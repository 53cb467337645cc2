"""Two explained molecules -> what changed between them, and what that did; many pairs -> what they say together."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.explain.patterns.matched import MatchedPair, changed_atoms, common_part
from egocnn.explain.structure import CriticalStructure

CLIFF = 2.0  # A cliff of values: a true change of at least so many standard deviations of all true changes.
COLUMNS: dict[str, str] = {
    **dict.fromkeys(("transformation", "name_a", "smiles_a", "name_b", "smiles_b"), "string"),
    **dict.fromkeys(("predicted_a", "predicted_b", "predicted_change"), "double"),
    **{"true_a": "string", "true_b": "string", "true_change": "double"},
    **dict.fromkeys(("contribution_a", "contribution_b", "contribution_change", "rank_a", "rank_b"), "double"),
}
"""The columns of a table of pairs, and what they hold."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What changed from one molecule to another, and what that did to the prediction.

    ``print(comparison)`` says it in words, a notebook shows both molecules with what changed outlined.

    Example:
        >>> import egocnn
        >>> smiles = ["CC", "CCC", "CCCC", "CCO", "CCCO", "CCCCO"]
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2)
        >>> model = model.fit(smiles, [False] * 3 + [True] * 3)
        >>> found = model.compare("CCCCC", "CCCCCO")
        >>> found.transformation, found.changed[1].tolist()
        ('[H]*>>*O', [5])"""

    first: CriticalStructure
    """the one molecule, explained"""
    second: CriticalStructure
    """the other, explained for the same class"""
    pair: MatchedPair
    """which atoms are the same"""
    changed: tuple[Ints, ...]
    """the atoms of either that are not in the other"""
    predicted: tuple[float, ...]
    """the probabilities of the explained class, or the values"""
    true_change: float | None
    """of a class 1 where it became the explained one, -1 where it ceased to be it"""
    contributions: tuple[float, ...]
    """the sums over the atoms that changed, in log-odds or in the unit of the value"""
    ranks: tuple[float | None, ...]
    """How high the changed atoms rank by the size of their contribution, as ROC AUC: the share of the other atoms that
    one of them exceeds, 0.5 by chance; None where no atom changed, or every one."""

    @property
    def transformation(self) -> str:
        """the groups of the first that are not in the second >> those of the second; empty where none is"""
        return self.pair.transformation

    @property
    def predicted_change(self) -> float:
        """from the first to the second"""
        return self.predicted[1] - self.predicted[0]

    @property
    def outlined(self) -> Iterator[CriticalStructure]:
        """both with what changed in place of their critical structure, as pictures show them"""
        for one, nodes in zip((self.first, self.second), self.changed, strict=True):
            inside = np.isin(one.graph.edges, nodes).all(axis=1)
            yield replace(one, critical_nodes=nodes, critical_edges=np.flatnonzero(inside))

    def to_plain(self) -> dict[str, Any]:
        """A row of a table of pairs.

        Returns:
            Texts and numbers by the names of the columns."""
        both = self.first, self.second
        sides: dict[str, Sequence[Any]] = {
            "name": [one.name for one in both],
            "smiles": [one.graph.smiles for one in both],
            "true": [None if _true(one) is None else str(one.graph.target) for one in both],
            **{"predicted": self.predicted, "contribution": self.contributions, "rank": self.ranks},
        }
        row = {f"{name}_{side}": values[place] for name, values in sides.items() for place, side in enumerate("ab")}
        row |= {"contribution_change": row["contribution_b"] - row["contribution_a"], "true_change": self.true_change}
        row |= {"transformation": self.transformation, "predicted_change": self.predicted_change}
        return {name: row[name] for name in COLUMNS}

    def __str__(self) -> str:
        explained, (one, other), (before, after) = self.first.explained, self.predicted, self.contributions
        what, unit = ("", "") if explained is None else (f"probability of {explained} ", " log-odds")
        lines = [
            f"{self.first.name} to {self.second.name}: {self.transformation or 'the same atoms and bonds'}",
            f"predicted: {what}{one:.3g} to {other:.3g} ({other - one:+.3g})",
        ]
        if self.true_change is not None:
            lines.append(f"true: {self.first.graph.target} to {self.second.graph.target}")
        lines.append(f"the atoms that changed contribute {before:+.3g} and {after:+.3g}{unit} ({after - before:+.3g})")
        if ranks := [f"{rank:.0%}" for rank in self.ranks if rank is not None]:
            lines.append(f"they exceed {' and '.join(ranks)} of the other atoms (50% by chance)")
        if self.pair.is_cut_short:
            lines.append("the search for what is common was given up; more may be the same")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        pictures = "".join(one.draw(size=(400, 300)) for one in self.outlined)
        text = escape(str(self)).replace("\n", "<br/>")
        return f'<figure style="margin: 1em 0">{pictures}<figcaption>{text}</figcaption></figure>'


def compare(first: CriticalStructure, second: CriticalStructure, pair: MatchedPair | None = None) -> Comparison:
    """Two molecules that are such a pair; any two by the largest part that they share."""
    pair, both = pair or common_part(first.graph, second.graph), (first, second)
    changed = tuple(changed_atoms(one.graph, common) for one, common in zip(both, pair.common.T, strict=True))
    before, after = map(_true, both)
    return Comparison(
        first=first,
        second=second,
        pair=pair,
        changed=changed,
        predicted=tuple(one.output if one.explained is None else float(1 / (1 + np.exp(-one.output))) for one in both),
        true_change=None if before is None or after is None else after - before,
        contributions=tuple(float(one.contributions[nodes].sum()) for one, nodes in zip(both, changed, strict=True)),
        ranks=tuple(map(_rank, both, changed)),
    )


def summary_of(found: Sequence[Comparison]) -> dict[str, Any]:
    """What all pairs say together: how predicted and true changes agree, and where the changed atoms rank. Cliffs are
    the pairs whose class differs, or whose true change is at least ``CLIFF`` standard deviations of all true changes"""
    known, true = _with_truth(found)
    predicted, steep = np.array([one.predicted_change for one in known]), cliffs(found)
    summary: dict[str, Any] = {"pairs": len(found), "transformations": len({one.transformation for one in found})}
    varies = len(known) > 1 and predicted.std() > 0 and true.std() > 0
    correlation = float(np.corrcoef(predicted, true)[0, 1]) if varies else None
    summary |= {"pairs_with_truth": len(known), "correlation": correlation}
    if known and found[0].first.explained is None:
        summary["cliff_from"] = CLIFF * float(true.std())
    ranks = (_mean(rank for one in some for rank in one.ranks) for some in (steep, found))
    return summary | {"cliffs": len(steep), **dict(zip(("rank_in_cliffs", "rank_in_all"), ranks, strict=True))}


def cliffs(found: Sequence[Comparison]) -> list[Comparison]:
    """The pairs with a large true change."""
    known, true = _with_truth(found)
    if known and known[0].first.explained is not None:
        return [one for one in known if one.first.graph.target != one.second.graph.target]
    least = CLIFF * float(true.std()) if known else 0.0
    return [one for one, change in zip(known, true.tolist(), strict=True) if abs(change) >= least > 0]


def transformations_of(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """A row for every transformation, the most frequent first: how often, and mean and deviation of the changes."""
    rows, transformation = [], attrgetter("transformation")
    for name, group in groupby(sorted(found, key=transformation), key=transformation):
        some = list(group)
        true = _with_truth(some)[1].tolist()
        row: dict[str, Any] = {"transformation": name, "pairs": len(some), "pairs_with_truth": len(true)}
        for what, changes in (("predicted", [one.predicted_change for one in some]), ("true", true)):
            row[f"mean_{what}_change"] = _mean(changes)
            row[f"deviation_{what}_change"] = float(np.std(changes, ddof=1)) if len(changes) > 1 else None
        rows.append(row)
    return sorted(rows, key=lambda row: -row["pairs"])


def _with_truth(found: Sequence[Comparison]) -> tuple[list[Comparison], Floats]:
    """Those whose true change is known, and these changes"""
    known = [(one, change) for one in found if (change := one.true_change) is not None]
    return [one for one, _ in known], np.array([change for _, change in known], np.float64)


def _true(one: CriticalStructure) -> float | None:
    target = one.graph.target
    if target is None or (isinstance(target, float) and math.isnan(target)):
        return None
    return float(target) if one.explained is None else float(target == one.explained)


def _rank(structure: CriticalStructure, changed: Ints) -> float | None:
    size = np.abs(structure.contributions)
    one, other = size[changed, None], np.delete(size, changed)
    return float(((one > other) + 0.5 * (one == other)).mean()) if len(one) and len(other) else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
