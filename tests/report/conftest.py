"""A real browser for the report's tests, without a network; skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from egocnn.report import summarise, write_report
from egocnn.structure import CriticalStructure
from tests.report.made_up import on_a_circle

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no chromium on this machine to open the report with")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield opened
        opened.close()


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
