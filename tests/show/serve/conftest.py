"""A server on a free port, and a real browser to open its page; skipped where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

from tests.show.watching import Watch
from tests.support.browser import ARGUMENTS, find_browser

# a conftest cannot be skipped, and the tests below import these at their top
collect_ignore_glob = [] if all(map(find_spec, ("fastapi", "uvicorn", "rdkit"))) else ["test_*.py"]


@contextmanager
def listening(model: Any) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    import uvicorn

    from egocnn.show.serve.app import build
    from egocnn.show.serve.server import listen
    from egocnn.show.serve.settings import ServeConfig

    config = ServeConfig(port=0)
    app: Any = build(model, config)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off"))
    with listen(config) as opened:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{opened.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def browsing() -> Iterator[Callable[..., Any]]:
    """Runs a function with a browser, in a thread of its own: Playwright allows one driver a thread."""
    playwright, executable = find_browser()
    with ThreadPoolExecutor(1) as thread:
        driver = thread.submit(lambda: playwright.sync_playwright().start()).result()
        browser = thread.submit(
            lambda: driver.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        ).result()
        yield lambda work: thread.submit(work, browser).result()
        thread.submit(browser.close).result()
        thread.submit(driver.stop).result()


@pytest.fixture
def visit(browsing: Callable[..., Any]) -> Callable[..., Any]:
    """Serve a model, open its page and do something with it; fails if the page complains or asks anyone else."""

    def opened(model: Any, work: Callable[[Any], Any], **options: Any) -> Any:
        watch = Watch()

        def in_browser(browser: Any) -> Any:
            page = browser.new_page(**options)
            watch.add(page, expected="status of 422")
            try:
                page.goto(address)
                page.wait_for_selector("html[data-ready]")
                return work(page)
            finally:
                page.close()

        with listening(model) as address:
            result = browsing(in_browser)
        watch.check(address, "blob:")
        return result

    return opened
