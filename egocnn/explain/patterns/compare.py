"""Two explained molecules -> what changed between them, and what that did; many pairs -> what they say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
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
        ('[H]*>>*O', [5])
    """

    first: CriticalStructure
    """the one molecule, explained"""
    second: CriticalStructure
    """the other, explained for the same class"""
    pair: MatchedPair
    """which atoms are the same"""

    @property
    def transformation(self) -> str:
        """the groups of the first that are not in the second >> those of the second; empty where none is"""
        return self.pair.transformation

    @property
    def changed(self) -> tuple[Ints, Ints]:
        """the atoms of either that are not in the other"""
        of_first, of_second = self.pair.common.T
        return changed_atoms(self.first.graph, of_first), changed_atoms(self.second.graph, of_second)

    @property
    def predicted(self) -> tuple[float, float]:
        """the probabilities of the explained class, or the values"""
        return _predicted(self.first), _predicted(self.second)

    @property
    def predicted_change(self) -> float:
        """from the first to the second"""
        return self.predicted[1] - self.predicted[0]

    @property
    def true_change(self) -> float | None:
        """the same of what is true: of a class 1 where it became the explained one, -1 where it ceased to be it"""
        both = _true(self.first), _true(self.second)
        return None if both[0] is None or both[1] is None else both[1] - both[0]

    @property
    def contributions(self) -> tuple[float, float]:
        """the sums over the atoms that changed, in log-odds or in the unit of the value"""
        of_first, of_second = self.changed
        both = self.first.contributions[of_first], self.second.contributions[of_second]
        return float(both[0].sum()), float(both[1].sum())

    @property
    def ranks(self) -> tuple[float | None, float | None]:
        """How high the changed atoms rank by the size of their contribution, as ROC AUC: the share of the other atoms
        that one of them exceeds, 0.5 by chance; None where no atom changed, or every one."""
        of_first, of_second = self.changed
        return _rank(self.first.contributions, of_first), _rank(self.second.contributions, of_second)

    def to_plain(self) -> dict[str, Any]:
        """A row of a table of pairs.

        Returns:
            Texts and numbers by the names of the columns.
        """
        row: dict[str, Any] = {"transformation": self.transformation, "predicted_change": self.predicted_change}
        both = zip("ab", (self.first, self.second), self.predicted, self.contributions, self.ranks, strict=True)
        for side, one, predicted, contribution, rank in both:
            row |= {f"name_{side}": one.name, f"smiles_{side}": one.graph.smiles, f"predicted_{side}": predicted}
            row |= {f"true_{side}": None if _true(one) is None else str(one.graph.target)}
            row |= {f"contribution_{side}": contribution, f"rank_{side}": rank}
        row |= {"true_change": self.true_change, "contribution_change": self.contributions[1] - self.contributions[0]}
        return {name: row[name] for name in COLUMNS}

    def __str__(self) -> str:
        what = "" if self.first.explained is None else f"probability of {self.first.explained} "
        (one, other), (before, after) = self.predicted, self.contributions
        unit = "" if self.first.explained is None else " log-odds"
        lines = [
            f"{self.first.name} to {self.second.name}: {self.transformation or 'the same atoms and bonds'}",
            f"predicted: {what}{one:.3g} to {other:.3g} ({other - one:+.3g})",
            f"the atoms that changed contribute {before:+.3g} and {after:+.3g}{unit} ({after - before:+.3g})",
        ]
        if self.true_change is not None:
            lines.insert(2, f"true: {self.first.graph.target} to {self.second.graph.target}")
        ranks = [f"{rank:.0%}" for rank in self.ranks if rank is not None]
        if ranks:
            lines.append(f"they exceed {' and '.join(ranks)} of the other atoms (50% by chance)")
        if self.pair.is_cut_short:
            lines.append("the search for what is common was given up; more may be the same")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        pictures = "".join(
            one.draw(critical_nodes=nodes, critical_edges=edges_among(one, nodes), size=(400, 300))
            for one, nodes in zip((self.first, self.second), self.changed, strict=True)
        )
        text = escape(str(self)).replace("\n", "<br/>")
        return f'<figure style="margin: 1em 0">{pictures}<figcaption>{text}</figcaption></figure>'


