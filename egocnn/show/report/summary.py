"""Critical structures -> the facts on top of a report: how good the model is, and how far to trust its explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import floor, isfinite
from typing import TypeAlias

import numpy as np

import egocnn
from egocnn.data.arrays import Floats
from egocnn.explain.structure import CriticalStructure, Fidelity
from egocnn.train.metrics import r2

BINS = 10
"""of equal width in probability, for the calibration"""

Bin: TypeAlias = tuple[float, float, int]
"""mean stated probability, share that was right, graphs"""

ByClass: TypeAlias = tuple[str, float, float, int]
"""predicted class, share kept, share lost when removed, graphs"""

MOST_CLASSES_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    title: str
    model: str
    """the run's name"""
    data: str
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
    title: str = "Critical structures",
    model: str = "",
    data: str = "",
    class_names: Sequence[str] = (),
    truth: float | None = None,
    created: date | None = None,
) -> Summary:
    """Work out the facts from the structures themselves; a fact that they do not hold stays None."""
    classes = any(isinstance(s.predicted, str) for s in structures) or bool(class_names)
    bins = _calibration(structures) if classes else ()
    sizes = [len(s.critical_nodes) / s.graph.n_nodes for s in structures if s.graph.n_nodes]
    true, predicted = _known_values(structures)
    kept, removed = _shares(structures) if classes else (None, None)
    kept_change, removed_change = (None, None) if classes else _changes(structures)
    return Summary(
        title=title,
        model=model,
        data=data,
        graphs=len(structures),
        class_names=(tuple(class_names) or _classes_met(structures)) if classes else (),
        accuracy=_mean([s.predicted == s.graph.target for s in structures if isinstance(s.graph.target, str)]),
        r2=r2(predicted, true) if len(true) and np.ptp(true) > 0 else None,
        mean_absolute_error=_mean(np.abs(true - predicted).tolist()),
        calibration=bins,
        calibration_error=_calibration_error(bins),
        kept=kept,
        removed=removed,
        by_class=_by_class(structures) if classes else (),
        kept_change=kept_change,
        removed_change=removed_change,
        size=_mean(sizes),
        technique=", ".join(dict.fromkeys(s.technique for s in structures)),
        truth=truth,
        created=(created or date.today()).isoformat(),
        version=egocnn.__version__,
    )


def sentences(summary: Summary) -> list[str]:
    """What the figures mean for the explanations, for a reader who knows the graphs and not the method."""
    told = []
    if summary.kept is not None and summary.removed is not None:
        if len(summary.class_names) > 2:
            told.append(
                f"Cut down to the critical structure alone, {share(summary.kept)} of the graphs leave the predicted "
                f"class more than half of the probability; with it removed, {share(summary.removed)} do not."
            )
        else:
            told.append(
                f"Cut down to the critical structure alone, {share(summary.kept)} of the graphs keep their prediction; "
                f"with it removed, {share(summary.removed)} lose it."
            )
    if 1 < len(summary.by_class) <= MOST_CLASSES_TOLD:
        parts = [
            f"of the {n} predicted {name}, {share(kept)} are kept and {share(removed)} lost"
            for name, kept, removed, n in summary.by_class
        ]
        told.append(f"By class: {'; '.join(parts)}.")
    if summary.kept_change is not None and summary.removed_change is not None:
        told.append(
            f"Cut down to the critical structure alone, the predicted value moves by {summary.kept_change:.3g} on "
            f"average; with it removed, by {summary.removed_change:.3g}."
        )
    if summary.size is not None:
        told.append(f"A critical structure holds {share(summary.size)} of the nodes of its graph on average.")
    if summary.truth is not None:
        told.append(
            f"Where the true structure is known, the importances find it with a score of {summary.truth:.3f} "
            "(1 is perfect, 0.5 is chance)."
        )
    return told


def share(value: float) -> str:
    """In per cent, and never all or nothing unless it is."""
    if 0 < value < 0.01:
        return "under 1%"
    if 0.99 < value < 1:
        return "over 99%"
    return f"{floor(100 * value + 0.5)}%"  # halves go up, as the page's script has it


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _classes_met(structures: Sequence[CriticalStructure]) -> tuple[str, ...]:
    met = (name for s in structures for name in (s.predicted, s.graph.target) if isinstance(name, str))
    return tuple(sorted(set(met)))


def _calibration(structures: Sequence[CriticalStructure]) -> tuple[Bin, ...]:
    known = [s for s in structures if isinstance(s.graph.target, str) and s.probability is not None]
    stated = np.array([s.probability for s in known], np.float64)
    right = np.array([s.predicted == s.graph.target for s in known], bool)
    number = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    members = [number == b for b in np.unique(number)]
    return tuple((float(stated[m].mean()), float(right[m].mean()), int(m.sum())) for m in members)


def _calibration_error(bins: Sequence[Bin]) -> float | None:
    count = sum(n for *_, n in bins)
    return sum(n * abs(stated - right) for stated, right, n in bins) / count if count else None


def _known_values(structures: Sequence[CriticalStructure]) -> tuple[Floats, Floats]:
    pairs = [
        (s.graph.target, s.predicted)
        for s in structures
        if isinstance(s.graph.target, float | int) and isinstance(s.predicted, float | int)
    ]
    values = np.array(pairs, np.float64).reshape(-1, 2)
    values = values[np.isfinite(values).all(axis=1)]
    return values[:, 0], values[:, 1]


def _measured(structures: Sequence[CriticalStructure]) -> list[tuple[CriticalStructure, Fidelity]]:
    """Those whose fidelity says something about the prediction: not about another class that was asked for."""
    return [
        (s, s.fidelity)
        for s in structures
        if s.fidelity is not None
        and s.explained in (None, s.predicted)
        and isfinite(s.fidelity.kept)
        and isfinite(s.fidelity.removed)
    ]


def _by_class(structures: Sequence[CriticalStructure]) -> tuple[ByClass, ...]:
    found: dict[str, list[Fidelity]] = {}
    for structure, fidelity in _measured(structures):
        found.setdefault(str(structure.predicted), []).append(fidelity)
    return tuple(
        (
            name,
            float(np.mean([f.kept > 0.5 for f in some])),
            float(np.mean([f.removed <= 0.5 for f in some])),
            len(some),
        )
        for name, some in sorted(found.items())
    )


def _shares(structures: Sequence[CriticalStructure]) -> tuple[float | None, float | None]:
    fidelity = [f for _, f in _measured(structures)]
    return _mean([f.kept > 0.5 for f in fidelity]), _mean([f.removed <= 0.5 for f in fidelity])


def _changes(structures: Sequence[CriticalStructure]) -> tuple[float | None, float | None]:
    pairs = [(float(s.predicted), f) for s, f in _measured(structures)]
    return _mean([abs(v - f.kept) for v, f in pairs]), _mean([abs(v - f.removed) for v, f in pairs])
