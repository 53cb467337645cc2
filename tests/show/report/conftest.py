"""Reports in a real browser."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from egocnn.explain.structure import CriticalStructure
from egocnn.show.report import summarise
from tests.show.report.made_up import written
from tests.show.watching import Watch


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a report of these structures and open it; the test fails if the page complains or asks for anything."""
    watch = Watch()
    pages: list[Any] = []

    def write_and_open(structures: Sequence[CriticalStructure], *, place: str = "", **given: Any) -> Any:
        """``place`` goes behind the address; ``parts`` and ``about`` are for the report, all else is for the page."""
        parts, about = given.pop("parts", None), given.pop("about", {})
        facts = summarise(structures, parts=parts, **about)
        path = written(structures, tmp_path, facts, parts)
        page = browser.new_page(**{"viewport": {"width": 1200, "height": 800}} | given)
        watch.add(page)
        pages.append(page)
        page.goto(path.as_uri() + place)
        page.wait_for_selector("html[data-ready]")
        return page

    yield write_and_open
    for page in pages:
        page.close()
    watch.check("file:", "data:", "blob:")
