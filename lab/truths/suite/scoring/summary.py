"""Rows of all tasks and seeds -> mean and worst task of every score, half by half."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MORE_IS_BETTER = (
    *("accuracy", "r2", "node_auc", "node_precision", "node_jaccard", "edge_auc", "pooled_edge_auc"),
    *("pearson", "kendall", "connected", "structure_jaccard", "nothing_chosen", "nothing_stands_out"),
)
LESS_IS_BETTER = ("share_of_nodes", "milliseconds")
SCORES = (*MORE_IS_BETTER, *LESS_IS_BETTER)
PARTS = ("test", "larger")


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Half -> part or control -> score -> mean over the tasks, worst task, and the worst single training.

    A task counts by the mean of its seeds.
    """
    ours = [row for row in rows if row["model"] == "ours"]
    found: dict[str, Any] = {}
    for half in dict.fromkeys(row["half"] for row in ours):
        own = [row for row in ours if row["half"] == half]
        summary = {part: _over_tasks((row["task"], row.get(part, {})) for row in own) for part in PARTS}
        controls = dict.fromkeys(name for row in own for name in row["controls"])
        summary |= {name: _over_tasks((row["task"], row["controls"][name]) for row in own) for name in controls}
        peers = [row for row in rows if row["model"] == "peer" and row["half"] == half]
        for technique in dict.fromkeys(name for row in peers for name in row["techniques"]):
            pairs = (
                (row["task"], {**row, **row["techniques"][technique]})
                for row in peers
                if technique in row["techniques"]
            )
            summary[f"GINE, {technique}"] = _over_tasks(pairs)
        found[half] = {name: scores for name, scores in summary.items() if scores}
    return found


def _over_tasks(pairs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """(task, scores of one seed), again and again -> every score over the tasks"""
    by_score: dict[str, dict[str, list[float]]] = {}
    for task, scores in pairs:
        for name in SCORES:
            if scores.get(name) is not None:
                by_score.setdefault(name, {}).setdefault(task, []).append(float(scores[name]))
    return {name: _spread(by_task, worst=max if name in LESS_IS_BETTER else min) for name, by_task in by_score.items()}


def _spread(by_task: Mapping[str, list[float]], worst: Any) -> dict[str, Any]:
    means = {task: statistics.fmean(values) for task, values in by_task.items()}
    task = worst(means, key=means.__getitem__)
    return {
        "mean": round(statistics.fmean(means.values()), 4),
        "worst": round(means[task], 4),
        "worst_task": task,
        "worst_training": round(worst(value for values in by_task.values() for value in values), 4),
        "tasks": len(means),
    }