def compare(first: CriticalStructure, second: CriticalStructure) -> Comparison:
    """Any two molecules, by the largest part that they share."""
    return Comparison(first=first, second=second, pair=common_part(first.graph, second.graph))


def edges_among(structure: CriticalStructure, nodes: Ints) -> Ints:
    """The positions of the bonds whose ends are both among these atoms."""
    return np.flatnonzero(np.isin(structure.graph.edges, nodes).all(axis=1))


def summary_of(found: Sequence[Comparison]) -> dict[str, Any]:
    """What all pairs say together: how predicted and true changes agree, and where the changed atoms rank. Cliffs are
    the pairs whose class differs, or whose true change is at least ``CLIFF`` standard deviations of all true changes"""
    known = [(one.predicted_change, one.true_change) for one in found if one.true_change is not None]
    predicted, true = np.array(known, np.float64).reshape(-1, 2).T
    steep = cliffs(found)
    summary: dict[str, Any] = {"pairs": len(found), "transformations": len({one.transformation for one in found})}
    summary |= {"pairs_with_truth": len(known), "correlation": _correlation(predicted, true)}
    if len(known) and found[0].first.explained is None:
        summary["cliff_from"] = CLIFF * float(true.std())
    return summary | {"cliffs": len(steep), "rank_in_cliffs": _mean_rank(steep), "rank_in_all": _mean_rank(found)}


def cliffs(found: Sequence[Comparison]) -> list[Comparison]:
    """The pairs with a large true change."""
    known = [(one, one.true_change) for one in found if one.true_change is not None]
    if known and known[0][0].first.explained is not None:
        return [one for one, _ in known if one.first.graph.target != one.second.graph.target]
    least = CLIFF * float(np.std([change for _, change in known])) if known else 0.0
    return [one for one, change in known if abs(change) >= least > 0]


def transformations_of(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """A row for every transformation, the most frequent first: how often, and mean and deviation of the changes."""
    by_name: dict[str, list[Comparison]] = defaultdict(list)
    for one in found:
        by_name[one.transformation].append(one)
    rows = []
    for name, some in by_name.items():
        true = [one.true_change for one in some if one.true_change is not None]
        row: dict[str, Any] = {"transformation": name, "pairs": len(some), "pairs_with_truth": len(true)}
        for what, changes in (("predicted", [one.predicted_change for one in some]), ("true", true)):
            row[f"mean_{what}_change"] = float(np.mean(changes)) if changes else None
            row[f"deviation_{what}_change"] = float(np.std(changes, ddof=1)) if len(changes) > 1 else None
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["pairs"], row["transformation"]))


def _predicted(one: CriticalStructure) -> float:
    return one.output if one.explained is None else float(1 / (1 + np.exp(-one.output)))


def _true(one: CriticalStructure) -> float | None:
    target = one.graph.target
    if target is None or (isinstance(target, float) and np.isnan(target)):
        return None
    return float(target) if one.explained is None else float(target == one.explained)


def _rank(contributions: Floats, changed: Ints) -> float | None:
    size, is_changed = np.abs(contributions), np.zeros(len(contributions), bool)
    is_changed[changed] = True
    if is_changed.all() or not is_changed.any():
        return None
    one, other = size[is_changed, None], size[~is_changed]
    return float(((one > other) + 0.5 * (one == other)).mean())


def _mean_rank(found: Sequence[Comparison]) -> float | None:
    ranks = [rank for one in found for rank in one.ranks if rank is not None]
    return float(np.mean(ranks)) if ranks else None


def _correlation(one: Floats, other: Floats) -> float | None:
    if len(one) < 2 or one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])
