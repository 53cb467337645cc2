"""Every neural rival of the paper's tables, trained by the same loop."""

from egocnn.baselines.networks.rivals import RIVALS
from egocnn.baselines.networks.system import Design, NetworkSystem, Settings

__all__ = ["RIVALS", "Design", "NetworkSystem", "Settings"]
