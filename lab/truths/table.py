"""Measurements of single jobs -> rows with mean and spread over the seeds, as CSV and Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.markdown import csv_text, made_by, table
from lab.truths.tasks import TASKS

SCORES = {
    "node_auc": "node ROC AUC",
    "node_precision": "precision at true size",
    "node_jaccard": "Jaccard at true size",
    "edge_auc": "edge ROC AUC, mean of graphs",
    "pooled_edge_auc": "edge ROC AUC, pooled",
    "mirror_correlation": "mirror correlation",
    "unmatched_above_matched": "unmatched above matched",
    "fidelity_plus": "fidelity+",
    "fidelity_minus": "fidelity-",
    "characterisation": "characterisation",
}
SHOWN = {
    "alcohols": ("node_auc", "node_precision", "edge_auc"),
    "isomers": ("mirror_correlation", "unmatched_above_matched"),
    "benzene": ("node_auc", "node_precision", "node_jaccard"),
    "logic7": ("node_auc", "node_precision", "node_jaccard"),
    "mutagenicity": ("edge_auc", "pooled_edge_auc"),
    "mutagenicity-marked": ("edge_auc", "pooled_edge_auc"),
}
"""the scores that a task's own table shows, besides fidelity; all of them are in the CSV"""
BESIDES = ("accuracy", "milliseconds", "times_faster_together", "times_faster_one_by_one")
"""what is measured of a row besides its scores"""
FIDELITY = ("fidelity_plus", "fidelity_minus", "characterisation")


def to_rows(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for name in dict.fromkeys(result["data"] for result in results):
        of_task = [result for result in results if result["data"] == name]
        for side in dict.fromkeys(result["model"] for result in of_task):
            runs = [result for result in of_task if result["model"] == side]
            shared = {"data": name, "model": side, "accuracy": _spread(run["accuracy"] for run in runs)}
            rows += [
                _row(shared, technique, "technique", [run["techniques"][technique] for run in runs])
                for technique in runs[0]["techniques"]
            ]
            for control in runs[0].get("controls", ()):
                found = [run["controls"][control] for run in runs]
                flat = [one.get("mean", one) if isinstance(one.get("mean"), dict) else one for one in found]
                row = _row(shared, control, "control", flat)
                if "most" in found[0]:
                    row["runs"] = found[0]["runs"]
                    row["most"] = {key: max(one["most"].get(key, 0) for one in found) for key in row["scores"]}
                rows.append(row)
        _add_ratio(rows, of_task, name)
    return rows


def _row(shared: Mapping[str, Any], technique: str, kind: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    scores = {key: _spread(run[key] for run in runs) for key in SCORES if all(run.get(key) is not None for run in runs)}
    row = {**shared, "technique": technique, "kind": kind, "graphs": int(runs[0]["graphs"]), "scores": scores}
    if "milliseconds" in runs[0]:
        row["milliseconds"] = _spread(run["milliseconds"] for run in runs)
    return row


def _add_ratio(rows: Sequence[dict[str, Any]], results: Sequence[Mapping[str, Any]], name: str) -> None:
    """How many times faster our default is than GNNExplainer, which knows single graphs only."""
    theirs = {
        run["seed"]: run["techniques"]["GNNExplainer"]["milliseconds"] for run in results if run["model"] == "GINE"
    }
    ours = [run for run in results if run["model"] == "egocnn" and run["seed"] in theirs]
    for row in rows:
        if ours and row["data"] == name and row["model"] == "egocnn" and row["technique"] == "relevance":
            together = [(run["seed"], run["techniques"]["relevance"]["milliseconds"]) for run in ours]
            singly = [(run["seed"], run["fast_milliseconds"]) for run in ours]
            row["times_faster_together"] = _spread(theirs[seed] / took for seed, took in together)
            row["times_faster_one_by_one"] = _spread(theirs[seed] / took for seed, took in singly)


def _spread(values: Iterable[float]) -> dict[str, Any]:
    seeds = [round(float(value), 5) for value in values]
    return {
        "mean": round(statistics.fmean(seeds), 5),
        "std": round(statistics.stdev(seeds), 5) if len(seeds) > 1 else 0.0,
        "min": min(seeds),
        "seeds": seeds,
    }


def csv_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a score."""
    names = ("data", "model", "kind", "technique", "graphs")
    flat = (
        {name: row[name] for name in names} | {"score": score} | spread
        for row in rows
        for score, spread in {**row["scores"], **{key: row[key] for key in BESIDES if key in row}}.items()
    )
    return csv_text((*names, "score", "mean", "std", "min"), flat)


def markdown(record: Mapping[str, Any]) -> str:
    names = dict.fromkeys(row["data"] for row in record["rows"])
    sections = (_section(name, [row for row in record["rows"] if row["data"] == name]) for name in names)
    return "\n".join([f"# {record['title']}\n", *sections, made_by(record), ""])


def _section(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    shown = (*SHOWN[name], *FIDELITY)
    head = ("model", "technique", *(SCORES[key] for key in shown), "ms a graph", "graphs")
    lines = [f"## {name}: {TASKS[name].what}\n", *table(head, (_cells(row, shown) for row in rows))]
    accuracy = {row["model"]: row["accuracy"] for row in rows if row["kind"] == "technique"}
    lines.append(
        "\nTest accuracy: " + ", ".join(f"{model} {_cell(spread)}" for model, spread in accuracy.items()) + "."
    )
    for row in rows:
        if "times_faster_together" in row:
            together, singly = row["times_faster_together"], row["times_faster_one_by_one"]
            lines.append(
                f"A graph takes relevance 1/{together['mean']:.0f} of GNNExplainer's time where all graphs are "
                f"explained together (worst seed 1/{together['min']:.0f}), and 1/{singly['mean']:.0f} one at a time."
            )
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any], shown: Sequence[str]) -> list[str]:
    model = row["model"] if row["kind"] == "technique" else "control"
    took = f"{row['milliseconds']['mean']:.2f}" if "milliseconds" in row else ""
    runs = f", {row['runs']} networks" if "runs" in row else ""
    scores = (_cell(row["scores"].get(key)) for key in shown)
    return [model, f"{row['technique']}{runs}", *scores, took, str(row["graphs"])]


def _cell(spread: Mapping[str, Any] | None) -> str:
    return "" if spread is None else f"{spread['mean']:.3f} ± {spread['std']:.3f}"
