"""Explanations against known truths: every technique, its controls and its peers, over several seeds -> one table."""

from lab.proving.run import TITLE, prove
from lab.proving.tasks import TASKS

__all__ = ["TASKS", "TITLE", "prove"]
