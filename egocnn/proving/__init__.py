"""Explanations against known truths: every technique, its controls and its peers, over several seeds -> one table."""

from egocnn.proving.run import TITLE, prove
from egocnn.proving.tasks import TASKS

__all__ = ["TASKS", "TITLE", "prove"]
