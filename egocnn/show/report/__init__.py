"""Critical structures -> the facts on top of a report: how good the model is, and how far to trust its explanations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

import egocnn
from egocnn.data.molecules import is_molecule
from egocnn.explain.structure import CriticalStructure
from egocnn.explain.structure.wording import share
from egocnn.train.metrics import scores_of

BINS = 10  # of equal width in probability, for the calibration

Bin: TypeAlias = tuple[float, float, int]  # mean stated probability, share that was right, graphs
Parts: TypeAlias = Mapping[str, str] | None  # by name, in which part of the training data graphs were
ByClass: TypeAlias = tuple[str, int, float, float | None, float | None]
"""explained class, graphs, share of them in which nothing stands out, evidence kept and lost (medians of the rest)"""

MOST_CLASSES_LISTED = 5
OF_ALL_CLASSES = ("log_loss", "roc_auc", "average_precision")  # Scores that need the probability of every class.


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The facts of a report; None, or empty, where the structures do not hold them."""

    title: str = "Critical structures"
    model: str = ""  # the run's name
    data: str = ""
    target: str = ""  # what is predicted, where it has a name
    molecules: bool = False  # whether the graphs are molecules, of atoms and bonds
    graphs: int
    tested: int = 0  # graphs of the test part, which scores and calibration are then of
    trained: int = 0  # graphs that the model was trained or validated on
    class_names: tuple[str, ...] = ()  # empty where a value is predicted
    scores: dict[str, float] = field(default_factory=dict)  # by name, of the graphs whose class or value is known
    calibration: tuple[Bin, ...] = ()
    calibration_error: float | None = None
    """expected calibration error: mean distance of stated probability and share that was right"""
    evidence_kept: float | None = None
    """share of the evidence, output less base, that a structure holds alone; median over graphs that have one"""
    evidence_lost: float | None = None  # share of it that goes with the structure; median over the same graphs
    size: float | None = None  # share of a graph's nodes in its structure; median over the same graphs
    nothing: float | None = None  # share of the graphs in which nothing stands out: their structure is empty
    by_class: tuple[ByClass, ...] = ()
    """the same for every explained class; in one that stands for the lack of something, nothing may ever stand out"""
    kept: float | None = None
    """share of the structures in which alone the predicted class has more than half of the probability"""
    removed: float | None = None  # share of them without which it has half of the probability or less
    kept_change: float | None = None  # mean distance of the predicted value from that of the structure alone
    removed_change: float | None = None  # mean distance of the predicted value from that of the rest
    technique: str = ""
    created: str = field(default_factory=lambda: date.today().isoformat())
    version: str = egocnn.__version__


def summarise(
    structures: Sequence[CriticalStructure], *, class_names: Sequence[str] = (), parts: Parts = None, **facts: Any
) -> Summary:
    """Work out the facts from the structures themselves; a fact that they do not hold stays None.

    ``facts`` are those that no structure holds: the model and the data. ``parts``: by name, the part of the training
    data that a graph was in; where there are graphs of the test part, scores and calibration are of them."""
    structures = [structure.named() for structure in structures]
    facts = {"molecules": bool(structures) and all(is_molecule(s.graph) for s in structures)} | facts
    part_of = [(parts or {}).get(s.graph.name) for s in structures]
    tested = [s for s, part in zip(structures, part_of, strict=True) if part == "test"]
    facts |= {"tested": len(tested), "trained": sum(part not in (None, "test") for part in part_of)}
    facts |= {"technique": ", ".join(dict.fromkeys(s.technique for s in structures))} | _of_evidence(structures)
    # structures, none of them empty, whose fidelity is about the prediction, not about another class
    present = [s for s in structures if len(s.critical_nodes) and s.explained in (None, s.predicted)]
    measured = [(s.predicted, f) for s in present if (f := s.fidelity) and isfinite(f.kept) and isfinite(f.removed)]
    if class_names or any(isinstance(s.predicted, str) for s in structures):
        met = {name for s in structures for name in (s.predicted, s.graph.target) if isinstance(name, str)}
        facts |= {"class_names": tuple(class_names or sorted(met))} | _calibration(tested or structures)
        facts["kept"] = _mean([f.kept > 0.5 for _, f in measured])
        facts["removed"] = _mean([f.removed <= 0.5 for _, f in measured])
    else:
        facts["kept_change"] = _mean([abs(float(value) - f.kept) for value, f in measured])
        facts["removed_change"] = _mean([abs(float(value) - f.removed) for value, f in measured])
    scores = _scores(tested or structures, facts.get("class_names", ()))
    return Summary(graphs=len(structures), scores=scores, **facts)


