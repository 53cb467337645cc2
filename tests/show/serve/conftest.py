"""A server on a free port, and a real browser to open its page; skipped where there is none."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

from tests.show.watching import Watch

# a conftest cannot be skipped, and the tests below import these at their top
collect_ignore_glob = [] if all(map(find_spec, ("fastapi", "uvicorn", "rdkit"))) else ["test_*.py"]


@pytest.fixture
def visit(browser: Any) -> Callable[..., AbstractContextManager[Any]]:
    """Serves a model and opens its page; fails if the page complains or asks anyone else."""

    @contextmanager
    def opened(model: Any, **options: Any) -> Iterator[Any]:
        from egocnn.show.serve.settings import ServeConfig
        from tests.show.serve.models import running, served

        watch, config = Watch(), ServeConfig(port=0)
        with running(served(model, config), config) as (_, port), closing(browser.new_page(**options)) as page:
            address = f"http://127.0.0.1:{port}"
            watch.add(page, expected="status of 422")
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            yield page
        watch.check(address, "blob:")

    return opened
