"""The draw of the two halves is the one that is written down."""

from __future__ import annotations

import json
from collections import Counter

from lab.record import ROOT
from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.halves import DRAW_SEED, draw_halves
from lab.truths.suite.task import NAMED


def test_the_halves_that_are_written_down_are_those_that_the_seed_draws() -> None:
    written = json.loads((ROOT / "results" / "truths_halves.json").read_text(encoding="utf-8"))
    assert written["seed"] == DRAW_SEED
    assert {half: written[half] for half in ("choosing", "reporting", "named")} == draw_halves()


def test_every_task_stands_in_one_half_and_named_tasks_choose_nothing() -> None:
    halves = draw_halves()
    assert sorted(name for names in halves.values() for name in names) == sorted(CATALOGUE)
    assert all((CATALOGUE[name].family == NAMED) == (half == "named") for half, own in halves.items() for name in own)


def test_every_family_is_split_evenly() -> None:
    halves = draw_halves()
    one, other = (Counter(CATALOGUE[name].family for name in halves[half]) for half in ("choosing", "reporting"))
    assert len(halves["choosing"]) + len(halves["reporting"]) >= 26
    assert all(abs(one[family] - other[family]) <= 1 for family in one | other)
    assert abs(len(halves["choosing"]) - len(halves["reporting"])) <= 1


def test_another_seed_draws_other_halves() -> None:
    assert draw_halves(seed=1) != draw_halves(seed=2)