def sentences(summary: Summary) -> list[str]:
    """What the figures mean for the explanations, for a reader who knows the graphs and not the method."""
    lines, (graph, node) = list[str](), ("molecule", "atom") if summary.molecules else ("graph", "node")
    if summary.evidence_kept is not None and summary.evidence_lost is not None:
        medians = f"{share(summary.evidence_lost)} goes with them (medians over the {graph}s that have one)."
        lines.append(f"Critical structures keep {share(summary.evidence_kept)} of the evidence alone, and {medians}")
    if summary.size is not None:
        lines.append(f"A critical structure holds {share(summary.size)} of the {node}s of its {graph} (median).")
    if summary.nothing:
        lines.append(f"In {share(summary.nothing)} of the {graph}s nothing stands out.")
    is_told = summary.nothing or summary.evidence_kept is not None
    if is_told and 1 < len(summary.by_class) <= MOST_CLASSES_LISTED:
        told = []
        for name, graphs, nothing, kept, lost in summary.by_class:
            measured = "" if kept is None or lost is None else f"{share(kept)} kept, {share(lost)} gone, "
            many = f"{graphs} {graph}{'' if graphs == 1 else 's'}"
            told.append(f"{name} ({many}): {measured}nothing stands out in {share(nothing)}")
        lines.append(f"By class: {'; '.join(told)}.")
    if summary.kept is not None and summary.removed is not None:
        is_half = len(summary.class_names) > 2
        keep, lose = ("stay above one half", "fall to it or below") if is_half else ("keep the prediction", "lose it")
        without = f"{share(summary.removed)} {lose} without it."
        lines.append(f"Of the {graph}s with a structure, {share(summary.kept)} {keep} with nothing else, and {without}")
    if summary.kept_change is not None and summary.removed_change is not None:
        moved = f"{summary.kept_change:.3g} on average; without it, by {summary.removed_change:.3g}."
        lines.append(f"With the structure alone the predicted value moves by {moved}")
    return lines


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _median(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None and isfinite(value)]
    return float(np.median(known)) if known else None


def _of_evidence(structures: Sequence[CriticalStructure]) -> dict[str, Any]:
    """Medians over the structures that are not empty, and how many are."""

    def of(name: str, some: Sequence[CriticalStructure]) -> ByClass:
        present = [s for s in some if len(s.critical_nodes)]
        measured = [s.fidelity for s in present if s.fidelity is not None]
        medians = _median(f.evidence_kept for f in measured), _median(f.evidence_lost for f in measured)
        return name, len(some), 1 - len(present) / max(len(some), 1), *medians

    _, count, nothing, kept, lost = of("", structures)
    names = sorted({str(s.explained) for s in structures if s.explained is not None})
    return {
        **{"evidence_kept": kept, "evidence_lost": lost, "nothing": nothing if count else None},
        "size": _median(len(s.critical_nodes) / s.graph.n_nodes for s in structures if len(s.critical_nodes)),
        "by_class": tuple(of(name, [s for s in structures if s.explained == name]) for name in names),
    }


def _calibration(structures: Sequence[CriticalStructure]) -> dict[str, Any]:
    known = [s for s in structures if isinstance(s.graph.target, str) and s.probability is not None]
    stated = np.array([s.probability for s in known], np.float64)
    right = np.array([s.predicted == s.graph.target for s in known], bool)
    number = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    members = [number == b for b in np.unique(number)]
    bins = tuple((float(stated[m].mean()), float(right[m].mean()), int(m.sum())) for m in members)
    error = sum(n * abs(stated - right) for stated, right, n in bins) / len(known) if known else None
    return {"calibration": bins, "calibration_error": error}


def _scores(structures: Sequence[CriticalStructure], class_names: Sequence[str]) -> dict[str, float]:
    """Of the graphs whose class or value is known; of more than two classes those that need no other probabilities."""
    if not class_names:
        pairs = [(s.predicted, s.graph.target) for s in structures]
        known = [pair for pair in pairs if all(isinstance(v, float | int) and isfinite(v) for v in pair)]
        return scores_of(*np.array(known, np.float64).T) if known else {}
    some = [s for s in structures if isinstance(s.graph.target, str) and s.predicted in class_names]
    if not some:
        return {}
    place = {name: number for number, name in enumerate(class_names)}
    truth = np.array([place.get(str(s.graph.target), -1) for s in some])
    predicted = np.array([place[str(s.predicted)] for s in some])
    stated = np.array([1.0 if s.probability is None else s.probability for s in some])
    found = {n: v for n, v in scores_of(np.eye(len(place))[predicted], truth).items() if n not in OF_ALL_CLASSES}
    if len(place) == 2:
        of_two = scores_of(np.where(predicted == [[0], [1]], stated, 1 - stated).T, truth)
        found |= {name: value for name, value in of_two.items() if name in OF_ALL_CLASSES[1:]}
    return found
