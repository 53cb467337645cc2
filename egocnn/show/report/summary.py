"""Critical structures -> the facts on top of a report: how good the model is, and how far to trust its explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import floor, isfinite
from typing import Any, TypeAlias

import numpy as np

import egocnn
from egocnn.explain.structure import CriticalStructure, Fidelity
from egocnn.train.metrics import r2

BINS = 10
"""of equal width in probability, for the calibration"""

Bin: TypeAlias = tuple[float, float, int]
"""mean stated probability, share that was right, graphs"""
ByClass: TypeAlias = tuple[str, float, float, int]
"""predicted class, share kept, share lost when removed, graphs"""

MOST_CLASSES_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The facts of a report; None, or empty, where the structures do not hold them."""

    title: str
    model: str = ""
    """the run's name"""
    data: str = ""
    graphs: int
    class_names: tuple[str, ...] = ()
    """empty where a value is predicted"""
    accuracy: float | None = None
    """share of the graphs of known class that were predicted right"""
    r2: float | None = None
    mean_absolute_error: float | None = None
    calibration: tuple[Bin, ...] = ()
    calibration_error: float | None = None
    """expected calibration error: mean distance of stated probability and share that was right"""
    kept: float | None = None
    """share of the graphs whose predicted class keeps more than half of the probability in the structure alone"""
    removed: float | None = None
    """share whose predicted class falls to half of the probability or less once the structure is taken out"""
    by_class: tuple[ByClass, ...] = ()
    """the same shares for every predicted class; where a class stands for the lack of something, none may lose it"""
    kept_change: float | None = None
    """mean distance of the predicted value from that of the structure alone"""
    removed_change: float | None = None
    """mean distance of the predicted value from that of the rest"""
    size: float | None = None
    """mean share of a graph's nodes in its structure"""
    technique: str = ""
    truth: float | None = None
    """how well the importances find structures that are known: 1 always, 0.5 by chance"""
    created: str = ""
    version: str = ""


def summarise(
    structures: Sequence[CriticalStructure],
    *,
    class_names: Sequence[str] = (),
    title: str = "Critical structures",
    created: date | None = None,
    **facts: Any,
) -> Summary:
    """Work out the facts from the structures themselves; a fact that they do not hold stays None.

    ``facts`` are those that no structure holds: the model, the data, the score against known structures (``truth``).
    """
    sizes = [len(s.critical_nodes) / s.graph.n_nodes for s in structures if s.graph.n_nodes]
    known = [s.predicted == s.graph.target for s in structures if isinstance(s.graph.target, str)]
    facts |= {
        "accuracy": _mean(known),
        "size": _mean(sizes),
        "technique": ", ".join(dict.fromkeys(s.technique for s in structures)),
    }
    facts |= {"created": (created or date.today()).isoformat(), "version": egocnn.__version__}
    if any(isinstance(s.predicted, str) for s in structures) or class_names:
        facts |= _of_classes(structures) | ({"class_names": tuple(class_names)} if class_names else {})
    else:
        facts |= _changes(structures)
    return Summary(title=title, graphs=len(structures), **_of_values(structures), **facts)


def sentences(summary: Summary) -> list[str]:
    """What the figures mean for the explanations, for a reader who knows the graphs and not the method."""
    lines = []
    alone = "Cut down to the critical structure alone,"
    if summary.kept is not None and summary.removed is not None:
        kept, removed = share(summary.kept), share(summary.removed)
        if len(summary.class_names) > 2:
            lines.append(
                f"{alone} {kept} of the graphs leave the predicted class more than half of the probability; "
                f"with it removed, {removed} do not."
            )
        else:
            lines.append(f"{alone} {kept} of the graphs keep their prediction; with it removed, {removed} lose it.")
    if 1 < len(summary.by_class) <= MOST_CLASSES_LISTED:
        parts = [
            f"of the {n} predicted {name}, {share(kept)} are kept and {share(removed)} lost"
            for name, kept, removed, n in summary.by_class
        ]
        lines.append(f"By class: {'; '.join(parts)}.")
    if summary.kept_change is not None and summary.removed_change is not None:
        lines.append(
            f"{alone} the predicted value moves by {summary.kept_change:.3g} on average; "
            f"with it removed, by {summary.removed_change:.3g}."
        )
    if summary.size is not None:
        lines.append(f"A critical structure holds {share(summary.size)} of the nodes of its graph on average.")
    if summary.truth is not None:
        lines.append(
            f"Where the true structure is known, the importances find it with a score of {summary.truth:.3f} "
            "(1 is perfect, 0.5 is chance)."
        )
    return lines


