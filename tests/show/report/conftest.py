"""Reports in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from egocnn.explain.structure import CriticalStructure
from egocnn.show.report import summarise, write_report
from tests.show.report.made_up import on_a_circle


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a report of these structures and open it; the test fails if the page complains or asks for anything."""
    asked: list[str] = []
    complaints: list[str] = []
    pages: list[Any] = []

    def refuse(dialog: Any) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def write_and_open(structures: Sequence[CriticalStructure], *, place: str = "", **options: Any) -> Any:
        path = write_report(structures, tmp_path, summary=summarise(structures), positions=on_a_circle)
        options.setdefault("viewport", {"width": 1200, "height": 800})
        page = browser.new_page(**options)
        page.set_default_timeout(15_000)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", refuse)
        pages.append(page)
        page.goto(path.as_uri() + place)
        page.wait_for_selector("html[data-ready]")
        return page

    yield write_and_open
    for page in pages:
        page.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
