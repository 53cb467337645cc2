"""A record of the suite -> Markdown: mean and worst task of every half, then one line a task."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lab.markdown import made_by, table

WORDS = {
    "accuracy": "accuracy",
    "r2": "R²",
    "node_auc": "node ROC AUC",
    "node_jaccard": "Jaccard at true size",
    "pooled_edge_auc": "edge ROC AUC, pooled",
    "pearson": "Pearson",
    "kendall": "Kendall",
    "share_of_nodes": "share of nodes",
    "connected": "connected",
    "structure_jaccard": "Jaccard of the structure",
    "nothing_chosen": "nothing chosen",
    "nothing_stands_out": "nothing stands out",
}
TOLD = {"test": "ours", "larger": "ours, larger graphs", "label": "the best label"}
CONTROLS = ("random", "degree", "label", "untrained")


def markdown(record: Mapping[str, Any]) -> str:
    lines = [f"# {record['title']}\n"]
    for half, summary in record["summary"].items():
        lines += [f"## {half}: mean over the tasks, worst task\n", *_summary(summary), "", *_tasks(record, half), ""]
    networks = f"{record['networks']} network{'s' * (record['networks'] > 1)} a model."
    missing = ", ".join(f"{job['model']} {job['task']} {job['seed']}" for job in record["missing"])
    without = [f"Not measured: {missing}.", ""] if missing else []
    return "\n".join([*lines, networks, "", *without, made_by(record), ""])


def _summary(summary: Mapping[str, Any]) -> list[str]:
    shown = [name for name in WORDS if any(name in scores for scores in summary.values())]
    rows = [
        [TOLD.get(who, who), *(_mean_and_worst(scores.get(name)) for name in shown)] for who, scores in summary.items()
    ]
    return table(["", *(WORDS[name] for name in shown)], rows)


def _mean_and_worst(spread: Mapping[str, Any] | None) -> str:
    return "" if spread is None else f"{spread['mean']:.3f}, {spread['worst']:.3f}"


def _tasks(record: Mapping[str, Any], half: str) -> list[str]:
    rows = [row for row in record["rows"] if row["half"] == half and row["model"] == "ours"]
    names = sorted({row["task"] for row in rows}, key=lambda name: [row["task"] for row in rows].index(name))
    head = ["task", "what", "accuracy or R²", "node ROC AUC or Pearson", "larger", "edges pooled or Kendall"]
    head += ["Jaccard", "share of nodes", "connected", "nothing chosen", "nothing stands out", *CONTROLS]
    lines = []
    for name in names:
        own = [row for row in rows if row["task"] == name]
        main = "pearson" if own[0]["family"] == "values" else "node_auc"
        test = [row["test"] for row in own]
        cells = [_cell(test, "accuracy", "r2"), _cell(test, main), _cell([row.get("larger", {}) for row in own], main)]
        cells += [_cell(test, "kendall" if main == "pearson" else "pooled_edge_auc"), _cell(test, "structure_jaccard")]
        cells += [_cell(test, key) for key in ("share_of_nodes", "connected", "nothing_chosen", "nothing_stands_out")]
        cells += [_cell([row["controls"][control] for row in own], main) for control in CONTROLS]
        lines.append([name, own[0]["what"], *cells])
    return table(head, lines)


def _cell(several: Sequence[Mapping[str, Any]], *names: str) -> str:
    """The mean over the seeds of the first of these scores that there is."""
    for name in names:
        known = [scores[name] for scores in several if scores.get(name) is not None]
        if known:
            return f"{statistics.fmean(known):.3f}"
    return ""
