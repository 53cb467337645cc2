"""A server on a free port, and a real browser to open its page; skipped where there is none."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from tests.show.watching import Watch

# a conftest cannot be skipped, and the tests below import these at their top
collect_ignore_glob = [] if all(map(find_spec, ("fastapi", "uvicorn", "rdkit"))) else ["test_*.py"]


@pytest.fixture(scope="module")
def address_of() -> Iterator[Callable[[Any], str]]:
    """Serves each model once for all tests of a file."""
    from egocnn.show.serve.settings import ServeConfig
    from tests.show.serve.models import running, served

    with ExitStack() as servers:

        @cache
        def start(model: Any) -> str:
            config = ServeConfig(port=0)
            return f"http://127.0.0.1:{servers.enter_context(running(served(model, config), config))[1]}"

        yield start


@pytest.fixture
def visit(browser: Any, address_of: Callable[[Any], str]) -> Callable[..., AbstractContextManager[Any]]:
    """Opens the page of a model; fails if the page complains or asks anyone but its server."""

    @contextmanager
    def opened(model: Any, **options: Any) -> Iterator[Any]:
        watch, address = Watch(), address_of(model)
        with closing(browser.new_page(**options)) as page:
            watch.add(page, expected="status of 422")
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            yield page
        watch.check(address, "blob:")

    return opened
