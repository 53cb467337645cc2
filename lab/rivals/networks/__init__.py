"""Every neural rival of the paper's tables, trained by the same loop."""

from lab.rivals.networks.rivals import RIVALS
from lab.rivals.networks.system import Design, NetworkSystem, Settings

__all__ = ["RIVALS", "Design", "NetworkSystem", "Settings"]
