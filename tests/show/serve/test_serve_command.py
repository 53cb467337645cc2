"""``egocnn serve`` from the command line, and the script that puts it under load."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from egocnn.data.sources.smiles import parse_smiles
from lab.bench.cpu import serve_load
from tests.show.serve.models import classifier
from tests.support.commands import check_refused, runner


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "toxic"
    classifier().predictor.save(folder)
    return folder


def test_the_command_serves_a_run_until_it_is_stopped(run_folder: Path) -> None:
    words = [sys.executable, "-m", "egocnn", "serve", str(run_folder), "--port", "0", "--workers", "1", "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        assert told["address"].startswith("http://127.0.0.1:")
        asked = urllib.request.Request(
            f"{told['address']}/explain", json.dumps({"smiles": "CCO"}).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as response:
            (answer,) = json.load(response)["answers"]
        assert answer["predicted"] in ("alcohol", "other")
        assert told["model"] == "toxic"
    finally:
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors


def test_what_cannot_be_served_is_refused_in_one_line(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner(capsys)
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


def test_the_load_is_made_of_different_molecules_of_one_size() -> None:
    made: Any = serve_load.molecules(100)
    assert len(set(made)) == 100
    assert {parse_smiles(smiles).GetNumAtoms() for smiles in made} == {20}
