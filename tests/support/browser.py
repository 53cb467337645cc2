"""Debian's or anyone's Chromium, started quietly and without a network."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find_browser() -> tuple[Any, str]:
    """Playwright's way to drive it, and where it is; where either is missing, the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no chromium on this machine to open pages with")
    return playwright, executable
