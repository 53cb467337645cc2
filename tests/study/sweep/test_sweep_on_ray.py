"""A sweep on a real Ray cluster of this machine, one worker of which is killed."""

from __future__ import annotations

import logging
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from egocnn.study.cluster import LOCAL, RAY_ENVIRONMENT
from egocnn.study.sweep.search import Execution
from tests.study.sweep.jobs import killed_once
from tests.study.sweep.test_sweep import scores, tried
from tests.support.tiny import names_in

if find_spec("ray") is None:
    pytest.skip("ray is not installed", allow_module_level=True)


def test_a_killed_worker_costs_one_retry_and_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in RAY_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    import ray

    attempts = tmp_path / "attempts"
    attempts.mkdir()
    wanted = scores(tried(tmp_path / "here", "width=4,8"))
    monkeypatch.setattr("egocnn.study.sweep.search.score_pair", partial(killed_once, attempts))
    ray.init(
        LOCAL,
        num_cpus=2,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        found = tried(tmp_path / "ray", "width=4,8", execution=Execution(ray=LOCAL, jobs=1))
    finally:
        ray.shutdown()
    assert scores(found) == wanted
    assert len(names_in(attempts)) == 2 * 2 + 1
