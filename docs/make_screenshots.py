"""The screenshots of the site: the molecules tutorial, run as it stands -> docs/pictures/*.png, by headless Chromium.

python docs/make_screenshots.py        needs playwright, a chromium on the path, and the extras serve and molecules

python docs/make_screenshots.py found  only the picture of the README, from the figures in results/

With EGOCNN_DATA set, the picture of the tutorial on social networks is made anew too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the tests run the tutorials
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.support.pages import run  # noqa: E402  found by the line above

PICTURES = HERE / "pictures"
FOUND = ("figure5/alcohol-C82H165OH-1.svg", "figure6/1-REDDIT-BINARY-494.svg")
"""Of results/: what the README shows, as PNG, since not every package index shows SVG."""
COLOURS = 256
"""Of a screenshot's palette: a page has few, and the file becomes half as large."""
TYPED = "c1ccc(OC)cc1[N+](=O)[O-] nitroanisole\nC1CCC(CC)CC1[N+](=O)[O-] an aliphatic one"


def main() -> None:
    with opened_browser() as browser:
        show_found(browser)
    if sys.argv[1:] == ["found"]:
        return
    with tempfile.TemporaryDirectory() as folder:
        for _ in run((HERE / "tutorials" / "molecules.md").read_text(encoding="utf-8"), Path(folder)):
            pass
        with opened_browser() as browser:
            show_report(browser, Path(folder) / "report" / "index.html")
            with served(Path(folder) / "runs" / "nitro") as address:
                show_page(browser, address)
        if "EGOCNN_DATA" in os.environ:
            for _ in run((HERE / "tutorials" / "social-networks.md").read_text(encoding="utf-8"), Path(folder)):
                pass
            shutil.copyfile(Path(folder) / "thread.svg", PICTURES / "thread.svg")


@contextmanager
def opened_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def served(run_folder: Path) -> Iterator[str]:
    """The address of ``egocnn serve`` on a free port."""
    words = [sys.executable, "-m", "egocnn", "serve", str(run_folder), "--port", "0", "--workers", "1", "--json"]
    server = subprocess.Popen(words, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["address"]
    finally:
        server.terminate()
        server.wait()


def show_found(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 500}, color_scheme="light")
    drawn = "".join(f"<div>{(HERE.parent / 'results' / name).read_text(encoding='utf-8')}</div>" for name in FOUND)
    style = "body{margin:0;display:flex;align-items:center;height:500px}div{width:50%}svg{width:100%;height:auto}"
    page.set_content(f"<style>{style}</style>{drawn}")
    keep(page, "found.png")
    page.close()


def show_report(browser: Any, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1120, "height": 1240}, color_scheme="light")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector("canvas[data-drawn]")
    page.wait_for_timeout(500)  # the cards are drawn one after the other
    keep(page, "report.png")
    page.set_viewport_size({"width": 1120, "height": 820})
    page.locator(".card").first.click()
    page.wait_for_selector("#viewer[open]")
    page.wait_for_timeout(500)  # the view fits itself to the window
    keep(page, "report-viewer.png")
    page.close()


def show_page(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1120, "height": 940}, color_scheme="light")
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.fill("#smiles", TYPED)
    page.wait_for_selector("#answers:not(.stale) article >> nth=1")
    page.wait_for_timeout(500)
    keep(page, "serve.png")
    page.close()


def keep(page: Any, name: str) -> None:
    from PIL import Image

    path = PICTURES / name
    page.screenshot(path=str(path))
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
