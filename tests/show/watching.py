"""What a page in a browser does that it should not: complaints, dialogs, requests to strangers."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Watch:
    """Listens to the pages it is given."""

    complaints: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    def add(self, page: Any, *, expected: str = "\0") -> None:
        """Listen to a page from now on; what its console says is no complaint if it contains ``expected``."""

        def on_console(message: Any) -> None:
            if message.type in ("error", "warning") and expected not in message.text:
                self.complaints.append(message.text)

        def on_dialog(dialog: Any) -> None:
            self.complaints.append(f"dialog {dialog.message}")
            dialog.dismiss()

        page.set_default_timeout(15_000)
        page.on("console", on_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", on_dialog)
        page.on("request", lambda request: self.requested.append(request.url))

    def check(self, *allowed: str) -> None:
        """Fail if there was a complaint, or a request to an address that begins otherwise than the allowed ones."""
        assert self.complaints == [], self.complaints
        strangers = [url for url in self.requested if not url.startswith(allowed)]
        assert strangers == [], strangers