def share(value: float) -> str:
    """In per cent, and never all or nothing unless it is."""
    if 0 < value < 0.01:
        return "under 1%"
    if 0.99 < value < 1:
        return "over 99%"
    return f"{floor(100 * value + 0.5)}%"  # x.5 is rounded up, as in the page's script


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _of_classes(structures: Sequence[CriticalStructure]) -> dict[str, Any]:
    names = (name for s in structures for name in (s.predicted, s.graph.target) if isinstance(name, str))
    known = [s for s in structures if isinstance(s.graph.target, str)]
    by_class: dict[str, list[Fidelity]] = {}
    for structure, fidelity in _measured(structures):
        by_class.setdefault(str(structure.predicted), []).append(fidelity)
    kept, removed = _shares([f for some in by_class.values() for f in some])
    return {
        "class_names": tuple(sorted(set(names))),
        "kept": kept,
        "removed": removed,
        "by_class": tuple((name, *_shares(some), len(some)) for name, some in sorted(by_class.items())),
        **_calibration([s for s in known if s.probability is not None]),
    }


def _calibration(known: Sequence[CriticalStructure]) -> dict[str, Any]:
    stated = np.array([s.probability for s in known], np.float64)
    right = np.array([s.predicted == s.graph.target for s in known], bool)
    number = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    members = [number == b for b in np.unique(number)]
    bins = tuple((float(stated[m].mean()), float(right[m].mean()), int(m.sum())) for m in members)
    error = sum(n * abs(stated - right) for stated, right, n in bins) / len(known) if known else None
    return {"calibration": bins, "calibration_error": error}


def _of_values(structures: Sequence[CriticalStructure]) -> dict[str, Any]:
    """R² and the mean absolute error, where the true values are known."""
    pairs = [(s.graph.target, s.predicted) for s in structures]
    values = np.array([pair for pair in pairs if all(isinstance(v, float | int) for v in pair)], np.float64)
    true, predicted = values.reshape(-1, 2)[np.isfinite(values.reshape(-1, 2)).all(axis=1)].T
    varies = len(true) > 0 and np.ptp(true) > 0
    score = r2(predicted, true) if varies else None
    return {"r2": score, "mean_absolute_error": _mean(np.abs(true - predicted).tolist())}


def _measured(structures: Sequence[CriticalStructure]) -> list[tuple[CriticalStructure, Fidelity]]:
    """Those whose fidelity is about the predicted class: not about another one that the user chose to explain."""
    about_prediction = [(s, s.fidelity) for s in structures if s.fidelity and s.explained in (None, s.predicted)]
    return [(s, f) for s, f in about_prediction if isfinite(f.kept) and isfinite(f.removed)]


def _shares(fidelity: Sequence[Fidelity]) -> tuple[float | None, float | None]:
    return _mean([f.kept > 0.5 for f in fidelity]), _mean([f.removed <= 0.5 for f in fidelity])


def _changes(structures: Sequence[CriticalStructure]) -> dict[str, float | None]:
    pairs = [(float(s.predicted), f) for s, f in _measured(structures)]
    return {
        "kept_change": _mean([abs(value - f.kept) for value, f in pairs]),
        "removed_change": _mean([abs(value - f.removed) for value, f in pairs]),
    }
