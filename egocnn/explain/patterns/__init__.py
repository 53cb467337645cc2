"""Critical structures of a data set -> the patterns that recur in them."""

from egocnn.explain.patterns.find import find_patterns
from egocnn.explain.patterns.record import Occurrence, Pattern

__all__ = ["Occurrence", "Pattern", "find_patterns"]
