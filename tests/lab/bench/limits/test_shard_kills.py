"""Who may be killed is found by the session of a command; files are compared but for the seconds in their footers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from egocnn.files import write_json
from egocnn.scale.shards import MANIFEST, NOTE
from egocnn.show.tables import table_writer
from lab.bench.limits.shard_kills import processes_of, result_of_shards
from tests.support.commands import wait_until

pytest.importorskip("pyarrow")


def write_shard(out: Path, value: float, seconds: float) -> None:
    out.mkdir()
    note = {NOTE: f'{{"rows": 1, "seconds": {seconds}}}'}
    with table_writer(out / "a.parquet", {"predicted": "double"}, note) as write:
        write([{"predicted": value}])
    write_json(out / MANIFEST, {"shards": [{"rows": 1, "seconds": seconds}]})


def test_files_that_differ_in_their_seconds_alone_are_the_same(tmp_path: Path) -> None:
    for name, value, seconds in (("one", 1.0, 0.5), ("slow", 1.0, 123.456), ("other", 2.0, 0.5)):
        write_shard(tmp_path / name, value, seconds)
    one, slow, other = (result_of_shards(tmp_path / name) for name in ("one", "slow", "other"))
    assert one == slow
    assert one != other


def test_only_processes_of_the_session_are_found() -> None:
    words = [sys.executable, "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as process:
        wait_until(lambda: list(processes_of(process.pid)) == [process.pid])
        assert os.getpid() not in processes_of(process.pid)
        process.communicate(b"\n")
    assert processes_of(process.pid) == {}
