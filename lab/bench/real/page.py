"""The record of real_structures -> the same as tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.markdown import made_by, table

COLUMNS = {
    "nodes": ("share_of_nodes", ".0%"),
    "nodes, not empty": ("share_of_nodes_where_any", ".0%"),
    "empty": ("empty", ".0%"),
    "connected": ("connected", ".0%"),
    "for": ("nodes_for", ".0%"),
    "against": ("nodes_against", ".0%"),
    "kept": ("kept", ".0%"),
    "lost": ("lost", ".0%"),
    "kept, cut": ("kept_cut", ".0%"),
    "lost, cut": ("lost_cut", ".0%"),
    "gap": ("gap", ".1e"),
    "ms": ("milliseconds", ".1f"),
}
LEGEND = (
    "Structures of the test part, the mean over the trainings. nodes: median share of a graph's nodes in its "
    "structure; connected: share of structures in one piece; for, against: share of all nodes with a contribution "
    "beyond 5% of the largest in their graph; kept, lost: median share of the evidence (output - base) that a "
    "structure keeps alone and that goes with it, by presence and by cutting the graph, empty structures left out; "
    "gap: the largest |base + sum - output| of any graph and training; agreement: mean rank correlation of the "
    "contributions of two trainings; ms: milliseconds a graph for the whole explanation."
)
GROUPS = (
    "Functional groups: the sum of the contributions over their atoms, averaged over the test molecules that have the "
    "group and over the trainings. The expected signs were written down before any run "
    "(`lab/bench/real/expected_signs.csv`)."
)


def page(record: Mapping[str, Any]) -> str:
    head = ["set", "trainings", "tested", "test score", "explained", *COLUMNS, "agreement"]
    rows = [_row(each) for each in record["sets"]]
    lines = ["# Structures on real data", "", LEGEND, "", *table(head, rows, right=head[1:])]
    if others := [each["set"] for each in record["sets"] if not all(one["is_default"] for one in each["trainings"])]:
        lines += ["", f"Not trained by the default settings: {', '.join(others)}."]
    if groups := [row for each in record["sets"] for row in _group_rows(each)]:
        columns = ["set", "group", "molecules", "contribution", "expected", "as expected"]
        lines += ["", GROUPS, "", *table(columns, groups, right=["molecules", "contribution"])]
    return "\n".join([*lines, "", made_by(record), ""])


def _row(of_set: Mapping[str, Any]) -> list[str]:
    numbers = of_set["mean"]
    return [
        of_set["set"],
        str(len(of_set["trainings"])),
        str(of_set["tested"]),
        _test_score(of_set["scores"]),
        str(of_set["graphs"]),
        *(_text(numbers[name], form) for name, form in COLUMNS.values()),
        _text(of_set["agreement"], ".2f"),
    ]


def _test_score(numbers: Mapping[str, float | None]) -> str:
    if "rmse" in numbers:
        return f"RMSE {_text(numbers['rmse'], '.3f')}"
    return f"ROC AUC {_text(numbers['roc_auc'], '.3f')}, accuracy {_text(numbers['accuracy'], '.1%')}"


def _group_rows(of_set: Mapping[str, Any]) -> list[list[str]]:
    judged = {True: "yes", False: "no", None: "-"}
    return [
        [
            of_set["set"] + (f", class {each['towards']}" if each["towards"] else ""),
            each["group"],
            str(each["molecules"]),
            _text(each["mean"], "+.3f"),
            "+" if each["expected"] > 0 else "-",
            judged[each["is_as_expected"]],
        ]
        for each in of_set["groups"]
    ]


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
