"""The facts on top of a report, against values worked out by hand."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from typing import Any

import numpy as np
import pytest

from egocnn.data.graphs import Graph
from egocnn.explain.structure import CriticalStructure, Fidelity
from egocnn.show.report.summary import sentences, share, summarise
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
    critical: int = 1,
    **changes: Any,
) -> CriticalStructure:
    return structure(
        chain(target),
        predicted=predicted,
        probability=probability,
        explained=changes.pop("explained", predicted if isinstance(predicted, str) else None),
        fidelity=None if removed is None else Fidelity(removed=removed, kept=kept),
        critical_nodes=np.arange(critical),
        **changes,
    )


def test_accuracy_counts_graphs_of_known_class_only() -> None:
    facts = summarise([said("a", "a"), said("a", "b"), said("b", "b"), said("b", None)])
    assert facts.accuracy == pytest.approx(2 / 3)
    assert facts.class_names == ("a", "b")
    assert facts.graphs == 4


def test_calibration_compares_what_was_stated_with_what_was_right() -> None:
    facts = summarise([said("a", "a", 0.92), said("a", "b", 0.98), said("a", "a", 1.0), said("b", "b", 0.55)])
    np.testing.assert_allclose(facts.calibration, [(0.55, 1, 1), (2.9 / 3, 2 / 3, 3)])
    assert facts.calibration_error == pytest.approx((0.45 + 3 * 0.3) / 4)


def test_fidelity_says_how_often_the_prediction_holds_and_how_often_it_falls() -> None:
    facts = summarise(
        [
            said("a", "a", 0.9, removed=0.1, kept=0.9),
            said("a", "a", 0.9, removed=0.6, kept=0.8, critical=3),
            said("b", "a", 0.9, removed=0.5, kept=0.5),
            said("b", "a", 0.9),
            said("b", "a", 0.9, removed=0.9, kept=0.1, explained="a"),
            said("b", "a", 0.9, removed=float("nan"), kept=0.1),
        ]
    )
    assert facts.kept == pytest.approx(2 / 3)
    assert facts.removed == pytest.approx(2 / 3)
    assert facts.size == pytest.approx((5 * 0.25 + 0.75) / 6)
    assert sentences(facts)[0] == (
        "Cut down to the critical structure alone, 67% of the graphs keep their prediction; "
        "with it removed, 67% lose it."
    )
    assert facts.by_class == (("a", 1.0, 0.5, 2), ("b", 0.0, 1.0, 1))
    assert sentences(facts)[1] == (
        "By class: of the 2 predicted a, 100% are kept and 50% lost; of the 1 predicted b, 0% are kept and 100% lost."
    )


def test_with_more_than_two_classes_the_sentence_says_what_was_measured() -> None:
    facts = summarise([said("a", "a", 0.9, removed=0.1, kept=0.9)], class_names=("a", "b", "c"))
    assert "100% of the graphs leave the predicted class more than half of the probability" in sentences(facts)[0]


def test_values_are_judged_by_their_errors() -> None:
    facts = summarise([said(1.5, 1.0, removed=3.5, kept=1.0), said(2.0, 2.0, removed=2.0, kept=2.5), said(9.0, None)])
    assert facts.mean_absolute_error == pytest.approx(0.25)
    assert facts.r2 == pytest.approx(1 - 0.25 / 0.5)
    assert (facts.accuracy, facts.calibration, facts.class_names, facts.kept) == (None, (), (), None)
    assert facts.kept_change == pytest.approx(0.5)
    assert facts.removed_change == pytest.approx(1.0)
    assert "the predicted value moves by 0.5 on average; with it removed, by 1." in sentences(facts)[0]


def test_values_without_spread_have_no_r2() -> None:
    assert summarise([said(1.5, 1.0), said(2.0, 1.0)]).r2 is None


def test_nothing_to_sum_up_gives_no_figures() -> None:
    facts = summarise([], title="None", created=date(2020, 2, 2))
    known = {"title", "graphs", "created", "version"}
    assert all(not getattr(facts, field.name) for field in fields(facts) if field.name not in known)
    assert (facts.graphs, facts.created) == (0, "2020-02-02")
    assert sentences(facts) == []


def test_shares_are_never_all_or_nothing_unless_they_are() -> None:
    assert [share(v) for v in (0.0, 0.001, 0.5, 0.996, 1.0)] == ["0%", "under 1%", "50%", "over 99%", "100%"]


def test_techniques_and_the_score_against_known_structures_are_told() -> None:
    facts = summarise([said("a", "a", technique="x"), said("a", "a", technique="y")], truth=0.9876)
    assert facts.technique == "x, y"
    assert "a score of 0.988" in sentences(facts)[-1]
