"""A server on a free port, and a real browser to open its page; skipped where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

from tests.show.watching import Watch

# a conftest cannot be skipped, and the tests below import these at their top
collect_ignore_glob = [] if all(map(find_spec, ("fastapi", "uvicorn", "rdkit"))) else ["test_*.py"]


@contextmanager
def listening(model: Any) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    import uvicorn

    from egocnn.show.serve.server import listen
    from egocnn.show.serve.settings import ServeConfig
    from tests.show.serve.models import served

    config = ServeConfig(port=0)
    app = served(model, config)
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


@pytest.fixture
def visit(browser: Any) -> Callable[..., AbstractContextManager[Any]]:
    """Serves a model and opens its page; fails if the page complains or asks anyone else."""

    @contextmanager
    def opened(model: Any, **options: Any) -> Iterator[Any]:
        watch = Watch()
        with listening(model) as address, closing(browser.new_page(**options)) as page:
            watch.add(page, expected="status of 422")
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            yield page
        watch.check(address, "blob:")

    return opened
