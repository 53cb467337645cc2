"""A server that is told to stop: requests are finished, hung workers killed, and it ends well."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.show.serve.stubs import until

SCRIPT = """
import sys
from pathlib import Path

from egocnn.show.serve import server, worker
from egocnn.show.serve.settings import ServeConfig
from tests.show.serve.stubs import stub

worker.serve_requests = stub
server.FINISH_SECONDS = int(sys.argv[1])
config = ServeConfig(port=0, seconds=600, work_seconds=600)
server.serve(Path("."), config, ready=lambda address, model: print(address, flush=True))
if heavy := {"torch", "rdkit", "numpy"} & set(sys.modules):
    sys.exit(f"the server imported {heavy}")
"""


@contextmanager
def stubbed(finish: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of stubs that gives requests so many seconds to finish, and its address."""
    words = [sys.executable, "-c", SCRIPT, str(finish)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def ask(address: str, line: str) -> Any:
    """The answer, or what came instead of one."""
    with closing(HTTPConnection(address.removeprefix("http://"), timeout=300)) as connection:
        try:
            connection.request("POST", "/explain", json.dumps({"smiles": line}), {"content-type": "application/json"})
            return json.load(connection.getresponse())
        except (OSError, HTTPException) as error:
            return error.with_traceback(None)


def test_a_request_that_is_being_answered_is_finished_and_the_server_ends_well(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with stubbed(300) as (server, address), ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, address, f"wait {mark}")
        until(mark.exists)
        server.send_signal(signal.SIGTERM)
        until(lambda: isinstance(ask(address, "C"), OSError))  # nobody new is let in
        Path(f"{mark}.done").touch()
        assert "answers" in asked.result()
        assert server.wait(300) == 0, server.stderr and server.stderr.read()


def test_a_worker_that_hangs_keeps_nobody_from_stopping_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with stubbed(1) as (server, address), ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, address, f"hang {mark}")
        until(mark.exists)
        with urllib.request.urlopen(f"{address}/health", timeout=300) as response:
            assert response.status == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(300) == 0, server.stderr and server.stderr.read()
        assert asked.result() == {"error": "the server is being stopped"}
