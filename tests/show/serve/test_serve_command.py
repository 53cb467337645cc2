"""``egocnn serve``: it serves a run until it is stopped, lets requests be finished, and refuses what it cannot do."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.show.serve.models import classifier
from tests.show.serve.stubs import until
from tests.support.commands import Run, check_refused
from tests.support.samples import sure


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "toxic"
    classifier().predictor.save(folder)
    return folder


def test_the_command_serves_a_run_to_those_with_the_token_until_it_is_stopped(run_folder: Path) -> None:
    words = [sys.executable, "-m", "egocnn", "serve", str(run_folder), "--port", "0", "--workers", "1", "--json"]
    words += ["--token", "secret"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = json.loads(sure(server.stdout).readline())
        assert told["address"].startswith("http://127.0.0.1:")
        asked = urllib.request.Request(
            f"{told['address']}/explain", json.dumps({"smiles": "CCO"}).encode(), {"content-type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(asked, timeout=600)
        asked.add_header("authorization", "Bearer secret")
        with urllib.request.urlopen(asked, timeout=600) as response:
            (answer,) = json.load(response)["answers"]
        assert answer["predicted"] in ("alcohol", "other")
        assert told["model"] == "toxic"
    finally:
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=600)
    assert "Traceback" not in errors


def test_what_cannot_be_served_is_refused_in_one_line(
    run_folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_refused(run, "not a run folder", "serve", tmp_path, "--workers", "1")
    check_refused(run, "port must be 0 to 65535", "serve", run_folder, "--port", "99999")
    check_refused(run, "workers must be at least 1", "serve", run_folder, "--workers", "0")
    check_refused(
        run, "cannot listen on nowhere.invalid", "serve", run_folder, "--host", "nowhere.invalid", "--token", "x"
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        check_refused(run, "Address already in use", "serve", run_folder, "--port", taken.getsockname()[1])
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    check_refused(run, 'pip install "egocnn[serve]"', "serve", run_folder)


SCRIPT = """
import sys
from pathlib import Path

from egocnn.show.serve import server
from egocnn.show.serve.settings import ServeConfig
from tests.show.serve.stubs import stub

server.serve_requests = stub
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
            yield server, sure(server.stdout).readline().strip()
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
