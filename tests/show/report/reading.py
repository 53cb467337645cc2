"""What a reader does with a report: look at its cards, open one, go on to the next, save what is shown."""

from pathlib import Path
from typing import Any


def names(page: Any) -> list[str]:
    """The names on the cards, in their order."""
    found: list[str] = page.locator(".card strong").all_inner_texts()
    return found


def open_card(page: Any, number: int) -> None:
    page.locator(".card").nth(number).click()
    page.wait_for_selector("#viewer[open]")  # it opens once the page has heard of the new address


def go_on(page: Any, place: str) -> None:
    """To the next graph, which is ``2 of 3``, say."""
    page.click("#next")
    page.wait_for_function("place => byId('place').textContent === place", arg=place)


def drawn(page: Any, asked: str) -> Any:
    """What an expression says of ``cy``, cytoscape's graph on the canvas."""
    return page.evaluate(f"() => {{ const cy = byId('canvas')._cyreg.cy; return {asked}; }}")


def save(page: Any, kind: str, path: Path) -> str:
    """Save what is shown as a file of this kind; the name that the page suggests for it."""
    with page.expect_download() as waiting:
        page.click(f"#save-{kind}")
    waiting.value.save_as(path)
    suggested: str = waiting.value.suggested_filename
    return suggested
