"""The facts on top of a report, against values worked out by hand."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from egocnn.data.graphs import Graph
from egocnn.explain.structure import CriticalStructure, Fidelity
from egocnn.explain.structure.wording import share
from egocnn.show.report import sentences, summarise
from tests.show.report.made_up import structure
from tests.support.samples import one_graph


def chain(target: str | float | None) -> Graph:
    columns: dict[str, Any] = {} if target is None else {"target": np.array([target])}
    if isinstance(target, str):
        columns = {"target": np.array([0]), "class_names": (target,)}
    return one_graph(4, [(0, 1), (1, 2), (2, 3)], **columns)[0]


def said(
    predicted: str | float,
    target: str | float | None,
    probability: float | None = None,
    *,
    removed: float | None = None,
    kept: float = 0.0,
    lost: float | None = None,
    alone: float | None = None,
    critical: int = 1,
    **changes: Any,
) -> CriticalStructure:
    return structure(
        chain(target),
        predicted=predicted,
        probability=probability,
        explained=changes.pop("explained", predicted if isinstance(predicted, str) else None),
        fidelity=None if removed is None else Fidelity(removed, kept, evidence_lost=lost, evidence_kept=alone),
        critical_nodes=np.arange(critical),
        **changes,
    )


def test_accuracy_counts_graphs_of_known_class_only() -> None:
    facts = summarise([said("a", "a"), said("a", "b"), said("b", "b"), said("b", None)])
    assert facts.scores["accuracy"] == pytest.approx(2 / 3)
    assert facts.class_names == ("a", "b")
    assert facts.graphs == 4


def test_calibration_compares_what_was_stated_with_what_was_right() -> None:
    facts = summarise([said("a", "a", 0.92), said("a", "b", 0.98), said("a", "a", 1.0), said("b", "b", 0.55)])
    np.testing.assert_allclose(facts.calibration, [(0.55, 1, 1), (2.9 / 3, 2 / 3, 3)])
    assert facts.calibration_error == pytest.approx((0.45 + 3 * 0.3) / 4)


def test_the_evidence_kept_and_lost_and_the_size_are_medians_over_the_graphs_that_have_a_structure() -> None:
    facts = summarise(
        [
            said("a", "a", 0.9, removed=0.1, kept=0.9, lost=0.8, alone=0.9),
            said("a", "a", 0.9, removed=0.6, kept=0.8, lost=0.5, alone=0.7, critical=3),
            said("b", "a", 0.9, removed=0.5, kept=0.5, lost=0.75, alone=0.6, critical=2),
            said("b", "a", 0.9, removed=0.9, kept=0.1, lost=0.0, alone=0.0, critical=0),
            said("b", "a", 0.9, removed=0.9, kept=0.1),
        ]
    )
    assert (facts.evidence_kept, facts.evidence_lost) == (0.7, 0.75)
    assert facts.size == (0.25 + 0.5) / 2
    assert facts.nothing == pytest.approx(1 / 5)
    assert facts.by_class[0] == ("a", 2, 0.0, 0.8, 0.65)
    assert facts.by_class[1] == ("b", 3, 1 - 2 / 3, 0.6, 0.75)
    assert sentences(facts)[:4] == [
        "Critical structures keep 70% of the evidence alone, and 75% goes with them (medians over the graphs that "
        "have one).",
        "A critical structure holds 38% of the nodes of its graph (median).",
        "In 20% of the graphs nothing stands out.",
        "By class: a (2 graphs): 80% kept, 65% gone, nothing stands out in 0%; "
        "b (3 graphs): 60% kept, 75% gone, nothing stands out in 33%.",
    ]
    assert sentences(replace(facts, molecules=True))[1:3] == [
        "A critical structure holds 38% of the atoms of its molecule (median).",
        "In 20% of the molecules nothing stands out.",
    ]


def test_predictions_kept_and_lost_are_counted_over_structures_that_are_not_empty() -> None:
    facts = summarise(
        [
            said("a", "a", 0.9, removed=0.1, kept=0.9),
            said("a", "a", 0.9, removed=0.6, kept=0.8, critical=3),
            said("b", "a", 0.9, removed=0.5, kept=0.5),
            said("b", "a", 0.9),
            said("b", "a", 0.9, removed=0.9, kept=0.1, explained="a"),
            said("b", "a", 0.9, removed=float("nan"), kept=0.1),
            said("a", "a", 0.9, removed=0.9, kept=0.1, critical=0),
        ]
    )
    assert facts.kept == pytest.approx(2 / 3)
    assert facts.removed == pytest.approx(2 / 3)
    assert sentences(facts)[-1] == (
        "Of the graphs with a structure, 67% keep the prediction with nothing else, and 67% lose it without it."
    )


def test_with_more_than_two_classes_the_sentence_says_what_was_measured() -> None:
    facts = summarise([said("a", "a", 0.9, removed=0.1, kept=0.9)], class_names=("a", "b", "c"))
    assert "100% stay above one half with nothing else, and 100% fall to it or below" in sentences(facts)[-1]


def test_where_nothing_stands_out_in_any_graph_no_sentence_tells_of_structures() -> None:
    facts = summarise([said(name, name, 0.9, removed=0.9, kept=0.5, critical=0) for name in "ab"])
    assert (facts.evidence_kept, facts.evidence_lost, facts.size, facts.kept, facts.removed) == (None,) * 5
    assert sentences(facts) == [
        "In 100% of the graphs nothing stands out.",
        "By class: a (1 graph): nothing stands out in 100%; b (1 graph): nothing stands out in 100%.",
    ]


def test_values_are_judged_by_their_errors() -> None:
    facts = summarise([said(1.5, 1.0, removed=3.5, kept=1.0), said(2.0, 2.0, removed=2.0, kept=2.5), said(9.0, None)])
    assert facts.scores["mae"] == pytest.approx(0.25)
    assert facts.scores["r2"] == pytest.approx(1 - 0.25 / 0.5)
    assert facts.scores["rmse"] == pytest.approx(0.125**0.5)
    assert (facts.calibration, facts.class_names, facts.kept) == ((), (), None)
    assert "accuracy" not in facts.scores
    assert facts.kept_change == pytest.approx(0.5)
    assert facts.removed_change == pytest.approx(1.0)
    assert "the predicted value moves by 0.5 on average; without it, by 1." in sentences(facts)[-1]


def test_values_without_spread_have_no_r2() -> None:
    assert summarise([said(1.5, 1.0), said(2.0, 1.0)]).scores.keys() == {"rmse", "mae"}


def test_nothing_to_sum_up_gives_no_figures() -> None:
    facts = summarise([], title="None", created="2020-02-02")
    known = {"title", "graphs", "created", "version"}
    assert all(not getattr(facts, field.name) for field in fields(facts) if field.name not in known)
    assert (facts.graphs, facts.created) == (0, "2020-02-02")
    assert sentences(facts) == []


def test_shares_are_never_all_or_nothing_unless_they_are_and_beyond_reason_only_bounded() -> None:
    assert [share(v) for v in (0.0, 0.001, 0.5, 0.996, 1.0)] == ["0%", "under 1%", "50%", "over 99%", "100%"]
    odd = ["-25%", "116%", "over 200%", "under -100%", "unknown"]
    assert [share(v) for v in (-0.25, 1.16, 31.0, -4.0, float("nan"))] == odd


def test_techniques_are_told() -> None:
    facts = summarise([said("a", "a", technique="x"), said("a", "a", technique="y")])
    assert facts.technique == "x, y"
