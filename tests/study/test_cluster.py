"""Jobs on a real Ray cluster of this machine: the same results, whoever dies on the way."""

import logging
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from egocnn.errors import DataError, EgoCNNError, MissingExtraError
from egocnn.study.cluster import LOCAL, RAY_ENVIRONMENT, RETRIES, in_order, run_jobs
from egocnn.study.crossval import CrossValidation, cross_validate
from tests.study.majority import most
from tests.support.commands import SHORT, Run, check_refused, wait_until
from tests.support.jobs import always_killed, broken, killed_once, slow, without_library
from tests.support.tiny import ALCOHOLS, SIZES, alcohols, names_in, plain_model, plain_train

if find_spec("ray") is None:
    pytest.skip("ray is not installed", allow_module_level=True)

MODEL = plain_model(**SIZES)
TRAIN = plain_train(epochs=2, device="cpu")


@pytest.fixture(scope="module", autouse=True)
def two_workers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in RAY_ENVIRONMENT.items():
            patch.setenv(name, value)
        import ray

        quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(LOCAL, num_cpus=2, object_store_memory=100_000_000, **quiet)
        yield
        ray.shutdown()


def scores(record: CrossValidation) -> list[Any]:
    return [(fold.fold, fold.runs, fold.parameters) for fold in record.folds]


def test_scores_are_the_same_in_one_process_and_on_ray() -> None:
    here = cross_validate(alcohols(), MODEL, TRAIN, folds=2, restarts=2)
    by_ray = cross_validate(alcohols(), MODEL, TRAIN, folds=2, restarts=2, ray=LOCAL)
    assert scores(by_ray) == scores(here)
    assert [fold.fold for fold in by_ray.folds] == [1, 2]


def test_a_killed_worker_costs_its_fold_one_retry_and_leaves_no_word_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed, alive = tmp_path / "killed", tmp_path / "alive"
    by_ray = cross_validate(alcohols(), most(killed, "killed once"), TRAIN, folds=3, ray=LOCAL, jobs=1)
    time.sleep(0.5)  # Ray would tell of it from another thread
    assert capfd.readouterr() == ("", "")
    assert scores(by_ray) == scores(cross_validate(alcohols(), most(alive), TRAIN, folds=3))
    assert len(names_in(killed)) == len(names_in(alive)) + 1


def test_what_is_refused_on_a_worker_is_refused_here_and_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^no use for [0-9]+ graphs$"):
        cross_validate(alcohols(), most(tmp_path, "refuses"), TRAIN, folds=3, ray=LOCAL, jobs=1)
    assert len(names_in(tmp_path)) <= 2  # the next fold may have begun


def test_calls_in_order_lose_a_worker_and_keep_their_order(tmp_path: Path) -> None:
    assert list(in_order(killed_once, ((tmp_path, number) for number in range(9)), ray=LOCAL)) == list(range(9))
    assert len(names_in(tmp_path)) == 2


@pytest.mark.parametrize("ray", [None, LOCAL])
def test_refusals_that_cannot_be_pickled_arrive_all_the_same(ray: str | None) -> None:
    with pytest.raises(MissingExtraError, match=r"^a library is not installed; type: "):
        list(run_jobs(without_library, [()] * 4, jobs=2, ray=ray))


def test_what_goes_wrong_on_a_worker_is_told_here(tmp_path: Path) -> None:
    with pytest.raises(EgoCNNError, match=f"^{RETRIES + 1} workers died of the same job, one after the other; .*$"):
        list(run_jobs(always_killed, [(tmp_path,)], ray=LOCAL))
    assert len(names_in(tmp_path)) == RETRIES + 1
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$") as caught:
        list(run_jobs(broken, [(0,)], ray=LOCAL))
    assert "in broken" in str(caught.value.__cause__)  # a defect shows with the place where it happened
    assert list(run_jobs(broken, [], ray="nowhere:1")) == []  # without a call nobody is asked


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_every_call_gives_one_result_however_many_run_at_a_time(jobs: int | None) -> None:
    calls = [(2, number) for number in range(7)]
    assert sorted(run_jobs(pow, calls, jobs=jobs, ray=LOCAL)) == [2**number for number in range(7)]


def test_results_come_as_they_finish_and_the_rest_is_called_off(tmp_path: Path) -> None:
    results = run_jobs(slow, [(tmp_path, 1), (tmp_path, 0)], ray=LOCAL)
    assert next(results) == 0
    wait_until((tmp_path / "1 started").exists)
    results.close()
    assert sorted(run_jobs(pow, [(2, 1), (2, 2)], ray=LOCAL)) == [2, 4]
    assert names_in(tmp_path) == ["0 ended", "0 started", "1 started"]  # and never ended


def test_one_bad_training_on_a_worker_is_one_line_and_exit_code_2(run: Run) -> None:
    words = ["crossval", ALCOHOLS, *SHORT, "--folds", 2, "--ray", LOCAL]
    check_refused(run, "training diverged in fold", *words, "--learning-rate", "1e30")
    check_refused(run, "--stack does not go with it", *words, "--stack")
    check_refused(run, "--device cuda does not go with it", *words, "--device", "cuda")
