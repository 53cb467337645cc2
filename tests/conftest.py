"""What all tests share: quiet use of one core, the folder of real data where there is one, and a browser."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.support.commands import Run

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch is imported after this; small tensors gain nothing from more
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # GPU kernels run all the same; to be said before Triton is imported
# a Ray cluster asks for a token, and a process reads it once: one for all tests; without, Ray writes one into the home
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
# what is started in the background ignores Ctrl-C, and so would every process that a test starts and interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
# EGOCNN_EXAMPLES=400, say, looks longer for what breaks a property
settings.register_profile("egocnn", deadline=None, max_examples=int(os.environ.get("EGOCNN_EXAMPLES", "40")))
settings.load_profile("egocnn")


def pytest_runtest_setup() -> None:
    """Threads and warnings as at the start: what one test sets must not change what the next one finds."""
    logging.getLogger("egocnn").setLevel(logging.NOTSET)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with tu/, explain/ and splits/."""
    folder = os.environ.get("EGOCNN_DATA")
    if not folder:
        pytest.skip("EGOCNN_DATA does not name the folder with the data sets")
    if not Path(folder, "tu").is_dir():
        pytest.skip(f"EGOCNN_DATA names {folder}, which has no folder tu")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's or anyone's Chromium, without a network; one for all tests: Playwright allows one driver a thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        pytest.skip("no chromium on this machine to open pages with")
    quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found[0], args=["--no-sandbox", "--no-first-run", *quiet])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def alcohol_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a network trained shortly on generated alcohols; a test that would change it takes a copy."""
    from egocnn.cli import main
    from tests.support.commands import SHORT
    from tests.support.tiny import ALCOHOLS

    folder = tmp_path_factory.mktemp("alcohols") / "run"
    assert main(["train", ALCOHOLS, "-o", str(folder), *SHORT]) == 0
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: words -> exit code, stdout, stderr."""
    from tests.support.commands import runner  # what it imports must wait for the settings above

    return runner(capsys)
