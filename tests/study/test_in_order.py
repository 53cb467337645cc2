"""Very many calls on a few processes: results in the order of the calls, whoever dies on the way."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from joblib import Parallel, delayed

from egocnn.errors import EgoCNNError
from egocnn.study import cluster
from egocnn.study.cluster import DIED, KEEPS_MEMORY, RETRIES, in_order
from tests.support.jobs import always_killed, broken, killed_once
from tests.support.tiny import names_in


def test_calls_are_taken_as_they_are_needed_and_results_come_in_their_order() -> None:
    taken = list[int]()

    def calls() -> Iterator[tuple[int, int]]:
        for number in range(1000):
            taken.append(number)
            yield 2, number

    for jobs in (1, 2):
        taken.clear()
        results = in_order(pow, calls(), jobs=jobs)
        assert [next(results) for _ in range(6)] == [2**number for number in range(6)]
        assert len(taken) <= 6 + 2 * jobs
        results.close()


def test_processes_compute_with_one_thread_and_keep_the_memory_that_they_work_in() -> None:
    """To get it anew for every portion takes a good part of the time; glibc reads the settings as a process starts."""
    settings = {"OMP_NUM_THREADS": "1", **KEEPS_MEMORY}
    assert list(in_order(os.getenv, [(name,) for name in settings], jobs=2)) == list(settings.values())


def test_a_process_that_dies_costs_its_call_a_retry(tmp_path: Path) -> None:
    assert list(in_order(killed_once, ((tmp_path, number) for number in range(9)), jobs=2)) == list(range(9))
    assert len(names_in(tmp_path)) == 2


def test_a_call_that_no_process_survives_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DIED.startswith(f"{RETRIES + 1} workers died of the same job, one after the other; ")
    monkeypatch.setattr(cluster, "RETRIES", 1)  # processes take their time to start
    with pytest.raises(EgoCNNError, match=re.escape(DIED)):
        list(in_order(always_killed, [(tmp_path,)], jobs=2))
    assert len(names_in(tmp_path)) == 1 + 1


def test_a_defect_shows_as_what_it_is_and_the_next_calls_and_joblib_find_processes_of_their_own() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_order(broken, [(1,), (0,), (2,)], jobs=2))
    assert list(in_order(broken, [(1,), (2,)], jobs=2)) == [1, 0.5]
    assert Parallel(n_jobs=2)(delayed(pow)(3, number) for number in range(3)) == [1, 3, 9]
